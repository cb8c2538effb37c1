//! Who plans when somebody asked, and when the context must shrink (spec "Verbatim", sections 12 and 21; D6).

use foldline_compaction_core::verbatim::{
    CallFailure, Category, Climb, Credentials, Demand, LastRung, LinePart, NotSmaller, Retries, Rung,
    TailFate, finish,
};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, StopReason};
use foldline_session_model::tokens::Heuristic;

use super::support::{
    Session, ask_once, assistant, candidate, climb, figure, finished, lines, prepared, prepared_small, reply,
    user,
};

fn session() -> Session {
    Session::of(&[user(&lines(60)), user("x"), assistant("y")])
}

fn fail(class: ErrorClass) -> Result<foldline_session_model::model_call::LlmReply, CallFailure> {
    Err(CallFailure {
        class,
        message: "said no".to_owned(),
        retries: Retries::Exhausted,
    })
}

const FREE: LastRung = LastRung::ModelFree { limit: None };

/// A healthy fallback is borrowed for the plan; the session gets one line more and is otherwise as it was.
#[test]
fn a_throttled_model_is_replaced_for_the_plan_only() {
    let mut session = session();
    let before = session.text();
    let compaction = {
        let context = session.context();
        let preparation = prepared(&context, 2).unwrap();
        let models = vec![candidate("acme/large", 0), candidate("beta/small", 0)];
        let climbed = climb(&preparation, models, Climb::AllModels, FREE, |request, _| {
            if request == 0 {
                fail(ErrorClass::RateLimit)
            } else {
                reply("2,40\n", StopReason::Stop)
            }
        });
        let plan = climbed.end.unwrap();
        assert_eq!(plan.rung, Rung::Planned);
        finished(&preparation, &plan).unwrap()
    };
    assert!(compaction.draft.details.contains(
        r#""rung":"planned","plannerModel":{"provider":"beta","id":"small","thinkingLevel":"medium"}"#
    ));
    session.commit(&compaction);
    let after = session.text();
    assert!(after.starts_with(&before));
    assert_eq!(after.lines().count(), before.lines().count() + 1);
}

/// The first model is the session's own and is not named; a plan of its own says nothing of a borrowed one.
#[test]
fn the_sessions_own_model_is_not_named() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let plan = ask_once(&preparation, &reply("2,40\n", StopReason::Stop))
        .end
        .unwrap();
    assert!(
        !finished(&preparation, &plan)
            .unwrap()
            .draft
            .details
            .contains("plannerModel")
    );
}

/// Each view is smaller than the one before, renumbered, and asks to keep half of what it shows.
#[test]
fn an_endless_overflow_goes_down_to_one_line_and_then_to_the_next_model() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let models = vec![candidate("acme/large", 0), candidate("beta/small", 0)];
    let climbed = climb(&preparation, models, Climb::AllModels, FREE, |_, prompt| {
        let last = figure(prompt, "Lines: ");
        assert!(prompt.contains("\n1→"), "views are numbered from 1");
        assert!(
            prompt.contains(&format!("\n{last}→line 60\n")),
            "the newest line is always shown"
        );
        if last == 60 && prompt.contains("beta") {
            reply("1,2\n", StopReason::Stop)
        } else {
            fail(ErrorClass::OVERFLOW)
        }
    });
    let shown: Vec<(String, usize)> = climbed
        .requests
        .iter()
        .map(|(model, prompt)| (model.clone(), figure(prompt, "Lines: ")))
        .collect();
    let sizes = [60, 30, 15, 8, 4, 2, 1];
    let expected: Vec<(String, usize)> = ["acme/large", "beta/small"]
        .iter()
        .flat_map(|model| sizes.map(|size| ((*model).to_owned(), size)))
        .collect();
    assert_eq!(shown, expected);
    for (_, prompt) in &climbed.requests {
        let (total, keep) = (figure(prompt, "Lines: "), figure(prompt, "Lines to keep: "));
        assert_eq!(keep, total.div_ceil(2));
        assert!(keep < total || total == 1);
        assert_eq!(figure(prompt, "Lines to delete: "), total - keep);
    }
    assert_eq!(climbed.end.unwrap().rung, Rung::Extractive);
}

