//! `rename`, `delete`, `models` and `completions`.

use std::path::Path;

use foldline_session_store::{DiskStore, Expected, OpenOptions, Owner, SessionStore as _};

use crate::support::Sandbox;

/// Puts a fixture among the sessions of the sandbox; returns its path.
fn at_home(sandbox: &Sandbox, name: &str) -> String {
    let text = sandbox.fixture(name);
    let home = sandbox.path(".local/share/foldline/sessions/--work-heron--");
    std::fs::create_dir_all(&home).unwrap();
    let path = home.join(name);
    std::fs::rename(sandbox.path(&text), &path).unwrap();
    path.display().to_string()
}

#[test]
fn a_title_is_one_entry_more_and_listed() {
    let sandbox = Sandbox::new();
    let session = at_home(&sandbox, "linear.jsonl");
    let before = std::fs::read_to_string(&session).unwrap();
    let context = sandbox.json(&["context", &session])["messages"].clone();
    let renamed = sandbox.json(&["rename", &session, " Fencing tokens "]);
    assert_eq!(
        (&renamed["outcome"], &renamed["title"]),
        (&"committed".into(), &"Fencing tokens".into())
    );
    let after = std::fs::read_to_string(&session).unwrap();
    let added = after.strip_prefix(&before).unwrap();
    assert!(
        added.starts_with("{\"type\":\"session_info\"") && added.lines().count() == 1,
        "{added}"
    );
    assert_eq!(
        sandbox.json(&["list", "--all"])["sessions"][0]["title"],
        "Fencing tokens"
    );
    assert_eq!(sandbox.json(&["context", &session])["messages"], context);

    let again = sandbox.json(&["rename", &session, "Fencing tokens"]);
    assert_eq!(again["outcome"], "skipped");
    assert_eq!(std::fs::read_to_string(&session).unwrap(), after);
    let cleared = sandbox.json(&["rename", &session, ""]);
    assert_eq!(
        (&cleared["outcome"], &cleared["oldTitle"]),
        (&"committed".into(), &"Fencing tokens".into())
    );
    assert_ne!(
        sandbox.json(&["list", "--all"])["sessions"][0]["title"],
        "Fencing tokens"
    );
    for bad in ["two\nlines", &"x".repeat(201)] {
        assert_eq!(sandbox.run(&["rename", &session, bad]).code(), 2);
    }
}

/// The slot of oh-my-pi is a line before the header that only that program knows: it goes, with a backup.
#[test]
fn a_title_slot_gives_way_to_the_new_title() {
    let sandbox = Sandbox::new();
    let fixture = sandbox.fixture("tool-pairs.jsonl");
    let text = sandbox.read(&fixture);
    let slot = r#"{"type":"title","v":1,"title":"Old one","source":"user","updatedAt":"2026-01-01T00:00:00.000Z","pad":"   "}"#;
    sandbox.write("slot.jsonl", format!("{slot}\n{text}"));
    let renamed = sandbox.json(&["rename", "slot.jsonl", "New one"]);
    assert_eq!(
        (&renamed["outcome"], &renamed["oldTitle"]),
        (&"committed".into(), &"Old one".into())
    );
    assert_eq!(
        sandbox.read(
            renamed["backupPath"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
        ),
        format!("{slot}\n{text}")
    );
    let after = sandbox.read("slot.jsonl");
    assert!(after.starts_with("{\"type\":\"session\"") && !after.contains("\"type\":\"title\""));
    assert_eq!(
        sandbox.json(&["rename", "slot.jsonl", "New one"])["outcome"],
        "skipped"
    );
    assert_eq!(sandbox.run(&["check", "slot.jsonl"]).code(), 0);
}

#[test]
fn a_deleted_session_is_in_the_trash_with_all_of_it() {
    let sandbox = Sandbox::new();
    let session = at_home(&sandbox, "realistic.jsonl");
    let original = std::fs::read(&session).unwrap();
    sandbox.json(&["compact", &session]);
    sandbox.json(&[
        "prune",
        &session,
        "--storage",
        "rewrite",
        "--protect-tokens",
        "0",
        "--minimum-savings",
        "0",
    ]);
    let deleted = sandbox.json(&["delete", &session]);
    assert_eq!(deleted["outcome"], "committed");
    let trash = Path::new(deleted["trash"].as_str().unwrap());
    assert!(trash.starts_with(sandbox.path(".local/share/foldline/trash")));
    let names: Vec<String> = std::fs::read_dir(trash)
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(deleted["files"], names.len());
    assert!(names.contains(&"realistic.jsonl".to_owned()));
    let backup = names.iter().find(|name| name.ends_with("compact.bak")).unwrap();
    assert_eq!(
        std::fs::read(trash.join(backup)).unwrap(),
        original,
        "nothing of it was lost"
    );
    assert!(!Path::new(&session).exists());
    assert_eq!(
        sandbox.json(&["list", "--all"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn a_session_that_somebody_writes_is_not_deleted() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let options = OpenOptions {
        owner: Owner::this_process(),
        now: std::time::SystemTime::now(),
        expected: Expected::Any,
    };
    let writer = DiskStore::new().open(&sandbox.path(&name), &options).unwrap();
    let run = sandbox.run(&["delete", &name]);
    assert_eq!(run.code(), 5, "{}", run.stderr());
    assert!(sandbox.path(&name).exists());
    drop(writer);
    assert_eq!(sandbox.run(&["delete", &name]).code(), 0);
}

#[test]
fn other_agents_sessions_are_not_deleted() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    sandbox.json(&["export", &name, "--to", "claude-code", "--output", "claude.jsonl"]);
    let run = sandbox.run(&["delete", "claude.jsonl"]);
    assert_eq!(run.code(), 2, "{}", run.stderr());
    assert!(sandbox.path("claude.jsonl").exists());
}

#[test]
fn models_say_whether_a_key_was_found_and_never_which() {
    let sandbox = Sandbox::new();
    let key = |variables: &[(&str, &str)], provider: &str| {
        let run = sandbox.run_with(&["models", "--json"], variables);
        assert!(!run.stdout().contains("sk-secret"));
        let document: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        let models = document["models"].as_array().unwrap();
        assert!(models.len() > 15 && models.iter().all(|row| row["contextWindow"].as_u64() > Some(0)));
        let rows = document["providers"].as_array().unwrap();
        rows.iter().find(|row| row["provider"] == provider).unwrap()["key"].clone()
    };
    assert_eq!(key(&[], "openai"), "missing");
    assert_eq!(key(&[("OPENAI_API_KEY", "sk-secret")], "openai"), "found");
    assert_eq!(key(&[("OPENAI_API_KEY", "sk-secret")], "anthropic"), "missing");
    assert_eq!(key(&[], "ollama"), "not-needed");
    let shown = sandbox.run(&["models"]).stdout();
    assert!(shown.contains("missing: set OPENAI_API_KEY") && shown.contains("extractive"));
}

#[test]
fn completions_know_every_command() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.run(&["completions", shell]).stdout();
        assert!(
            ["compact", "recall", "completions"]
                .iter()
                .all(|name| script.contains(name)),
            "{shell}"
        );
    }
    assert_eq!(sandbox.json(&["completions", "bash"])["shell"], "bash");
    assert_eq!(sandbox.run(&["completions", "tcsh"]).code(), 2);
}
