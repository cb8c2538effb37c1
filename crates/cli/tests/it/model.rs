//! Compactions planned by a model: a scripted server on this machine stands for the provider.

use crate::server::{Script, Server};
use crate::support::Sandbox;

fn compact<'a>(server: &'a Server, session: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "compact",
        session,
        "--model",
        "my/planner",
        "--base-url",
        &server.url,
    ];
    args.extend(["--api", "openai-completions"]);
    args.extend(more);
    args
}

#[test]
fn a_model_plans_the_deletions_in_one_request() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let server = Server::start(vec![Script::Text("5,9000\n".to_owned(), "stop")]);
    let strategy = ["--strategy", "verbatim-lines", "--output", "out.jsonl"];
    let result = sandbox.json(&compact(&server, &session, &strategy));
    assert_eq!(result["outcome"], "committed", "{result}");
    assert_eq!(result["rung"], "planned");
    assert_eq!(result["model"], "my/planner");
    assert_eq!(result["stats"]["linesDeleted"], 8996);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert!(
        requests[0].contains("numbered-transcript") && !requests[0].contains("max_completion_tokens\":1")
    );
}

#[test]
fn a_cut_answer_is_recovered_and_told_in_private() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let server = Server::start(vec![Script::Text("5,9000\n10,".to_owned(), "length")]);
    let result = sandbox.json(&compact(&server, &session, &["--strategy", "verbatim-lines"]));
    assert_eq!(result["outcome"], "committed", "{result}");
    let beside = sidecars(&sandbox);
    assert_eq!(beside.len(), 1);
    assert!(beside[0].contains("compaction-recovery"));
}

#[test]
fn an_answer_that_cannot_be_used_changes_nothing_and_names_its_diagnostic() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&session);
    let server = Server::start(vec![Script::Text(
        "I would delete lines 5 to 90.".to_owned(),
        "stop",
    )]);
    let run = sandbox.run(&compact(&server, &session, &["--strategy", "verbatim-lines"]));
    assert_eq!(run.code(), 4, "{}", run.all());
    assert!(run.stderr().contains("(diagnostic: "), "{}", run.stderr());
    assert_eq!(server.requests().len(), 1, "one request, then an honest failure");
    assert_eq!(sandbox.read(&session), before);
    let beside = sidecars(&sandbox);
    assert_eq!(beside.len(), 1);
    let text = sandbox.read(&beside[0]);
    assert!(text.contains("malformed_output") && !text.contains("numbered-transcript"));
    // The session stays usable.
    assert_eq!(sandbox.json(&["compact", &session])["outcome"], "committed");
}

#[test]
fn a_model_summarises_by_default() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let summary = "## Goal\nMake leases safe.\n\n## Constraints & Preferences\n- none\n\n## Progress\n### Done\n- [x] read the log\n\n### In Progress\n- [ ] fencing tokens\n\n### Blocked\n- nothing\n\n## Key Decisions\n- **tokens**: monotonic\n\n## Next Steps\n1. write the release notes\n\n## Critical Context\n- HRN2041";
    let server = Server::start(vec![Script::Text(summary.to_owned(), "stop")]);
    let result = sandbox.json(&compact(
        &server,
        &session,
        &["--output", "out.jsonl", "--instructions", "mind the codes"],
    ));
    assert_eq!(result["outcome"], "committed", "{result}");
    assert_eq!(result["strategy"], "context-full");
    let requests = server.requests();
    assert!(!requests.is_empty() && requests[0].contains("mind the codes"));
    let entry: serde_json::Value =
        serde_json::from_str(sandbox.read("out.jsonl").lines().last().unwrap()).unwrap();
    assert!(entry["summary"].as_str().unwrap().contains("Make leases safe."));
    assert!(result["tokensAfter"].as_u64() < result["tokensBefore"].as_u64());
}

