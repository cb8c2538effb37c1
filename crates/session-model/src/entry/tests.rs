use super::decode::entry;
use super::{CompactionStrategy, EntryBody};
use crate::message::{Block, Content, Message, StopReason};

fn message(json: &str) -> Message<'_> {
    match entry(json.as_bytes()).unwrap().body {
        EntryBody::Message(message) => *message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn odd_values_cost_only_themselves() {
    let m = message(
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"assistant","content":[{"type":"text","text":"cut \ud83d"},{"type":"toolCall","id":7,"name":"read","arguments":{"n":1e400}},"odd",null],"usage":{"input":"9","output":3},"stopReason":"toolUse"}}"#,
    );
    let Message::Assistant(m) = m else { panic!() };
    assert_eq!(m.stop_reason, StopReason::ToolUse);
    assert_eq!(m.usage.unwrap().output.get(), 3);
    assert_eq!(m.usage.unwrap().input.get(), 0);
    assert_eq!(m.content.texts().collect::<Vec<_>>(), ["cut \u{fffd}"]);
    assert_eq!(
        m.content
            .tool_calls()
            .next()
            .unwrap()
            .arguments
            .as_ref()
            .unwrap()
            .get(),
        r#"{"n":1e400}"#
    );
}

#[test]
fn lone_surrogates_decode_without_the_lenient_path() {
    let line = br#"{"type":"message","id":"a","message":{"role":"user","content":"\ud83dx\ude00"}}"#;
    assert!(crate::json::read_strict::<super::decode::RawEntry<'_>>(line).is_ok());
    let Message::User(m) = message(std::str::from_utf8(line).unwrap()) else {
        panic!()
    };
    assert!(matches!(&m.content, Content::Text(t) if t == "\u{fffd}x\u{fffd}"));
}

#[test]
fn the_last_duplicate_key_wins() {
    let m = message(
        r#"{"type":"message","id":"a","message":{"role":"assistant","role":"user","content":"x","content":[{"type":"text","text":"y"}]}}"#,
    );
    assert_eq!(m.role(), "user");
    assert_eq!(m.content().unwrap().texts().collect::<Vec<_>>(), ["y"]);
}

#[test]
fn null_and_missing_content_are_no_blocks() {
    for json in [
        r#"{"type":"message","id":"a","message":{"role":"user","content":null}}"#,
        r#"{"type":"message","id":"a","message":{"role":"user"}}"#,
        r#"{"type":"message","id":"a","message":{"role":"user","content":7}}"#,
    ] {
        assert!(message(json).content().unwrap().blocks().is_empty());
    }
}

#[test]
fn deep_arguments_are_kept_whole() {
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let json = format!(
        r#"{{"type":"message","id":"a","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"c","name":"n","arguments":{deep}}}]}}}}"#
    );
    let m = message(&json);
    let Some(Block::ToolCall(call)) = m.content().unwrap().blocks().first() else {
        panic!()
    };
    assert_eq!(call.arguments.as_ref().unwrap().get().len(), 100_000);
}

#[test]
fn the_discriminator_tells_verbatim_from_prose() {
    for (details, strategy) in [
        (
            r#","details":{"strategy":"verbatim-lines"}"#,
            CompactionStrategy::VerbatimLines,
        ),
        (
            r#","details":{"strategy":"context-full"}"#,
            CompactionStrategy::Prose,
        ),
        (r#","details":"verbatim-lines""#, CompactionStrategy::Prose),
        ("", CompactionStrategy::Prose),
    ] {
        let json =
            format!(r#"{{"type":"compaction","id":"c","summary":"s","firstKeptEntryId":""{details}}}"#);
        let EntryBody::Compaction(c) = entry(json.as_bytes()).unwrap().body else {
            panic!()
        };
        assert_eq!(c.strategy, strategy, "{details}");
        assert!(c.first_kept.is_none());
    }
}
