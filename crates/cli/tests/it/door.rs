//! Commands work through the library's door: what they write is what the library writes, and settings and hooks hold.

use std::path::Path;
use std::sync::Arc;

use foldline_agent_session::event::CompactionAction;
use foldline_agent_session::{
    AgentSession, BranchSummaryChoice, CompactOptions, NavigateOptions, PruneOptions, SessionOptions,
};
use foldline_compaction_core::settings::Planner;
use foldline_session_store::DiskStore;
use serde_json::Value;

use crate::server::{Script, Server};
use crate::support::Sandbox;

/// The entries that were appended to a session, without ids, times and the folder.
fn appended(before: &str, after: &str) -> Vec<Value> {
    let added = after.lines().skip(before.lines().count());
    let mut entries: Vec<Value> = added.map(|line| serde_json::from_str(line).unwrap()).collect();
    let own: Vec<String> = entries
        .iter()
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect();
    for entry in &mut entries {
        hide(entry, &own);
        entry["timestamp"] = Value::Null;
        if let Some(ms) = entry.pointer_mut("/details/foldline/ms") {
            *ms = Value::Null;
        }
    }
    entries
}

fn hide(value: &mut Value, ids: &[String]) {
    match value {
        Value::String(text) => {
            if let Some(at) = ids.iter().position(|id| id == text) {
                *text = format!("[{at}]");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| hide(value, ids)),
        Value::Object(members) => members.values_mut().for_each(|value| hide(value, ids)),
        _ => {}
    }
}

fn open(path: &Path) -> AgentSession {
    AgentSession::open_whole(Arc::new(DiskStore::new()), path, SessionOptions::default()).unwrap()
}

/// Runs a command on one copy of a session and the library on another, and compares what they wrote.
fn same_entries(arguments: &[&str], library: impl AsyncFnOnce(AgentSession)) -> Vec<Value> {
    let sandbox = Sandbox::new();
    let command = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&command);
    sandbox.write("library.jsonl", &before);
    let mut all = vec![arguments[0], &command];
    all.extend(&arguments[1..]);
    let result = sandbox.json(&all);
    assert_eq!(result["outcome"], "committed", "{result}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(library(open(&sandbox.path("library.jsonl"))));
    let ours = appended(&before, &sandbox.read(&command));
    assert_eq!(ours, appended(&before, &sandbox.read("library.jsonl")));
    assert!(!ours.is_empty());
    ours
}

#[test]
fn a_compaction_by_lines_is_the_library_s() {
    let entries = same_entries(&["compact"], async |session| {
        let options = CompactOptions {
            planner: Some(Planner::Extractive),
            ..CompactOptions::default()
        };
        session.compact(options).await.unwrap();
    });
    let evidence = &entries[0]["details"]["foldline"];
    assert_eq!(evidence["reason"], "manual");
    assert_eq!(evidence["strategy"], "verbatim-lines");
    assert!(evidence["tokensAfter"].as_u64() < evidence["tokensBefore"].as_u64());
}

#[test]
fn a_compaction_by_summary_is_the_library_s() {
    let arguments = ["compact", "--strategy", "context-full", "--keep-recent", "2000"];
    let entries = same_entries(&arguments, async |session| {
        let options = CompactOptions {
            action: Some(CompactionAction::ContextFull),
            keep_recent: Some(foldline_session_model::Tokens(2_000)),
            ..CompactOptions::default()
        };
        session.compact(options).await.unwrap();
    });
    assert_eq!(entries[0]["details"]["foldline"]["planner"], "extractive");
}

#[test]
fn a_prune_and_its_undo_are_the_library_s() {
    let policy = foldline_pruning::Policy {
        protect_tokens: foldline_session_model::Tokens(0),
        minimum_savings: foldline_session_model::Tokens(0),
        ..foldline_pruning::Policy::default()
    };
    let arguments = ["prune", "--protect-tokens", "0", "--minimum-savings", "0"];
    let entries = same_entries(&arguments, async |session| {
        let options = PruneOptions {
            policy: Some(policy),
            ..PruneOptions::default()
        };
        let pruned = session.prune(options).await.unwrap();
        assert!(pruned.entry_id.is_some());
    });
    assert_eq!(entries[0]["customType"], "foldline/prune");

    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    sandbox.json(&["compact", &source]);
    let before = sandbox.read(&source);
    sandbox.write("library.jsonl", &before);
    sandbox.json(&["undo", &source]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let undone = open(&sandbox.path("library.jsonl")).undo().await.unwrap();
        assert!(undone.is_some());
    });
    assert_eq!(
        appended(&before, &sandbox.read(&source)),
        appended(&before, &sandbox.read("library.jsonl"))
    );
}

