use std::sync::Mutex;

use foldline_session_model::model_call::{Api, ModelRef, OtherCause};
use tokio::time::Instant;

use crate::testing::{Script, ScriptedModel, WhenEmpty, usage};

use super::*;

const EXACT: RetryPolicy = RetryPolicy {
    jitter: Jitter::None,
    ..RetryPolicy::TURN
};

fn scripted(scripts: Vec<Script>) -> Arc<ScriptedModel> {
    let name = ModelRef {
        provider: "acme".to_owned(),
        id: "m".to_owned(),
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

fn failing(class: ErrorClass) -> Script {
    Script::failure(class, "no")
}

async fn ask(model: &Arc<ScriptedModel>, policy: RetryPolicy) -> (Result<String, ErrorClass>, usize, u64) {
    let started = Instant::now();
    let retrying = RetryingModel::new(model.clone(), policy);
    let reply = retrying
        .complete(&LlmRequest::from_prompt("s", "p"), CancellationToken::new())
        .await;
    let seconds = started.elapsed().as_secs();
    (
        reply.map(|reply| reply.text()).map_err(|error| error.class),
        model.calls(),
        seconds,
    )
}

#[tokio::test(start_paused = true)]
async fn only_what_may_pass_is_retried() {
    use ErrorClass::{Auth, Other, Quota, RateLimit, Transient};
    let rows = [
        (Transient(TransientCause::Server), 2),
        (Transient(TransientCause::Overloaded), 2),
        (Transient(TransientCause::Network), 2),
        (Transient(TransientCause::StreamEnded), 2),
        (Transient(TransientCause::EmptyReply), 2),
        (RateLimit, 2),
        (Transient(TransientCause::FirstEventTimeout), 1),
        (Transient(TransientCause::IdleTimeout), 1),
        (ErrorClass::OVERFLOW, 1),
        (ErrorClass::BodyTooLarge { limit: None }, 1),
        (
            ErrorClass::RequestTooLarge {
                limit: None,
                requested: None,
            },
            1,
        ),
        (
            ErrorClass::MediaRejected {
                message: None,
                entry: None,
            },
            1,
        ),
        (Auth, 1),
        (Quota, 1),
        (ErrorClass::Cancelled, 1),
        (Other(OtherCause::Unknown), 1),
    ];
    for (class, calls) in rows {
        let model = scripted(vec![failing(class.clone()), ok()]);
        let (reply, called, _) = ask(&model, EXACT).await;
        assert_eq!(called, calls, "{class:?}");
        assert_eq!(
            reply,
            if calls == 2 {
                Ok("ok".to_owned())
            } else {
                Err(class)
            }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn waits_double_and_end() {
    let server = || failing(ErrorClass::Transient(TransientCause::Server));
    let model = scripted((0..9).map(|_| server()).collect());
    let (reply, calls, seconds) = ask(&model, EXACT).await;
    assert_eq!(reply, Err(ErrorClass::Transient(TransientCause::Server)));
    assert_eq!((calls, seconds), (4, 2 + 4 + 8));
    let long = RetryPolicy {
        max_retries: 9,
        ..EXACT
    };
    let seconds: Vec<u64> = planned_waits(&long).iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 300]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_may_ask_for_more_patience_but_not_for_any() {
    // (asked, total seconds, calls)
    for (asked, seconds, calls) in [(500, 2, 2), (31_000, 31, 2), (300_000, 300, 2), (300_001, 0, 1)] {
        let mut error = LlmError::new(ErrorClass::RateLimit, "slow");
        error.retry_after = Some(Duration::from_millis(asked));
        let model = scripted(vec![Script::new().fail(error), ok()]);
        let (_, called, waited) = ask(&model, EXACT).await;
        assert_eq!((waited, called), (seconds, calls), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_once_something_was_shown() {
    let broken = LlmError::new(ErrorClass::Transient(TransientCause::Network), "broke");
    let shown = [
        Script::new().text("half").fail(broken.clone()),
        Script::new().thinking("hm", "s").fail(broken.clone()),
        Script::new().call("c", "t", "{}").fail(broken.clone()),
    ];
    for script in shown {
        let model = scripted(vec![script, ok()]);
        let (reply, calls, _) = ask(&model, EXACT).await;
        assert_eq!((reply, calls), (Err(broken.class.clone()), 1));
    }
    // A start and a count show nothing yet.
    let model = scripted(vec![Script::new().usage(usage(5, 0)).fail(broken), ok()]);
    assert_eq!(ask(&model, EXACT).await, (Ok("ok".to_owned()), 2, 2));
}

#[tokio::test(start_paused = true)]
async fn the_total_bounds_attempts_and_waits() {
    let slow = Script::new().wait(Duration::from_secs(50)).fail(LlmError::new(
        ErrorClass::Transient(TransientCause::Server),
        "slow",
    ));
    let model = scripted(vec![slow.clone(), slow.clone(), slow]);
    let policy = RetryPolicy {
        total: Some(Duration::from_secs(90)),
        ..EXACT
    };
    let (reply, calls, seconds) = ask(&model, policy).await;
    assert_eq!(reply, Err(ErrorClass::Transient(TransientCause::TotalTimeout)));
    assert_eq!((calls, seconds), (2, 90));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_and_a_hang() {
    for script in [failing(ErrorClass::RateLimit), Script::hang()] {
        let model = scripted(vec![script, ok()]);
        let retrying = RetryingModel::new(model.clone(), EXACT);
        let cancel = CancellationToken::new();
        let request = LlmRequest::from_prompt("s", "p");
        let call = retrying.complete(&request, cancel.clone());
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let started = Instant::now();
        let (reply, ()) = tokio::join!(call, abort);
        assert_eq!(reply.unwrap_err().class, ErrorClass::Cancelled);
        assert_eq!(started.elapsed().as_millis(), 1000);
        assert_eq!(model.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_told_of_each_wait() {
    let model = scripted(vec![
        failing(ErrorClass::RateLimit),
        failing(ErrorClass::RateLimit),
        ok(),
    ]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let retrying = RetryingModel::new(model, EXACT).with_observer(Arc::new(move |attempt, error, wait| {
        notes
            .lock()
            .unwrap()
            .push((attempt, error.class.clone(), wait.as_secs()));
    }));
    retrying
        .complete(&LlmRequest::from_prompt("s", "p"), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        *told.lock().unwrap(),
        [(1, ErrorClass::RateLimit, 2), (2, ErrorClass::RateLimit, 4)]
    );
}

#[test]
fn jitter_only_adds() {
    let policy = RetryPolicy {
        max_retries: 5,
        ..RetryPolicy::TURN
    };
    for _ in 0..50 {
        for (at, wait) in planned_waits(&policy).into_iter().enumerate() {
            let exact = Duration::from_secs(2 << at);
            assert!(wait >= exact && wait <= exact * 2, "{at} {wait:?}");
        }
    }
}
