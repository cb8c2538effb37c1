use serde_json::Value;

use crate::server::{Script, Server};
use crate::support::Sandbox;

fn arguments<'a>(server: &'a Server, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["run"];
    all.extend(more);
    all.extend([
        "--model",
        "my/m",
        "--base-url",
        &server.url,
        "--api",
        "openai-completions",
    ]);
    all
}

#[test]
fn the_answer_is_streamed_and_the_session_is_new() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Script::Text("It is a parser.".to_owned(), "stop")]);
    let run = sandbox.run(&arguments(&server, &["What is this?"]));
    assert_eq!(run.code(), 0, "{}", run.all());
    assert_eq!(run.stdout(), "It is a parser.\n");
    assert!(
        run.stderr()
            .contains("session [FOLDER]/.local/share/foldline/sessions/")
    );
    let context = sandbox.json(&["context", "latest"]);
    let roles: Vec<&str> = context["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
}

#[test]
fn a_tool_runs_and_its_result_goes_back_to_the_model() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "the code is HRN2041\n");
    let server = Server::start(vec![
        Script::Call("read", r#"{"path":"notes.txt"}"#),
        Script::Text("HRN2041".to_owned(), "stop"),
    ]);
    let more = ["What is the code?", "--tools", "read", "--json"];
    let run = sandbox.run(&arguments(&server, &more));
    assert_eq!(run.code(), 0, "{}", run.all());
    let document: Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(document["answer"], "HRN2041");
    assert_eq!(document["outcome"], "completed");
    assert_eq!(document["requests"], 2);
    // 100 and 900 tokens in, 10 and 20 out.
    assert_eq!(document["usage"]["input"], 1000);
    assert_eq!(document["usage"]["output"], 30);
    let events: Vec<&str> = document["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(events.first(), Some(&"agent_start"));
    assert_eq!(events.last(), Some(&"agent_settled"));
    assert!(events.contains(&"tool_execution_end") && !events.contains(&"message_update"));
    let requests = server.requests();
    assert!(requests[1].contains("the code is HRN2041"), "{}", requests[1]);
    let offered: Value = serde_json::from_str(&requests[0]).unwrap();
    let tools = offered["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["function"]["name"], "read");
}

#[test]
fn a_prompt_comes_from_standard_input_and_a_session_goes_on() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("linear.jsonl");
    let server = Server::start(vec![Script::Text("Yes.".to_owned(), "stop")]);
    let before = sandbox.read(&source);
    let more = ["--session", source.as_str(), "--tools", "none", "--json"];
    let run = sandbox.run_with_input(&arguments(&server, &more), "Does it go on?\n");
    assert_eq!(run.code(), 0, "{}", run.all());
    assert!(sandbox.read(&source).starts_with(&before));
    assert!(sandbox.read(&source).contains("Does it go on?"));
    let request: Value = serde_json::from_str(&server.requests()[0]).unwrap();
    let offered = request.get("tools").and_then(Value::as_array);
    assert!(offered.is_none_or(Vec::is_empty), "{request}");
    assert!(request["messages"].as_array().unwrap().len() > 2);
}

#[test]
fn the_exit_code_tells_how_it_ended() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Script::Status(
        401,
        r#"{"error":{"message":"invalid key"}}"#,
    )]);
    let run = sandbox.run(&arguments(&server, &["Hello", "--json"]));
    assert_eq!(run.code(), 4, "{}", run.all());
    let document: Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(document["outcome"], "failed");
    assert_eq!(document["error"]["kind"], "provider");
    let run = sandbox.run(&arguments(&server, &["Hello"]));
    assert_eq!(run.code(), 4, "{}", run.all());
    assert!(run.stderr().contains("check the key"), "{}", run.stderr());

    for (args, code) in [
        (&["run", "Hello"][..], 2),
        (&["run", "Hello", "--tools", "hammer"], 2),
        (&["run", " ", "--model", "anthropic/claude-sonnet-4-5"], 2),
        (&["run", "Hello", "--model", "anthropic/claude-sonnet-4-5"], 4),
    ] {
        let run = sandbox.run(args);
        assert_eq!(run.code(), code, "{args:?}: {}", run.all());
    }
    let missing = arguments(&server, &["Hello", "--session", "missing.jsonl"]);
    assert_eq!(sandbox.run(&missing).code(), 3);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Script::Silence]);
    let child = sandbox.spawn(&arguments(&server, &["Hello", "--json"]));
    server.interrupt_when_asked(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["outcome"], "cancelled");
}
