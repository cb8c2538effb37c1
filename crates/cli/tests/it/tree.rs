use std::fmt::Write as _;

use crate::support::Sandbox;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n";

/// A session from rows: id, parent (`-` for none), and the members of the body.
fn session(rows: &[(&str, &str, String)]) -> String {
    let mut text = HEADER.to_owned();
    for (at, (id, parent, body)) in rows.iter().enumerate() {
        let parent = if *parent == "-" {
            "null".to_owned()
        } else {
            format!("\"{parent}\"")
        };
        writeln!(
            text,
            "{{\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:{:02}:{:02}.000Z\",{body}}}",
            at / 60 % 60,
            at % 60
        )
        .unwrap();
    }
    text
}

fn user(text: &str) -> String {
    format!(
        "\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"
    )
}

fn assistant(text: &str) -> String {
    format!(
        "\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"stopReason\":\"stop\",\"provider\":\"p\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"
    )
}

fn branching() -> String {
    session(&[
        ("u1", "-", user("Fix the parser")),
        ("a1", "u1", assistant("I read it. Which way?")),
        ("u2", "a1", user("Try a table")),
        ("a2", "u2", assistant("The table is in place")),
        ("k1", "a2", "\"type\":\"compaction\",\"summary\":\"A table was tried\",\"firstKeptEntryId\":null,\"tokensBefore\":90".to_owned()),
        ("u3", "a1", user("Try recursion 再帰下降 instead of a table, whatever it takes and however long the text of this message is")),
        ("a3", "u3", assistant("Recursion works")),
        ("l1", "a3", "\"type\":\"label\",\"targetId\":\"a1\",\"label\":\"the question\"".to_owned()),
    ])
}

/// Ids of the messages of the context.
fn context(sandbox: &Sandbox, name: &str) -> Vec<(String, String)> {
    let context = sandbox.json(&["context", name]);
    context["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            (
                m["entryId"].as_str().unwrap().to_owned(),
                m["content"].to_string(),
            )
        })
        .collect()
}

