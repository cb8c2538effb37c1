use super::{Agent, DropReason, Imported, MessageCounts, detect, session};
use crate::entry::EntryBody;
use crate::fold::Profile;
use crate::log::{SessionLog, Trust};
use crate::message::Message;
use crate::tree::Leaf;

const CLAUDE_CODE: &str = include_str!("../../tests/data/claude-code.jsonl");
const CODEX: &str = include_str!("../../tests/data/codex.jsonl");

/// Loads what was imported; it must have no damage.
fn load(imported: &Imported) -> SessionLog {
    let log = SessionLog::load(imported.text.clone(), Trust::Validated).unwrap();
    assert_eq!(log.damage(), []);
    log
}

fn dropped(imported: &Imported) -> Vec<(&str, DropReason, u32, u32)> {
    imported
        .dropped
        .iter()
        .map(|d| (&*d.what, d.reason, d.count, d.first_line.get()))
        .collect()
}

/// Every row is used or dropped.
fn assert_accounted(imported: &Imported) {
    let rows: u32 = imported
        .dropped
        .iter()
        .filter(|d| !d.reason.is_part_of_row())
        .map(|d| d.count)
        .sum();
    assert_eq!(imported.rows_used + rows, imported.rows, "{:?}", imported.dropped);
}

/// The messages of the newest view, one line each.
fn view(log: &SessionLog) -> Vec<String> {
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    context
        .messages()
        .map(|message| match message {
            Message::CompactionSummary(m) => format!("summary {} | {}", m.tokens_before, m.summary),
            Message::User(m) if m.synthetic => format!("synthetic | {}", texts(message)),
            Message::ToolResult(m) => {
                let outcome = if m.is_error { "error" } else { "result" };
                format!(
                    "{outcome} {} {} | {}",
                    m.tool_call_id,
                    m.tool_name,
                    texts(message)
                )
            }
            Message::Assistant(m) => {
                let calls: Vec<String> = m
                    .content
                    .tool_calls()
                    .map(|c| format!("{}({})", c.name, c.arguments.as_deref().map_or("", |a| a.get())))
                    .collect();
                let usage = m.usage.unwrap_or_default();
                format!(
                    "assistant {} {:?} {}+{}+{}>{} | {} | {}",
                    m.model,
                    m.stop_reason,
                    usage.input,
                    usage.cache_read,
                    usage.cache_write,
                    usage.output,
                    texts(message),
                    calls.join(" ")
                )
            }
            message => format!("{} | {}", message.role(), texts(message)),
        })
        .collect()
}

fn texts(message: &Message<'_>) -> String {
    message.content().map_or_else(String::new, |content| {
        let mut text = content.texts().collect::<Vec<_>>().join(" / ");
        for _ in 0..content.image_count() {
            text.push_str(" [image]");
        }
        text
    })
}

/// The view right before the newest compaction.
fn view_before_compaction(log: &SessionLog, imported: &Imported) -> Vec<String> {
    let at = log
        .entries()
        .rfind(|ix| matches!(log.entry(*ix).unwrap().body, EntryBody::Compaction(_)))
        .unwrap();
    let kept: Vec<&str> = imported.text.lines().take(at.index() + 1).collect();
    view(&SessionLog::load(kept.join("\n"), Trust::Validated).unwrap())
}

#[test]
fn every_row_of_a_transcript_is_accounted_for() {
    let imported = session(CLAUDE_CODE.as_bytes()).unwrap();
    assert_accounted(&imported);
    assert_eq!(imported.agent, Agent::ClaudeCode);
    assert_eq!(imported.session_id, "0b9f4c1e-5a53-4f3e-9c55-0d1c8a6f2b10");
    assert_eq!(imported.cwd, "/home/ada/kettle");
    assert_eq!(imported.agent_version.as_deref(), Some("2.1.40"));
    let messages = MessageCounts {
        user: 5,
        synthetic: 1,
        developer: 0,
        assistant: 6,
        tool_results: 2,
    };
    assert_eq!(imported.messages, messages);
    assert_eq!((imported.compactions, imported.rewinds), (1, 1));
    insta::assert_debug_snapshot!(dropped(&imported));
}

#[test]
fn a_transcript_reads_in_file_order() {
    let imported = session(CLAUDE_CODE.as_bytes()).unwrap();
    let log = load(&imported);
    let before = view_before_compaction(&log, &imported);
    insta::assert_debug_snapshot!((before, view(&log)));
}

#[test]
fn signatures_and_opaque_blocks_survive() {
    let imported = session(CLAUDE_CODE.as_bytes()).unwrap();
    for kept in [
        r#"{"type":"thinking","thinking":"Start with the sensor.","thinkingSignature":"c2lnbmVk"}"#,
        r#"{"type":"thinking","thinking":"","thinkingSignature":"b3BhcXVl","redacted":true}"#,
        r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"boiling point"}}"#,
        r#""arguments":{"file_path":"/home/ada/kettle/sensor.c","limit":1.0}"#,
        r#""errorMessage":"API Error: overloaded""#,
    ] {
        assert!(imported.text.contains(kept), "{kept}");
    }
}

#[test]
fn a_subagents_file_is_its_own_session() {
    let own: Vec<&str> = CLAUDE_CODE
        .lines()
        .filter(|line| line.contains("\"isSidechain\":true"))
        .collect();
    let imported = session(own.join("\n").as_bytes()).unwrap();
    assert_accounted(&imported);
    assert_eq!(imported.session_id, "a77");
    assert_eq!(view(&load(&imported)).len(), 2);
    assert_eq!(imported.dropped, []);
}

