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
