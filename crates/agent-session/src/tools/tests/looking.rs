//! Tools that look.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use super::*;

fn lines(count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|number| format!("line {number}\n")).collect();
    lines.concat()
}

#[tokio::test]
async fn read_shows_what_was_asked_for_and_how_to_go_on() {
    let yard = Yard::new();
    yard.put("a.txt", lines(30));
    yard.put("long.txt", lines(5_000));
    yard.put("b:1-2", "a file of that name\n");
    yard.put("empty", "");
    for (arguments, expected) in [
        (
            r#"{"path":"a.txt","offset":29}"#,
            "line 29\nline 30\n[lines 29-30 of 30]",
        ),
        (
            r#"{"path":"a.txt","offset":2,"limit":1}"#,
            "line 2\n[lines 2-2 of 30]",
        ),
        (
            r#"{"path":"a.txt:2-3,5+1"}"#,
            "line 2\nline 3\n[…]\nline 5\n[lines 2-5 of 30]",
        ),
        (
            r#"{"file_path":"./a.txt:raw","offset":30,"why":1}"#,
            "line 30\n[lines 30-30 of 30]",
        ),
        (r#"{"path":"b:1-2"}"#, "a file of that name\n"),
        (r#"{"path":"empty"}"#, "(empty)"),
    ] {
        assert_eq!(
            yard.text(ToolName::Read, arguments).await,
            expected,
            "{arguments}"
        );
    }
    let whole = yard.call(ToolName::Read, r#"{"path":"a.txt"}"#).await;
    assert_eq!(told(&whole), lines(30));
    assert_eq!(detail(&whole, "truncated"), "false");
    let long = yard.call(ToolName::Read, r#"{"path":"long.txt"}"#).await;
    assert!(told(&long).ends_with("line 2000\n[lines 1-2000 of 5000; go on with offset=2001]"));
    assert_eq!(
        (detail(&long, "truncated"), detail(&long, "lastLine")),
        ("true".to_owned(), "2000".to_owned())
    );
}

#[tokio::test]
async fn read_says_why_it_cannot() {
    let yard = Yard::new();
    yard.put("a.txt", lines(3));
    yard.put("data", b"\x1f\x8b\x08\0\0");
    for (arguments, expected) in [
        (r"{}", "`path` is missing."),
        (r"[]", "The arguments must be one JSON object."),
        (r#"{"path":7}"#, "`path` must be a string, not 7."),
        (
            r#"{"path":"a.txt","offset":0}"#,
            "`offset` must be a whole number of at least 1, not 0.",
        ),
        (
            r#"{"path":"a.txt","limit":"5"}"#,
            "`limit` must be a whole number of at least 1, not a string.",
        ),
        (
            r#"{"path":"a.txt","offset":9}"#,
            "The file ends before the lines asked for: it has 3 lines.",
        ),
        (
            r#"{"path":"a.txt:1-2","offset":1}"#,
            "Ask for lines either behind the path or with offset and limit, not both.",
        ),
        (r#"{"path":"data"}"#, "`data` is gzip data of 5 bytes, not text."),
        (r#"{"path":"."}"#, "`.` is a folder, not a file."),
        (r#"{"path":"b.txt:3-1"}"#, "`b.txt:3-1` does not exist."),
        (r#"{"path":"artifact://7"}"#, "There is no `artifact://7`."),
    ] {
        assert_eq!(
            yard.error(ToolName::Read, arguments).await,
            expected,
            "{arguments}"
        );
    }
    let outside = yard.error(ToolName::Read, r#"{"path":"../secret"}"#).await;
    assert!(
        outside.starts_with("`../secret` is outside of what may be used: "),
        "{outside}"
    );
}

#[tokio::test]
async fn read_shows_pictures_up_to_a_size() {
    let mut yard = Yard::new();
    yard.put("p.png", b"\x89PNG\r\n\x1a\n0123");
    let output = yard.call(ToolName::Read, r#"{"path":"p.png"}"#).await;
    let Some(InputBlock::Image(image)) = output.blocks.get(1) else {
        panic!("no picture: {output:?}");
    };
    assert_eq!(
        (&*image.mime_type, &*image.data),
        ("image/png", "iVBORw0KGgowMTIz")
    );
    yard.limits().image.0 = 11;
    let refused = yard.error(ToolName::Read, r#"{"path":"p.png"}"#).await;
    assert_eq!(
        refused,
        "`p.png` is a picture (image/png) of 12 bytes; at most 11 can be shown."
    );
}

#[tokio::test]
async fn read_finds_artifacts() {
    let yard = Yard::new();
    let address = yard.kept.spill("bash", &lines(10)).unwrap();
    assert_eq!(address, "artifact://1");
    assert_eq!(
        yard.text(ToolName::Read, r#"{"path":"artifact://1"}"#).await,
        lines(10)
    );
    let part = yard.text(ToolName::Read, r#"{"path":"artifact://1:4-5"}"#).await;
    assert_eq!(part, "line 4\nline 5\n[lines 4-5 of 10]");
}

#[tokio::test]
async fn ls_tells_kinds_and_sizes() {
    let yard = Yard::new();
    yard.put("b.txt", "12345");
    yard.put(".hidden", "");
    yard.put("a/x", "");
    yard.put("new\nline", "");
    symlink("b.txt", yard.root.join("link")).unwrap();
    let all = ".hidden  0\na/\nb.txt  5\nlink -> b.txt\nnew\\nline  0\n";
    assert_eq!(yard.text(ToolName::Ls, "{}").await, all);
    let some = yard.call(ToolName::Ls, r#"{"path":".","limit":2}"#).await;
    assert_eq!(told(&some), ".hidden  0\na/\n[3 more; ask with a higher limit]");
    assert_eq!(
        (detail(&some, "truncated"), detail(&some, "entries")),
        ("true".to_owned(), "5".to_owned())
    );
    fs_err::create_dir(yard.root.join("nothing")).unwrap();
    assert_eq!(yard.text(ToolName::Ls, r#"{"path":"nothing"}"#).await, "(empty)");
    assert_eq!(
        yard.error(ToolName::Ls, r#"{"path":"b.txt"}"#).await,
        "`b.txt` is not a folder."
    );
}

#[tokio::test]
async fn grep_respects_ignored_files_and_finds_the_rest() {
    let yard = Yard::new();
    yard.put(".gitignore", "target\n*.log\n");
    yard.put("src/a.rs", "fn alpha() {}\n// Alpha\n");
    yard.put("src/b.txt", "no\nalpha\n");
    yard.put(".env", "alpha\n");
    yard.put("x.log", "alpha\n");
    yard.put("target/y.rs", "alpha\n");
    yard.put(".git/config", "alpha\n");
    yard.put("bin", b"alpha\n\0");
    symlink("../secret", yard.root.join("out")).unwrap();
    for (arguments, expected) in [
        (
            r#"{"pattern":"alpha"}"#,
            "3 matches in 3 files\n.env:1:alpha\nsrc/a.rs:1:fn alpha() {}\nsrc/b.txt:2:alpha\n",
        ),
        (
            r#"{"pattern":"ALPHA","ignoreCase":true,"glob":"*.rs"}"#,
            "2 matches in 1 file\nsrc/a.rs:1:fn alpha() {}\nsrc/a.rs:2:// Alpha\n",
        ),
        (
            r#"{"pattern":"alpha()","literal":true,"path":"src"}"#,
            "1 match in 1 file\nsrc/a.rs:1:fn alpha() {}\n",
        ),
        (
            r#"{"pattern":"^alpha","path":"src/b.txt","context":1}"#,
            "1 match in 1 file\nsrc/b.txt-1-no\nsrc/b.txt:2:alpha\n",
        ),
        (
            r#"{"pattern":"alpha","path":"target"}"#,
            "1 match in 1 file\ntarget/y.rs:1:alpha\n",
        ),
        (
            r#"{"pattern":"hidden words"}"#,
            "No matches in 5 searched files.\n",
        ),
        (
            r#"{"pattern":"alpha","limit":1}"#,
            "1 match in 1 file, and perhaps more: the limit was reached\n.env:1:alpha\n",
        ),
    ] {
        assert_eq!(
            yard.text(ToolName::Grep, arguments).await,
            expected,
            "{arguments}"
        );
    }
    assert!(
        yard.error(ToolName::Grep, r#"{"pattern":"("}"#)
            .await
            .contains("cannot be searched for")
    );
    assert!(
        yard.error(ToolName::Grep, r#"{"pattern":"a\nb"}"#)
            .await
            .contains("cannot be searched for")
    );
    assert!(
        yard.error(ToolName::Grep, r#"{"pattern":"a","glob":"["}"#)
            .await
            .contains("`glob` cannot be used")
    );
    assert!(
        yard.error(ToolName::Grep, r#"{"pattern":"a","path":"out"}"#)
            .await
            .contains("outside")
    );
}

#[tokio::test]
async fn grep_shows_the_part_of_a_long_line_that_matches() {
    let yard = Yard::new();
    yard.put(
        "min.js",
        format!("{}needle{}\n", "ä".repeat(2_000), "ö".repeat(2_000)),
    );
    let text = yard.text(ToolName::Grep, r#"{"pattern":"needle"}"#).await;
    let line = text.lines().nth(1).unwrap();
    assert!(
        line.starts_with("min.js:1:…ä") && line.contains("needleö"),
        "{line}"
    );
    assert!(line.ends_with("ö… [of 8006 bytes]") && line.len() < 600, "{line}");
}

#[tokio::test]
async fn what_is_too_long_is_kept() {
    let mut yard = Yard::new();
    yard.limits().text.lines = 4;
    yard.put("a.txt", lines(9));
    let found = yard.call(ToolName::Grep, r#"{"pattern":"line"}"#).await;
    assert!(
        told(&found).ends_with("a.txt:3:line 3\n[90 bytes (6 lines) left out; all of it: artifact://1]"),
        "{found:?}"
    );
    assert_eq!(detail(&found, "truncated"), "true");
    assert!(yard.kept.0.lock().unwrap()[0].ends_with("a.txt:9:line 9\n"));
}

#[tokio::test]
async fn a_search_ends_with_what_it_has() {
    let mut yard = Yard::new();
    yard.put("a.txt", "x\n");
    yard.limits().search = Duration::ZERO;
    // A pipe in the folder would block a reader that opens it.
    let pipe = yard.root.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let output = yard.call(ToolName::Grep, r#"{"pattern":"x"}"#).await;
    assert_eq!(output.outcome, ToolOutcome::Success);
}

#[tokio::test]
async fn a_file_that_may_not_be_read_does_not_end_a_search() {
    let yard = Yard::new();
    yard.put("a.txt", "x\n");
    yard.put("b.txt", "x\n");
    let mode = std::fs::Permissions::from_mode(0o000);
    fs_err::set_permissions(yard.root.join("a.txt"), mode).unwrap();
    let text = yard.text(ToolName::Grep, r#"{"pattern":"x"}"#).await;
    assert!(text.contains("b.txt:1:x"), "{text}");
}

#[tokio::test]
async fn after_a_cancel_nothing_is_begun() {
    let yard = Yard::new();
    yard.put("a.txt", "x\n");
    yard.cancel.cancel();
    for tool in ToolName::ALL {
        let arguments = r#"{"path":"a.txt","pattern":"x","content":"y","oldText":"x","newText":"y","command":"echo y > a.txt","todos":[]}"#;
        assert_eq!(yard.error(tool, arguments).await, "Cancelled.", "{}", tool.name());
    }
    assert_eq!(yard.get("a.txt"), "x\n");
}

#[test]
fn a_line_without_end_does_not_keep_a_thread() {
    let yard = Yard::new();
    yard.put("a.txt", "x\n".repeat(10_000));
    // Longer than anyone would read, and nearly nothing on the disk.
    let file = fs_err::OpenOptions::new()
        .write(true)
        .open(yard.root.join("a.txt"))
        .unwrap();
    file.set_len(1 << 42).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::join!(
            async {
                let why = yard
                    .error(ToolName::Read, r#"{"path":"a.txt","offset":20000}"#)
                    .await;
                assert_eq!(why, "Cancelled.");
            },
            async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                yard.cancel.cancel();
            }
        );
    });
    // This waits for the threads of the runtime.
    drop(runtime);
}