#[test]
fn a_preserved_segment_is_the_kept_tail() {
    let with_segment = CLAUDE_CODE.replace(
        r#""preTokens":152345"#,
        r#""preTokens":152345,"preservedSegment":{"headUuid":"u4","anchorUuid":"c1","tailUuid":"a7"}"#,
    );
    let log = load(&session(with_segment.as_bytes()).unwrap());
    let view = view(&log);
    assert!(view[0].starts_with("summary 152345"), "{view:?}");
    assert!(
        view[1].starts_with("user | Fix the conversion instead."),
        "{view:?}"
    );
    assert_eq!(view[2], "user | And add a test.");
}

#[test]
fn every_row_of_a_rollout_is_accounted_for() {
    let imported = session(CODEX.as_bytes()).unwrap();
    assert_accounted(&imported);
    assert_eq!(imported.agent, Agent::Codex);
    assert_eq!(imported.session_id, "0199f2aa-0000-7000-8000-00000000c0de");
    let messages = MessageCounts {
        user: 4,
        synthetic: 1,
        developer: 1,
        assistant: 5,
        tool_results: 4,
    };
    assert_eq!(imported.messages, messages);
    assert_eq!((imported.compactions, imported.rewinds), (1, 1));
    insta::assert_debug_snapshot!(dropped(&imported));
}

#[test]
fn a_rollout_reads_in_file_order() {
    let imported = session(CODEX.as_bytes()).unwrap();
    let log = load(&imported);
    let before = view_before_compaction(&log, &imported);
    insta::assert_debug_snapshot!((before, view(&log)));
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    assert_eq!(context.state().thinking_level.as_deref(), Some("high"));
    let Message::CompactionSummary(summary) = &context.items[0].message else {
        panic!("{:?}", context.items[0].message);
    };
    let remote = summary.remote_history.as_ref().unwrap();
    assert_eq!(remote.provider, "openai");
    assert!(remote.items.get().contains("gAAAAC"));
}

#[test]
fn reasoning_stays_whole() {
    let imported = session(CODEX.as_bytes()).unwrap();
    let kept = r#""thinkingSignature":"{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"Look at the sensor\"}],\"content\":null,\"encrypted_content\":\"gAAAAB\"}""#;
    assert!(imported.text.contains(kept), "{}", imported.text);
}

#[test]
fn importing_twice_gives_the_same_text() {
    for source in [CLAUDE_CODE, CODEX] {
        let first = session(source.as_bytes()).unwrap();
        assert_eq!(first, session(source.as_bytes()).unwrap());
        // A line that comes later changes nothing before it, except for what the whole file says of itself.
        let lines: Vec<&str> = source.lines().collect();
        let shorter = session(lines[..lines.len() - 1].join("\n").as_bytes()).unwrap();
        assert!(first.text.starts_with(&shorter.text));
    }
}

#[test]
fn content_tells_whose_session_it_is() {
    let table: [(&str, Option<Agent>); 9] = [
        (CLAUDE_CODE, Some(Agent::ClaudeCode)),
        (CODEX, Some(Agent::Codex)),
        ("", None),
        ("hello", None),
        (r#"{"type":"session","version":3,"id":"x","cwd":"/"}"#, None),
        (
            "{\"type\":\"session\",\"id\":\"x\"}\n{\"type\":\"user\",\"uuid\":\"u\",\"message\":{}}",
            None,
        ),
        (
            "garbage\n\n{\"type\":\"summary\",\"summary\":\"s\",\"leafUuid\":\"u\"}",
            Some(Agent::ClaudeCode),
        ),
        (
            "\u{FEFF}{\"type\":\"response_item\",\"payload\":{}}",
            Some(Agent::Codex),
        ),
        (r#"{"type":"user","message":{"role":"user","content":"x"}}"#, None),
    ];
    for (text, agent) in table {
        assert_eq!(detect(text.as_bytes()), agent, "{text}");
    }
    assert!(session(b"hello").is_err());
}

#[test]
fn odd_rows_cost_only_themselves() {
    let start = r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi"}}"#;
    let rows = [
        r#"{"type":"user","uuid":"v","message":null}"#,
        r#"{"type":"user","uuid":"v","message":{"content":7}}"#,
        r#"{"type":"user","uuid":"v","message":{"content":[null,3,{"type":"text"}]}}"#,
        r#"{"type":"assistant","uuid":"v","message":{"content":[{"type":"tool_use"}]}}"#,
        r#"{"type":"assistant","uuid":"v","parentUuid":"v","message":{"id":"m","content":"\ud83d"}}"#,
        r#"{"type":"assistant","uuid":"v","message":{"usage":{"input_tokens":1e300,"output_tokens":-3},"content":"x"}}"#,
        r#"{"type":"user","uuid":"v","message":{"content":[{"type":"tool_result","content":{"a":1}}]}}"#,
        r#"{"type":"system","subtype":"compact_boundary","compactMetadata":[1]}"#,
        "[1,2]",
        "null",
        "\u{0}\u{0}{}",
    ];
    for row in rows {
        let imported = session(format!("{start}\n{row}\n").as_bytes()).unwrap();
        assert_accounted(&imported);
        view(&load(&imported));
    }
    let invalid = [
        start.as_bytes(),
        b"\n{\"type\":\"assistant\",\"message\":{\"content\":\"a\xFFb\"}}",
    ]
    .concat();
    let imported = session(&invalid).unwrap();
    assert_eq!(imported.messages.assistant, 1);
    assert!(imported.text.contains("a\u{FFFD}b"));
    load(&imported);
}
