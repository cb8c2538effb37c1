//! What a person runs into at the edges: damaged files, odd names, flags and variables that cannot be taken.

use crate::server::{Script, Server};
use crate::support::Sandbox;

type Change<'c> = &'c dyn Fn(&str) -> Vec<u8>;

/// The sixth line of a session, changed.
fn damaged(sandbox: &Sandbox, change: impl Fn(&str) -> Vec<u8>) -> String {
    let name = sandbox.fixture("linear.jsonl");
    let text = sandbox.read(&name);
    let mut out = Vec::new();
    for (at, line) in text.lines().enumerate() {
        out.extend(if at == 5 {
            change(line)
        } else {
            line.as_bytes().to_vec()
        });
        out.push(b'\n');
    }
    sandbox.write("damaged.jsonl", out)
}

/// The end of a file is enough for a context only if every line there is what it seems.
#[test]
fn a_damaged_line_on_the_path_is_a_warning_for_context_too() {
    let sandbox = Sandbox::new();
    let insert = |line: &str, byte: &[u8]| {
        let at = line.find("\"text\":\"").unwrap() + 8;
        [&line.as_bytes()[..at], byte, &line.as_bytes()[at..]].concat()
    };
    let number = |line: &str| {
        let at = line.find("\"timestamp\":\"").unwrap() + 12;
        let end = at + 1 + line[at + 1..].find('"').unwrap() + 1;
        format!("{}01{}", &line[..at], &line[end..]).into_bytes()
    };
    let changes: [Change<'_>; 5] = [
        &number,
        &|line| insert(line, b"\\q"),
        &|line| insert(line, b"\x01"),
        &|line| insert(line, b"\""),
        &|line| insert(line, b"\xff"),
    ];
    for change in changes {
        let name = damaged(&sandbox, change);
        let context = sandbox.run(&["context", &name]);
        assert_eq!(context.code(), 0, "{}", context.all());
        assert!(
            context.stderr().starts_with("warning: damaged.jsonl:6: "),
            "{}",
            context.stderr()
        );
        let tree = sandbox.run(&["tree", &name]);
        assert_eq!((tree.code(), tree.stderr()), (0, context.stderr()));
    }
}

#[test]
fn no_command_reads_what_the_others_refuse() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let header = sandbox
        .read(&name)
        .replacen("\"timestamp\":\"", "\"timestamp\":\"\0\0", 1);
    sandbox.write("nul.jsonl", header);
    let context = sandbox.run(&["context", "nul.jsonl"]);
    let stats = sandbox.run(&["stats", "nul.jsonl"]);
    assert_eq!(context.all(), stats.all());
    assert_eq!(context.code(), 3);
}

#[test]
fn calls_count_in_every_form_of_the_context() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("realistic.jsonl");
    let tokens =
        |format: &str| sandbox.json(&["context", &name, "--format", format])["tokens"]["value"].as_u64();
    let (messages, llm) = (tokens("messages").unwrap(), tokens("llm").unwrap());
    // A result whose call is gone is told in words.
    assert!(llm >= messages && llm - messages < 50, "{messages} {llm}");
    assert_eq!(tokens("text"), Some(llm));
    let llm = sandbox.json(&["context", &name, "--format", "llm"]);
    for message in llm["messages"].as_array().unwrap() {
        let is_empty = message["content"].to_string().len() < 30;
        assert!(is_empty || message["tokens"].as_u64() > Some(0), "{message}");
    }
}

#[test]
fn a_compaction_that_is_skipped_tells_how_large_the_context_is() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let now = sandbox.json(&["context", &name])["tokens"]["value"].clone();
    let skipped = sandbox.json(&["compact", &name, "--strategy", "context-full"]);
    assert_eq!(skipped["outcome"], "skipped");
    assert_eq!(skipped["tokensBefore"], now);
    assert_eq!(skipped["tokensAfter"], now);
}

