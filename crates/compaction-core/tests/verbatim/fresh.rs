//! Rows "Fresh" (spec "Verbatim", sections 12 and 21): the last rung, on which no line but protected ones stays.

use foldline_compaction_core::verbatim::{
    Climb, LastRung, LineRange, NotSmaller, Preparation, RangePlan, Rung, TailFate, reconstruct,
};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::StopReason;
use proptest::prelude::*;

use super::support::{
    Session, assistant, candidate, climb, finished, lines, prepared, prepared_small, reply, span, user,
};

/// What the wrapper of a boundary may cost.
const WRAPPER: Tokens = Tokens(128);

/// The plan without any model, within a limit for the whole context.
fn last_rung(preparation: &Preparation<'_, '_>, limit: Tokens) -> RangePlan {
    let last = LastRung::ModelFree { limit: Some(limit) };
    let climbed = climb(preparation, Vec::new(), Climb::AllModels, last, |_, _| {
        panic!("nobody is asked")
    });
    climbed.end.unwrap()
}

/// Row, messages of the region, lines that a caller protects, what stays of it.
#[test]
fn rows_of_fresh_regions() {
    let keep = |rule: &str| format!("<keepContext>\n{rule}\n</keepContext>");
    let table: Vec<(&str, Vec<String>, Vec<LineRange>, &str)> = vec![
        ("no line", Vec::new(), Vec::new(), ""),
        ("one line", vec![user("one")], Vec::new(), "(filtered 1 lines)"),
        (
            "all protected",
            vec![user(&keep("rule"))],
            Vec::new(),
            "[User]: <keepContext>\nrule\n</keepContext>",
        ),
        (
            "2, 5 and 8 protected",
            vec![user(&lines(9))],
            vec![span(2, 2), span(5, 5), span(8, 8)],
            "(filtered 1 lines)\nline 2\n(filtered 2 lines)\nline 5\n(filtered 2 lines)\nline 8\n(filtered 1 lines)",
        ),
        (
            "spans of several messages",
            vec![
                user("a"),
                user(&keep("first")),
                assistant("b"),
                user(&keep("second")),
                user("c"),
            ],
            Vec::new(),
            "(filtered 2 lines)\n[User]: <keepContext>\nfirst\n</keepContext>\n(filtered 3 lines)\n\
             [User]: <keepContext>\nsecond\n</keepContext>\n(filtered 2 lines)",
        ),
    ];
    for (row, mut messages, protected, text) in table {
        messages.extend([user("x"), user("y")]);
        let session = Session::of(&messages);
        let context = session.context();
        let preparation = prepared_small(&context, 2).protect(protected);
        // Room for the tail and for nothing else.
        let plan = last_rung(&preparation, preparation.tail_tokens() + WRAPPER);
        // What fits as it is, is not cleared.
        let rung = if text.is_empty() {
            Rung::Extractive
        } else {
            Rung::Fresh
        };
        assert_eq!((plan.rung, plan.tail), (rung, TailFate::Kept), "{row}");
        let result = reconstruct(preparation.region(), &plan.ranges);
        assert_eq!(result.text(), text, "{row}");
    }
}

/// Section 20, row 8: an empty region beside a tail that stays frees nothing and is no compaction.
#[test]
fn row_no_line_is_no_compaction() {
    let session = Session::of(&[user("x"), user("y")]);
    let context = session.context();
    let preparation = prepared_small(&context, 2);
    let plan = last_rung(&preparation, preparation.tail_tokens() + WRAPPER);
    assert_eq!(
        finished(&preparation, &plan).unwrap_err(),
        NotSmaller::NothingDeleted
    );
}

/// The tail stays if it fits beside the boundary, and goes if it does not; the context fits in both cases.
#[test]
fn row_the_tail_goes_only_if_it_must() {
    for (words, tail) in [(100, TailFate::Kept), (2_000, TailFate::Dropped)] {
        let session = Session::of(&[user(&lines(40)), user(&"word ".repeat(words)), user("y")]);
        let context = session.context();
        let preparation = prepared(&context, 2).unwrap();
        let limit = Tokens(500);
        assert_eq!(preparation.tail_tokens() > limit, tail == TailFate::Dropped);
        let plan = last_rung(&preparation, limit);
        assert_eq!(plan.tail, tail, "{words} words");
        let compaction = finished(&preparation, &plan).unwrap();
        assert_eq!(compaction.draft.first_kept.is_none(), tail == TailFate::Dropped);
        assert!(compaction.stats.tokens_after <= limit, "{words} words");
    }
    // One token less than the boundary may cost, and the tail is too large.
    let session = Session::of(&[user(&lines(400)), user("x"), user("y")]);
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let enough = preparation.tail_tokens() + WRAPPER;
    for (limit, tail) in [
        (enough, TailFate::Kept),
        (enough.saturating_sub(Tokens(1)), TailFate::Dropped),
    ] {
        let plan = last_rung(&preparation, limit);
        assert_eq!((plan.rung, plan.tail), (Rung::Fresh, tail), "{limit}");
    }
}

/// A load-bearing region of 19 lines is planned without any request, one of 20 by the model.
#[test]
fn row_19_lines_without_a_request_and_20_planned() {
    for (count, requests, rung) in [(19, 0, Rung::Extractive), (20, 1, Rung::Planned)] {
        let session = Session::of(&[user(&lines(count)), user("x"), user("y")]);
        let context = session.context();
        let preparation = prepared_small(&context, 2);
        let climbed = climb(
            &preparation,
            vec![candidate("acme/large", 0)],
            Climb::AllModels,
            LastRung::ModelFree { limit: None },
            |_, _| reply("2,9\n", StopReason::Stop),
        );
        assert_eq!(
            (climbed.requests.len(), climbed.end.unwrap().rung),
            (requests, rung),
            "{count} lines"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Section 23, "`fresh` never panics": whatever the context and the limit, the last rung gives a plan that keeps
    /// protected lines, and within the limit if these and the boundary itself leave room for it.
    #[test]
    fn the_last_rung_fits(
        sizes in prop::collection::vec((0_usize..30, any::<bool>()), 0..6),
        limit in 0_u64..2_000,
        preserve_recent in 0_usize..3,
    ) {
        let message = |(size, protects): &(usize, bool)| {
            let text = lines(*size);
            user(&if *protects { format!("<keepContext>\nrule\n</keepContext>\n{text}") } else { text })
        };
        let session = Session::of(&sizes.iter().map(message).collect::<Vec<_>>());
        let context = session.context();
        let preparation = prepared_small(&context, preserve_recent);
        let plan = last_rung(&preparation, Tokens(limit));
        let region = preparation.region();
        let result = reconstruct(region, &plan.ranges);
        let mut rest = result.text().split('\n');
        for line in region.lines().filter(|line| line.protected) {
            prop_assert!(rest.any(|kept| kept == line.text));
        }
        let room_for_rules = WRAPPER + Tokens(20) + Tokens(region.protected().line_count() as u64 * 20);
        if let Ok(compaction) = finished(&preparation, &plan)
            && limit > 0
        {
            prop_assert!(compaction.stats.tokens_after <= Tokens(limit).max(room_for_rules));
        }
    }
}
