use foldline_session_model::model_call::{Api, OtherCause};

use crate::retry::Jitter;
use crate::testing::{Script, ScriptedModel, WhenEmpty, usage};

use super::*;

const POLICY: RetryPolicy = RetryPolicy {
    jitter: Jitter::None,
    ..RetryPolicy::MAINTENANCE
};

fn scripted(id: &str, scripts: Vec<Script>) -> Arc<ScriptedModel> {
    let name = ModelRef {
        provider: "acme".to_owned(),
        id: id.to_owned(),
    };
    Arc::new(ScriptedModel::new(
        ModelProfile::unknown(name, Api::OpenAiCompletions),
        scripts,
        WhenEmpty::Fail,
    ))
}

fn ok() -> Script {
    Script::reply("ok", usage(10, 2))
}

struct Asked {
    outcome: Result<String, ErrorClass>,
    calls: Vec<usize>,
    seconds: u64,
}

async fn ask(models: &[Arc<ScriptedModel>], policy: RetryPolicy, advance: Advance) -> Asked {
    let started = Instant::now();
    let list: Vec<Arc<dyn LanguageModel>> = models
        .iter()
        .map(|model| Arc::clone(model) as Arc<dyn LanguageModel>)
        .collect();
    let candidates = Candidates::new(list, policy, advance);
    let reply = candidates
        .complete(&|_| LlmRequest::from_prompt("s", "p"), &CancellationToken::new())
        .await;
    Asked {
        outcome: match reply {
            Ok(reply) => Ok(reply.model.id),
            Err(error) => Err(error
                .last()
                .map_or(ErrorClass::Cancelled, |error| error.class.clone())),
        },
        calls: models.iter().map(|model| model.calls()).collect(),
        seconds: started.elapsed().as_secs(),
    }
}

