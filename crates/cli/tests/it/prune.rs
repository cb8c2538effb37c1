use std::fmt::Write as _;

use foldline_llm_client::Catalogue;
use foldline_session_model::model_call::ModelRef;
use serde_json::json;

use crate::support::Sandbox;

const PICTURE: &str = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;

/// Two old results, one with a picture, then two turns.
fn session() -> String {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let long = "all is well\\n".repeat(100);
    let result = |id: &str, tool: &str, more: &str| {
        format!(
            r#"{{"role":"toolResult","toolCallId":"c-{id}","toolName":"{tool}","content":[{{"type":"text","text":"{long}"}}{more}],"isError":false}}"#
        )
    };
    let call = |id: &str, tool: &str| {
        format!(
            r#"{{"role":"assistant","stopReason":"toolUse","content":[{{"type":"toolCall","id":"c-{id}","name":"{tool}","arguments":{{}}}}]}}"#
        )
    };
    let user = || r#"{"role":"user","content":"go on"}"#.to_owned();
    let rows = [
        ("u0", user()),
        ("a0", call("r0", "bash")),
        ("r0", result("r0", "bash", "")),
        ("a1", call("r1", "view")),
        ("r1", result("r1", "view", &format!(",{PICTURE}"))),
        ("u1", user()),
        ("u2", user()),
        ("a2", call("r2", "bash")),
        ("r2", result("r2", "bash", "")),
    ];
    let mut parent = "null".to_owned();
    for (id, message) in rows {
        writeln!(text, r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{message}}}"#).unwrap();
        parent = format!("\"{id}\"");
    }
    text
}

fn prune<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "prune",
        "s.jsonl",
        "--protect-tokens",
        "0",
        "--minimum-savings",
        "0",
    ];
    args.extend(more);
    args
}

fn total(sandbox: &Sandbox) -> u64 {
    let context = sandbox.json(&["context", "s.jsonl"]);
    let messages = context["messages"].as_array().unwrap().iter();
    messages.map(|message| message["tokens"].as_u64().unwrap()).sum()
}

#[test]
fn a_dry_run_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session());
    let document = sandbox.json(&prune(&["--dry-run"]));
    assert_eq!(document["outcome"], "skipped");
    assert_eq!(document["reason"], "dry run");
    assert_eq!(document["prunedCount"], 2);
    assert_eq!(document["cost"]["now"], json!(null));
    assert!(document["cost"]["sentAnew"].as_u64().unwrap() > 0);
    assert_eq!(sandbox.read("s.jsonl"), session());
    let run = sandbox.run(&prune(&["--dry-run"]));
    assert_eq!(run.code(), 0);
    let text = run.stdout();
    assert!(text.contains("  bash      1 results"), "{text}");
    assert!(text.contains("  view      1 results"), "{text}");
}

/// The session, with a model that is told before its first message.
fn session_of(provider: &str, model: &str) -> String {
    let change = format!(
        r#"{{"type":"model_change","id":"m0","parentId":null,"timestamp":"2026-01-01T00:00:00.500Z","provider":"{provider}","modelId":"{model}"}}"#
    );
    session().replacen(
        r#"{"type":"message","id":"u0","parentId":null"#,
        &format!("{change}\n{}", r#"{"type":"message","id":"u0","parentId":"m0""#),
        1,
    )
}

#[test]
fn cost_and_gain_are_those_of_the_model_of_the_session() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session_of("anthropic", "claude-sonnet-4-5"));
    let name = ModelRef::parse("anthropic/claude-sonnet-4-5").unwrap();
    let prices = Catalogue::built_in()
        .profile(&name, None)
        .unwrap()
        .prices
        .unwrap();
    let document = sandbox.json(&prune(&["--dry-run"]));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let cost = &document["cost"];
    let now = number(&cost["sentAnew"]) * (prices.cache_write - prices.cache_read) / 1e6;
    let gain = number(&document["tokensSaved"]) * prices.cache_read / 1e6;
    assert!(now > 0.0 && gain > 0.0);
    assert!((number(&cost["now"]) - now).abs() < 1e-12, "{cost}");
    assert!((number(&cost["gainPerRequest"]) - gain).abs() < 1e-12, "{cost}");
    let text = sandbox.run(&prune(&["--dry-run"])).stdout();
    assert!(text.contains("costs $"), "{text}");

    sandbox.write("s.jsonl", session_of("nobody", "unheard-of"));
    let cost = &sandbox.json(&prune(&["--dry-run"]))["cost"];
    assert_eq!(
        (&cost["now"], &cost["gainPerRequest"]),
        (&json!(null), &json!(null))
    );
}

