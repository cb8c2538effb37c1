use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::Sandbox;

/// A session of messages, one after the other: ids and messages.
fn session(rows: &[(&str, Value)]) -> String {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = Value::Null;
    for (id, message) in rows {
        let row = json!({"type":"message","id":id,"parentId":parent,"timestamp":"2026-01-01T00:00:01.000Z","message":message});
        // The usual order of keys, which serde_json sorts.
        let message = row["message"].to_string();
        writeln!(
            text,
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{message}}}"#
        )
        .unwrap();
        parent = json!(id);
    }
    text
}

fn user(text: &str) -> Value {
    json!({"role":"user","content":text})
}

fn call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"role":"assistant","stopReason":"toolUse","content":[{"type":"toolCall","id":id,"name":tool,"arguments":arguments}]})
}

fn answer(id: &str, tool: &str, text: &str) -> Value {
    json!({"role":"toolResult","toolCallId":id,"toolName":tool,"content":[{"type":"text","text":text}],"isError":false})
}

fn ids(document: &Value) -> Vec<&str> {
    let hits = document["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["entryId"].as_str().unwrap()).collect()
}

#[test]
fn what_a_compaction_folded_is_found_and_marked() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("compacted-verbatim-once.jsonl");
    let before = sandbox.read_bytes(&name);
    let context = sandbox.json(&["context", &name]);
    let kept: Vec<&str> = context["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["entryId"].as_str().unwrap())
        .collect();
    let found = sandbox.json(&["recall", &name, "cursor", "codec", "quota", "--limit", "100"]);
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.iter().any(|hit| hit["folded"] == true) && hits.len() > 2);
    for hit in hits {
        let id = hit["entryId"].as_str().unwrap();
        assert_eq!(hit["folded"], json!(!kept.contains(&id)), "{id}");
        let place = if hit["folded"] == true {
            "folded"
        } else {
            "context"
        };
        assert_eq!(hit["place"], place);
        let line = hit["line"].as_u64().unwrap();
        let row = sandbox
            .read(&name)
            .lines()
            .nth(usize::try_from(line).unwrap() - 1)
            .unwrap()
            .to_owned();
        assert!(row.contains(&format!("\"id\":\"{id}\"")));
        assert!(hit["score"].as_f64() > Some(0.0));
    }
    assert_eq!(sandbox.read_bytes(&name), before);
}

#[test]
fn the_best_lines_are_shown_without_secrets() {
    let sandbox = Sandbox::new();
    let key = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let output = format!("one\ntwo\nexport TOKEN={key}\nthe lease expired\nfive");
    let rows = [
        ("u1", user("go")),
        ("a1", call("c", "bash", &json!({"command":"env"}))),
        ("r1", answer("c", "bash", &output)),
    ];
    sandbox.write("s.jsonl", session(&rows));
    let found = sandbox.json(&["recall", "s.jsonl", "TOKEN", "lease"]);
    let hit = &found["hits"][0];
    assert_eq!(
        (hit["entryId"].as_str(), hit["textLine"].as_u64()),
        (Some("r1"), Some(3))
    );
    let text = hit["text"].as_str().unwrap();
    assert!(text.ends_with("\nthe lease expired") && text.contains("[REDACTED:") && !text.contains(&key));
    let shown = sandbox.run(&["recall", "s.jsonl", "lease"]).stdout();
    assert_eq!(shown, "r1  toolResult  line 4\n    the lease expired\n");
    assert_eq!(
        sandbox.run(&["recall", "s.jsonl", "nowhere"]).stdout(),
        "Nothing was said about \"nowhere\".\n"
    );
}

#[test]
fn superseded_hits_are_marked() {
    let sandbox = Sandbox::new();
    let rows = [
        ("u1", user("the plan is kept")),
        ("a1", call("c1", "read", &json!({"path":"src/lease.rs"}))),
        ("r1", answer("c1", "read", "fn renew_lease_old() {}")),
        (
            "a2",
            call(
                "c2",
                "edit",
                &json!({"path":"/w/src/lease.rs","oldText":"a","newText":"b"}),
            ),
        ),
        ("r2", answer("c2", "edit", "Successfully replaced text")),
        ("a3", call("c3", "read", &json!({"path":"src/lease.rs"}))),
        ("r3", answer("c3", "read", "fn renew_lease_new() {}")),
        ("a4", call("c4", "read", &json!({"path":"src/other.rs"}))),
        ("r4", answer("c4", "read", "fn renew_other() {}")),
        (
            "a5",
            call("c5", "write", &json!({"path":"./src/other.rs","content":"x"})),
        ),
        ("r5", answer("c5", "write", "Successfully wrote")),
        ("u2", user("the plan is kept")),
    ];
    sandbox.write("s.jsonl", session(&rows));
    let found = sandbox.json(&["recall", "s.jsonl", "renew"]);
    let why = |id: &str| {
        let hits = found["hits"].as_array().unwrap();
        hits.iter().find(|hit| hit["entryId"] == id).unwrap()["superseded"].clone()
    };
    assert_eq!(
        (why("r1"), why("r3"), why("r4")),
        (json!("repeated"), Value::Null, json!("file_changed"))
    );
    let found = sandbox.json(&["recall", "s.jsonl", "plan"]);
    assert_eq!(ids(&found), ["u2", "u1"], "of equal ones the newest");
    assert_eq!(found["hits"][1]["superseded"], "said_again");
    assert!(
        sandbox
            .run(&["recall", "s.jsonl", "plan"])
            .stdout()
            .contains("superseded: said again later")
    );
}

