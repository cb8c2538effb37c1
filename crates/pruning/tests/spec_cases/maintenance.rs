//! M1 to M8: plans change nothing, the minimum can be lowered, and the gate below the threshold.

use foldline_pruning::Policy;
use foldline_pruning::cost::BelowThreshold;
use foldline_session_model::Tokens;

use crate::support::{Step, bash, blob, eager, prune};

fn policy(minimum: u64) -> Policy {
    Policy {
        protect_tokens: Tokens(50),
        minimum_savings: Tokens(minimum),
        ..eager()
    }
}

#[test]
fn m1_a_plan_changes_nothing() {
    let steps = [
        bash("old1", "a").text(&blob("old1", 200)),
        bash("old2", "b").text(&blob("old2", 200)),
        bash("recent", "c").text(&blob("recent", 1)),
    ];
    let planned = prune(&policy(50), &steps);
    assert_eq!((planned.ids(), planned.saved()), (vec!["old1"], 3444));
    assert_eq!(planned.log.bytes(), crate::support::session(&steps).bytes());
}

fn old_and_recent() -> [Step; 2] {
    [
        bash("old", "a").text(&blob("old1", 200)),
        bash("recent", "b").text(&blob("old2", 200)),
    ]
}

#[test]
fn m2_below_the_minimum_nothing_goes() {
    assert!(prune(&policy(10_000_000), &old_and_recent()).plan.is_empty());
}

#[test]
fn m3_the_minimum_can_be_relaxed() {
    let relaxed = policy(10_000_000).relaxed_to(Tokens(0));
    assert_eq!(prune(&relaxed, &old_and_recent()).saved(), 3444);
    // It never raises the minimum.
    assert_eq!(policy(50).relaxed_to(Tokens(51)), policy(50));
}

#[test]
fn m4_to_m8_the_gate_below_the_threshold() {
    use BelowThreshold::{Never, WhenItPays};
    let table = [
        ("M4", WhenItPays, 30_000, 5_000, true),
        ("M5", Never, 30_000, 5_000, false),
        ("M6", WhenItPays, 7_999, 5_000, false),
        ("M7", WhenItPays, 30_000, 30_000, false),
        ("M7", WhenItPays, 30_000, 40_000, false),
        ("M8", WhenItPays, 30_000, 0, true),
    ];
    for (case, setting, saved, cached, expected) in table {
        let allowed = setting.allows_by_tokens(Tokens(saved), Tokens(8_000), Tokens(cached));
        assert_eq!(allowed, expected, "{case}: {setting:?} {saved} {cached}");
    }
}
