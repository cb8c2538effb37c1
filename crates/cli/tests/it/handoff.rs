use crate::server::{Script, Server};
use crate::support::Sandbox;

const SESSION: &str = r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Make the parser accept tabs in src/parser.rs"}]}}
{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","stopReason":"toolUse","content":[{"type":"toolCall","id":"c1","name":"edit","arguments":{"path":"src/parser.rs"}}]}}
{"type":"message","id":"r1","parentId":"a1","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"edit","content":[{"type":"text","text":"done"}],"isError":false}}
{"type":"message","id":"a2","parentId":"r1","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"assistant","stopReason":"stop","content":[{"type":"text","text":"Tabs are accepted; the tests of the lexer still fail."}]}}
"#;

#[test]
fn without_a_model_the_document_is_made_of_quotes() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION);
    let run = sandbox.run(&[
        "handoff",
        "s.jsonl",
        "--output",
        "-",
        "--instructions",
        "the lexer",
    ]);
    insta::assert_snapshot!(run.all());
    assert_eq!(sandbox.read("s.jsonl"), SESSION);

    let document = sandbox.json(&["handoff", "s.jsonl", "--output", "-"]);
    assert_eq!(document["outcome"], "committed");
    assert_eq!(document["newSession"], serde_json::Value::Null);
    assert!(document["document"].as_str().unwrap().contains("accept tabs"));
}

#[test]
fn a_new_session_begins_with_the_document() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION);
    let document = sandbox.json(&["handoff", "s.jsonl", "--output", "next.jsonl"]);
    assert_eq!(document["newSession"], "next.jsonl");
    assert_eq!(document["model"], "extractive");
    assert_eq!(sandbox.read("s.jsonl"), SESSION, "the old session stays as it is");
    let header: serde_json::Value =
        serde_json::from_str(sandbox.read("next.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!(header["cwd"], "/w");
    assert!(std::path::Path::new(header["parentSession"].as_str().unwrap()).is_absolute());
    let context = sandbox.json(&["context", "next.jsonl"]);
    let messages = context["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0]["content"]
            .to_string()
            .contains("the tests of the lexer still fail")
    );

    let taken = sandbox.run(&["handoff", "s.jsonl", "--output", "next.jsonl"]);
    assert_eq!(taken.code(), 2, "{}", taken.all());
    // Without a name it stands beside the old one.
    let beside = sandbox.json(&["handoff", "s.jsonl"]);
    assert!(sandbox.path(beside["newSession"].as_str().unwrap()).exists());
}

#[test]
fn a_model_writes_the_document_or_nothing_happens() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION);
    let handoff = |server: &Server| {
        let arguments = [
            "handoff",
            "s.jsonl",
            "--output",
            "next.jsonl",
            "--instructions",
            "the lexer",
        ];
        let model = [
            "--model",
            "my/m",
            "--base-url",
            &server.url,
            "--api",
            "openai-completions",
        ];
        sandbox.run(&[&arguments[..], &model[..], &["--json"]].concat())
    };
    let refused = Server::start(vec![Script::Status(
        401,
        r#"{"error":{"message":"invalid key"}}"#,
    )]);
    let run = handoff(&refused);
    assert_eq!(run.code(), 4, "{}", run.all());
    assert!(!sandbox.path("next.jsonl").exists());

    let server = Server::start(vec![Script::Text("## Goal\nTabs.".to_owned(), "stop")]);
    let run = handoff(&server);
    assert_eq!(run.code(), 0, "{}", run.all());
    let document: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(document["document"], "## Goal\nTabs.");
    assert_eq!(document["model"], "my/m");
    assert!(server.requests()[0].contains("the lexer"));
    assert!(sandbox.read("next.jsonl").contains("Tabs."));
}

#[test]
fn an_empty_session_has_nothing_to_hand_off() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION.lines().next().unwrap());
    let run = sandbox.run(&["handoff", "s.jsonl"]);
    assert_eq!(run.code(), 1, "{}", run.all());
    assert!(run.stderr().contains("Nothing to hand off"), "{}", run.stderr());
}