#[test]
fn below_the_minimum_nothing_changes() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session());
    let document = sandbox.json(&["prune", "s.jsonl", "--protect-tokens", "0"]);
    assert_eq!(document["outcome"], "skipped");
    assert!(
        document["reason"]
            .as_str()
            .unwrap()
            .contains("less than the minimum")
    );
    assert_eq!(
        sandbox.json(&["prune", "s.jsonl"])["reason"],
        "there is no tool output to prune"
    );
    assert_eq!(sandbox.read("s.jsonl"), session());
}

#[test]
fn a_mask_is_one_entry_and_is_taken_back() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session());
    let before = (
        total(&sandbox),
        sandbox.json(&["context", "s.jsonl"])["messages"].clone(),
    );
    let document = sandbox.json(&prune(&[]));
    assert_eq!(document["outcome"], "committed");
    assert_eq!(document["storage"], "mask");
    assert!(sandbox.read("s.jsonl").starts_with(&session()));
    assert_eq!(
        sandbox.read("s.jsonl").lines().count(),
        session().lines().count() + 1
    );
    assert_eq!(
        before.0 - total(&sandbox),
        document["tokensSaved"].as_u64().unwrap()
    );

    let rows = document["pruned"].as_array().unwrap();
    assert_eq!(rows[0]["entryId"], "r0");
    assert_eq!(rows[1]["toolName"], "view");
    let context = sandbox.json(&["context", "s.jsonl"]);
    assert_eq!(context["messages"][2]["content"][0]["text"], rows[0]["notice"]);
    // The newest two turns stay.
    assert_eq!(context["messages"][8], before.1[8]);

    let original = sandbox.json(&["show", "s.jsonl", "artifact://entry/r0"]);
    assert_eq!(original["text"], "all is well\n".repeat(100));
    let original = sandbox.json(&["show", "s.jsonl", "artifact://entry/r1"]);
    assert!(original["text"].as_str().unwrap().contains(PICTURE));

    let again = sandbox.json(&prune(&[]));
    assert_eq!(again["outcome"], "skipped");
    let undone = sandbox.json(&["undo", "s.jsonl"]);
    assert_eq!(undone["kind"], "prune");
    assert_eq!(undone["entryId"], document["entryId"]);
    assert_eq!(sandbox.json(&["context", "s.jsonl"])["messages"], before.1);
}

#[test]
fn a_rewrite_stores_the_originals_first() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session());
    let before = total(&sandbox);
    let document = sandbox.json(&prune(&["--storage", "rewrite"]));
    assert_eq!(document["outcome"], "committed");
    assert_eq!(document["prunedCount"], 2);
    assert_eq!(
        before - total(&sandbox),
        document["tokensSaved"].as_u64().unwrap()
    );
    assert_eq!(sandbox.run(&["check", "s.jsonl"]).code(), 0);
    let text = sandbox.read("s.jsonl");
    assert_eq!(text.matches("prunedAt").count(), 2);
    // All other lines keep their bytes.
    let old = session();
    let same = old.lines().filter(|line| text.contains(*line)).count();
    assert_eq!(same, old.lines().count() - 2);
    for row in document["pruned"].as_array().unwrap() {
        let notice = row["notice"].as_str().unwrap();
        let at = notice.find("artifact://").unwrap();
        let address = notice[at..].split(']').next().unwrap();
        let original = sandbox.json(&["show", "s.jsonl", address]);
        assert!(original["text"].as_str().unwrap().contains("all is well"));
    }
    assert_eq!(
        sandbox.json(&prune(&["--storage", "rewrite"]))["outcome"],
        "skipped"
    );
    // It cannot be taken back by an entry; where the originals are is said.
    let undone = sandbox.json(&["undo", "s.jsonl"]);
    assert_eq!(undone["outcome"], "skipped");
    assert_eq!(undone["backupPath"], document["backupPath"]);
    let backup = document["backupPath"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(sandbox.path(backup)).unwrap(), old);
    let told = sandbox.run(&["undo", "s.jsonl"]).stdout();
    assert!(
        told.contains(".foldline-prune.bak") && told.contains("over s.jsonl"),
        "{told}"
    );
}

#[test]
fn turns_are_protected_unless_the_command_line_says_otherwise() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session());
    let document = sandbox.json(&prune(&["--protect-turns", "0", "--dry-run"]));
    assert_eq!(document["prunedCount"], 3);
}