/// What a smaller view does not show is deleted with what the model names.
#[test]
fn one_overflow_halves_the_view() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let climbed = climb(
        &preparation,
        vec![candidate("acme/large", 0)],
        Climb::AllModels,
        FREE,
        |request, _| {
            if request == 0 {
                fail(ErrorClass::OVERFLOW)
            } else {
                reply("11,20\n", StopReason::Stop)
            }
        },
    );
    assert_eq!(climbed.requests.len(), 2);
    let plan = climbed.end.unwrap();
    assert_eq!(plan.withheld, 30);
    let compaction = finished(&preparation, &plan).unwrap();
    assert!(
        compaction
            .draft
            .summary
            .starts_with("(filtered 30 lines)\nline 31\n")
    );
    assert!(
        compaction
            .draft
            .summary
            .contains("line 40\n(filtered 10 lines)\nline 51")
    );
    assert!(compaction.draft.details.contains("\"withheldLines\":30"));
}

/// Someone who asked gets an honest failure, and the next try is as good as the first.
#[test]
fn a_failed_try_leaves_the_next_one_untouched() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let models = || vec![candidate("acme/large", 0), candidate("beta/small", 0)];
    let climbed = climb(
        &preparation,
        models(),
        Climb::AllModels,
        LastRung::Fail,
        |_, _| fail(ErrorClass::Quota),
    );
    let error = climbed.end.unwrap_err();
    assert_eq!(
        (error.category, error.attempts, &*error.to_string()),
        (Category::Quota, 2, "said no")
    );
    let climbed = climb(
        &preparation,
        models(),
        Climb::AllModels,
        LastRung::Fail,
        |_, _| reply("2,40\n", StopReason::Stop),
    );
    assert!(climbed.end.is_ok());
}

#[test]
fn without_credentials_nothing_is_sent_and_the_reason_survives() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let mut locked = candidate("acme/large", 0);
    locked.credentials = Credentials::Missing("run `acme login` first".to_owned());
    let never = |_: usize, _: &str| -> Result<_, CallFailure> { panic!("nothing may be sent") };
    let climbed = climb(
        &preparation,
        vec![locked.clone()],
        Climb::OneRequest,
        LastRung::Fail,
        never,
    );
    let error = climbed.end.unwrap_err();
    assert_eq!(
        (error.category, error.attempts, &*error.to_string()),
        (Category::Unauthenticated, 0, "run `acme login` first")
    );
    let climbed = climb(&preparation, vec![locked], Climb::AllModels, FREE, never);
    assert_eq!(climbed.end.unwrap().rung, Rung::Extractive);
}

/// Below 20 lines no model is asked, even where the context must shrink; from 20 on it is.
#[test]
fn a_small_region_needs_no_model() {
    for (count, requests, rung) in [(19, 0, Rung::Extractive), (20, 1, Rung::Planned)] {
        let session = Session::of(&[user(&lines(count)), user("x"), user("y")]);
        let context = session.context();
        let preparation = prepared_small(&context, 2);
        let climbed = climb(
            &preparation,
            vec![candidate("acme/large", 0)],
            Climb::AllModels,
            FREE,
            |_, _| reply("2,9\n", StopReason::Stop),
        );
        assert_eq!(
            (climbed.requests.len(), climbed.end.unwrap().rung),
            (requests, rung),
            "{count} lines"
        );
    }
}