/// The environment is a layer of settings: what cannot be taken is reported, and what lies below it holds.
#[test]
fn variables_that_cannot_be_taken_are_reported() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    for (variable, value) in [
        ("FOLDLINE_MODEL", "nonsense"),
        ("FOLDLINE_MODEL", ""),
        ("FOLDLINE_API", ""),
        ("FOLDLINE_BASE_URL", ""),
        ("FOLDLINE_CONTEXT_WINDOW", ""),
    ] {
        let run = sandbox.run_with(&["compact", &name, "--dry-run"], &[(variable, value)]);
        assert_eq!(run.code(), 0, "{}", run.all());
        assert!(run.stdout().contains("No model would be called"), "{}", run.all());
        assert_eq!(
            run.stderr().contains(&format!("warning: {variable}")),
            !value.is_empty(),
            "{}",
            run.stderr()
        );
    }
    // About the model in use, whoever names it.
    let args = [
        "compact",
        &name,
        "--dry-run",
        "--model",
        "acme/large",
        "--strategy",
        "context-full",
    ];
    let known = [
        ("FOLDLINE_BASE_URL", "http://127.0.0.1:9"),
        ("FOLDLINE_API", "openai"),
    ];
    let run = sandbox.run_with(&args, &known);
    assert_eq!(run.code(), 0, "{}", run.all());
    let window = [known[0], known[1], ("FOLDLINE_CONTEXT_WINDOW", "x")];
    let run = sandbox.run_with(&args, &window);
    assert_eq!(run.code(), 0, "{}", run.all());
    assert!(
        run.stderr().starts_with("warning: FOLDLINE_CONTEXT_WINDOW"),
        "{}",
        run.stderr()
    );
    let run = sandbox.run_with(&args, &[known[0], ("FOLDLINE_API", "morse")]);
    assert!(
        run.stderr().starts_with("warning: FOLDLINE_API"),
        "{}",
        run.stderr()
    );
}

#[cfg(unix)]
#[test]
fn names_of_sessions_are_not_always_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let odd = OsStr::from_bytes(b"s\xff.jsonl");
    std::fs::copy(sandbox.path(&name), sandbox.path("").join(odd)).unwrap();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_foldline"));
    for command in ["stats", "context", "tree", "check", "compact"] {
        let output = sandbox.command(binary).arg(command).arg(odd).output().unwrap();
        let run = sandbox.ran(output);
        assert_eq!(run.code(), 0, "{command}: {}", run.all());
    }
    let output = sandbox
        .command(binary)
        .arg("recall")
        .arg(odd)
        .arg("the")
        .output()
        .unwrap();
    assert_eq!(sandbox.ran(output).code(), 0);
    let missing = sandbox
        .command(binary)
        .arg("stats")
        .arg(OsStr::from_bytes(b"\xfe"))
        .output()
        .unwrap();
    assert_eq!(sandbox.ran(missing).code(), 3);

    let folder = sandbox.path("").join(OsStr::from_bytes(b"project\xff"));
    std::fs::create_dir(&folder).unwrap();
    let output = sandbox
        .command(binary)
        .args(["config", "trust"])
        .arg(&folder)
        .output()
        .unwrap();
    let run = sandbox.ran(output);
    assert!(
        run.code() == 1 && run.stderr().contains("hint: "),
        "{}",
        run.all()
    );
}

#[test]
fn flags_without_effect_are_told() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    for (args, told) in [
        (
            &["--instructions", "x"][..],
            "--instructions has no effect with the strategy verbatim-lines",
        ),
        (
            &["--keep-recent", "5"],
            "--keep-recent has no effect with the strategy verbatim-lines",
        ),
        (
            &["--strategy", "context-full", "--instructions", "x"],
            "--instructions has no effect without a model (extractive)",
        ),
        (
            &["--strategy", "context-full", "--ratio", "0.5"],
            "--ratio has no effect with the strategy context-full",
        ),
        (
            &["--diff"],
            "--diff has no effect with --dry-run: no planner is asked",
        ),
        (
            &["--api", "openai"],
            "--api has no effect without a model (extractive)",
        ),
    ] {
        let mut all = vec!["compact", &name, "--dry-run"];
        all.extend(args);
        let run = sandbox.run(&all);
        assert_eq!(
            (run.code(), run.stderr()),
            (0, format!("warning: {told}\n")),
            "{args:?}"
        );
    }
    let run = sandbox.run(&["compact", &name, "--dry-run", "--ratio", "0.5", "--query", "x"]);
    assert_eq!(run.stderr(), "");
}

#[test]
fn a_dry_run_refuses_what_the_run_would_refuse() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let model = [
        "--model",
        "acme/large",
        "--api",
        "openai",
        "--base-url",
        "file:///etc",
    ];
    let newer = sandbox.read(&name).replacen("\"version\":3", "\"version\":99", 1);
    sandbox.write("newer.jsonl", newer);
    let mut rows = vec![vec!["compact", &name]];
    rows[0].extend(model);
    rows.push(vec!["compact", "newer.jsonl"]);
    rows.push(vec!["prune", "newer.jsonl"]);
    for row in rows {
        let real = sandbox.run(&row);
        let mut dry = row.clone();
        dry.push("--dry-run");
        let dry = sandbox.run(&dry);
        assert_ne!(real.code(), 0, "{row:?}");
        assert_eq!(dry.code(), real.code(), "{row:?}: {} {}", dry.all(), real.all());
    }
}

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#;