#[tokio::test(start_paused = true)]
async fn who_takes_over_when() {
    use ErrorClass::{Auth, Other, Quota, RateLimit, Transient};
    let unknown = Other(OtherCause::Unknown);
    let cancelled = ErrorClass::Cancelled;
    // (failure of the first, policy) -> answering model or error, calls of each
    let rows = [
        (Auth, Advance::OnFailure, Ok("b"), [1, 1]),
        (Auth, Advance::OnAuth, Ok("b"), [1, 1]),
        (Quota, Advance::OnFailure, Ok("b"), [1, 1]),
        (Quota, Advance::OnAuth, Err(Quota), [1, 0]),
        (RateLimit, Advance::OnFailure, Ok("b"), [2, 1]),
        (
            Transient(TransientCause::Server),
            Advance::OnFailure,
            Ok("b"),
            [2, 1],
        ),
        (
            Transient(TransientCause::FirstEventTimeout),
            Advance::OnFailure,
            Ok("b"),
            [1, 1],
        ),
        (unknown.clone(), Advance::OnFailure, Ok("b"), [1, 1]),
        (unknown.clone(), Advance::OnAuth, Err(unknown), [1, 0]),
        (
            ErrorClass::OVERFLOW,
            Advance::OnFailure,
            Err(ErrorClass::OVERFLOW),
            [1, 0],
        ),
        (cancelled.clone(), Advance::OnFailure, Err(cancelled), [1, 0]),
    ];
    for (class, advance, outcome, calls) in rows {
        let fail = || Script::failure(class.clone(), "no");
        let models = [scripted("a", vec![fail(), fail()]), scripted("b", vec![ok()])];
        let asked = ask(&models, POLICY, advance).await;
        assert_eq!(asked.outcome, outcome.map(str::to_owned), "{class:?}");
        assert_eq!(asked.calls, calls, "{class:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_goes_to_the_next_and_the_last_one_waits() {
    let mut error = LlmError::new(ErrorClass::RateLimit, "later");
    error.retry_after = Some(Duration::from_secs(60));
    let later = || Script::new().fail(error.clone());
    let policy = RetryPolicy {
        max_server_delay: Duration::from_secs(120),
        ..POLICY
    };
    let models = [
        scripted("a", vec![later(), ok()]),
        scripted("b", vec![later(), ok()]),
    ];
    let asked = ask(&models, policy, Advance::OnFailure).await;
    assert_eq!(
        (asked.outcome, asked.calls, asked.seconds),
        (Ok("b".to_owned()), vec![1, 2], 60)
    );
}

#[tokio::test(start_paused = true)]
async fn fb_060_a_hanging_model_is_asked_once_and_replaced_within_the_limit() {
    let timeout = LlmError::transient(TransientCause::FirstEventTimeout, "silent");
    let hang = Script::new().wait(Duration::from_secs(30)).fail(timeout);
    let models = [scripted("a", vec![hang]), scripted("b", vec![ok()])];
    let asked = ask(&models, POLICY, Advance::OnFailure).await;
    assert_eq!(
        (asked.outcome, asked.calls, asked.seconds),
        (Ok("b".to_owned()), vec![1, 1], 30)
    );
}

#[tokio::test(start_paused = true)]
async fn the_budget_covers_all_candidates() {
    let models = [scripted("a", vec![Script::hang()]), scripted("b", vec![ok()])];
    let asked = ask(&models, POLICY, Advance::OnFailure).await;
    assert_eq!(
        asked.outcome,
        Err(ErrorClass::Transient(TransientCause::TotalTimeout))
    );
    assert_eq!((asked.calls, asked.seconds), (vec![1, 0], 180));
}

#[tokio::test(start_paused = true)]
async fn failures_are_named_and_doubles_are_tried_once() {
    let models = [
        scripted("a", vec![Script::failure(ErrorClass::Auth, "bad key")]),
        scripted("a", vec![ok()]),
        scripted("b", vec![Script::failure(ErrorClass::Auth, "no key")]),
    ];
    let list: Vec<Arc<dyn LanguageModel>> = models
        .iter()
        .map(|model| Arc::clone(model) as Arc<dyn LanguageModel>)
        .collect();
    let candidates = Candidates::new(list, POLICY, Advance::OnFailure);
    assert_eq!(candidates.profiles().count(), 2);
    let cancel = CancellationToken::new();
    let error = candidates
        .complete(&|_| LlmRequest::from_prompt("s", "p"), &cancel)
        .await
        .unwrap_err();
    assert!(error.is_auth());
    let text = error.to_string();
    assert!(
        text.contains("acme/a") && text.contains("bad key") && text.contains("acme/b"),
        "{text}"
    );
    let none = Candidates::new(Vec::new(), POLICY, Advance::OnFailure);
    let error = none
        .complete(&|_| LlmRequest::from_prompt("s", "p"), &cancel)
        .await
        .unwrap_err();
    assert!(matches!(error, CandidatesError::NoModel) && !error.is_auth());
}

#[test]
fn the_order_of_candidates() {
    let name = |text: &str| ModelRef::parse(text).unwrap();
    let available: Vec<_> = [
        ("p/small", Some(8)),
        ("p/large", Some(100)),
        ("p/other", Some(100)),
        ("p/unknown", None),
        ("q/huge", Some(1000)),
    ]
    .map(|(model, window)| (name(model), window.map(Tokens)))
    .into();
    for (current, roles, expected) in [
        ("p/small", &[][..], &["p/small", "p/large"][..]),
        ("p/large", &[], &["p/large"]),
        (
            "p/small",
            &["q/huge", "p/small"],
            &["p/small", "q/huge", "p/large"],
        ),
        ("r/alone", &[], &["r/alone"]),
    ] {
        let roles: Vec<ModelRef> = roles.iter().map(|role| name(role)).collect();
        let order = candidate_order(&name(current), &roles, &available);
        let order: Vec<String> = order.iter().map(ToString::to_string).collect();
        assert_eq!(order, expected, "{current} {roles:?}");
    }
}