fn ids(messages: &[(String, String)]) -> Vec<&str> {
    messages.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn a_tree_is_drawn_for_people_and_listed_for_programs() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    insta::assert_snapshot!(sandbox.run(&["tree", "s.jsonl"]).all());
    let tree = sandbox.json(&["tree", "s.jsonl"]);
    assert_eq!(tree["leafId"], "l1");
    let entries = tree["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 8);
    let row = |at: usize| {
        let e = &entries[at];
        (
            e["id"].as_str(),
            e["parentId"].as_str(),
            e["type"].as_str(),
            e["role"].as_str(),
            e["label"].as_str(),
            e["active"].as_bool(),
        )
    };
    assert_eq!(
        row(0),
        (Some("u1"), None, Some("message"), Some("user"), None, Some(true))
    );
    assert_eq!(
        row(1),
        (
            Some("a1"),
            Some("u1"),
            Some("message"),
            Some("assistant"),
            Some("the question"),
            Some(true)
        )
    );
    assert_eq!(
        row(4),
        (
            Some("k1"),
            Some("a2"),
            Some("compaction"),
            Some("compactionSummary"),
            None,
            Some(false)
        )
    );
    assert_eq!(
        row(7),
        (Some("l1"), Some("a3"), Some("label"), None, None, Some(true))
    );
    assert!(entries[0]["tokens"].as_u64().unwrap() > 0);
    assert_eq!(entries[7]["tokens"], 0);
}

/// A thousand entries fit on a page or two, and no row is wider than a terminal of 80 columns.
#[test]
fn a_long_session_stays_readable() {
    let sandbox = Sandbox::new();
    let mut rows: Vec<(String, String, String)> = Vec::new();
    let mut parent = "-".to_owned();
    for at in 0..1000 {
        let id = format!("0198f3a2-7b1c-7def-8000-{at:012}");
        let body = if at % 25 == 0 {
            user("Do the next thing, and please be careful with 日本語 text in it")
        } else {
            assistant("Working on it, one step after the other, as was asked")
        };
        // Now and then the user goes back and tries something else.
        let from = if at % 170 == 169 {
            format!("0198f3a2-7b1c-7def-8000-{:012}", at - 60)
        } else {
            parent.clone()
        };
        rows.push((id.clone(), from, body));
        parent = id;
    }
    let rows: Vec<(&str, &str, String)> = rows
        .iter()
        .map(|(a, b, c)| (a.as_str(), b.as_str(), c.clone()))
        .collect();
    sandbox.write("long.jsonl", session(&rows));
    let run = sandbox.run(&["tree", "long.jsonl"]);
    let text = run.stdout();
    let wide = |line: &str| unicode_width::UnicodeWidthStr::width(line);
    for line in text.lines() {
        assert!(wide(line) <= 80, "{}: {line}", wide(line));
    }
    let drawn = text.lines().count();
    assert!((20..=150).contains(&drawn), "{drawn}\n{text}");
    // All are accounted for: drawn, or counted in a fold.
    let folded: usize = text
        .lines()
        .filter_map(|line| {
            line.split_once("⋮ ")?
                .1
                .split_once(" entries")?
                .0
                .replace(',', "")
                .parse::<usize>()
                .ok()
        })
        .sum();
    let rows = text
        .lines()
        .filter(|line| line.contains("● ") || line.contains("○ "))
        .count()
        - 1;
    assert_eq!(folded + rows, 1000, "{text}");
    let all = sandbox.run(&["tree", "long.jsonl", "--all"]).stdout();
    assert_eq!(all.lines().count(), 1000 + 4);
}

#[test]
fn every_fixture_has_a_tree() {
    let sandbox = Sandbox::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if std::path::Path::new(&name)
            .extension()
            .is_none_or(|e| e != "jsonl")
        {
            continue;
        }
        sandbox.fixture(&name);
        let before = sandbox.read_bytes(&name);
        let check = sandbox.json(&["check", &name]);
        let run = sandbox.run(&["tree", &name]);
        let tree = sandbox.json(&["tree", &name]);
        if check["error"].is_object() {
            assert_eq!(run.code(), 3, "{name}");
            continue;
        }
        assert_eq!(run.code(), 0, "{name}: {}", run.all());
        assert_eq!(
            tree["entries"].as_array().unwrap().len() as u64,
            check["entries"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(sandbox.read_bytes(&name), before, "{name}");
    }
}

#[test]
fn going_away_and_coming_back_restores_the_context_to_the_byte() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    let before = context(&sandbox, "s.jsonl");
    let text = sandbox.read("s.jsonl");

    let away = sandbox.json(&["navigate", "s.jsonl", "a2"]);
    assert_eq!(away["outcome"], "committed");
    assert_eq!(
        (&away["oldLeafId"], &away["newLeafId"]),
        (&"l1".into(), &"a2".into())
    );
    assert_eq!(away["abandoned"], serde_json::json!(["u3", "a3", "l1"]));
    assert_eq!(away["editorText"], serde_json::Value::Null);
    assert_eq!(ids(&context(&sandbox, "s.jsonl")), ["u1", "a1", "u2", "a2"]);
    assert_eq!(sandbox.json(&["tree", "s.jsonl"])["leafId"], "a2");
    assert!(sandbox.read("s.jsonl").starts_with(&text), "one line was added");
    assert_eq!(sandbox.read("s.jsonl").lines().count(), text.lines().count() + 1);

    let back = sandbox.json(&["navigate", "s.jsonl", "l1"]);
    assert_eq!(back["abandoned"], serde_json::json!(["u2", "a2"]));
    assert_eq!(context(&sandbox, "s.jsonl"), before);

    let again = sandbox.json(&["navigate", "s.jsonl", "l1"]);
    assert_eq!(again["outcome"], "skipped");
    assert_eq!(again["newLeafId"], "l1");
}

#[test]
fn a_typed_message_goes_back_to_the_editor() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    let moved = sandbox.json(&["navigate", "s.jsonl", "u2"]);
    assert_eq!(moved["newLeafId"], "a1");
    assert_eq!(moved["editorText"], "Try a table");
    let moved = sandbox.json(&["navigate", "s.jsonl", "u1"]);
    assert_eq!(moved["newLeafId"], serde_json::Value::Null);
    assert_eq!(moved["editorText"], "Fix the parser");
    assert_eq!(moved["abandoned"], serde_json::json!(["u1", "a1"]));
    assert_eq!(context(&sandbox, "s.jsonl"), []);
    insta::assert_snapshot!(sandbox.run(&["tree", "s.jsonl"]).all());
}