fn answered(id: &str, model: &str, usage: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"assistant","content":[{{"type":"text","text":"done"}}],"provider":"anthropic","model":"{model}","usage":{usage},"stopReason":"stop","timestamp":1}}}}"#
    )
}

#[test]
fn what_nobody_recorded_is_priced_or_unknown() {
    let sandbox = Sandbox::new();
    let tokens = r#"{"input":1000000,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":1000000,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    let file = |lines: &[String]| format!("{HEADER}\n{}\n", lines.join("\n"));
    sandbox.write(
        "priced.jsonl",
        file(&[answered("a", "claude-sonnet-4-5-20250929", tokens)]),
    );
    let usage = &sandbox.json(&["stats", "priced.jsonl"])["usage"];
    assert_eq!(
        (usage["cost"].as_f64(), usage["unpricedRequests"].as_u64()),
        (Some(3.0), Some(0))
    );

    sandbox.write("unknown.jsonl", file(&[answered("a", "nobody-knows", tokens)]));
    let usage = &sandbox.json(&["stats", "unknown.jsonl"])["usage"];
    assert!(
        usage["cost"].is_null() && usage["unpricedRequests"] == 1,
        "{usage}"
    );
    assert!(
        sandbox
            .run(&["stats", "unknown.jsonl"])
            .stdout()
            .contains(", price unknown\n")
    );

    let both = [
        answered("a", "claude-sonnet-4-5", tokens),
        answered("b", "nobody-knows", tokens),
    ];
    sandbox.write("both.jsonl", file(&both));
    let text = sandbox.run(&["stats", "both.jsonl"]).stdout();
    assert!(
        text.contains("$3.00\n  without 1 requests whose price is not known\n"),
        "{text}"
    );
}

/// Numbers of a file that somebody tampered with.
#[test]
fn hostile_numbers_do_not_wrap() {
    let sandbox = Sandbox::new();
    let usage = r#"{"input":18446744073709551615,"output":18446744073709551615,"cacheRead":18446744073709551615,"cacheWrite":9,"totalTokens":1,"cost":{"total":1e308}}"#;
    let lines = [answered("a", "m", usage), answered("b", "m", usage)].join("\n");
    sandbox.write("s.jsonl", format!("{HEADER}\n{lines}\n"));
    let usage = &sandbox.json(&["stats", "s.jsonl"])["usage"];
    assert!(usage["input"].as_u64() > Some(1 << 60), "{usage}");
    assert!(usage["cacheShare"].as_u64() <= Some(100), "{usage}");
    let text = sandbox.run(&["stats", "s.jsonl"]).stdout();
    assert!(!text.contains("inf") && text.len() < 1000, "{text}");
}

/// A provider may count ten times what the estimate says: the two numbers are never mixed.
#[test]
fn stats_and_compact_name_the_same_size() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("realistic.jsonl");
    let compacted = sandbox.json(&["compact", &name, "--output", "copy.jsonl"]);
    let rows = sandbox.json(&["stats", "copy.jsonl"])["compactions"].clone();
    let row = rows.as_array().unwrap().last().unwrap();
    assert_eq!(row["entryId"], compacted["entryId"]);
    assert_eq!(row["estimatedBefore"], compacted["tokensBefore"]);
}

#[test]
fn a_folder_hides_no_session() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let id = "0198f3a2-0000-7000-8000-000000000000";
    let cwd = std::fs::canonicalize(sandbox.path(""))
        .unwrap()
        .display()
        .to_string();
    let text = sandbox.read(&name);
    let (_, rest) = text.split_once('\n').unwrap();
    let header = format!(
        r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-01-01T00:00:00.000Z","cwd":"{cwd}"}}"#
    );
    let folder = sandbox.path(".local/share/foldline/sessions/x");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl")),
        format!("{header}\n{rest}"),
    )
    .unwrap();
    assert_eq!(sandbox.run(&["stats", "0198"]).code(), 0);
    std::fs::create_dir(sandbox.path("0198")).unwrap();
    let run = sandbox.run(&["stats", "0198"]);
    assert_eq!(run.code(), 0, "{}", run.all());
}

#[test]
fn a_word_that_is_no_word_is_not_repeated() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let run = sandbox.run(&["recall", &name, &"x".repeat(120_000)]);
    assert_eq!(run.code(), 2);
    assert!(
        run.stderr().len() < 400 && run.stderr().contains("at most 200 bytes"),
        "{}",
        run.stderr()
    );
}

