use std::os::unix::fs::PermissionsExt as _;

use crate::support::Sandbox;

fn marker(line: &str) -> Option<u64> {
    line.strip_prefix("(filtered ")?
        .strip_suffix(" lines)")?
        .parse()
        .ok()
}

/// Deleted lines by the markers, plus the lines that stand.
fn accounted(text: &str) -> u64 {
    text.split('\n').map(|line| marker(line).unwrap_or(1)).sum()
}

#[test]
fn a_copy_is_the_session_and_one_entry() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&source);
    let result = sandbox.json(&["compact", &source, "--ratio", "0.5", "--output", "out.jsonl"]);
    assert_eq!(result["outcome"], "committed");
    assert_eq!(result["strategy"], "verbatim-lines");
    assert_eq!(result["rung"], "extractive");
    assert_eq!(sandbox.read(&source), before, "the source is not touched");

    let out = sandbox.read("out.jsonl");
    assert!(out.starts_with(&before));
    let entry: serde_json::Value = serde_json::from_str(&out[before.len()..]).unwrap();
    assert_eq!(entry["type"], "compaction");
    assert_eq!(entry["id"], result["entryId"]);
    assert_eq!(entry["firstKeptEntryId"], result["firstKeptEntryId"]);
    assert_eq!(entry["details"]["strategy"], "verbatim-lines");
    let stats = &result["stats"];
    let kept = stats["linesKept"].as_u64().unwrap();
    let all = stats["linesBefore"].as_u64().unwrap();
    assert!((480..=520).contains(&(kept * 1000 / all)), "{kept} of {all}");
    assert_eq!(accounted(entry["summary"].as_str().unwrap()), all);
    assert!(result["tokensAfter"].as_u64() < result["tokensBefore"].as_u64());
    let mode = std::fs::metadata(sandbox.path("out.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_context_of_a_compacted_session_is_the_boundary_and_the_newest_two_messages() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let before = sandbox.json(&["context", &source]);
    let before = before["messages"].as_array().unwrap();
    let result = sandbox.json(&["compact", &source, "--output", "out.jsonl"]);
    let after = sandbox.json(&["context", "out.jsonl"]);
    let after = after["messages"].as_array().unwrap();
    assert_eq!(after.len(), 3);
    assert_eq!(after[0]["entryId"], result["entryId"]);
    assert_eq!(after[0]["role"], "custom");
    assert_eq!(after[1..], before[before.len() - 2..]);
}

#[test]
fn a_second_compaction_adds_markers_up_and_nests_nothing() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    sandbox.json(&["compact", &source, "--output", "one.jsonl"]);
    let second = sandbox.json(&["compact", "one.jsonl", "--output", "two.jsonl"]);
    assert_eq!(second["outcome"], "committed");
    let summary = |name: &str| {
        let text = sandbox.read(name);
        let entry: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        entry["summary"].as_str().unwrap().to_owned()
    };
    assert_eq!(accounted(&summary("one.jsonl")), accounted(&summary("two.jsonl")));
    assert!(second["tokensAfter"].as_u64() < second["tokensBefore"].as_u64());
    let kept = second["stats"]["linesKept"].as_u64().unwrap();
    let all = second["stats"]["linesBefore"].as_u64().unwrap();
    assert!((480..=520).contains(&(kept * 1000 / all)), "{kept} of {all}");
}

#[test]
fn a_budget_is_kept_and_the_stricter_limit_wins() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let share = |args: &[&str]| {
        let mut all = vec!["compact", &source, "--output", "out.jsonl"];
        all.extend(args);
        let result = sandbox.json(&all);
        std::fs::remove_file(sandbox.path("out.jsonl")).unwrap();
        assert_eq!(result["outcome"], "committed", "{args:?}");
        let tokens =
            result["tokensAfter"].as_u64().unwrap() * 1000 / result["tokensBefore"].as_u64().unwrap();
        let lines = result["stats"]["linesKept"].as_u64().unwrap() * 1000
            / result["stats"]["linesBefore"].as_u64().unwrap();
        (tokens, lines)
    };
    let (tokens, _) = share(&["--budget", "0.25"]);
    assert!((200..=270).contains(&tokens), "{tokens}");
    let (_, lines) = share(&["--ratio", "0.1", "--budget", "0.9"]);
    assert!((80..=101).contains(&lines), "{lines}");
    let (tokens, _) = share(&["--ratio", "0.9", "--budget", "0.1"]);
    assert!(tokens <= 120, "{tokens}");
}

#[test]
fn in_place_keeps_a_private_backup_and_migrates_once() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("v1.jsonl");
    let before = sandbox.read(&source);
    let result = sandbox.json(&["compact", &source, "--preserve-recent", "0"]);
    if result["outcome"] == "skipped" {
        assert_eq!(sandbox.read(&source), before, "skipped means unchanged");
        return;
    }
    let backup = std::path::PathBuf::from(result["backupPath"].as_str().unwrap());
    let backup = if backup.is_absolute() {
        backup
    } else {
        sandbox.path(backup.to_str().unwrap())
    };
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), before);
    assert_eq!(
        std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let after = sandbox.read(&source);
    assert!(after.starts_with("{\"type\":\"session\",\"version\":3"));
    assert_eq!(after.lines().count(), before.lines().count() + 1);
    assert_eq!(sandbox.run(&["check", &source]).code(), 0);
}

