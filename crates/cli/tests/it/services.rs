//! Settings of files that reach the session: the service that writes summaries, the provider's own compaction, hooks of
//! a switch, the idle time.

use serde_json::{Value, json};

use crate::server::{Script, Server};
use crate::support::{Run, Sandbox};

const SUMMARY: &str = "## Goal\nMake leases safe.\n\n## Constraints & Preferences\n- none\n\n## Progress\n### Done\n- [x] read the log\n\n### In Progress\n- [ ] fencing tokens\n\n### Blocked\n- nothing\n\n## Key Decisions\n- **tokens**: monotonic\n\n## Next Steps\n1. write the release notes\n\n## Critical Context\n- HRN2041";

fn settings(sandbox: &Sandbox, place: &str, settings: &Value) {
    let folder = sandbox.path(place);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
}

/// Sends commands over rpc; what came of the run, and its answers in order.
fn rpc(sandbox: &Sandbox, session: &str, commands: &[Value]) -> (Run, Vec<Value>) {
    let input: Vec<String> = commands.iter().map(|command| format!("{command}\n")).collect();
    let run = sandbox.run_with_input(&["rpc", "--session", session], &input.concat());
    let lines: Vec<Value> = run
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let answers = lines.into_iter().filter(|line| line["type"] == "response");
    let answers = answers.collect();
    (run, answers)
}

const USER: &str = ".config/foldline";
const PROJECT: &str = ".foldline";

fn service() -> Server {
    Server::start(vec![Script::Json(200, json!({"summary": SUMMARY}).to_string())])
}

fn endpoint(server: &Server) -> Value {
    json!({"compaction": {"remoteEndpoint": format!("{}/summarize", server.url)}})
}

#[test]
fn a_service_summarises_where_the_user_names_one() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let server = service();
    settings(&sandbox, USER, &endpoint(&server));
    let dry = sandbox.run(&["compact", &session, "--dry-run"]);
    assert!(dry.stdout().contains(&server.url), "{}", dry.all());
    assert!(server.requests().is_empty());

    let done = sandbox.json(&[
        "compact",
        &session,
        "--output",
        "out.jsonl",
        "--instructions",
        "mind the codes",
    ]);
    assert_eq!(done["outcome"], "committed", "{done}");
    assert_eq!(
        (&done["strategy"], &done["model"]),
        (&"context-full".into(), &"remote/summary".into())
    );
    let asked: Value = serde_json::from_str(&server.requests()[0]).unwrap();
    assert!(asked["prompt"].as_str().unwrap().contains("mind the codes"));
    assert!(!asked["systemPrompt"].as_str().unwrap().is_empty());
    assert!(sandbox.read("out.jsonl").contains("Make leases safe."));

    // Who asks for no model gets none, and so does who switches services off.
    let before = server.requests().len();
    let done = sandbox.json(&[
        "compact",
        &session,
        "--output",
        "two.jsonl",
        "--model",
        "extractive",
    ]);
    assert_eq!(done["model"], "extractive", "{done}");
    let mut off = endpoint(&server);
    off["compaction"]["remoteEnabled"] = json!(false);
    settings(&sandbox, USER, &off);
    let done = sandbox.json(&["compact", &session, "--output", "three.jsonl"]);
    assert_eq!(done["model"], "extractive", "{done}");
    assert_eq!(server.requests().len(), before);
}

/// D12: a project's file says where transcripts go only if its user trusts it.
#[test]
fn a_project_names_a_service_only_where_it_is_trusted() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let server = service();
    settings(&sandbox, PROJECT, &endpoint(&server));
    let done = sandbox.json(&["compact", &session, "--output", "one.jsonl"]);
    assert_eq!(done["model"], "extractive", "{done}");
    let told = sandbox.run(&["compact", &session, "--dry-run"]);
    assert!(
        told.stderr().contains("compaction.remoteEndpoint"),
        "{}",
        told.all()
    );
    assert!(server.requests().is_empty());

    assert_eq!(sandbox.run(&["config", "trust"]).code(), 0);
    let done = sandbox.json(&["compact", &session, "--output", "two.jsonl"]);
    assert_eq!(done["model"], "remote/summary", "{done}");
}