/// The last rung: regions of nothing, of one line, of protected lines only, and of some.
#[test]
fn the_last_rung_keeps_protected_lines_in_order() {
    let keep = |rule: &str| format!("<keepContext>\n{rule}\n</keepContext>");
    let table = [
        (Vec::new(), ""),
        (vec![user("one")], "(filtered 1 lines)"),
        (
            vec![user(&keep("rule"))],
            "[User]: <keepContext>\nrule\n</keepContext>",
        ),
        (
            vec![
                user("a"),
                user(&keep("first")),
                assistant("b"),
                user(&keep("second")),
                user("c"),
            ],
            "(filtered 2 lines)\n[User]: <keepContext>\nfirst\n</keepContext>\n(filtered 3 lines)\n\
             [User]: <keepContext>\nsecond\n</keepContext>\n(filtered 2 lines)",
        ),
    ];
    for (messages, text) in table {
        let mut all = messages.clone();
        all.extend([user("x"), user("y")]);
        let session = Session::of(&all);
        let context = session.context();
        let preparation = prepared_small(&context, 2);
        // So little room that no line but protected ones can stay; the tail fits.
        let limit = Some(preparation.tail_tokens() + Tokens(129));
        let climbed = climb(
            &preparation,
            Vec::new(),
            Climb::AllModels,
            LastRung::ModelFree { limit },
            |_, _| reply("", StopReason::Stop),
        );
        let plan = climbed.end.unwrap();
        let result = foldline_compaction_core::verbatim::reconstruct(preparation.region(), &plan.ranges);
        if plan.rung == Rung::Fresh {
            assert_eq!(result.text(), text, "{messages:?}");
            assert_eq!(plan.tail, TailFate::Kept);
        } else {
            // What fits as it is, is not cleared.
            assert!(preparation.region().line_count() <= 3, "{messages:?}");
        }
        let protected = preparation.region().lines().filter(|line| line.protected);
        let mut rest = result.text().split('\n');
        for line in protected {
            assert!(rest.any(|kept| kept == line.text), "{:?}", line.text);
        }
    }
}

/// A tail that cannot fit goes as well, and then the context does fit; an empty region with a kept tail frees nothing
/// and is no compaction (section 20, row 8).
#[test]
fn the_tail_goes_only_if_it_must() {
    let session = Session::of(&[user(&lines(40)), user(&"word ".repeat(2_000)), user("y")]);
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let limit = Tokens(500);
    assert!(preparation.tail_tokens() > limit);
    let climbed = climb(
        &preparation,
        Vec::new(),
        Climb::AllModels,
        LastRung::ModelFree { limit: Some(limit) },
        |_, _| reply("", StopReason::Stop),
    );
    let plan = climbed.end.unwrap();
    assert_eq!(plan.tail, TailFate::Dropped);
    let compaction = finished(&preparation, &plan).unwrap();
    assert_eq!(compaction.draft.first_kept, None);
    assert!(compaction.stats.tokens_after <= limit);

    let session = Session::of(&[user("x"), user("y")]);
    let context = session.context();
    let preparation = prepared_small(&context, 2);
    let climbed = climb(&preparation, Vec::new(), Climb::AllModels, FREE, |_, _| {
        reply("", StopReason::Stop)
    });
    let plan = climbed.end.unwrap();
    assert_eq!(
        finished(&preparation, &plan).unwrap_err(),
        NotSmaller::NothingDeleted
    );
}

/// D11: an automatic compaction that frees less than 5 % is not committed, and says how much was lacking.
#[test]
fn what_frees_too_little_is_skipped() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let plan = ask_once(&preparation, &reply("2,3\n", StopReason::Stop))
        .end
        .unwrap();
    let before = preparation.tokens_before();
    let skipped = finish(&preparation, &plan, Demand::FivePercent, before, &Heuristic).unwrap_err();
    assert!(matches!(skipped, NotSmaller::Insufficient { shortfall, .. } if shortfall > Tokens::ZERO));
    // Alternating short lines: the markers are longer than what they replace, so the text would grow.
    let session = Session::of(&[user(&vec!["a"; 60].join("\n")), user("x"), user("y")]);
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let answer: String = (1..30).map(|i| format!("{0},{0}\n", 2 * i)).collect();
    let plan = ask_once(&preparation, &reply(&answer, StopReason::Stop))
        .end
        .unwrap();
    let NotSmaller::Insufficient { before, after, .. } = finished(&preparation, &plan).unwrap_err() else {
        panic!("it is not smaller")
    };
    assert!(after > before, "what would have grown is never committed");
    let markers = preparation
        .region()
        .lines()
        .filter(|l| matches!(l.part, LinePart::Marker(_)));
    assert_eq!(markers.count(), 0);
}