#[test]
fn a_model_sums_up_a_branch_or_nothing_moves() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    let target = sandbox.json(&["context", &session])["messages"][2]["entryId"]
        .as_str()
        .unwrap()
        .to_owned();
    let before = sandbox.read(&session);
    let navigate = |server: &Server| {
        let common = [
            "navigate",
            &session,
            &target,
            "--summarize",
            "--instructions",
            "mind the codes",
        ];
        let model = [
            "--model",
            "my/planner",
            "--base-url",
            &server.url,
            "--api",
            "openai-completions",
        ];
        let args: Vec<String> = common.iter().chain(&model).map(|arg| (*arg).to_owned()).collect();
        args
    };
    let refused = Server::start(vec![Script::Text("No.".to_owned(), "stop")]);
    let args = navigate(&refused);
    let run = sandbox.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(run.code(), 4, "{}", run.all());
    assert_eq!(sandbox.read(&session), before);

    let notes = "## Goal\nTry another way.\n\n## Constraints & Preferences\n- none\n\n## Progress\n### Done\n- [x] looked\n\n### In Progress\n- [ ] nothing\n\n### Blocked\n- nothing\n\n## Key Decisions\n- **none**: none\n\n## Next Steps\n1. go on\n\n## Critical Context\n- none";
    let server = Server::start(vec![Script::Text(notes.to_owned(), "stop")]);
    let args = navigate(&server);
    let result = sandbox.json(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(result["outcome"], "committed", "{result}");
    assert!(server.requests()[0].contains("mind the codes"));
    let context = sandbox.json(&["context", &session]);
    let last = context["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "branchSummary");
    assert!(last["content"].as_str().unwrap().contains("Try another way."));
}

#[test]
fn failures_of_providers_have_their_exit_code() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&session);
    let unauthorised = Script::Status(
        401,
        r#"{"error":{"message":"invalid key","type":"authentication_error"}}"#,
    );
    for strategy in ["verbatim-lines", "context-full"] {
        let server = Server::start(vec![unauthorised.clone()]);
        let run = sandbox.run(&compact(&server, &session, &["--strategy", strategy, "--json"]));
        assert_eq!(run.code(), 4, "{}", run.all());
        let document: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        assert_eq!(document["error"]["kind"], "provider");
        assert_eq!(sandbox.read(&session), before);
    }
}

#[test]
fn without_a_key_or_a_server_nothing_is_read() {
    let sandbox = Sandbox::new();
    let mut all = String::new();
    for args in [
        &[
            "compact",
            "missing.jsonl",
            "--model",
            "anthropic/claude-sonnet-4-5",
        ][..],
        &["compact", "missing.jsonl", "--model", "nobody/knows"],
        &["compact", "missing.jsonl", "--model", "nonsense"],
        &[
            "compact",
            "missing.jsonl",
            "--model",
            "my/m",
            "--base-url",
            "http://example.com",
            "--api",
            "openai-completions",
        ],
    ] {
        all.push_str(&format!(
            "$ foldline {}\n{}\n",
            args.join(" "),
            sandbox.run(args).all()
        ));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_dry_run_shows_requests_and_asks_nobody() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    for strategy in ["verbatim-lines", "context-full"] {
        let args = [
            "compact",
            &session,
            "--dry-run",
            "--model",
            "anthropic/claude-sonnet-4-5",
            "--strategy",
            strategy,
        ];
        let result = sandbox.json(&args);
        assert_eq!(result["reason"], "dry run");
        let requests = result["requests"].as_array().unwrap();
        assert!(
            !requests.is_empty() && requests[0]["tokens"].as_u64() > Some(1_000),
            "{result}"
        );
    }
}

fn sidecars(sandbox: &Sandbox) -> Vec<String> {
    let names = std::fs::read_dir(sandbox.path("")).unwrap();
    let mut names: Vec<String> = names
        .map(|n| n.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.contains("-compaction-diagnostic-") || name.contains("-compaction-recovery-"));
    names.sort();
    names
}