#[test]
fn pruned_originals_are_found_wherever_they_are() {
    for storage in ["mask", "rewrite"] {
        let sandbox = Sandbox::new();
        let output = format!("needle_in_output\n{}", "all is well\n".repeat(100));
        let rows = [
            ("u0", user("go")),
            ("a0", call("c0", "bash", &json!({"command":"make"}))),
            ("r0", answer("c0", "bash", &output)),
            ("u1", user("go on")),
            ("u2", user("go on")),
            ("u3", user("go on")),
        ];
        sandbox.write("s.jsonl", session(&rows));
        let pruned = sandbox.json(&[
            "prune",
            "s.jsonl",
            "--storage",
            storage,
            "--protect-tokens",
            "0",
            "--minimum-savings",
            "0",
        ]);
        assert_eq!(pruned["prunedCount"], 1);
        let found = sandbox.json(&["recall", "s.jsonl", "needle_in_output"]);
        let hit = &found["hits"][0];
        assert_eq!(
            (&hit["entryId"], &hit["text"]),
            (&json!("r0"), &json!("needle_in_output")),
            "{storage}"
        );
        let place = if storage == "mask" { "pruned" } else { "artifact" };
        assert_eq!((&hit["place"], &hit["folded"]), (&json!(place), &json!(false)));
        if let Some(address) = hit["artifact"].as_str() {
            let shown = sandbox.json(&["show", "s.jsonl", address]);
            assert_eq!(shown["text"], output);
        }
    }
}

#[test]
fn other_branches_are_searched_too() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("branching.jsonl");
    let tree = sandbox.json(&["tree", &name]);
    let all = tree["entries"].as_array().unwrap().len();
    let found = sandbox.json(&["recall", &name, "the a read crates rs fn test", "--limit", "1000"]);
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.len() <= all);
    assert!(
        hits.iter()
            .any(|hit| hit["place"] == "branch" && hit["folded"] == false)
    );
}

#[test]
fn every_session_is_searched_with_all() {
    let sandbox = Sandbox::new();
    let ours = sandbox.path(".local/share/foldline/sessions/--w--");
    let pi = sandbox.path(".pi/agent/sessions/--w--");
    for folder in [&ours, &pi] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(
        ours.join("a.jsonl"),
        session(&[("u1", user("the quorum of three"))]),
    )
    .unwrap();
    std::fs::write(pi.join("b.jsonl"), session(&[("u1", user("a quorum, a quorum"))])).unwrap();
    std::fs::write(pi.join("broken.jsonl"), "no session").unwrap();
    let run = sandbox.run(&["recall", "--all", "quorum", "--json"]);
    let found: Value = serde_json::from_str(&run.stdout()).unwrap();
    let sessions: Vec<&str> = found["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["session"].as_str().unwrap())
        .collect();
    assert!(
        sessions.len() == 2 && sessions[0].ends_with("b.jsonl"),
        "{sessions:?}"
    );
    assert!(run.stderr().contains("broken.jsonl"));
    assert_eq!(run.code(), 0);
}

/// Two records on one line, of which a quick look at its beginning shows only one.
#[test]
fn damaged_lines_hide_nothing() {
    let sandbox = Sandbox::new();
    let text = session(&[("u1", user("alpha")), ("u2", user("beta")), ("u3", user("gamma"))]);
    let glued = text.replacen(
        "}}\n{\"type\":\"message\",\"id\":\"u3\"",
        "}}{\"type\":\"message\",\"id\":\"u3\"",
        1,
    );
    assert_ne!(glued, text);
    sandbox.write("s.jsonl", glued);
    assert_eq!(ids(&sandbox.json(&["recall", "s.jsonl", "gamma"])), ["u3"]);
    assert_eq!(ids(&sandbox.json(&["recall", "s.jsonl", "beta"])), ["u2"]);
}

#[test]
fn a_query_needs_a_word() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    for args in [
        &["recall", &name][..],
        &["recall", &name, "!?"],
        &["recall"],
        &["recall", "--all"],
    ] {
        assert_eq!(sandbox.run(args).code(), 2, "{args:?}");
    }
}
