//! Rows "Ladder" (spec "Verbatim", sections 12 and 21; D6): who plans when somebody asked, and when the context must
//! shrink. The last rung is in [`super::fresh`]; the sidecar that an error names is written by the orchestrator.

use foldline_compaction_core::verbatim::{
    CallFailure, Category, Climb, Credentials, Demand, LastRung, LinePart, NotSmaller, Retries, Rung, finish,
};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, StopReason};
use foldline_session_model::tokens::Heuristic;

use super::support::{
    Session, ask_once, assistant, candidate, climb, figure, finished, lines, prepared, reply, user,
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

/// Row "throttled primary and healthy fallback: planned, plannerModel, session model and JSONL prefix unchanged, exactly
/// one appended line".
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

/// Rows "endless overflow: the last view has 1 line, then the fallback" and "keep target per view: half of its lines,
/// rounded, and always less than all".
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

/// Row "overflow once: the second request is strictly smaller and goes to the same model". What a smaller view does not
/// show is deleted with what the model names.
#[test]
fn one_overflow_halves_the_view() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let models = vec![candidate("acme/large", 0), candidate("beta/small", 0)];
    let climbed = climb(&preparation, models, Climb::AllModels, FREE, |request, _| {
        if request == 0 {
            fail(ErrorClass::OVERFLOW)
        } else {
            reply("11,20\n", StopReason::Stop)
        }
    });
    let shown: Vec<(&str, usize)> = climbed
        .requests
        .iter()
        .map(|(model, prompt)| (model.as_str(), figure(prompt, "Lines: ")))
        .collect();
    assert_eq!(shown, [("acme/large", 60), ("acme/large", 30)]);
    assert!(climbed.requests[1].1.len() < climbed.requests[0].1.len());
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

/// Row "all throttled, manual: error, no entry, the next try works".
#[test]
fn a_failed_try_leaves_the_next_one_untouched() {
    let session = session();
    let before = session.text();
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
    assert_eq!(session.text(), before);
}

/// Row "all throttled, overflow: the last rung" (here the planner without a model, which keeps what fits).
#[test]
fn all_throttled_where_the_context_must_shrink_ends_in_the_last_rung() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let models = vec![candidate("acme/large", 0), candidate("beta/small", 0)];
    let climbed = climb(&preparation, models, Climb::AllModels, FREE, |_, _| {
        fail(ErrorClass::RateLimit)
    });
    let asked: Vec<&str> = climbed.requests.iter().map(|(model, _)| model.as_str()).collect();
    assert_eq!(asked, ["acme/large", "beta/small"]);
    let plan = climbed.end.unwrap();
    assert_eq!((plan.rung, &plan.planner), (Rung::Extractive, &None));
    let compaction = finished(&preparation, &plan).unwrap();
    assert!(compaction.draft.details.contains(r#""rung":"extractive""#));
}

/// Row "a primary that is listed among the fallback models is not tried again".
#[test]
fn a_primary_among_the_fallback_models_is_not_tried_again() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let models = [
        "acme/large",
        "beta/small",
        "acme/large",
        "beta/small",
        "gamma/tiny",
    ];
    let models = models.map(|name| candidate(name, 0)).to_vec();
    let climbed = climb(&preparation, models, Climb::AllModels, FREE, |_, _| {
        reply("nope", StopReason::Stop)
    });
    let asked: Vec<&str> = climbed.requests.iter().map(|(model, _)| model.as_str()).collect();
    assert_eq!(asked, ["acme/large", "beta/small", "gamma/tiny"]);
}

/// Rows "no credentials: recoverable: auth message, 0 requests; load-bearing: the last rung" and "a rejected resolver's
/// message survives".
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
