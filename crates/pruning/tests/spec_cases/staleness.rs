//! S1 to S40 and X1 to X9: what makes a result stale.

mod changed_files;
mod ranges;
mod repeats;

use foldline_pruning::Policy;
use foldline_session_model::Tokens;

use crate::support::{Step, bash, eager, lines, pair, prune, quoted, read, result_text, wide};

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
