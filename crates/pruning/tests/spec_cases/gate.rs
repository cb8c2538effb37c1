//! Q1 to Q14: the turn fence, range cover, artifacts.

use foldline_pruning::{Original, Originals, Policy, ReferenceBudget, RewriteError, Stamp};
use foldline_session_model::Tokens;
use foldline_session_model::tokens::Heuristic;
use std::collections::BTreeMap;

use crate::support::{
    PICTURE, Step, bash, eager_q, lines, open, pair, prune, prune_with, q, read, text_block,
};

const ARTIFACTS: Originals = Originals::Artifacts {
    budget: ReferenceBudget::DEFAULT,
};

fn q_read(id: &str) -> Step {
    read(id, "f").text(&q())
}

#[test]
fn q1_the_newest_two_turns_stay() {
    let big = read("new", "f").text(&"x".repeat(150_000));
    let steps = [Step::User, q_read("old"), Step::User, big];
    assert!(prune(&eager_q(), &steps).plan.is_empty());
    let unfenced = Policy {
        protect_recent_turns: 0,
        ..eager_q()
    };
    assert_eq!(prune(&unfenced, &steps).ids(), ["old"]);
    let one_turn = [Step::User, q_read("a"), q_read("b")];
    assert!(prune(&eager_q(), &one_turn).plan.is_empty());
}

#[test]
fn q2_before_the_fence_stale_results_go() {
    let steps = [
        Step::User,
        q_read("a"),
        Step::User,
        q_read("b"),
        Step::User,
        q_read("c"),
    ];
    assert_eq!(prune(&eager_q(), &steps).ids(), ["a"]);
}

#[test]
fn q3_a_command_of_the_user_starts_a_turn() {
    let steps = [Step::Command, q_read("a"), q_read("b")];
    assert!(prune(&eager_q(), &steps).plan.is_empty());
}

#[test]
fn results_before_the_first_turn_are_not_fenced() {
    let steps = [q_read("a"), q_read("b"), Step::User, q_read("c")];
    assert_eq!(prune(&eager_q(), &steps).ids(), ["b", "a"]);
}

#[test]
fn q4_range_cover() {
    // Earlier, later, whether the earlier one goes.
    let table = [
        ("f", "f", true),
        ("f:50-60", "f:1-500", true),
        ("f:L50-L60", "f:L1-L500", true),
        ("f:50+11", "f:50-61", true),
        ("f:3-3", "f:2-4", true),
        ("f:50-60", "f:1-500:raw", false),
        ("f:50-60", "f:raw", false),
        ("f:50-60", "f:RAW", false),
        ("f:50-60", "f:1-500:conflicts", false),
        ("f:50-60", "f", false),
        ("f:50-60", "f:1", false),
        ("f:50-60", "f:1-", false),
        ("f:301-450", "f:1", false),
        ("f:10000-10050", "f:1", false),
        ("f:10000-10050", "f:1-", false),
        ("f:10000-10050", "f:raw", false),
        ("f:3", "f:2-4", false),
        ("f:3", "f:2-4:raw", false),
        ("f:50-100", "f:75-125", false),
        ("f:2-4:raw", "f:2-4:raw", true),
        ("f:50-60:conflicts", "f:50-60:conflicts", true),
        ("f:5-16", "f:5-16,960-973", false),
        ("f:960-973", "f:5-16,960-973", false),
        // Defect 1: a list with a chunk that is no range is no single range.
        ("f:5-16,20", "f:1-17", false),
        ("f:5-16,20-", "f:1-17", false),
        ("f:5-16", "f:1-17,900", false),
        // Defect 5: other spellings of the same lines and files.
        ("f:50-60", "f:L50-L60", true),
        ("f:50-60", "f:50+11", true),
        ("f:1-5", "./f:1-10", true),
        ("/w/f:1-5", "x/../f:1-10", true),
    ];
    for (earlier, later, expected) in table {
        let steps = [
            read("earlier", earlier).text(&q()),
            read("later", later).text(&q()),
        ];
        let pruned = prune(&eager_q(), &steps);
        assert_eq!(pruned.goes("earlier"), expected, "{earlier} <- {later}");
        assert!(!pruned.goes("later"));
    }
}

