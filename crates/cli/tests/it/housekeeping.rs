use crate::support::Sandbox;

#[test]
fn stats_count_by_role_and_tool() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    let stats = sandbox.json(&["stats", &session]);
    let context = sandbox.json(&["context", &session]);
    assert_eq!(stats["tokens"]["context"], context["tokens"]["value"]);
    let messages = stats["messages"].as_object().unwrap();
    let count: u64 = messages.values().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(count, context["messages"].as_array().unwrap().len() as u64);
    let tools = stats["byTool"].as_array().unwrap();
    let results: u64 = tools.iter().map(|row| row["results"].as_u64().unwrap()).sum();
    assert_eq!(results, messages["toolResult"]["count"].as_u64().unwrap());
    assert!(sandbox.run(&["stats", &session]).stdout().contains("toolResult"));
    let compacted = sandbox.fixture("compacted-verbatim-once.jsonl");
    let stats = sandbox.json(&["stats", &compacted]);
    assert_eq!(stats["compactions"][0]["strategy"], "verbatim-lines");
}

#[test]
fn damage_is_repaired_and_the_original_kept() {
    let sandbox = Sandbox::new();
    for name in [
        "damaged-everything.jsonl",
        "damaged-torn-tail.jsonl",
        "damaged-glued-records.jsonl",
        "damaged-glued-to-torn.jsonl",
        "damaged-nul-lines.jsonl",
        "damaged-invalid-utf8.jsonl",
        "damaged-torn-character.jsonl",
        "damaged-garbage-before-header.jsonl",
    ] {
        let session = sandbox.fixture(name);
        let before = std::fs::read(sandbox.path(&session)).unwrap();
        let found = sandbox.json(&["check", &session]);
        let context = sandbox.json(&["context", &session])["messages"].clone();
        assert_eq!(found["repaired"], false);
        let repaired = sandbox.json(&["check", &session, "--repair"]);
        assert_eq!(repaired["repaired"], true, "{name}");
        let backup = repaired["backupPath"].as_str().unwrap();
        assert_eq!(std::fs::read(sandbox.path(backup)).unwrap(), before, "{name}");
        let text = std::fs::read_to_string(sandbox.path(&session)).unwrap();
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            assert!(
                serde_json::from_str::<serde_json::Value>(line)
                    .unwrap()
                    .is_object(),
                "{name}: {line}"
            );
        }
        let after = sandbox.json(&["check", &session]);
        assert_eq!(after["entries"], found["entries"], "{name}");
        assert_eq!(
            sandbox.json(&["context", &session])["messages"],
            context,
            "{name}"
        );
    }
    let sound = sandbox.fixture("linear.jsonl");
    assert_eq!(sandbox.json(&["check", &sound, "--repair"])["repaired"], false);
}

#[test]
fn sessions_are_listed_with_their_backups_and_gc_clears_these() {
    let sandbox = Sandbox::new();
    let fixture = sandbox.fixture("realistic.jsonl");
    let text = sandbox.read(&fixture);
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let id = header["id"].as_str().unwrap();
    let home = sandbox.path(".local/share/foldline/sessions/--w--");
    std::fs::create_dir_all(&home).unwrap();
    let path = home.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl"));
    std::fs::write(&path, &text).unwrap();

    assert_eq!(
        sandbox.json(&["list"])["sessions"].as_array().unwrap().len(),
        0,
        "of another project"
    );
    let all = sandbox.json(&["list", "--all", "--count"]);
    let row = &all["sessions"][0];
    assert_eq!(row["id"], id);
    assert_eq!(row["agent"], "foldline");
    assert!(row["entries"].as_u64() > Some(900) && row["title"].is_string());
    assert!(sandbox.json(&["list", "--all"])["sessions"][0]["entries"].is_null());

    assert_eq!(sandbox.json(&["compact", &id[..8]])["outcome"], "committed");
    let backups = sandbox.json(&["list", "--all", "--backups"])["backups"].clone();
    assert_eq!(backups.as_array().unwrap().len(), 1);
    assert_eq!(
        sandbox.json(&["gc", "--dry-run"])["removed"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let removed = sandbox.json(&["gc"]);
    assert_eq!(removed["removed"][0], backups[0]["path"]);
    assert_eq!(
        sandbox.json(&["list", "--all", "--backups"])["backups"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}
