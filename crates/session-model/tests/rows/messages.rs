//! Rows 58 to 69: messages, usage, calls and results.

use foldline_session_model::fold::Profile;
use foldline_session_model::llm::{LlmBlock, LlmRole, ResultOrigin, TrailingCalls, Wrappers};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::{Tokens, message::Content};

use crate::support::*;

/// The view in short: `user`, `assistant`, `result(call)`, `synthetic(call)`.
fn view(log: &SessionLog, trailing: TrailingCalls) -> String {
    let wrappers = Wrappers::default();
    let context = context(log);
    let view = context.llm_view(&wrappers, trailing);
    let words: Vec<String> = view
        .iter()
        .map(|m| match &m.role {
            LlmRole::ToolResult {
                call_id,
                origin: ResultOrigin::Recorded,
                ..
            } => format!("result({call_id})"),
            LlmRole::ToolResult {
                call_id, is_error, ..
            } => {
                assert!(is_error);
                format!("synthetic({call_id})")
            }
            _ => m.role_name().to_owned(),
        })
        .collect();
    words.join(" ")
}

fn custom(id: &str, more: &str) -> String {
    entry(
        "custom_message",
        id,
        "",
        &format!(r#""customType":"t","content":"hello"{more}"#),
    )
}

#[test]
fn row_58_a_hidden_custom_message_is_in_the_context() {
    let log = load(file(&[custom("c", r#","display":false"#)]));
    assert_eq!(view(&log, TrailingCalls::Answer), "user");
}

#[test]
fn row_59_an_excluded_custom_message_is_not_sent() {
    let log = load(file(&[custom(
        "c",
        r#","display":true,"excludeFromContext":true"#,
    )]));
    assert_eq!(view(&log, TrailingCalls::Answer), "");
    assert!(!context(&log).items[0].message.is_visible());
}

#[test]
fn row_60_an_excluded_command_is_not_sent_and_not_visible() {
    let bash = |excluded: &str| {
        let members =
            format!(r#""role":"bashExecution","command":"ls","output":"a\nb","exitCode":1{excluded}"#);
        load(file(&[message("b", "", &members)]))
    };
    let log = bash(r#","excludeFromContext":true"#);
    assert_eq!(view(&log, TrailingCalls::Answer), "");
    assert!(!context(&log).items[0].message.is_visible());
    let log = bash("");
    let context = context(&log);
    let wrappers = Wrappers::default();
    let view = context.converted(&wrappers);
    let text: String = view[0].texts().collect();
    assert_eq!(text, "Ran `ls`\n```\na\nb\n```\n\nCommand exited with code 1");
}

fn usage_of(json: &str) -> Option<(u64, u64, u64, f64)> {
    let log = load(file(&[message(
        "a",
        "",
        &format!(r#""role":"assistant","content":[]{json}"#),
    )]));
    let context = context(&log);
    let Message::Assistant(message) = &context.items[0].message else {
        panic!()
    };
    message
        .usage
        .map(|u| (u.input.get(), u.output.get(), u.total_tokens.get(), u.cost.total))
}

#[test]
fn row_61_an_assistant_message_without_usage_or_cost() {
    assert_eq!(usage_of(""), None);
    assert_eq!(usage_of(r#","usage":{}"#), Some((0, 0, 0, 0.0)));
    assert_eq!(usage_of(r#","usage":{"input":7}"#), Some((7, 0, 0, 0.0)));
}

/// A broken number counts as 0, so that the other parts of the record still count.
#[test]
fn row_62_broken_usage_numbers_count_as_nothing() {
    assert_eq!(usage_of(r#","usage":"many""#), None);
    assert_eq!(
        usage_of(r#","usage":{"input":"7","output":-3,"totalTokens":1e999,"cost":{"total":-1}}"#),
        Some((0, 0, 0, 0.0))
    );
    assert_eq!(
        usage_of(r#","usage":{"input":5,"output":1e300,"cost":[]}"#),
        Some((5, u64::MAX, 0, 0.0))
    );
    // Sums stop at the largest number.
    assert_eq!(Tokens(u64::MAX) + Tokens(5), Tokens(u64::MAX));
}

#[test]
fn row_63_null_content_is_no_content() {
    for role in ["user", "assistant", "toolResult", "custom"] {
        let log = load(file(&[message(
            "m",
            "",
            &format!(r#""role":"{role}","content":null"#),
        )]));
        let context = context(&log);
        assert!(
            context.items[0].message.content().unwrap().blocks().is_empty(),
            "{role}"
        );
    }
}

#[test]
fn row_64_text_content_of_an_assistant_is_one_block() {
    let log = load(file(&[message("m", "", r#""role":"assistant","content":"hi""#)]));
    let context = context(&log);
    let content = context.items[0].message.content().unwrap();
    assert!(matches!(content, Content::Blocks(blocks) if blocks.len() == 1));
    assert_eq!(content.texts().collect::<Vec<_>>(), ["hi"]);
}

#[test]
fn row_65_a_call_without_a_result_in_the_middle_of_the_path() {
    let log = load(file(&[
        user("u", ""),
        calls("a", "u", "toolUse", &["x", "y"]),
        result("r", "a", "y"),
        user("v", "r"),
    ]));
    assert_eq!(
        view(&log, TrailingCalls::Leave),
        "user assistant synthetic(x) result(y) user"
    );
}

#[test]
fn row_66_a_call_without_a_result_at_the_leaf() {
    let log = load(file(&[user("u", ""), calls("a", "u", "toolUse", &["x"])]));
    assert_eq!(view(&log, TrailingCalls::Answer), "user assistant synthetic(x)");
    assert_eq!(view(&log, TrailingCalls::Leave), "user assistant");
}

#[test]
fn row_67_an_aborted_turn_keeps_its_result() {
    let log = load(file(&[
        user("u", ""),
        calls("a", "u", "aborted", &["x", "y"]),
        result("r", "a", "x"),
        user("v", "r"),
    ]));
    assert_eq!(
        view(&log, TrailingCalls::Answer),
        "user assistant result(x) synthetic(y) user"
    );
}

#[test]
fn row_68_a_missing_blob_is_a_note_in_the_view_and_a_reference_on_disk() {
    let image = r#"{"type":"image","data":"blob:sha256:00ff","mimeType":"image/png"}"#;
    let line = message("u", "", &format!(r#""role":"user","content":[{image}]"#));
    let log = load(file(std::slice::from_ref(&line)));
    let context = context(&log);
    let wrappers = Wrappers::default();
    let view = context.converted(&wrappers);
    let LlmBlock::Text(text) = &view[0].content[0] else {
        panic!()
    };
    assert!(
        text.contains("image/png") && text.contains("not available"),
        "{text}"
    );
    assert_eq!(log.raw_line(log.leaf().unwrap()), line.as_bytes());
}

/// The notices stay in the view; where their originals are is told by order when the recorded path does not match.
#[test]
fn row_69_cold_spilled_text_is_found_by_order() {
    let notice = "[Compacted history content evicted to durable cold storage]";
    let block = format!(r#"{{"type":"text","text":"{notice}"}}"#);
    let payload = |path: &str, hash: &str| {
        format!(
            r#""message.content.{path}.text":{{"kind":"cold_spill","ref":"blob:sha256:{hash}","encoding":"utf8","sha256":"{hash}"}}"#
        )
    };
    // Golden vector: five blocks became three, keyed by their old positions.
    let line = entry(
        "message",
        "a",
        "",
        &format!(
            r#""message":{{"role":"assistant","content":[{block},{{"type":"toolCall","id":"x","name":"read","arguments":{{}}}},{block}]}},"evictedContent":{{"payloads":{{{},{}}}}}"#,
            payload("0", "aa"),
            payload("3", "bb")
        ),
    );
    let log = load(file(&[line]));
    let evicted = log.evicted(log.leaf().unwrap());
    let found: Vec<(usize, &str)> = evicted.iter().map(|e| (e.block, &*e.reference)).collect();
    assert_eq!(found, [(0, "blob:sha256:aa"), (2, "blob:sha256:bb")]);
    assert_eq!(says(&log, Profile::Auto), format!("{notice}{notice}"));
    assert!(view(&log, TrailingCalls::Leave).starts_with("assistant"));
}