#[test]
fn a_service_that_is_down_changes_nothing_and_a_model_takes_over() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&session);
    let down = Server::start(vec![Script::Status(503, "down")]);
    settings(&sandbox, USER, &endpoint(&down));
    let run = sandbox.run(&["compact", &session]);
    assert_eq!(run.code(), 4, "{}", run.all());
    assert_eq!(sandbox.read(&session), before);

    let model = Server::start(vec![Script::Text(SUMMARY.to_owned(), "stop")]);
    let with_model = [
        "--model",
        "my/m",
        "--base-url",
        &model.url,
        "--api",
        "openai-completions",
    ];
    let mut args = vec!["compact", session.as_str(), "--output", "out.jsonl"];
    args.extend(with_model);
    let done = sandbox.json(&args);
    assert_eq!(
        (&done["outcome"], &done["model"]),
        (&"committed".into(), &"my/m".into())
    );
    let out = sandbox.read("out.jsonl");
    assert!(
        out.contains("\"fallbackReasons\":[\"remote/summary: "),
        "the record names the failure"
    );
    // Unencrypted to another machine: never.
    settings(
        &sandbox,
        USER,
        &json!({"compaction": {"remoteEndpoint": "http://example.com/summarize"}}),
    );
    let run = sandbox.run(&["compact", &session, "--output", "no.jsonl"]);
    assert!(
        run.stderr().contains("compaction.remoteEndpoint is left out"),
        "{}",
        run.all()
    );
}

/// A run through a Responses server that compacts histories itself, as the user's settings say.
#[test]
fn the_providers_own_compaction_stands_beside_the_summary() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let history = r#"{"output":[{"type":"compaction","id":"c1","encrypted_content":"b64=="}]}"#;
    let server = Server::by_path(vec![
        ("/v1/responses/compact", Script::Json(200, history.to_owned())),
        ("/v1/responses", Script::Responses(SUMMARY.to_owned())),
    ]);
    let provider = |native: &str| json!({"providers": {"mine": {"baseUrl": server.url, "api": "openai-responses", "nativeCompaction": native}}});
    settings(&sandbox, USER, &provider("plain"));
    let done = sandbox.json(&["compact", &session, "--output", "out.jsonl", "--model", "mine/m"]);
    assert_eq!(
        (&done["outcome"], &done["model"]),
        (&"committed".into(), &"mine/m".into())
    );
    let entry = sandbox.read("out.jsonl").lines().last().unwrap().to_owned();
    let entry: Value = serde_json::from_str(&entry).unwrap();
    let remote = &entry["preserveData"]["openaiRemoteCompaction"];
    assert_eq!(
        (&remote["provider"], &remote["model"]),
        (&"mine".into(), &"m".into())
    );
    assert_eq!(remote["compactionItem"]["encrypted_content"], "b64==");
    assert_eq!(entry["details"]["foldline"]["native"], "plain");
    assert!(entry["summary"].as_str().unwrap().contains("Make leases safe."));

    // At an address that somebody names nothing is known of it: the setting says so, or it is not asked.
    settings(&sandbox, USER, &provider("off"));
    sandbox.json(&["compact", &session, "--output", "off.jsonl", "--model", "mine/m"]);
    assert!(!sandbox.read("off.jsonl").contains("openaiRemoteCompaction"));
}

/// A hook that writes down what it is told of sessions, and keeps a session from being left for an older one.
#[cfg(unix)]
fn told_of_sessions(sandbox: &Sandbox) {
    let hook = "read line; echo \"$line\" >> told; case \"$line\" in *before_switch*resume*) echo '{\"cancel\":true}';; esac";
    let events = [
        "session_start",
        "session_before_switch",
        "session_switch",
        "session_shutdown",
    ];
    settings(
        sandbox,
        USER,
        &json!({"hooks": {"one": {"events": events, "command": "sh", "args": ["-c", hook]}}}),
    );
}

