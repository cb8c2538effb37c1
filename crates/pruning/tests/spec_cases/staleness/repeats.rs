//! Results whose question a later one answers.

use foldline_pruning::Why;

use super::{Case, all, check, in_folder, reads, search};
use crate::support::{bash, eager, pair, prune, read, rt};

#[test]
fn s1_savings_of_a_repeat() {
    let pruned = prune(&eager(), &[read("a", "f"), read("b", "f")]);
    assert_eq!(pruned.ids(), ["a"]);
    assert_eq!((pruned.tokens("a"), pruned.saved()), (2003, 1995));
    assert_eq!(pruned.plan.replacements[0].why, Why::Repeated);
}

#[test]
fn repeats() {
    check(vec![
        all(
            "S2",
            vec![
                bash("1", "bun   test packages/agent"),
                bash("2", "bun test packages/agent"),
                bash("3", "bun test packages/agent"),
            ],
            &["1", "2"],
            &["3"],
        ),
        all(
            "S3",
            vec![
                in_folder("1", "bun test", "/repo-a"),
                in_folder("2", "bun test", "/repo-b"),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "S4",
            vec![bash("1", "git log --oneline"), bash("2", "git log --oneline")],
            &[],
            &["1", "2"],
        ),
        all(
            "S13",
            vec![
                search("1", "foo", r#","paths":["src"]"#),
                search("2", "bar", r#","paths":["src"]"#),
                search("3", "foo", r#","paths":["src"]"#),
            ],
            &["1"],
            &["2", "3"],
        ),
        all(
            "S14",
            vec![
                search("1", "foo@a", r#","paths":["b"]"#),
                search("2", "foo", r#","paths":["a@b"]"#),
                search("3", "x", r#","paths":["a,b"]"#),
                search("4", "x", r#","paths":["a","b"]"#),
            ],
            &[],
            &["1", "2", "3", "4"],
        ),
        all(
            "S22",
            vec![
                search("1", "x", r#","skip":0"#),
                search("2", "x", r#","skip":20"#),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "S23",
            vec![
                search("1", "x", ""),
                search("2", "x", r#","i":true"#),
                search("3", "x", r#","gitignore":false"#),
            ],
            &[],
            &["1", "2", "3"],
        ),
        reads("S33", vec![read("1", "f"), read("2", "f").error()], &[], &["1"]),
        all(
            "S34",
            vec![read("1", "f"), bash("2", "ls"), read("3", "f")],
            &["1"],
            &["2", "3"],
        ),
        reads(
            "S37",
            vec![read("1", "a"), read("2", "b"), read("3", "c")],
            &[],
            &["1", "2", "3"],
        ),
        reads(
            "S38",
            vec![
                pair("1", "skill", r#"{"name":"x"}"#),
                pair("2", "skill", r#"{"name":"x"}"#),
            ],
            &[],
            &["1", "2"],
        ),
        Case {
            policy: rt(),
            ..reads("S40", vec![read("1", "f"), read("2", "f")], &[], &["1", "2"])
        },
        all(
            "X2",
            vec![read("1", "p"), pair("2", "lsp", r#"{"path":"p"}"#)],
            &[],
            &["1", "2"],
        ),
        all(
            "X4",
            vec![
                search("1", "needle", r#","paths":["a","b"]"#),
                search("2", "needle", r#","paths":["b","a"]"#),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "X6",
            vec![read("1", "f"), bash("2", "x").pruned(), read("3", "f")],
            &["1"],
            &["2", "3"],
        ),
        reads(
            "X8",
            vec![read("1", "f"), read("2", "f"), read("3", "f")],
            &["1", "2"],
            &["3"],
        ),
        all(
            "X9",
            vec![
                pair("1", "skill", r#"{"path":"x"}"#),
                pair("2", "skill", r#"{"path":"x"}"#),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "joined commands",
            vec![
                bash("1", "bun test && echo done"),
                bash("2", "bun test && echo done"),
            ],
            &[],
            &["1", "2"],
        ),
        // Defect 2: every argument that shapes the answer counts.
        all(
            "defect 2, pattern",
            vec![
                pair("1", "grep", r#"{"path":"f","pattern":"foo"}"#),
                pair("2", "grep", r#"{"path":"f","pattern":"bar"}"#),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "defect 2, offset",
            vec![
                pair("1", "read", r#"{"path":"f","offset":10}"#),
                pair("2", "read", r#"{"path":"f","offset":90}"#),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "defect 2, paths as text",
            vec![
                search("1", "x", r#","paths":"src""#),
                search("2", "x", r#","paths":"lib""#),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "defect 2, edits",
            vec![
                pair("1", "edit", r#"{"path":"f","old":"a"}"#),
                pair("2", "edit", r#"{"path":"f","old":"b"}"#),
            ],
            &[],
            &["1", "2"],
        ),
        all(
            "order and defaults",
            vec![
                search("1", "x", r#","skip":0,"i":false"#),
                pair("2", "search", r#"{"gitignore":true,"pattern":"x"}"#),
            ],
            &["1"],
            &["2"],
        ),
        // Defect 4: more than one command is not looked into.
        all(
            "defect 4",
            vec![
                bash("1", "bun test\nrm x"),
                bash("2", "bun test\nrm x"),
                bash("3", "bun build > o"),
                bash("4", "bun build > o"),
            ],
            &[],
            &["1", "2", "3", "4"],
        ),
        all(
            "timeouts do not count",
            vec![
                pair("1", "bash", r#"{"command":"bun test","timeout":5}"#),
                bash("2", "bun test"),
            ],
            &["1"],
            &["2"],
        ),
    ]);
}