#[test]
fn a_label_names_the_place_and_the_move_stays_last() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    sandbox.json(&["navigate", "s.jsonl", "a2", "--label", "table"]);
    let tree = sandbox.json(&["tree", "s.jsonl"]);
    assert_eq!(tree["leafId"], "a2");
    let labelled = tree["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["id"] == "a2")
        .unwrap();
    assert_eq!(labelled["label"], "table");
}

#[test]
fn an_unknown_or_ambiguous_target_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    let before = sandbox.read("s.jsonl");
    for target in ["zzz", "a", ""] {
        let run = sandbox.run(&["navigate", "s.jsonl", target]);
        assert_eq!(run.code(), 1, "{target}: {}", run.all());
    }
    assert_eq!(sandbox.read("s.jsonl"), before);
}

#[test]
fn undo_goes_back_or_revokes() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    let nothing = sandbox.json(&["undo", "s.jsonl"]);
    assert_eq!(nothing["outcome"], "skipped");
    // The compaction is the newest thing there: the leaf goes to its parent.
    sandbox.json(&["navigate", "s.jsonl", "k1"]);
    assert_eq!(ids(&context(&sandbox, "s.jsonl")), ["k1"]);
    let undone = sandbox.json(&["undo", "s.jsonl"]);
    assert_eq!(
        (&undone["outcome"], &undone["how"]),
        (&"committed".into(), &"moved".into())
    );
    assert_eq!(
        (&undone["entryId"], &undone["newLeafId"]),
        (&"k1".into(), &"a2".into())
    );
    assert_eq!(ids(&context(&sandbox, "s.jsonl")), ["u1", "a1", "u2", "a2"]);
}

#[test]
fn undo_keeps_what_came_after() {
    let sandbox = Sandbox::new();
    let mut text = branching();
    let tail = session(&[("u9", "k1", user("Go on")), ("a9", "u9", assistant("Going on"))]);
    text.push_str(&tail[HEADER.len()..]);
    sandbox.write("s.jsonl", &text);
    assert_eq!(ids(&context(&sandbox, "s.jsonl")), ["k1", "u9", "a9"]);
    let undone = sandbox.json(&["undo", "s.jsonl"]);
    assert_eq!(
        (&undone["how"], &undone["newLeafId"]),
        (&"revoked".into(), &undone["markEntryId"])
    );
    assert_eq!(
        ids(&context(&sandbox, "s.jsonl")),
        ["u1", "a1", "u2", "a2", "u9", "a9"]
    );
    assert!(sandbox.read("s.jsonl").starts_with(&text), "no line was deleted");
    assert_eq!(sandbox.json(&["undo", "s.jsonl"])["outcome"], "skipped");
}

/// FB-095: the leaf between two compactions shows the first one's whole text.
#[test]
fn between_two_compactions_the_first_counts_in_full() {
    let sandbox = Sandbox::new();
    let compaction = |summary: &str| {
        format!(
            "\"type\":\"compaction\",\"summary\":\"{summary}\",\"firstKeptEntryId\":null,\"tokensBefore\":9"
        )
    };
    sandbox.write(
        "s.jsonl",
        session(&[
            ("u1", "-", user("Start")),
            ("c1", "u1", compaction("S1, word for word")),
            ("u5", "c1", user("Go on")),
            ("a5", "u5", assistant("Yes")),
            ("c2", "a5", compaction("S2")),
        ]),
    );
    sandbox.json(&["navigate", "s.jsonl", "a5"]);
    let messages = context(&sandbox, "s.jsonl");
    assert_eq!(ids(&messages), ["c1", "u5", "a5"]);
    assert_eq!(messages[0].1, "\"S1, word for word\"");
}

