//! S1 to S40 and X1 to X9: what makes a result stale.

use foldline_pruning::{Policy, Why};
use foldline_session_model::Tokens;

use crate::support::{
    Step, bash, eager, edit, lines, pair, patch, prune, quoted, read, result_text, rt, wide,
};

/// A case: its number, its policy, its steps, and of the results that it watches those that go and those that stay.
struct Case {
    number: &'static str,
    policy: Policy,
    steps: Vec<Step>,
    go: &'static [&'static str],
    stay: &'static [&'static str],
}

fn search(id: &str, pattern: &str, rest: &str) -> Step {
    pair(
        id,
        "search",
        &format!(r#"{{"pattern":{}{rest}}}"#, quoted(pattern)),
    )
}

fn in_folder(id: &str, command: &str, cwd: &str) -> Step {
    pair(id, "bash", &format!(r#"{{"command":"{command}","cwd":"{cwd}"}}"#))
}

#[allow(clippy::needless_pass_by_value, reason = "cases read better as values")]
fn check(cases: Vec<Case>) {
    for case in cases {
        let pruned = prune(&case.policy, &case.steps);
        for id in case.go {
            assert!(pruned.goes(id), "{}: {id} stays", case.number);
        }
        for id in case.stay {
            assert!(!pruned.goes(id), "{}: {id} goes", case.number);
        }
    }
}

/// A case in which only stale reads can go.
fn reads(
    number: &'static str,
    steps: Vec<Step>,
    go: &'static [&'static str],
    stay: &'static [&'static str],
) -> Case {
    Case {
        number,
        policy: eager(),
        steps,
        go,
        stay,
    }
}

/// A case in which only stale results can go.
fn all(
    number: &'static str,
    steps: Vec<Step>,
    go: &'static [&'static str],
    stay: &'static [&'static str],
) -> Case {
    Case {
        policy: wide(eager()),
        ..reads(number, steps, go, stay)
    }
}

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

#[test]
fn ranges() {
    check(vec![
        reads(
            "S5",
            vec![read("1", "a:50-100"), read("2", "a:1-200")],
            &["1"],
            &["2"],
        ),
        reads(
            "S6",
            vec![read("1", "a:10000-10050"), read("2", "a:1")],
            &[],
            &["1"],
        ),
        reads(
            "S7",
            vec![read("1", "a:10000-10050"), read("2", "a:raw")],
            &[],
            &["1"],
        ),
        reads(
            "S8",
            vec![read("1", "a:3"), read("2", "a:2-4:raw"), read("3", "a:2-4:raw")],
            &["2"],
            &["1", "3"],
        ),
        reads(
            "S9",
            vec![read("1", "a:10000-10050"), read("2", "a:1-")],
            &[],
            &["1"],
        ),
        reads(
            "S11",
            vec![read("1", "a:50-100"), read("2", "a:75-125")],
            &[],
            &["1"],
        ),
        reads(
            "by offset and limit",
            vec![
                pair("1", "read", r#"{"path":"a","offset":50,"limit":11}"#),
                read("2", "a:1-60"),
            ],
            &["1"],
            &["2"],
        ),
        reads(
            "an open end",
            vec![
                pair("1", "read", r#"{"path":"a","offset":50,"limit":11}"#),
                pair("2", "read", r#"{"path":"a","offset":1}"#),
            ],
            &[],
            &["1"],
        ),
    ]);
}

#[test]
fn s10_the_current_turn_stays() {
    let steps = [
        Step::User,
        read("1", "f"),
        Step::User,
        read("2", "f"),
        Step::User,
        read("3", "f"),
        read("4", "f"),
    ];
    assert_eq!(prune(&eager(), &steps).ids(), ["1"]);
}

#[test]
fn s12_the_minimum_holds_for_stale_results_too() {
    let text = "x".repeat(62_000);
    let steps = [read("1", "f").text(&text), read("2", "f").text(&text)];
    assert!(prune(&Policy::default(), &steps).plan.is_empty());
    let relaxed = Policy::default().relaxed_to(Tokens(0));
    let pruned = prune(&relaxed, &steps);
    assert_eq!(pruned.ids(), ["1"]);
    assert!((15_000..20_000).contains(&pruned.saved()));
}

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

#[test]
fn s35_age_without_staleness() {
    let policy = Policy {
        protect_tokens: Tokens(10_000),
        ..eager()
    };
    let step = |id: &str, command: &str| bash(id, command).text(&result_text(id, 60_000));
    let pruned = prune(&policy, &[step("1", "a"), step("2", "b")]);
    assert_eq!(pruned.ids(), ["1"]);
    assert_eq!(pruned.saved(), 14_951);
}

#[test]
fn s36_below_the_minimum() {
    let policy = Policy {
        minimum_savings: Tokens(50_000),
        ..eager()
    };
    let text = "x".repeat(400);
    assert!(
        prune(&policy, &[read("1", "f").text(&text), read("2", "f").text(&text)])
            .plan
            .is_empty()
    );
}

#[test]
fn s39_read_is_protected_until_it_is_stale() {
    let policy = Policy::default();
    assert!(policy.protected_tools.contains(&"read".to_owned()));
    assert_eq!(policy.stale_overridable, ["read"]);
}

#[test]
fn x1_results_without_calls() {
    let steps = [read("1", "f").orphan(), bash("2", "x").orphan()];
    assert_eq!(prune(&eager(), &steps).ids(), ["2"]);
}

#[test]
fn x7_defect_6_small_results_are_left_alone() {
    let steps: Vec<Step> = (0..550)
        .map(|i| bash(&format!("b{i}"), "x").text(&result_text("x", 200)))
        .collect();
    let open = Policy {
        protected_tools: Vec::new(),
        ..eager()
    };
    assert_eq!(prune(&open, &steps).ids().len(), 550);
    let with_floor = Policy {
        entry_floor: Policy::default().entry_floor,
        ..open
    };
    assert!(prune(&with_floor, &steps).plan.is_empty());
}

#[test]
fn a_search_digest_stays_short_whatever_the_line() {
    let text = format!("error {}\n{}", "e".repeat(1000), lines("s", 200));
    let pruned = prune(&eager(), &[search("1", "x", "").text(&text)]);
    let notice = pruned.notice("1");
    assert!(notice.contains("; error=error eee"));
    assert!(notice.encode_utf16().count() <= 33 + 300);
}
