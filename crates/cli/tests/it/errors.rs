use crate::support::Sandbox;

/// Each error names the file, the line where there is one, the cause, and what to do.
#[test]
fn errors_have_a_cause_and_a_hint() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.jsonl", "");
    sandbox.write("notes.txt", "just some notes\nof mine\n");
    sandbox.write(
        "entry.jsonl",
        "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null}\n",
    );
    sandbox.write(
        "damaged.jsonl",
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n{\"type\":\"mess\n",
    );
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    let cases: &[&[&str]] = &[
        &["context", "missing.jsonl"],
        &["context", "latest"],
        &["context", "folder"],
        &["context", "empty.jsonl"],
        &["context", "notes.txt"],
        &["check", "entry.jsonl"],
        &["context", "damaged.jsonl"],
        &["context", "damaged.jsonl", "--leaf", "zzz"],
        &["show", "damaged.jsonl", "zzz"],
        &["compact", "damaged.jsonl", "--output", "notes.txt"],
        &["compact", "damaged.jsonl", "--ratio", "1"],
    ];
    let mut all = String::new();
    for args in cases {
        all.push_str(&format!(
            "$ foldline {}\n{}\n",
            args.join(" "),
            sandbox.run(args).all()
        ));
    }
    insta::assert_snapshot!(all);
    assert_eq!(sandbox.read("notes.txt"), "just some notes\nof mine\n");
}

#[test]
fn errors_are_one_document_for_programs() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["context", "missing.jsonl", "--json"]);
    assert_eq!(run.code(), 3);
    let document: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(document["error"]["kind"], "no_session");
    assert!(document["error"]["hint"].is_string());
}
