//! `foldline rpc`, driven by a client in another language.

use std::process::Command;

use serde_json::Value;

use crate::server::{Script, Server};
use crate::support::Sandbox;

/// Runs a scenario of the client; `None` where there is no python3.
#[allow(clippy::print_stderr, reason = "what is skipped says so")]
fn scenario(sandbox: &Sandbox, name: &str, session: &str, server: &Server) -> Option<Value> {
    let client = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/rpc_client.py");
    let output = Command::new("python3")
        .arg(client)
        .args([
            name,
            session,
            env!("CARGO_BIN_EXE_foldline"),
            "rpc",
            "--session",
            session,
        ])
        .args([
            "--model",
            "my/m",
            "--base-url",
            &server.url,
            "--api",
            "openai-completions",
        ])
        .current_dir(sandbox.path(""))
        .env("HOME", sandbox.path(""))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: python3 is not installed");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn every_command_of_the_table_is_answered() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let server = Server::start(vec![Script::Text("Yes.".to_owned(), "stop")]);
    let Some(document) = scenario(&sandbox, "commands", &session, &server) else {
        return;
    };
    assert_eq!(document["code"], 0);
    let seen = document["seen"].as_object().unwrap();
    for (command, answer) in seen {
        let fails = matches!(command.as_str(), "unknown" | "parse");
        assert_eq!(answer["success"], !fails, "{command}: {answer}");
    }
    assert!(seen.len() >= 27, "{:?}", seen.keys().collect::<Vec<_>>());
    let data = |command: &str| &seen[command]["data"];
    assert_eq!(seen["answer"]["data"]["text"], "Yes.");
    assert_eq!(data("clear_queue")["steering"], serde_json::json!(["left"]));
    assert_eq!(data("clear_queue")["followUp"], serde_json::json!(["then right"]));
    assert_eq!(data("navigate_tree")["cancelled"], false);
    assert_eq!(data("fork")["text"], "Say yes.");
    assert!(data("handoff")["document"].as_str().is_some());
    assert!(data("get_session_stats")["toolCalls"].as_u64() > Some(0));
    assert!(data("get_tree")["count"].as_u64() > Some(900));
    assert_eq!(data("get_entries")["entries"].as_array().unwrap().len(), 2);
    let state = data("get_state");
    assert_eq!(state["model"], "my/m");
    assert_eq!(state["sessionName"], "Leases");
    assert_eq!(
        (&state["isStreaming"], &state["isCompacting"]),
        (&false.into(), &false.into())
    );
    assert!(
        state["sessionFile"]
            .as_str()
            .unwrap()
            .ends_with("realistic.jsonl"),
        "{state}"
    );
    assert_eq!(seen["unknown"]["error"], "Unknown command: dance");
}

#[test]
fn an_abort_overtakes_what_waits_and_ends_a_compaction_at_once() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&session);
    let server = Server::start(vec![Script::Silence]);
    let Some(document) = scenario(&sandbox, "abort", &session, &server) else {
        return;
    };
    let seen = &document["seen"];
    assert_eq!(seen["answer"]["error"], "Compaction cancelled", "{seen}");
    // The question behind the compaction waited for it.
    let names = |key: &str| -> Vec<String> {
        let names = seen[key].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    assert!(!names("before").contains(&"get_state".to_owned()), "{seen}");
    let after = names("after");
    let at = |name: &str| after.iter().position(|other| other == name).unwrap();
    assert!(
        at("compaction_end") < at("compact") && at("compact") < at("get_state"),
        "{after:?}"
    );
    assert!(at("abort_compaction") < at("get_state"), "{after:?}");
    println!("abort_compaction: {} ms to the answer", seen["ms"]);
    assert_eq!(sandbox.read(&session), before);
    assert_eq!(document["code"], 0);
}

#[test]
fn an_abort_right_behind_a_compaction_is_meant_for_it() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&session);
    let server = Server::start(vec![Script::Silence]);
    let Some(document) = scenario(&sandbox, "behind", &session, &server) else {
        return;
    };
    assert_eq!(document["seen"]["error"], "Compaction cancelled", "{document}");
    assert_eq!(sandbox.read(&session), before);
}

/// Runs commands that need no model, and gives the answers.
fn answers(sandbox: &Sandbox, session: &str, lines: &str) -> Vec<Value> {
    let run = sandbox.run_with_input(&["rpc", "--session", session], lines);
    assert_eq!(run.code(), 0, "{}", run.all());
    let messages = run.stdout();
    let messages = messages.lines().map(|line| serde_json::from_str(line).unwrap());
    messages
        .filter(|message: &Value| message["type"] == "response")
        .collect()
}

/// A session is as deep as it is long, and not every JSON parser goes that deep.
#[test]
fn the_tree_comes_flat_too() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("branching.jsonl");
    let lines = "{\"id\":1,\"type\":\"get_tree\",\"flat\":true}\n{\"id\":2,\"type\":\"get_tree\"}\n";
    let answers = answers(&sandbox, &session, lines);
    let flat = answers[0]["data"]["entries"].as_array().unwrap();
    let mut nested: Vec<(Value, Value)> = Vec::new();
    let mut open: Vec<(Value, Value)> = vec![(Value::Null, answers[1]["data"]["tree"].clone())];
    while let Some((parent, nodes)) = open.pop() {
        for node in nodes.as_array().unwrap() {
            nested.push((parent.clone(), node["entry"].clone()));
            open.push((node["entry"]["id"].clone(), node["children"].clone()));
        }
    }
    assert_eq!(flat.len(), nested.len());
    for row in flat {
        assert!(
            nested.contains(&(row["parentId"].clone(), row["entry"].clone())),
            "{row}"
        );
    }
    assert!(flat.iter().any(|row| row["label"] == "first try"));
    assert_eq!(answers[0]["data"]["leafId"], answers[1]["data"]["leafId"]);
}

/// A client that is gone leaves nothing behind that waits for a model.
#[test]
fn the_end_of_input_ends_what_waits_for_a_model() {
    for command in [
        "{\"type\":\"compact\"}\n",
        "{\"type\":\"prompt\",\"message\":\"hi\"}\n{\"type\":\"compact\"}\n",
    ] {
        let sandbox = Sandbox::new();
        let session = sandbox.fixture("realistic.jsonl");
        let server = Server::start(vec![Script::Silence]);
        let mut child = sandbox.spawn(&[
            "rpc",
            "--session",
            &session,
            "--model",
            "my/m",
            "--base-url",
            &server.url,
            "--api",
            "openai-completions",
        ]);
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, command.as_bytes()).unwrap();
        while server.requests().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        drop(stdin);
        // The server never answers: if nothing is cancelled, this waits for the limit of the request.
        let run = sandbox.ran(child.wait_with_output().unwrap());
        assert_eq!(run.code(), 0, "{}", run.all());
        assert!(!run.stdout().contains("timed out"), "{}", run.stdout());
        assert_eq!(sandbox.run(&["check", &session]).code(), 0);
    }
}

/// What needs no model is done, however early the input ends.
#[test]
fn what_was_asked_before_the_end_of_input_is_done() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let answers = answers(
        &sandbox,
        &session,
        "{\"id\":1,\"type\":\"compact\"}\n{\"id\":2,\"type\":\"get_state\"}\n",
    );
    assert_eq!(answers.len(), 2);
    for answer in &answers {
        assert_eq!(answer["success"], true, "{answer}");
    }
}