/// FB-097: a fork has the boundary in force, and no message from before it.
#[test]
fn a_fork_has_the_context_of_its_parent() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    sandbox.json(&["navigate", "s.jsonl", "k1"]);
    let before = sandbox.read("s.jsonl");
    let fork = sandbox.json(&["fork", "s.jsonl"]);
    assert_eq!(fork["outcome"], "committed");
    let output = fork["output"].as_str().unwrap();
    assert_eq!(context(&sandbox, output), context(&sandbox, "s.jsonl"));
    assert_eq!(ids(&context(&sandbox, output)), ["k1"]);
    assert_eq!(sandbox.read("s.jsonl"), before);
    assert_eq!(sandbox.run(&["check", output]).code(), 0);

    let at = sandbox.json(&["fork", "s.jsonl", "--at", "a3", "--output", "at.jsonl"]);
    assert_eq!(at["leafId"], "a3");
    assert_eq!(ids(&context(&sandbox, "at.jsonl")), ["u1", "a1", "u3", "a3"]);
    let labels: Vec<_> = sandbox.json(&["tree", "at.jsonl"])["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|e| e["label"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(labels, ["the question"]);
    let header: serde_json::Value =
        serde_json::from_str(sandbox.read("at.jsonl").lines().next().unwrap()).unwrap();
    assert!(header["parentSession"].as_str().unwrap().ends_with("s.jsonl"));
    let taken = sandbox.run(&["fork", "s.jsonl", "--output", "at.jsonl"]);
    assert_eq!(taken.code(), 2, "{}", taken.all());
}

/// FB-093: parentId is the entry navigated to, fromId the leaf that was left; the context is that of the target and the
/// summary.
#[test]
fn a_summary_of_what_is_left_stays_at_the_place() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    let moved = sandbox.json(&["navigate", "s.jsonl", "a1", "--summarize", "--label", "back"]);
    assert_eq!(moved["outcome"], "committed");
    let id = moved["summaryEntryId"].as_str().unwrap();
    let entry = sandbox.json(&["show", "s.jsonl", id])["entry"].clone();
    assert_eq!(
        (&entry["type"], &entry["parentId"], &entry["fromId"]),
        (&"branch_summary".into(), &"a1".into(), &"l1".into())
    );
    assert_eq!(entry["details"]["rung"], "extractive");
    let messages = context(&sandbox, "s.jsonl");
    assert_eq!(ids(&messages), ["u1", "a1", id]);
    assert!(messages[2].1.contains("Recursion works"), "{}", messages[2].1);
    let tree = sandbox.json(&["tree", "s.jsonl"]);
    let summary = tree["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["id"] == id)
        .unwrap()
        .clone();
    assert_eq!(
        (&summary["label"], &summary["role"]),
        (&"back".into(), &"branchSummary".into())
    );
    assert_eq!(sandbox.run(&["check", "s.jsonl"]).code(), 0);
}

#[test]
fn nothing_to_summarize_is_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    sandbox.json(&["navigate", "s.jsonl", "a1"]);
    // Down again: nothing is left behind.
    let down = sandbox.json(&["navigate", "s.jsonl", "k1", "--summarize"]);
    assert_eq!(down["outcome"], "committed");
    assert_eq!(down["summaryEntryId"], serde_json::Value::Null);
    assert_eq!(ids(&context(&sandbox, "s.jsonl")), ["k1"]);
}

#[test]
fn a_summary_at_the_root_has_no_parent() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", branching());
    let moved = sandbox.json(&["navigate", "s.jsonl", "u1", "--summarize"]);
    let id = moved["summaryEntryId"].as_str().unwrap();
    let entry = sandbox.json(&["show", "s.jsonl", id])["entry"].clone();
    assert_eq!(entry["parentId"], serde_json::Value::Null);
    assert_eq!(moved["editorText"], "Fix the parser");
    // What goes back to the editor is not summarized, and is named.
    assert!(!entry["summary"].as_str().unwrap().contains("Fix the parser"));
    let left: Vec<&str> = moved["leftOut"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|l| l["reason"] == "in-editor")
        .map(|l| l["entryId"].as_str().unwrap())
        .collect();
    assert_eq!(left, ["u1"]);
    assert_eq!(ids(&context(&sandbox, "s.jsonl")), [id]);
}
