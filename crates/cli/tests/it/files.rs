//! The files that commands make, take away and leave alone.

use std::path::Path;

use crate::server::{Script, Server};
use crate::support::Sandbox;

/// The names in a folder, without those of locks that wait for the next writer.
fn names(folder: &Path) -> Vec<String> {
    let items = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = items
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_deleted_session_takes_only_its_own_with_it() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    std::fs::rename(sandbox.path(&session), sandbox.path("src.jsonl")).unwrap();
    std::fs::create_dir(sandbox.path("src")).unwrap();
    sandbox.write("src/main.rs", "fn main() {}");
    let deleted = sandbox.json(&["delete", "src.jsonl"]);
    assert_eq!(
        (&deleted["outcome"], &deleted["files"]),
        (&"committed".into(), &1.into())
    );
    assert_eq!(sandbox.read("src/main.rs"), "fn main() {}");
}

#[cfg(unix)]
#[test]
fn a_link_is_not_deleted_for_a_session() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    std::os::unix::fs::symlink(sandbox.path(&session), sandbox.path("ln.jsonl")).unwrap();
    let run = sandbox.run(&["delete", "ln.jsonl"]);
    assert_eq!(run.code(), 2, "{}", run.all());
    assert!(run.stderr().contains("linear.jsonl"), "{}", run.stderr());
    assert!(sandbox.path(&session).exists() && sandbox.path("ln.jsonl").is_symlink());
    assert_eq!(sandbox.run(&["delete", &session]).code(), 0);
}

#[test]
fn what_gone_sessions_left_is_removed_and_their_last_backup_stays() {
    let sandbox = Sandbox::new();
    let fixture = sandbox.fixture("realistic.jsonl");
    let home = sandbox.path(".local/share/foldline/sessions/--gone--");
    std::fs::create_dir_all(&home).unwrap();
    let session = home.join("2026-01-01T00-00-00-000Z_x.jsonl");
    std::fs::copy(sandbox.path(&fixture), &session).unwrap();
    let name = session.to_str().unwrap();
    let rewrite = [
        "--storage",
        "rewrite",
        "--protect-tokens",
        "0",
        "--minimum-savings",
        "0",
    ];
    assert_eq!(
        sandbox.json(&[&["prune", name], &rewrite[..]].concat())["outcome"],
        "committed"
    );
    assert_eq!(sandbox.json(&["compact", name])["outcome"], "committed");
    let staged = home.join(".foldline-abc.tmp");
    std::fs::write(&staged, "cut").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 24 * 60 * 60);
    std::fs::File::options()
        .write(true)
        .open(&staged)
        .unwrap()
        .set_modified(old)
        .unwrap();
    std::fs::remove_file(&session).unwrap();

    let before = names(&home).len();
    let dry = sandbox.json(&["gc", "--dry-run"]);
    assert_eq!(names(&home).len(), before);
    let swept = sandbox.json(&["gc"]);
    assert_eq!(swept["removed"], dry["removed"]);
    assert_eq!(swept["kept"], dry["kept"]);
    let kept = swept["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 2, "one of each kind: {swept}");
    assert!(!staged.exists());
    let left: Vec<String> = names(&home)
        .into_iter()
        .filter(|name| std::path::Path::new(name).extension().is_some_and(|e| e == "bak"))
        .collect();
    assert_eq!(left.len(), 2);
    let artifacts = session.with_extension("");
    assert!(names(&artifacts).is_empty(), "{:?}", names(&artifacts));
    assert_eq!(sandbox.json(&["gc"])["outcome"], "skipped");
}

#[test]
fn no_file_is_made_under_a_name_that_cannot_be_meant() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    sandbox.write("there", "mine");
    let before = names(&sandbox.path("."));
    let commands: [&[&str]; 5] = [
        &["compact", &session, "--output"],
        &["fork", &session, "--output"],
        &["handoff", &session, "--output"],
        &["export", &session, "--to", "pi", "--output"],
        &["report", &session, "--output"],
    ];
    for command in commands {
        let run = |name: &str| {
            let run = sandbox.run(&[command, &[name]].concat());
            assert_eq!(run.code(), 2, "{command:?}: {}", run.all());
            assert!(run.stderr().contains("hint: "), "{}", run.stderr());
            run.stderr()
        };
        assert!(run("no/such/folder.jsonl").contains("there is no folder no/such"));
        assert!(run("there").contains("there exists already"));
        if command[0] != "handoff" {
            assert!(run("-").contains("`-` is no name for the new file"));
        }
    }
    assert_eq!(names(&sandbox.path(".")), before);
    assert_eq!(sandbox.read("there"), "mine");
}

#[test]
fn an_export_without_a_message_is_refused() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("header-only.jsonl");
    for agent in ["codex", "claude-code", "pi"] {
        let run = sandbox.run(&["export", &session, "--to", agent, "--output", "out.jsonl"]);
        assert_eq!(run.code(), 1, "{}", run.all());
        assert!(run.stderr().contains("has no message"), "{}", run.stderr());
        assert!(!sandbox.path("out.jsonl").exists());
    }
    assert_eq!(sandbox.run(&["export", &session, "--to", "markdown"]).code(), 0);
}

/// A compaction into a file that waits for a model for ever.
#[cfg(unix)]
fn waiting(sandbox: &Sandbox, session: &str, server: &Server) -> std::process::Child {
    let child = sandbox.spawn(&[
        "compact",
        session,
        "--output",
        "out.jsonl",
        "--model",
        "my/m",
        "--base-url",
        &server.url,
        "--api",
        "openai-completions",
    ]);
    while server.requests().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let sent = std::process::Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_compaction_that_is_ended_leaves_nothing_under_the_new_name() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = names(&sandbox.path("."));
    for how in ["-INT", "-TERM"] {
        let server = Server::start(vec![Script::Silence]);
        let child = waiting(&sandbox, &session, &server);
        assert!(!sandbox.path("out.jsonl").exists());
        signal(&child, how);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert_eq!(names(&sandbox.path(".")), before, "{how}");
    }
    let server = Server::start(vec![Script::Silence]);
    let mut child = waiting(&sandbox, &session, &server);
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert!(!sandbox.path("out.jsonl").exists());
}

#[test]
fn a_compaction_into_a_file_leaves_that_file_only() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&session);
    let document = sandbox.json(&["compact", &session, "--output", "out.jsonl"]);
    assert_eq!(document["output"], "out.jsonl");
    assert_eq!(names(&sandbox.path(".")), ["out.jsonl", "realistic.jsonl"]);
    assert_eq!(sandbox.read(&session), before);
    assert_eq!(sandbox.run(&["check", "out.jsonl"]).code(), 0);
}
