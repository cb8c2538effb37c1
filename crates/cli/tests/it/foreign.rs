//! Sessions of other agents: import, export, and reading them as they are.

use crate::support::Sandbox;

const CLAUDE_CODE: &str = include_str!("../../../session-model/tests/data/claude-code.jsonl");
const CODEX: &str = include_str!("../../../session-model/tests/data/codex.jsonl");

#[test]
fn import_lists_what_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.write("t.jsonl", CLAUDE_CODE);
    insta::assert_snapshot!(sandbox.run(&["import", "t.jsonl", "--output", "s.jsonl"]).all());
    assert_eq!(sandbox.run(&["check", "s.jsonl"]).code(), 0);
    assert_eq!(
        sandbox.run(&["import", "t.jsonl", "--output", "s.jsonl"]).code(),
        2
    );
    assert_eq!(
        sandbox.run(&["import", "s.jsonl", "--output", "u.jsonl"]).code(),
        3
    );
}

#[test]
fn import_finds_its_place() {
    let sandbox = Sandbox::new();
    sandbox.write("t.jsonl", CODEX);
    let imported = sandbox.json(&["import", "t.jsonl"]);
    assert_eq!(
        (&imported["agent"], &imported["messages"]),
        (&"codex".into(), &15.into())
    );
    let output = imported["output"].as_str().unwrap();
    assert!(
        output.ends_with("_0199f2aa-0000-7000-8000-00000000c0de.jsonl"),
        "{output}"
    );
    assert_eq!(sandbox.run(&["check", output]).code(), 0);
}

#[test]
fn reading_commands_take_other_agents_files() {
    let sandbox = Sandbox::new();
    for (name, source) in [("t.jsonl", CLAUDE_CODE), ("r.jsonl", CODEX)] {
        sandbox.write(name, source);
        assert_eq!(sandbox.run(&["check", name]).code(), 0);
        let context = sandbox.json(&["context", name]);
        assert_eq!(context["messages"][0]["role"], "compactionSummary");
        assert_eq!(sandbox.read(name), source);
    }
}

#[test]
fn other_agents_files_are_never_written() {
    let sandbox = Sandbox::new();
    let before_compaction = CLAUDE_CODE.lines().take(20).collect::<Vec<_>>().join("\n") + "\n";
    sandbox.write("t.jsonl", &before_compaction);
    let run = sandbox.run(&["compact", "t.jsonl", "--preserve-recent", "0", "--ratio", "0.1"]);
    assert_eq!(run.code(), 2, "{}", run.all());
    assert!(run.stderr().contains("foldline import"), "{}", run.all());
    assert_eq!(sandbox.read("t.jsonl"), before_compaction);
}

#[test]
fn exports_are_read_again() {
    let sandbox = Sandbox::new();
    sandbox.write("t.jsonl", CLAUDE_CODE);
    let messages = |name: &str| sandbox.json(&["context", name, "--format", "text"])["messages"].clone();
    let count = messages("t.jsonl").as_array().unwrap().len();
    for to in ["claude-code", "codex", "pi"] {
        let output = format!("{to}.jsonl");
        let exported = sandbox.json(&["export", "t.jsonl", "--to", to, "--output", &output]);
        assert_eq!(exported["agent"], to);
        assert_eq!(messages(&output).as_array().unwrap().len(), count, "{to}");
        assert_eq!(
            sandbox
                .run(&["export", "t.jsonl", "--to", to, "--output", &output])
                .code(),
            2
        );
    }
    let document = sandbox.run(&["export", "t.jsonl", "--to", "markdown"]);
    assert!(document.stdout().starts_with("# Session "), "{}", document.all());
}
