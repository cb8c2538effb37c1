//! Field cases about the whole way from a context to the rebuilt one.

use foldline_session_model::llm::{LlmBlock, LlmMessage, Wrappers};
use foldline_session_model::tokens::{PixelSize, TokenCounter as _};

use super::*;
use crate::prompts::{Prompt, Variables};
use crate::testing::{filler, prose};

/// A message with one picture; `data` is its base64.
fn with_picture(role: &str, data: &str) -> String {
    format!(
        "{{{role},\"content\":[{{\"type\":\"text\",\"text\":\"see\"}},{{\"type\":\"image\",\"data\":\"{data}\",\"mimeType\":\"image/png\"}}]}}"
    )
}

/// The texts of a view, one for each message.
fn texts(view: &[LlmMessage<'_>]) -> Vec<String> {
    let text = |message: &LlmMessage<'_>| {
        let blocks = message.content.iter().filter_map(|block| match block {
            LlmBlock::Text(text) => Some(&**text),
            _ => None,
        });
        blocks.collect::<Vec<_>>().join("\n")
    };
    view.iter().map(text).collect()
}

#[test]
fn fb_001_a_request_is_measured_before_it_leaves() {
    let picture = "A".repeat(3_000_000);
    let mut rows = Rows::new().message("p1", &with_picture("\"role\":\"user\"", &picture));
    for i in 0..60 {
        rows = rows
            .user(&format!("u{i}"), &prose(100))
            .call(&format!("a{i}"), &format!("c{i}"), "bash", r#"{"cmd":"ls"}"#)
            .result(&format!("t{i}"), &format!("c{i}"), "bash", &prose(4_500));
    }
    let log = rows.log();
    let context = context(&log);
    assert!(ContextSize::of(&context, Tokens::ZERO, Tokens::ZERO, &Heuristic).tokens > Tokens(258_000));
    let limit = Tokens(258_000 - 16_384);
    let mut asked = 0;
    let compaction = Setup::new(258_000, 20_000).compact(&context, |request| {
        asked += 1;
        let text = prompt(request);
        assert!(Heuristic.one(&text) <= limit && request.estimate <= limit);
        assert!(!text.contains("AAAA") && text.len() < 2_000_000);
        reply(NOTES)
    });
    let details = compaction.unwrap().draft.details;
    assert!(asked >= 1 && details.contains("\"planner\":\"p/m\""), "{details}");
}

#[test]
fn fb_057_newer_messages_outrank_the_summary() {
    let mut rows = Rows::new().user("u1", "plan A");
    for i in 0..6 {
        rows = rows.assistant(&format!("a{i}"), &prose(1_000));
    }
    let rows = rows.user("u8", "stop A; do B");
    let log = rows.clone().log();
    let context = context(&log);
    let setup = Setup::new(200_000, 1);
    let summary = "## Goal\nPlan A.\n\n## Progress\n### Done\n- [x] A1\n\n## Next Steps\n1. A2";
    let compaction = setup
        .compact(&context, |request| {
            assert!(prompt(request).contains("the newest messages, which override anything here"));
            reply(summary)
        })
        .unwrap();
    let log = appended(rows, "C1", &compaction).log();
    let context = crate::testing::context(&log);
    let wrappers = Wrappers::default();
    let view = texts(&context.converted(&wrappers));
    assert!(view[0].contains("A2") && view[0].contains("messages after it are newer"));
    assert_eq!(view.last().map(String::as_str), Some("stop A; do B"));
    let go_on = setup
        .prompts
        .0
        .render(Prompt::AutoContinue, &Variables::default())
        .unwrap();
    assert!(go_on.contains("newest message of the user") && !go_on.contains("Next Steps"));
}

#[test]
fn fb_083_pictures_over_their_budget_are_not_kept() {
    // The beginning of a PNG of 2044 by 990 pixels.
    let picture = format!("iVBORw0KGgoAAAANSUhEUgAAB/wAAAPeCAYAAAA{}", "A".repeat(2_330_456));
    let size = PixelSize::of_base64(&picture).unwrap();
    assert_eq!(
        (size.to_string().as_str(), size.tokens()),
        ("2044x990", Tokens(1_600))
    );
    let result = "\"role\":\"toolResult\",\"toolCallId\":\"c1\",\"toolName\":\"shot\",\"isError\":false";
    let start = Rows::new()
        .user("u1", &prose(4_000))
        .assistant("a0", &prose(20_000))
        .user("u2", "look")
        .call("a1", "c1", "shot", "{}")
        .message("t1", &with_picture(result, &picture));
    let ends = [start.clone(), start.assistant("a2", "I see.")];
    for rows in ends {
        let log = rows.clone().log();
        let context = context(&log);
        let setup = Setup::new(200_000, 20_000);
        let compaction = setup
            .compact(&context, |request| {
                assert!(prompt(request).len() < 200_000);
                reply(NOTES)
            })
            .unwrap();
        let log = appended(rows, "C1", &compaction).log();
        let rebuilt = crate::testing::context(&log);
        let bytes: u64 = rebuilt
            .messages()
            .filter_map(|m| m.content())
            .map(|c| c.media_bytes().get())
            .sum();
        assert_eq!(bytes, 0);
        assert!(compaction.draft.summary.contains("look"), "the request stays");
    }
}

#[test]
fn fb_108_signed_thinking_of_the_tail_is_whole_or_gone() {
    let thought = "a thought, word for word; ".repeat(350);
    let thinking = |id: &str, call: &str| {
        format!(
            "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\"thinking\":\"{thought}{id}\",\"thinkingSignature\":\"S{id}\"}},{{\"type\":\"text\",\"text\":\"t\"}},{{\"type\":\"toolCall\",\"id\":\"{call}\",\"name\":\"bash\",\"arguments\":{{}}}}],\"provider\":\"p\",\"model\":\"m\",\"stopReason\":\"toolUse\"}}"
        )
    };
    let rows = Rows::new()
        .user("u1", &prose(9_000))
        .message("a1", &thinking("1", "c1"))
        .result("t1", "c1", "bash", &prose(6_000))
        .user("u5", "go on")
        .message("a5", &thinking("5", "c5"))
        .result("t5", "c5", "bash", &prose(500))
        .message("a9", &thinking("9", "c9"))
        .result("t9", "c9", "bash", "ok")
        // A prune of a kept result edits none of its siblings.
        .entry(
            "p1",
            "custom",
            "\"customType\":\"foldline/prune\",\"data\":{\"items\":[{\"entryId\":\"t5\",\"notice\":\"[gone]\",\"tokens\":500}]}",
        );
    let log = rows.clone().log();
    let context = context(&log);
    let compaction = Setup::new(200_000, 6_000)
        .compact(&context, |request| {
            assert!(!prompt(request).contains("\"S1\""));
            reply(NOTES)
        })
        .unwrap();
    let log = appended(rows, "C1", &compaction).log();
    let context = crate::testing::context(&log);
    let wrappers = Wrappers::default();
    let mut seen = Vec::new();
    for message in context.converted(&wrappers) {
        for block in &message.content {
            if let LlmBlock::Thinking {
                thinking, signature, ..
            } = block
            {
                let id = signature.unwrap_or("none").trim_start_matches('S').to_owned();
                assert_eq!(*thinking, format!("{thought}{id}"));
                seen.push(id);
            }
        }
    }
    assert_eq!(seen, ["5", "9"]);
}

#[test]
fn fb_124_a_summary_is_framed_as_a_record_before_what_is_kept() {
    let rows = Rows::new()
        .user("u1", &prose(3_000))
        .assistant("a1", &prose(3_000))
        .user("u2", "and now?");
    let log = rows.clone().log();
    let context = context(&log);
    let mut setup = Setup::new(200_000, 1);
    setup.settings.keep_user_tokens = Tokens(100);
    let compaction = setup.compact(&context, |_| reply(NOTES)).unwrap();
    let log = appended(rows, "C1", &compaction).log();
    let context = crate::testing::context(&log);
    let wrappers = Wrappers::default();
    let view = texts(&context.converted(&wrappers));
    assert_eq!(view.len(), 2);
    assert!(
        view[0].starts_with("The conversation up to here was replaced by this summary of it. It is a record")
    );
    assert_eq!(view[1], "and now?");
}

#[test]
fn fb_136_what_a_handoff_is_written_from_is_the_rebuilt_context() {
    let mut rows = Rows::new();
    for i in 0..90 {
        rows = rows.user(&format!("u{i}"), &format!("raw message {i} {}", filler(10_000)));
    }
    let rows = rows
        .user("u90", &format!("kept {}", filler(9_000)))
        .compaction("C1", Some("u90"), &filler(800))
        .assistant("a91", &filler(20_000));
    let log = rows.log();
    let context = context(&log);
    let wrappers = Wrappers::default();
    let text = serialize_conversation(&context.converted(&wrappers));
    assert!(Heuristic.one(&text) < Tokens(35_000));
    assert!(!text.contains("raw message") && text.contains("kept"));
}
