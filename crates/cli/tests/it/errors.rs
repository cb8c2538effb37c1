use foldline_session_store::{DiskStore, Expected, OpenOptions, Owner, SessionStore as _};

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
    for (args, code, kind) in [
        (&["context", "missing.jsonl", "--json"][..], 3, "no_session"),
        (&["context", "--json"], 2, "usage"),
        (&["contxt", "--json"], 2, "usage"),
        (&["models", "--test", "nobody/knows", "--json"], 2, "usage"),
    ] {
        let run = sandbox.run(args);
        assert_eq!(run.code(), code);
        let document: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        assert_eq!(document["error"]["kind"], kind);
        assert!(document["error"]["hint"].is_string() && document["error"]["message"].is_string());
        assert_eq!(run.stderr(), "");
    }
}

/// What goes wrong in the first ten minutes: each for a person and for a program.
#[test]
fn the_first_ten_minutes() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("linear.jsonl");
    sandbox.fixture("damaged-everything.jsonl");
    sandbox.write("empty.jsonl", "");
    sandbox.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\xff\xfe");
    sandbox.write("notes.md", "# Notes\n");
    sandbox.write("data.json", "{\"a\": 1}\n");
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    let options = OpenOptions {
        owner: Owner::this_process(),
        now: std::time::SystemTime::now(),
        expected: Expected::Any,
    };
    sandbox.write("busy.jsonl", sandbox.read_bytes(&session));
    let writer = DiskStore::new()
        .open(&sandbox.path("busy.jsonl"), &options)
        .unwrap();
    // Nobody listens on a port that was just given back.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let closed = format!("http://{closed}");
    let server = ["--base-url", &closed, "--api", "openai-completions"];
    let cases: &[(&str, &[&str])] = &[
        ("no session here", &["compact", "latest"]),
        ("no such file", &["compact", "sesion.jsonl"]),
        ("a folder", &["compact", "folder"]),
        ("an empty file", &["compact", "empty.jsonl"]),
        ("a binary file", &["compact", "picture.png"]),
        ("a text file", &["compact", "notes.md"]),
        ("other JSON", &["compact", "data.json"]),
        (
            "no key",
            &["compact", &session, "--model", "anthropic/claude-haiku-4-5"],
        ),
        (
            "a wrong provider",
            &["compact", &session, "--model", "antropic/claude-haiku-4-5"],
        ),
        (
            "no provider",
            &["compact", &session, "--model", "claude-haiku-4-5"],
        ),
        ("a busy session", &["compact", "busy.jsonl"]),
        ("a damaged session", &["check", "damaged-everything.jsonl"]),
        (
            "no network",
            &[
                "models", "--test", "my/model", server[0], server[1], server[2], server[3],
            ],
        ),
        ("a wrong command", &["compress", &session]),
        ("a wrong flag", &["compact", &session, "--keep", "3"]),
    ];
    let mut all = String::new();
    for (what, args) in cases {
        let run = sandbox.run(args);
        let json = [*args, &["--json"]].concat();
        let program = sandbox.run(&json);
        assert_eq!(run.code(), program.code(), "{what}");
        all.push_str(&format!(
            "# {what}\n{}--- --json\n{}\n",
            run.all(),
            program.stdout()
        ));
    }
    drop(writer);
    let port = closed.rsplit(':').next().unwrap().to_owned();
    insta::with_settings!({filters => vec![
        (&*format!(":{port}"), ":[PORT]"),
        (r#"process \d+ on [^ \n"]+"#, "process [PID] on [HOST]"),
        (r"\d{4}-\d\d-\d\dT[\d:.-]+Z?", "[TIME]"),
    ]}, {
        insta::assert_snapshot!(all);
    });
    assert_eq!(sandbox.read_bytes("busy.jsonl"), sandbox.read_bytes(&session));
}

/// A folder in which nobody may write, for a user who is not root.
#[test]
#[cfg(unix)]
fn a_read_only_folder_is_explained() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    const NOBODY: u32 = 65_534;
    let sandbox = Sandbox::new();
    let binary = sandbox.path("foldline");
    std::fs::copy(env!("CARGO_BIN_EXE_foldline"), &binary).unwrap();
    let session = sandbox.fixture("linear.jsonl");
    let allow = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(&sandbox.path(&session), 0o644);
    let folder = sandbox.path("");
    allow(&folder, 0o555);
    let run = |args: &[&str]| {
        let mut command = sandbox.command(&binary);
        // For root every folder is writable.
        if std::fs::metadata(&folder).is_ok_and(|folder| std::os::unix::fs::MetadataExt::uid(&folder) == 0) {
            command.uid(NOBODY);
        }
        sandbox.ran(command.args(args).output().unwrap())
    };
    let shown = format!(
        "{}--- --json\n{}",
        run(&["compact", &session]).all(),
        run(&["compact", &session, "--json"]).stdout()
    );
    let reading = run(&["context", &session]).code();
    allow(&folder, 0o755);
    assert_eq!(reading, 0, "reading needs no writable folder");
    insta::assert_snapshot!(shown);
}