/// The status and what the provider said stay with the advice.
#[test]
fn a_refused_key_is_told_by_compact_as_by_others() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("realistic.jsonl");
    let server = Server::start(vec![Script::Status(
        401,
        r#"{"error":{"message":"invalid key abc"}}"#,
    )]);
    let run = sandbox.run(&[
        "compact",
        &name,
        "--model",
        "acme/large",
        "--api",
        "openai",
        "--base-url",
        &server.url,
        "--strategy",
        "context-full",
        "--context-window",
        "200000",
    ]);
    assert_eq!(run.code(), 4, "{}", run.all());
    for part in ["HTTP 401", "invalid key abc", "FOLDLINE_API_KEY"] {
        assert!(run.stderr().contains(part), "{}", run.stderr());
    }
}

#[test]
fn help_and_version_are_documents_for_programs() {
    let sandbox = Sandbox::new();
    for (args, key, part) in [
        (&["--help", "--json"][..], "help", "Usage: foldline"),
        (&["compact", "--help", "--json"], "help", "--keep-recent"),
        (&["help", "compact", "--json"], "help", "--keep-recent"),
        (&["--json", "help", "config", "set"], "help", "config set"),
        (&["--version", "--json"], "version", env!("CARGO_PKG_VERSION")),
    ] {
        let run = sandbox.run(args);
        assert_eq!(run.code(), 0, "{args:?}: {}", run.all());
        let document: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        assert!(
            document[key].as_str().unwrap().contains(part),
            "{args:?}: {document}"
        );
    }
    // Without it they are text, as ever.
    assert!(sandbox.run(&["--version"]).stdout().starts_with("foldline "));
}

/// Where the system refuses, the cause, the place and what to do are told.
#[cfg(unix)]
#[test]
#[allow(clippy::print_stderr, reason = "what is skipped says so")]
fn what_the_system_refuses_is_told_with_its_place() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("realistic.jsonl");
    let folder = sandbox.path("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(sandbox.path(&name), folder.join("s.jsonl")).unwrap();
    std::fs::create_dir_all(sandbox.path(".config/foldline")).unwrap();
    // A folder in the place of a file is refused whoever asks.
    std::fs::create_dir(sandbox.path(".config/foldline/settings.json")).unwrap();
    let set = sandbox.run(&["config", "set", "model", "ollama/x"]);
    assert_eq!(set.code(), 1);
    assert!(
        set.stderr().contains("settings.json: ") && set.stderr().contains("hint: "),
        "{}",
        set.stderr()
    );
    std::fs::remove_dir(sandbox.path(".config/foldline/settings.json")).unwrap();

    let lock = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    lock(0o555);
    if std::fs::write(folder.join("probe"), "").is_ok() {
        eprintln!("skipped: the administrator is refused nothing");
        lock(0o755);
        return;
    }
    for args in [
        &["handoff", "locked/s.jsonl"][..],
        &["fork", "locked/s.jsonl"],
        &[
            "export",
            "locked/s.jsonl",
            "--to",
            "pi",
            "--output",
            "locked/x.jsonl",
        ],
        &["report", "locked/s.jsonl", "-o", "locked/x.html"],
        &[
            "prune",
            "locked/s.jsonl",
            "--storage",
            "rewrite",
            "--minimum-savings",
            "0",
        ],
    ] {
        let run = sandbox.run(args);
        assert_eq!(run.code(), 1, "{args:?}: {}", run.all());
        let told = run.stderr();
        assert!(
            told.contains("ermission denied") && told.contains("hint: "),
            "{args:?}: {told}"
        );
        assert!(told.lines().count() < 5, "{args:?}: {told}");
    }
    lock(0o755);
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_gone_is_named_as_the_cause() {
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("linear.jsonl");
    let folder = sandbox.path("gone");
    std::fs::create_dir(&folder).unwrap();
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "cd \"$1\" && rmdir \"$1\" && exec \"$2\" compact \"$3\" --dry-run",
            "sh",
        ])
        .arg(&folder)
        .arg(env!("CARGO_BIN_EXE_foldline"))
        .arg(sandbox.path(&name))
        .output()
        .unwrap();
    let run = sandbox.ran(output);
    assert_eq!(run.code(), 1);
    assert!(
        run.stderr().contains("the current folder cannot be used") && run.stderr().contains("hint: "),
        "{}",
        run.stderr()
    );
}
