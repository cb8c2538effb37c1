//! The chat without a terminal: lines of standard input. With a terminal: `cargo xtask e2e`.

use std::io::Write as _;

use crate::server::{Script, Server};
use crate::support::{Run, Sandbox};

fn arguments<'a>(server: &'a Server, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["chat"];
    all.extend(more);
    all.extend([
        "--model",
        "my/m",
        "--base-url",
        &server.url,
        "--api",
        "openai-completions",
        "--context-window",
        "8000",
    ]);
    all
}

fn chat(sandbox: &Sandbox, server: &Server, lines: &[&str]) -> Run {
    let input = lines.join("\n");
    sandbox.run_with_input(&arguments(server, &[]), &input)
}

#[test]
fn lines_are_prompts_and_commands() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Script::Text("It is **a** parser.".to_owned(), "stop")]);
    let run = chat(
        &sandbox,
        &server,
        &[
            "What is this?",
            "/undoo",
            "/tree",
            "/context",
            "/quit",
            "never said",
        ],
    );
    assert_eq!(run.code(), 0, "{}", run.all());
    let shown = run.stdout();
    for part in [
        "my/m in\n[FOLDER]/.local/share/foldline/sessions/",
        "\nIt is a parser.\n",
        "error: There is no command /undoo; did you mean /undo?",
        "error: The tree needs a terminal",
        "user (1)",
        "assistant (1)",
        "% of 8,000",
    ] {
        assert!(shown.contains(part), "{part:?} is missing: {}", run.all());
    }
    assert_eq!(server.requests().len(), 1);
    assert!(!shown.contains('\u{1b}') && !shown.contains('\r'), "{shown:?}");
}

#[test]
fn the_end_of_the_input_ends_the_chat_and_the_session_is_kept() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Script::Text("Yes.".to_owned(), "stop")]);
    assert_eq!(chat(&sandbox, &server, &["Are you there?"]).code(), 0);
    let run = sandbox.run_with_input(
        &arguments(&server, &["--session", "latest"]),
        "And now?\n/new\n/resume\n",
    );
    assert_eq!(run.code(), 0, "{}", run.all());
    for part in [
        "> Are you there?\n",
        "2 messages, about",
        "Are you there? (just now)",
    ] {
        assert!(run.stdout().contains(part), "{part:?} is missing: {}", run.all());
    }
    assert!(server.requests()[1].contains("Are you there?"));
}

#[test]
fn a_failure_is_told_and_the_chat_goes_on() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![
        Script::Status(401, r#"{"error":{"message":"invalid key\u001b[2J"}}"#),
        Script::Text("Yes.".to_owned(), "stop"),
    ]);
    let run = chat(&sandbox, &server, &["First", "/compact", "Second"]);
    assert_eq!(run.code(), 0, "{}", run.all());
    for part in ["invalid key[2J", "hint: check the key", "\nYes.\n"] {
        assert!(run.stdout().contains(part), "{part:?} is missing: {}", run.all());
    }
}

#[test]
fn models_change_and_old_output_is_pruned() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let server = Server::start(vec![Script::Text("Yes.".to_owned(), "stop")]);
    let settings = format!(
        r#"{{"providers":{{"other":{{"baseUrl":"{}","api":"openai-completions"}}}}}}"#,
        server.url
    );
    std::fs::create_dir_all(sandbox.path(".config/foldline")).unwrap();
    sandbox.write(".config/foldline/settings.json", settings);
    let input = "/model nobody\n/model other/large\nAre you there?\n/prune\n/undo\n/undo\n/summary\n";
    let run = sandbox.run_with_input(&arguments(&server, &["--session", &source]), input);
    assert_eq!(run.code(), 0, "{}", run.all());
    for part in [
        "error: \"nobody\" is no model",
        "The model is other/large\n",
        " tool results became notices, about ",
        "Took back the prune",
        "There is no compaction and no prune to take back",
        "No compaction is in force here",
    ] {
        assert!(run.stdout().contains(part), "{part:?} is missing: {}", run.all());
    }
    assert!(server.requests()[0].contains(r#""model":"large""#));
}

#[test]
fn a_goal_is_told_to_who_writes_a_summary() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path(".config/foldline")).unwrap();
    sandbox.write(
        ".config/foldline/settings.json",
        r#"{"compaction":{"keepRecentTokens":100}}"#,
    );
    let long = "words that fill the window ".repeat(200);
    let server = Server::start(vec![
        Script::Text(long.clone(), "stop"),
        Script::Text(long, "stop"),
        Script::Text("Yes.".to_owned(), "stop"),
        Script::Text(
            format!("## Goal\nGreen tests.\n\n## Progress\n{}", "- done\n".repeat(40)),
            "stop",
        ),
    ]);
    let run = chat(
        &sandbox,
        &server,
        &[
            "/goal green tests",
            "First",
            "Second",
            "Third",
            "/compact",
            "/summary",
        ],
    );
    assert_eq!(run.code(), 0, "{}", run.all());
    assert!(run.stdout().contains("The goal is: green tests"), "{}", run.all());
    assert!(
        run.stdout().contains("[compaction]\n  Compacted from"),
        "{}",
        run.all()
    );
    let asked = &server.requests()[3];
    assert!(asked.contains("Active goal: green tests"), "{asked}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_cancels_what_is_running_and_not_the_chat() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Script::Silence, Script::Text("Yes.".to_owned(), "stop")]);
    let mut child = sandbox.spawn(&arguments(&server, &[]));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"First\n").unwrap();
    while server.requests().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    stdin.write_all(b"Second\n").unwrap();
    drop(stdin);
    let run = sandbox.ran(child.wait_with_output().unwrap());
    assert_eq!(run.code(), 0, "{}", run.all());
    assert!(run.stdout().contains("Cancelled\n"), "{}", run.all());
    assert!(run.stdout().contains("\nYes.\n"), "{}", run.all());
}

#[test]
fn what_cannot_be_is_said_at_once() {
    let sandbox = Sandbox::new();
    for (args, code) in [
        (&["chat"][..], 2),
        (&["chat", "--json"], 2),
        (&["chat", "--model", "my/m"], 2),
        (&["chat", "--model", "anthropic/claude-sonnet-4-5"], 4),
    ] {
        let run = sandbox.run_with_input(args, "");
        assert_eq!(run.code(), code, "{args:?}: {}", run.all());
    }
}