#[test]
fn defect_7_a_read_that_was_cut_short_covers_nothing() {
    let later = |details: &str| read("later", "f:1-500").text(&q()).details(details);
    for (details, expected) in [
        ("{}", true),
        (r#"{"truncation":{"truncated":false}}"#, true),
        (r#"{"truncation":{"truncated":true}}"#, false),
        (r#"{"truncated":true}"#, false),
    ] {
        let steps = [read("earlier", "f:50-60").text(&q()), later(details)];
        assert_eq!(prune(&eager_q(), &steps).goes("earlier"), expected, "{details}");
    }
}

#[test]
fn q5_savings_count_the_longest_reference() {
    let planned = prune_with(&open(), ARTIFACTS, &[bash("b", "x").text(&q())]);
    assert_eq!(planned.original("b"), Original::Text(q()));
    let rewrite = planned.rewrite(&[("b", 1)]);
    assert!(rewrite.entries[0].line.contains("full output: artifact://1]"));

    let small = [bash("b", "x").text(&"small output ".repeat(30))];
    let plain = prune(&open(), &small).saved();
    assert_eq!(plain, 46);
    let policy = Policy {
        minimum_savings: Tokens(plain),
        ..open()
    };
    let budget = ReferenceBudget::new(10_000).unwrap();
    assert!(
        prune_with(&policy, Originals::Artifacts { budget }, &small)
            .plan
            .is_empty()
    );
}

/// What a callback that throws is in the system of the seed is here an artifact that was not written.
#[test]
fn q6_a_result_whose_artifact_was_not_written_stays() {
    let planned = prune_with(&open(), ARTIFACTS, &[bash("b", "x").text(&q())]);
    let rewrite = planned.rewrite(&[]);
    assert_eq!(rewrite.kept, ["b".into()]);
    assert!(rewrite.entries.is_empty());
    assert_eq!(rewrite.tokens_saved, Tokens::ZERO);
}

#[test]
fn q7_a_failed_write_of_one_of_two_changes_no_entry_of_the_log() {
    let steps = [bash("old", "x").text(&q()), bash("new", "y").text(&q())];
    let planned = prune_with(&open(), ARTIFACTS, &steps);
    let before = planned.log.bytes().to_vec();
    let rewrite = planned.rewrite(&[("new", 3)]);
    assert_eq!(rewrite.kept, ["old".into()]);
    assert_eq!(rewrite.entries.len(), 1);
    assert_eq!(rewrite.entries[0].entry, "new".into());
    assert!(rewrite.tokens_saved < planned.plan.tokens_saved);
    assert_eq!(planned.log.bytes(), before);
}

#[test]
fn q8_a_reference_is_a_number() {
    let steps = [bash("b", "x").text(&q())];
    let planned = prune_with(&open(), ARTIFACTS, &steps);
    let rewrite = planned.rewrite(&[("b", u64::MAX)]);
    assert!(
        rewrite.entries[0]
            .line
            .contains("artifact://18446744073709551615]")
    );
}

#[test]
fn q9_a_reference_that_is_longer_than_planned_is_refused() {
    for chars in [0, 16_385] {
        assert_eq!(ReferenceBudget::new(chars), None);
    }
    let steps = [bash("b", "x").text(&q())];
    let budget = ReferenceBudget::new(12).unwrap();
    let planned = prune_with(&open(), Originals::Artifacts { budget }, &steps);
    let entry = planned.log.find("b").unwrap();
    let artifacts = BTreeMap::from([(entry, 12)]);
    let error = planned
        .plan
        .rewrite(&planned.log, &artifacts, Stamp(1), &Heuristic)
        .unwrap_err();
    assert_eq!(
        error,
        RewriteError::ReferenceTooLong {
            entry: "b".into(),
            number: 12
        }
    );
}

#[test]
fn q10_what_is_saved_is_at_least_what_was_planned() {
    for number in [0, 7, 123_456, u64::MAX] {
        let planned = prune_with(&open(), ARTIFACTS, &[bash("b", "x").text(&q())]);
        let rewrite = planned.rewrite(&[("b", number)]);
        assert!(rewrite.tokens_saved >= planned.plan.tokens_saved);
    }
}

#[test]
fn q11_one_artifact_for_all_text() {
    let blocks = [text_block(&lines("one", 60)), text_block(&lines("two", 60))];
    let planned = prune_with(&open(), ARTIFACTS, &[bash("b", "x").blocks(&blocks)]);
    let expected = format!("{}\n{}", lines("one", 60), lines("two", 60));
    assert_eq!(planned.original("b"), Original::Text(expected));
    assert_eq!(planned.rewrite(&[("b", 2)]).entries.len(), 1);
}

#[test]
fn q12_defect_6_text_and_a_picture() {
    let blocks = [
        text_block(&lines("one", 60)),
        PICTURE.to_owned(),
        text_block("two"),
    ];
    let planned = prune_with(&open(), ARTIFACTS, &[bash("b", "x").blocks(&blocks)]);
    assert!(matches!(planned.original("b"), Original::Content(content) if content.contains("AAAA")));
}

#[test]
fn q13_an_error_in_any_script() {
    let text = format!("ERROR: 磁盘已满\n{}", "z".repeat(10_000));
    let pruned = prune(&open(), &[bash("b", "x").text(&text).error()]);
    let notice = pruned.notice("b");
    assert!(notice.contains("; exit=1; error=ERROR: 磁盘已满; tail=zzz"));
    assert!(notice.encode_utf16().count() < 700);
}

#[test]
fn q14_an_error_is_compared_with_all_of_its_text() {
    let blocks = [text_block("error"), text_block(&"details ".repeat(100))];
    let pruned = prune(&open(), &[pair("e", "edit", "{}").blocks(&blocks).error()]);
    assert_eq!((pruned.tokens("e"), pruned.saved()), (202, 191));
}
