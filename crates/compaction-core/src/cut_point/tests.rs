use proptest::prelude::*;

use super::*;

/// `u` user, `a` assistant, `t` tool result, `c` custom message, `b` branch summary, `d` developer message, `m` metadata,
/// `C` compaction; ten tokens for each message.
fn steps(text: &str) -> Vec<Step> {
    text.chars()
        .map(|c| {
            let kind = match c {
                'u' => StepKind::User,
                'a' => StepKind::CutPoint,
                't' | 'd' => StepKind::Inner,
                'c' | 'b' => StepKind::TurnStart,
                'C' => StepKind::Compaction,
                _ => StepKind::Metadata,
            };
            let has_message = !matches!(kind, StepKind::Metadata | StepKind::Compaction);
            Step {
                kind,
                tokens: Tokens(if has_message { 10 } else { 0 }),
                media: ByteLen(0),
            }
        })
        .collect()
}

fn cut(text: &str, keep: u64) -> (usize, Option<usize>) {
    let cut = find_cut_point(&steps(text), Tokens(keep));
    (cut.first_kept, cut.turn_start)
}

#[test]
fn cuts_by_budget() {
    let table = [
        ("uatuata", 1, 6, Some(3)),
        ("uatuata", 20, 6, Some(3)),
        ("uatuata", 21, 4, Some(3)),
        ("uatuata", 30, 4, Some(3)),
        ("uatuata", 31, 3, None),
        ("uatuata", 50, 3, None),
        ("uatuata", 60, 1, Some(0)),
        ("uatuata", 70, 0, None),
        ("uatuata", 1_000, 0, None),
        // Metadata goes to the kept side and never makes a clean cut a split one (CD2).
        ("uammua", 10, 5, Some(4)),
        ("uammua", 20, 2, None),
        ("umaa", 20, 1, Some(0)),
        // Messages are never pulled back (D3), and a split has something before the cut (CD20).
        ("uabamu", 10, 4, None),
        ("uabamu", 11, 3, Some(2)),
        ("uabamu", 30, 2, None),
        ("uacu", 1, 3, None),
        ("uacu", 11, 2, None),
        // No cut point, or only later ones.
        ("tt", 1, 0, None),
        ("", 1, 0, None),
        ("uadt", 1, 1, Some(0)),
        ("tau", 20, 1, None),
        ("tau", 1_000, 1, None),
        ("uCmu", 1, 2, None),
    ];
    for (text, keep, first_kept, turn_start) in table {
        assert_eq!(cut(text, keep), (first_kept, turn_start), "{text} {keep}");
    }
}

#[test]
fn a_huge_trailing_result_does_not_keep_everything() {
    let mut all = steps("uauat");
    all[4].tokens = Tokens(2_500);
    let found = find_cut_point(&all, Tokens(1));
    assert_eq!(
        (found.first_kept, found.turn_start, found.crossing),
        (3, Some(2), Crossing::Trailing)
    );
}

#[test]
fn fb_027_four_trailing_results_over_the_budget_cut_at_their_calls() {
    let mut all = steps(&format!("u{}uatttt", "au".repeat(100)));
    let results = all.len() - 4;
    for step in &mut all[results..] {
        step.tokens = Tokens(5_600);
    }
    let found = find_cut_point(&all, Tokens(20_000));
    assert_eq!(found.cut, results - 1);
    assert_eq!(found.turn_start, Some(results - 2));
}

#[test]
fn fb_083_a_tail_keeps_within_both_budgets() {
    use Crossing::{None, Ordinary, Trailing};
    let budget = KeepBudget {
        tokens: Tokens(1_000),
        media: ByteLen(100),
    };
    let cut = |text: &str, media: &[(usize, u64)]| {
        let mut steps = steps(text);
        for (at, bytes) in media {
            steps[*at].media = ByteLen(*bytes);
        }
        let found = find_cut_point(&steps, budget);
        (found.cut, found.crossing)
    };
    let table: [(&str, &[(usize, u64)], _); 8] = [
        ("uatuata", &[], (0, None)),
        ("uatuata", &[(2, 100)], (0, None)),
        // The first one that is too much, and together with newer ones.
        ("uatuata", &[(2, 101)], (3, Ordinary)),
        ("uatuata", &[(2, 60), (5, 60)], (3, Ordinary)),
        ("uatuata", &[(5, 101)], (6, Ordinary)),
        // A message of the user is no exception, unless nothing follows.
        ("uaua", &[(2, 101)], (3, Ordinary)),
        ("uau", &[(2, 101)], (2, Ordinary)),
        ("uatuat", &[(5, 101)], (4, Trailing)),
    ];
    for (text, media, expected) in table {
        assert_eq!(cut(text, media), expected, "{text} {media:?}");
    }
}

#[test]
fn fb_099_dense_scripts_fill_the_budget_sooner() {
    use foldline_session_model::tokens::Heuristic;
    let mut rows = crate::testing::Rows::new();
    for i in 0..4 {
        rows = rows.user(&format!("u{i}"), &"漢".repeat(160));
    }
    let log = rows.log();
    let steps: Vec<Step> = log
        .entries()
        .map(|ix| Step::of_entry(&log, ix, &Heuristic))
        .collect();
    assert_eq!(find_cut_point(&steps, Tokens(100)).cut, 3);
}

proptest! {
    #[test]
    fn a_cut_never_begins_with_a_result_and_loses_nothing(text in "[uatcbdmC]{0,40}", keep in 0_u64..500) {
        let steps = steps(&text);
        let found = find_cut_point(&steps, Tokens(keep));
        prop_assert!(found.first_kept <= found.cut && found.cut <= steps.len());
        if let Some(start) = found.turn_start {
            prop_assert!(start < found.cut && steps[start].kind.starts_turn());
        }
        if steps.iter().any(|s| s.kind.is_cut_point()) {
            prop_assert!(steps[found.cut].kind.is_cut_point());
        }
        // Between the first kept entry and the cut lies only metadata.
        for step in &steps[found.first_kept..found.cut] {
            prop_assert_eq!(step.kind, StepKind::Metadata);
        }
    }
}

/// FB-005, R01: a tail that must fit begins behind the message that is too large.
#[test]
fn a_tail_within_a_room() {
    let table = [
        // It fits as it is, also where it does not begin at a cut point.
        ("uaua", 2, 20, Some((2, None))),
        ("uatt", 2, 20, Some((2, Some(0)))),
        // The next message that a tail may begin with, with the metadata before it.
        ("uaua", 0, 30, Some((1, Some(0)))),
        ("uaumma", 0, 10, Some((3, Some(2)))),
        ("uaua", 1, 20, Some((2, None))),
        ("uatta", 1, 39, Some((4, Some(0)))),
        // There is none.
        ("uatt", 1, 20, None),
        ("uaua", 0, 9, None),
        ("", 0, 0, None),
    ];
    for (text, from, room, expected) in table {
        let steps = steps(text);
        let cut = CutPoint {
            first_kept: from,
            cut: from,
            turn_start: split_turn(&steps, from),
            crossing: Crossing::Ordinary,
        };
        let found = cut_within(&steps, cut, Tokens(room)).map(|cut| (cut.first_kept, cut.turn_start));
        assert_eq!(found, expected, "{text} from {from} within {room}");
    }
}
