//! Reads of files that were changed later.

use super::{Case, check, reads};
use crate::support::{eager, edit, pair, patch, read, wide};

#[test]
fn changed_files() {
    let applied = |extra: &str| format!(r#"{{"applied":true,"files":["a"]{extra}}}"#);
    let source = r#"{"sourceResultDetails":{"applied":true,"files":["a"]}}"#;
    let resolve = |details: &str| pair("r", "resolve", "{}").details(details);
    let rows = |rows: &str| format!(r#"{{"perFileResults":[{rows}]}}"#);
    check(vec![
        reads("S15", vec![read("1", "a"), edit("2", "a")], &["1"], &[]),
        reads("S16", vec![read("1", "a"), edit("2", "b")], &[], &["1"]),
        reads(
            "S17",
            vec![
                read("1", "a"),
                read("2", "b"),
                read("3", "c"),
                patch("4", &["*** Update File: a", "+x", "*** Delete File: b"]),
            ],
            &["1", "2"],
            &["3"],
        ),
        reads(
            "S18",
            vec![
                read("1", "a"),
                pair("2", "edit", r#"{"input":"*** Update File: a\n+x"}"#),
            ],
            &["1"],
            &[],
        ),
        reads(
            "S19",
            vec![
                read("1", "dest"),
                patch("2", &["*** Update File: source", "*** Move to: dest"]),
            ],
            &["1"],
            &[],
        ),
        reads(
            "S20",
            vec![
                read("1", "a:50-100"),
                read("2", "a:2-4:raw"),
                read("3", "a:50-"),
                read("4", "a:L50-"),
                read("5", "b:50-100"),
                edit("6", "a"),
            ],
            &["1", "2", "3", "4"],
            &["5"],
        ),
        reads(
            "S21",
            vec![read("1", "a:50-:conflicts"), edit("2", "a")],
            &[],
            &["1"],
        ),
        reads(
            "S21",
            vec![read("1", "a:50-:conflicts"), edit("2", "a:50-")],
            &["1"],
            &[],
        ),
        reads(
            "literal path",
            vec![read("1", "a:50-nope"), edit("2", "a")],
            &[],
            &["1"],
        ),
        reads(
            "S24",
            vec![read("1", "a"), read("2", "b"), resolve(&applied(""))],
            &["1"],
            &["2"],
        ),
        reads(
            "S25",
            vec![
                read("1", "a"),
                pair("2", "ast_edit", r#"{"paths":["*"]}"#).details(r#"{"applied":false,"files":["a"]}"#),
            ],
            &[],
            &["1"],
        ),
        reads("S26", vec![read("1", "a"), resolve(source)], &["1"], &[]),
        Case {
            policy: wide(eager()),
            ..reads(
                "S27",
                vec![read("1", "a"), resolve(source).error()],
                &["1"],
                &["r"],
            )
        },
        reads(
            "S28",
            vec![
                read("1", "ok"),
                read("2", "failed"),
                patch("3", &["*** Update File: ok", "*** Update File: failed"]).details(&rows(
                    r#"{"path":"ok","isError":false},{"path":"failed","isError":true}"#,
                )),
            ],
            &["1"],
            &["2"],
        ),
        reads(
            "S29",
            vec![
                read("1", "a"),
                patch("2", &["*** Update File: a"]).details(&rows(r#"{"path":"a"}"#)),
            ],
            &[],
            &["1"],
        ),
        reads(
            "S30",
            vec![
                read("1", "a"),
                patch("2", &["*** Update File: a"]).details(&rows(
                    r#"{"path":"a","isError":true},{"path":"a","isError":false}"#,
                )),
            ],
            &["1"],
            &[],
        ),
        reads(
            "S31",
            vec![
                read("1", "ok"),
                read("2", "dest"),
                patch(
                    "3",
                    &[
                        "*** Update File: ok",
                        "*** Update File: source",
                        "*** Move to: dest",
                    ],
                )
                .details(&rows(
                    r#"{"path":"ok","isError":false},{"path":"source","isError":true}"#,
                )),
            ],
            &["1"],
            &["2"],
        ),
        reads(
            "S32",
            vec![
                read("1", "foo.ts").details(r#"{"resolvedPath":"src/foo.ts"}"#),
                edit("2", "src/foo.ts"),
            ],
            &["1"],
            &[],
        ),
        reads(
            "X3",
            vec![
                pair("1", "read", r#"{"path":"a"}"#),
                pair("2", "read", r#"{"file_path":"b"}"#),
                pair("3", "read", r#"{"filePath":"c"}"#),
                pair("4", "edit", r#"{"file_path":"a"}"#),
                pair("5", "write", r#"{"filePath":"b"}"#),
                pair("6", "apply_patch", r#"{"path":"c"}"#),
            ],
            &["1", "2", "3"],
            &[],
        ),
        reads("X5", vec![read("1", "a"), edit("2", "a").error()], &[], &["1"]),
        // Defect 3: a preview that was not applied changed nothing.
        reads(
            "defect 3",
            vec![
                read("1", "a"),
                pair("2", "ast_edit", r#"{"path":"a"}"#).details(r#"{"applied":false}"#),
            ],
            &[],
            &["1"],
        ),
        reads(
            "an applied edit",
            vec![read("1", "a"), pair("2", "ast_edit", r#"{"path":"a"}"#)],
            &["1"],
            &[],
        ),
        // Defect 5: spellings of one file.
        reads(
            "defect 5, dot",
            vec![read("1", "./a"), edit("2", "a")],
            &["1"],
            &[],
        ),
        reads(
            "defect 5, absolute",
            vec![read("1", "a"), edit("2", "/w/a")],
            &["1"],
            &[],
        ),
        reads(
            "defect 5, rows",
            vec![
                read("1", "a"),
                patch("2", &["*** Update File: a"]).details(&rows(r#"{"path":"/w/a","isError":false}"#)),
            ],
            &["1"],
            &[],
        ),
        reads("case counts", vec![read("1", "A"), edit("2", "a")], &[], &["1"]),
    ]);
}