/// What it wrote down: `event reason`.
#[cfg(unix)]
fn what_was_told(sandbox: &Sandbox) -> Vec<String> {
    let told = sandbox.read("told");
    let told = told.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("type"), text("reason"))
    });
    told.collect()
}

/// Hooks are told of sessions that take each other's place, and may keep one.
#[cfg(unix)]
#[test]
fn rpc_asks_hooks_before_it_switches() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    let other = sandbox.fixture("tool-pairs.jsonl");
    told_of_sessions(&sandbox);
    let commands = [
        json!({"id": 1, "type": "switch_session", "sessionPath": other}),
        json!({"id": 2, "type": "clone"}),
        json!({"id": 3, "type": "get_state"}),
    ];
    let (run, answers) = rpc(&sandbox, &session, &commands);
    assert_eq!(answers[0]["data"]["cancelled"], true, "{}", run.all());
    assert_eq!(answers[1]["data"]["cancelled"], false, "{}", run.all());
    assert_ne!(answers[2]["data"]["sessionFile"], json!(session));
    assert_eq!(
        what_was_told(&sandbox),
        [
            "session_start startup",
            "session_before_switch resume",
            "session_before_switch fork",
            "session_shutdown fork",
            "session_switch fork",
            "session_start fork",
            "session_shutdown quit",
        ]
    );
}

#[cfg(unix)]
#[test]
fn run_and_chat_tell_hooks_of_their_sessions() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    let other = sandbox.fixture("tool-pairs.jsonl");
    told_of_sessions(&sandbox);
    let server = Server::start(vec![Script::Text("Yes.".to_owned(), "stop")]);
    let model = [
        "--model",
        "my/m",
        "--base-url",
        &server.url,
        "--api",
        "openai-completions",
    ];
    let run = sandbox.run(&[&["run", "Hello", "--session", &session], &model[..]].concat());
    assert_eq!(run.code(), 0, "{}", run.all());
    assert_eq!(
        what_was_told(&sandbox),
        ["session_start startup", "session_shutdown quit"]
    );
    let typed = format!("/resume {other}\n/new\n/quit\n");
    let chat = sandbox.run_with_input(&[&["chat", "--session", &session], &model[..]].concat(), &typed);
    assert_eq!(chat.code(), 0, "{}", chat.all());
    assert!(chat.all().contains("A hook keeps this session"), "{}", chat.all());
    assert_eq!(
        what_was_told(&sandbox)[2..],
        [
            "session_start startup",
            "session_before_switch resume",
            "session_before_switch new",
            "session_shutdown new",
            "session_switch new",
            "session_start new",
            "session_shutdown quit",
        ]
    );
}

/// Automatic compactions are told under both names, labels with the time at which they were set.
#[test]
fn rpc_tells_older_names_and_times_of_labels() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("tool-pairs.jsonl");
    let id = sandbox.json(&["context", &session])["messages"][0]["entryId"].clone();
    let commands = [
        json!({"id": 1, "type": "set_label", "entryId": id, "label": "here"}),
        json!({"id": 2, "type": "get_tree"}),
        json!({"id": 3, "type": "get_entries"}),
    ];
    let (run, answers) = rpc(&sandbox, &session, &commands);
    assert_eq!(answers.len(), commands.len(), "{}", run.all());
    let entries = answers[2]["data"]["entries"].as_array().unwrap();
    let set = entries.iter().find(|entry| entry["type"] == "label").unwrap();
    let mut nodes: Vec<&Value> = answers[1]["data"]["tree"].as_array().unwrap().iter().collect();
    let mut found = None;
    while let Some(node) = nodes.pop() {
        if node["entry"]["id"] == id {
            found = Some(node);
        }
        nodes.extend(node["children"].as_array().unwrap());
    }
    let found = found.unwrap();
    assert_eq!(found["label"], "here");
    assert_eq!(found["labelTimestamp"], set["timestamp"]);
    assert!(found["labelTimestamp"].as_str().is_some());
}
