use crate::support::Sandbox;

const SESSION: &str = r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"Fix the parser","timestamp":1}}
{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"src/parse.rs"}}],"provider":"acme","model":"large","stopReason":"toolUse","timestamp":2}}
{"type":"message","id":"r1","parentId":"a1","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"fn parse() {}"}],"isError":false,"timestamp":3}}
{"type":"custom","id":"p1","parentId":"r1","timestamp":"2026-01-01T00:00:04.000Z","customType":"foldline/prune","data":{"items":[{"entryId":"r1","notice":"[pruned]","tokens":4}]}}
"#;

#[test]
fn context_shows_messages_with_prunes_applied() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION);
    insta::assert_snapshot!(sandbox.run(&["context", "s.jsonl"]).all());
    insta::assert_snapshot!(sandbox.run(&["context", "s.jsonl", "--format", "text"]).all());
    let llm = sandbox.json(&["context", "s.jsonl", "--format", "llm"]);
    insta::assert_json_snapshot!(llm);
    let leaf = sandbox.json(&["context", "s.jsonl", "--leaf", "r1"]);
    assert_eq!(leaf["messages"][2]["content"][0]["text"], "fn parse() {}");
    assert_eq!(leaf["model"], "acme/large");
}

#[test]
fn show_prints_entries_and_originals() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION);
    let entry = sandbox.json(&["show", "s.jsonl", "p1"]);
    assert_eq!(entry["entry"]["customType"], "foldline/prune");
    let original = sandbox.json(&["show", "s.jsonl", "artifact://entry/r1"]);
    assert_eq!(original["text"], "fn parse() {}");
}

/// A result whose call was compacted away keeps its role in `messages`; the model gets it as text of the user.
#[test]
fn a_result_without_its_call_is_never_dropped() {
    let sandbox = Sandbox::new();
    let mut text = SESSION.replace(
        "{\"type\":\"custom\",\"id\":\"p1\"",
        "{\"type\":\"label\",\"id\":\"p1\"",
    );
    text.push_str(
        r#"{"type":"compaction","id":"k1","parentId":"p1","timestamp":"2026-01-01T00:00:05.000Z","summary":"[User]: Fix the parser","firstKeptEntryId":"r1","tokensBefore":9,"details":{"strategy":"verbatim-lines"}}"#,
    );
    text.push('\n');
    sandbox.write("s.jsonl", text);
    let messages = sandbox.json(&["context", "s.jsonl"]);
    assert_eq!(messages["messages"][1]["role"], "toolResult");
    let llm = sandbox.json(&["context", "s.jsonl", "--format", "llm"]);
    assert_eq!(llm["messages"][1]["role"], "user");
    let content = llm["messages"][1]["content"].to_string();
    assert!(
        content.contains("read") && content.contains("c1") && content.contains("fn parse() {}"),
        "{content}"
    );
}