#[test]
fn a_dry_run_changes_nothing() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&source);
    let result = sandbox.json(&["compact", &source, "--dry-run"]);
    assert_eq!(result["outcome"], "skipped");
    assert_eq!(result["reason"], "dry run");
    assert_eq!(sandbox.read(&source), before);
    assert_eq!(
        std::fs::read_dir(sandbox.path("")).unwrap().count(),
        1,
        "no file was made"
    );
}

#[test]
fn a_small_session_is_skipped_with_a_reason() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("linear.jsonl");
    let result = sandbox.json(&["compact", &source, "--preserve-recent", "1000"]);
    assert_eq!(result["outcome"], "skipped");
    assert!(result["reason"].as_str().unwrap().contains("newest that stay"));
}

#[test]
fn sessions_are_found_by_id() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("linear.jsonl");
    let id = sandbox.json(&["context", &source])["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let home = sandbox.path(".local/share/foldline/sessions/--w--");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::copy(
        sandbox.path(&source),
        home.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl")),
    )
    .unwrap();
    assert_eq!(sandbox.json(&["context", &id[..6]])["sessionId"], id);
}

/// What stays and what the diff says was removed are together what was there.
#[test]
fn a_diff_shows_every_removed_line() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let result = sandbox.json(&["compact", &source, "--diff", "--output", "out.jsonl"]);
    let diff = result["diff"].as_array().unwrap();
    let stats = &result["stats"];
    assert_eq!(diff.len() as u64, stats["rangeCount"].as_u64().unwrap());
    let removed: usize = diff
        .iter()
        .map(|range| range["text"].as_str().unwrap().split('\n').count())
        .sum();
    assert_eq!(removed as u64, stats["linesDeleted"].as_u64().unwrap());
    let out = sandbox.read("out.jsonl");
    let entry: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let markers: Vec<u64> = entry["summary"]
        .as_str()
        .unwrap()
        .split('\n')
        .filter_map(marker)
        .collect();
    let filtered: Vec<u64> = diff
        .iter()
        .map(|range| range["filtered"].as_u64().unwrap())
        .collect();
    assert_eq!(markers, filtered);
    for range in diff {
        let (start, end) = (range["start"].as_u64().unwrap(), range["end"].as_u64().unwrap());
        assert_eq!(
            range["text"].as_str().unwrap().split('\n').count() as u64,
            end - start + 1
        );
        assert!(!range["entryIds"].as_array().unwrap().is_empty());
    }

    let text = sandbox
        .run(&["compact", &source, "--diff", "--output", "two.jsonl"])
        .stdout();
    let shown = text.lines().filter(|line| line.starts_with('-')).count();
    assert_eq!(shown, removed);
    assert!(text.contains("Compacted two.jsonl"));
    let plain = sandbox.json(&["compact", &source, "--output", "three.jsonl"]);
    assert!(plain.get("diff").is_none(), "only who asks gets it");
}

/// A compaction that would not make the context smaller is skipped, with the figures that say so.
#[test]
fn what_would_grow_is_skipped_with_its_figures() {
    let sandbox = Sandbox::new();
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    let content = vec!["a"; 30].join("\\n\\n");
    text.push_str(&format!(
        "{{\"type\":\"message\",\"id\":\"m0\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{content}\"}}}}\n"
    ));
    let source = sandbox.write("short.jsonl", &text);
    let result = sandbox.json(&["compact", &source, "--preserve-recent", "0", "--ratio", "0.97"]);
    assert_eq!(result["outcome"], "skipped", "{result}");
    assert_eq!(sandbox.read(&source), text);
    assert!(
        result["tokensAfter"].as_u64() >= result["tokensBefore"].as_u64(),
        "{result}"
    );
    assert!(
        result["stats"]["percentReduction"].as_f64().unwrap() <= 0.0,
        "{result}"
    );
}

#[test]
fn a_summary_without_a_model_names_itself_and_the_files() {
    let sandbox = Sandbox::new();
    let source = sandbox.fixture("realistic.jsonl");
    let args = [
        "compact",
        &source,
        "--strategy",
        "context-full",
        "--keep-recent",
        "2000",
    ];
    let planned = sandbox.json(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(planned["reason"], "dry run");
    let result = sandbox.json(&[&args[..], &["--output", "out.jsonl"]].concat());
    assert_eq!(result["outcome"], "committed");
    assert_eq!(result["rung"], "extractive");
    assert_eq!(result["strategy"], "context-full");
    assert_eq!(result["firstKeptEntryId"], planned["firstKeptEntryId"]);
    assert!(result["tokensAfter"].as_u64() < result["tokensBefore"].as_u64());
    let text = sandbox.read("out.jsonl");
    let entry: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(entry["details"]["modifiedFiles"], result["modifiedFiles"]);
    assert_eq!(entry["details"]["planner"], "extractive");
    let summary = entry["summary"].as_str().unwrap();
    assert!(
        summary.contains("without a model") && summary.contains("## Goal"),
        "{summary}"
    );

    // The context is the summary and the tail; a second run on it has nothing to do.
    let context = sandbox.json(&["context", "out.jsonl"]);
    assert_eq!(context["messages"][0]["role"], "compactionSummary");
    assert_eq!(context["messages"][1]["entryId"], result["firstKeptEntryId"]);
    let again = sandbox.json(&["compact", "out.jsonl", "--strategy", "context-full"]);
    assert_eq!(again["outcome"], "skipped");
    assert!(
        again["reason"].as_str().unwrap().contains("already compacted"),
        "{again}"
    );
}