#[test]
fn a_move_with_a_summary_and_a_label_is_the_library_s() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let target = sandbox.json(&["context", &source])["messages"][1]["entryId"]
        .as_str()
        .unwrap()
        .to_owned();
    let arguments = ["navigate", &target, "--summarize", "--label", "before"];
    let entries = same_entries(&arguments, async |session| {
        let options = NavigateOptions {
            summary: BranchSummaryChoice::Summarize,
            label: Some("before".to_owned()),
            ..NavigateOptions::default()
        };
        drop(session.navigate(&target, options).await.unwrap());
    });
    let kinds: Vec<&str> = entries
        .iter()
        .map(|entry| entry["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["branch_summary", "label"]);
    assert_eq!(entries[1]["parentId"], "[0]");
}

/// The user's settings name the model and its server, and flags win.
#[test]
fn settings_choose_the_model_and_its_server() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let server = Server::start(vec![Script::Text("5,9000\n".to_owned(), "stop")]);
    std::fs::create_dir_all(sandbox.path(".config/foldline")).unwrap();
    let settings = serde_json::json!({
        "model": "my/planner",
        "providers": {"my": {"baseUrl": server.url, "api": "openai-completions"}},
        "compaction": {"strategy": "verbatim-lines", "preserve_recent": 3},
    });
    sandbox.write(".config/foldline/settings.json", settings.to_string());
    let result = sandbox.json(&["compact", &session, "--output", "out.jsonl"]);
    assert_eq!(result["outcome"], "committed", "{result}");
    assert_eq!(
        (&result["model"], &result["strategy"]),
        (&"my/planner".into(), &"verbatim-lines".into())
    );
    assert_eq!(result["parameters"]["preserve_recent"], 3);
    assert_eq!(server.requests().len(), 1);

    let result = sandbox.json(&["compact", &session, "--model", "extractive"]);
    assert_eq!(result["model"], "extractive", "{result}");
    assert_eq!(server.requests().len(), 1);
}

/// A project may not say where conversations go, and not what is run, unless its user trusts it.
#[test]
fn a_project_s_hooks_and_servers_count_once_it_is_trusted() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    std::fs::create_dir_all(sandbox.path(".foldline")).unwrap();
    let settings = serde_json::json!({
        "hooks": {"stop": {"events": ["session_before_compact"], "command": "sh",
            "args": ["-c", "cat >/dev/null; echo '{\"cancel\":true}'"]}},
    });
    sandbox.write(".foldline/settings.json", settings.to_string());
    let run = sandbox.run(&["compact", &session, "--output", "one.jsonl", "--json"]);
    assert_eq!(run.code(), 0, "{}", run.all());
    assert!(run.stderr().contains("hooks"), "{}", run.stderr());

    assert_eq!(sandbox.run(&["config", "trust"]).code(), 0);
    let before = sandbox.read(&session);
    let run = sandbox.run(&["compact", &session, "--json"]);
    assert_eq!(run.code(), 130, "{}", run.all());
    let document: Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(document["outcome"], "cancelled");
    assert_eq!(sandbox.read(&session), before);
    // A copy that came to nothing does not stay.
    let run = sandbox.run(&["compact", &session, "--output", "two.jsonl"]);
    assert_eq!(run.code(), 130, "{}", run.all());
    assert!(!sandbox.path("two.jsonl").exists());
}

/// Ctrl-C while a model thinks: nothing is written, and the exit code says so.
#[cfg(unix)]
#[test]
fn an_interrupt_cancels_and_writes_nothing() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&session);
    for strategy in ["verbatim-lines", "context-full"] {
        let server = Server::start(vec![Script::Silence]);
        let arguments = [
            "compact",
            &session,
            "--json",
            "--strategy",
            strategy,
            "--model",
            "my/m",
            "--base-url",
            &server.url,
            "--api",
            "openai-completions",
        ];
        let child = sandbox.spawn(&arguments);
        server.interrupt_when_asked(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["outcome"], "cancelled");
        assert_eq!(sandbox.read(&session), before);
    }
}
