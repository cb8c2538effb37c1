use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

use crate::verbatim::{Parameters, SmallRegion, prepare};

/// The region of a session whose messages are all compacted.
fn region(messages: &[&str]) -> String {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = "null".to_owned();
    for (i, message) in messages.iter().enumerate() {
        text.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"m{i}\",\"parentId\":{parent},\"timestamp\":\"t\",\"message\":{message}}}\n"
        ));
        parent = format!("\"m{i}\"");
    }
    let log = SessionLog::load(text, Trust::Validated).unwrap();
    assert!(log.damage().is_empty(), "{:?}", log.damage());
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let parameters = Parameters {
        preserve_recent: 0,
        ..Parameters::with_query("q")
    };
    prepare(&context, parameters, SmallRegion::Allow, &Heuristic)
        .unwrap()
        .region()
        .text()
        .to_owned()
}

#[test]
fn sections_follow_the_grammar_whatever_the_order_of_blocks() {
    let table = [
        (
            r#"{"role":"user","content":"Fix it\nplease"}"#,
            "[User]: Fix it\nplease",
        ),
        (
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            "[User]: ab",
        ),
        (
            r#"{"role":"user","content":[{"type":"text","text":"alpha"},{"type":"text","text":"beta"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"gamma"},{"type":"text","text":"delta"}]}"#,
            "[User]: alphabeta\n[image]\ngammadelta",
        ),
        (
            r#"{"role":"user","content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#,
            "[User]: [image]",
        ),
        (r#"{"role":"user","content":"a\n\n"}"#, "[User]: a\n\n"),
        (
            r#"{"role":"user","content":[{"type":"text","text":"a\n\n"}]}"#,
            "[User]: a\n",
        ),
        (
            r#"{"role":"toolResult","toolCallId":"1","toolName":"read","content":[{"type":"text","text":"x\n"}],"isError":false}"#,
            "[Tool result]: x",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"read","arguments":{"path":"a/b.ts","n":3,"ok":true}},{"type":"text","text":"Ok"},{"type":"thinking","thinking":"Hm"},{"type":"toolCall","id":"2","name":"ls","arguments":{}}]}"#,
            "[Assistant thinking]: Hm\n\n[Assistant]: Ok\n\n[Assistant tool calls]: read(path=\"a/b.ts\", n=3, ok=true); ls()",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"edit","arguments":{"old":"a\nb","new":"é"}}]}"#,
            "[Assistant tool calls]: edit(old=\"a\\nb\", new=\"é\")",
        ),
        (
            r#"{"role":"toolResult","toolCallId":"1","toolName":"read","content":[{"type":"text","text":"x\n\ny"}],"isError":false}"#,
            "[Tool result]: x\n\ny",
        ),
        (
            r#"{"role":"toolResult","toolCallId":"1","toolName":"read","content":[],"isError":false}"#,
            "",
        ),
        (
            r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":1,"cancelled":false,"truncated":false}"#,
            "[User]: Ran `ls`\n```\na\n```\n\nCommand exited with code 1",
        ),
    ];
    for (message, expected) in table {
        assert_eq!(region(&[message]), expected, "{message}");
    }
}

#[test]
fn results_are_cut_at_a_character_border() {
    let result = |text: &str| {
        region(&[&format!(
            r#"{{"role":"toolResult","toolCallId":"1","toolName":"t","content":"{text}","isError":false}}"#
        )])
    };
    let long = "x".repeat(16_010);
    assert_eq!(
        result(&long),
        format!(
            "[Tool result]: {}\n\n[... 10 more characters truncated]",
            "x".repeat(16_000)
        )
    );
    assert_eq!(
        result(&"x".repeat(16_000)).len(),
        "[Tool result]: ".len() + 16_000
    );
    // The limit falls inside of a pair of surrogates: the character goes as a whole.
    let faces = format!("{}😀😀", "x".repeat(15_999));
    assert_eq!(
        result(&faces),
        format!(
            "[Tool result]: {}\n\n[... 4 more characters truncated]",
            "x".repeat(15_999)
        )
    );
}

#[test]
fn messages_are_joined_by_blank_lines() {
    let text = region(&[
        r#"{"role":"user","content":"one"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"two"}]}"#,
    ]);
    assert_eq!(text, "[User]: one\n\n[Assistant]: two");
}
