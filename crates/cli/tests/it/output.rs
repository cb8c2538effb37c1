//! What reaches a pipe, a file and a terminal.

use crate::support::Sandbox;

const OSC: &str = "\u{1b}]0;taken over\u{7}";
const CSI: &str = "\u{1b}[2J\u{1b}[31;5m";
const STEPS_BACK: &str = "\u{8}\u{8}\u{8}";
const C1: &str = "\u{9b}2J\u{9d}0;c1\u{9c}";

/// A session whose every text wants to command a terminal: id, ids of entries, tool, label, summary, title.
fn hostile() -> String {
    let bad = serde_json::to_string(&format!("{OSC}{CSI}{STEPS_BACK}{C1}")).unwrap();
    let bad = bad.trim_matches('"');
    let stamp = r#""timestamp":"2026-01-05T09:00:00.000Z""#;
    let usage = r#""usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    [
        format!(r#"{{"type":"session","version":3,"id":"s{bad}","cwd":"/w",{stamp},"title":"t{bad}"}}"#),
        format!(r#"{{"type":"message","id":"u{bad}","parentId":null,{stamp},"message":{{"role":"user","content":"ask {bad} now"}}}}"#),
        format!(
            r#"{{"type":"message","id":"a","parentId":"u{bad}",{stamp},"message":{{"role":"assistant","content":[{{"type":"text","text":"say {bad}"}},{{"type":"toolCall","id":"c1","name":"ba{bad}sh","arguments":{{}}}}],"model":"m{bad}","provider":"p{bad}","stopReason":"toolUse",{usage}}}}}"#
        ),
        format!(
            r#"{{"type":"message","id":"r","parentId":"a",{stamp},"message":{{"role":"toolResult","toolCallId":"c1","toolName":"ba{bad}sh","content":[{{"type":"text","text":"out {bad} put"}}],"isError":false}}}}"#
        ),
        format!(r#"{{"type":"label","id":"l","parentId":"r",{stamp},"targetId":"a","label":"lab{bad}el"}}"#),
        format!(r#"{{"type":"message","id":"o{bad}","parentId":"gone{bad}",{stamp},"message":{{"role":"user","content":"orphan"}}}}"#),
        format!(r#"{{"type":"message","id":"z","parentId":"l",{stamp},"message":{{"role":"user","content":"and {bad} then"}}}}"#),
    ]
    .join("\n")
        + "\n"
}

/// Nothing of this may reach a terminal.
#[cfg(unix)]
fn assert_harmless(shown: &str, of: &str) {
    for part in [
        "\u{1b}]",
        "\u{7}",
        "\u{1b}[2J",
        "\u{1b}[31;5m",
        "\u{8}",
        "\u{9b}",
        "\u{9d}",
        "\u{9c}",
    ] {
        assert!(
            !shown.contains(part),
            "{part:?} reached the terminal by {of}: {shown:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_session_does_not_command_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", hostile());
    let commands: [&[&str]; 14] = [
        &["context", "s.jsonl"],
        &["context", "s.jsonl", "--format", "text"],
        &["context", "s.jsonl", "--format", "llm"],
        &["context", "s.jsonl", "--json"],
        &["tree", "s.jsonl", "--all"],
        &["stats", "s.jsonl"],
        &["check", "s.jsonl"],
        &["show", "s.jsonl", "z"],
        &["show", "s.jsonl", "artifact://entry/r"],
        &["export", "s.jsonl", "--to", "markdown"],
        &[
            "prune",
            "s.jsonl",
            "--dry-run",
            "--protect-turns",
            "0",
            "--protect-tokens",
            "0",
            "--minimum-savings",
            "0",
        ],
        &["recall", "s.jsonl", "ask"],
        &["handoff", "s.jsonl", "--output", "-"],
        &["navigate", "s.jsonl", "a"],
    ];
    for command in commands {
        let shown = sandbox.run_on_terminal(command).1;
        assert!(!shown.is_empty(), "{command:?}");
        assert_harmless(&shown, &command.join(" "));
    }
    // The words between the commands are there, and our own styles are.
    let shown = sandbox
        .run_on_terminal(&["context", "s.jsonl", "--format", "text"])
        .1;
    assert!(shown.contains("\u{1b}[1muser\u{1b}[0m"), "{shown:?}");
    assert!(shown.contains("ask ]0;taken over[2J"), "{shown:?}");
}

#[cfg(unix)]
#[test]
fn an_error_does_not_command_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", hostile());
    let bad = format!("{OSC}{CSI}{STEPS_BACK}{C1}");
    let flag = format!("--{bad}");
    let commands: [(&[&str], i32); 5] = [
        (&["show", "s.jsonl", &bad], 1),
        (&["context", &bad], 3),
        (&["context", "s.jsonl", "--leaf", &bad], 1),
        (&["context", "s.jsonl", &flag], 2),
        (&["compact", "s.jsonl", "--model", &bad], 2),
    ];
    for (command, code) in commands {
        let (found, shown) = sandbox.run_on_terminal(command);
        assert_eq!(found, Some(code), "{command:?}: {shown:?}");
        assert!(shown.contains("error"), "{shown:?}");
        assert_harmless(&shown, &format!("{command:?}"));
    }
    let (_, shown) = sandbox.run_on_terminal(&["show", "s.jsonl", "zzz"]);
    assert!(shown.contains("\u{1b}[1m\u{1b}[31merror\u{1b}[0m"), "{shown:?}");
}

#[cfg(unix)]
#[test]
fn what_a_provider_says_does_not_command_the_terminal() {
    use crate::server::{Script, Server};
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let body = "{\"error\":{\"message\":\"no \\u001b]0;x\\u0007 \\u001b[2J\\u0008 \\u009b2J key\"}}";
    let server = Server::start(vec![Script::Status(401, body)]);
    let (code, shown) = sandbox.run_on_terminal(&[
        "compact",
        &session,
        "--model",
        "my/m",
        "--base-url",
        &server.url,
        "--api",
        "openai-completions",
    ]);
    assert_eq!(code, Some(4), "{shown:?}");
    assert!(shown.contains("key"), "{shown:?}");
    // The spinner is drawn with sequences of its own, but never with these.
    assert_harmless(&shown, "an error of a provider");
}

#[test]
fn content_in_a_pipe_is_what_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", hostile());
    let bad = format!("{OSC}{CSI}{STEPS_BACK}{C1}");
    let show = |args: &[&str]| sandbox.run(args).stdout();
    assert_eq!(
        show(&["show", "s.jsonl", "artifact://entry/r"]),
        format!("out {bad} put")
    );
    let line = hostile().lines().last().unwrap().to_owned();
    assert_eq!(show(&["show", "s.jsonl", "z"]), format!("{line}\n"));
    assert!(show(&["export", "s.jsonl", "--to", "markdown"]).contains(&format!("say {bad}")));
    let text = show(&["context", "s.jsonl", "--format", "text"]);
    assert!(text.contains(&format!("user\nask {bad} now\n")), "{text:?}");
    let handoff = show(&["handoff", "s.jsonl", "--output", "-"]);
    assert!(handoff.contains(&bad), "{handoff:?}");
}

#[test]
fn a_stored_original_is_printed_byte_for_byte() {
    let sandbox = Sandbox::new();
    sandbox.fixture("linear.jsonl");
    std::fs::create_dir(sandbox.path("linear")).unwrap();
    let bytes = b"\x1b[1mbold\x1b[0m \xff\x00 end\n\n";
    std::fs::write(sandbox.path("linear").join("3.bash.log"), bytes).unwrap();
    let child = sandbox.spawn(&["show", "linear.jsonl", "artifact://3"]);
    assert_eq!(child.wait_with_output().unwrap().stdout, bytes);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_does_not_arrive_is_a_failure() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    let commands: [&[&str]; 7] = [
        &["export", &session, "--to", "markdown"],
        &["context", &session],
        &["context", &session, "--json"],
        &["show", &session, "artifact://entry/none", "--json"],
        &["completions", "bash"],
        &["check", &session],
        &["--help"],
    ];
    for command in commands {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = sandbox
            .command(std::path::Path::new(env!("CARGO_BIN_EXE_foldline")))
            .args(command)
            .stdout(full)
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
        assert!(
            told.contains("the output cannot be written"),
            "{command:?}: {told}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    for more in [&[][..], &["--json"]] {
        let mut child = sandbox.spawn(&[&["context", session.as_str()], more].concat());
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
