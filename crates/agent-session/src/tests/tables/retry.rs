//! Failures that may pass (8 and 17, retry).

use std::time::Duration;

use foldline_llm_client::{Jitter, LanguageModel, LlmError, RetryPolicy};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{StopReason, TransientCause, Usage};

use super::*;

fn overloaded() -> Script {
    Script::failure(ErrorClass::Transient(TransientCause::Overloaded), "overloaded")
}

/// Success, attempt, error.
type RetryEnd = (bool, u32, Option<String>);

/// The starts and the ends of retries.
fn retries(told: &Told) -> (Vec<u32>, Vec<RetryEnd>) {
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for event in &told.0 {
        match &**event {
            Event::AutoRetryStart { attempt, .. } => starts.push(*attempt),
            Event::AutoRetryEnd {
                success,
                attempt,
                final_error,
            } => ends.push((*success, *attempt, final_error.clone())),
            _ => {}
        }
    }
    (starts, ends)
}

fn rig(turns: impl IntoIterator<Item = Script>, max_retries: usize) -> Rig {
    Play::turns(turns).rig_with(|options| {
        options.settings.retry = RetryPolicy {
            max_retries,
            jitter: Jitter::None,
            ..RetryPolicy::TURN
        };
    })
}

/// P: "maxRetries 2 -> 3 calls, events start 1, start 2, end false".
#[tokio::test(start_paused = true)]
async fn p_two_retries_are_three_requests_and_one_end() {
    let mut rig = rig([overloaded(), overloaded(), overloaded()], 2);
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 3));
    let (starts, ends) = retries(&told);
    assert_eq!(starts, [1, 2]);
    assert_eq!(ends.len(), 1);
    assert_eq!((ends[0].0, ends[0].1), (false, 2));
    assert!(ends[0].2.as_deref().unwrap().contains("overloaded"));
    let asked = rig.asked(Kind::Turn);
    let waits: Vec<Duration> = asked.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert_eq!(waits, [Duration::from_secs(2), Duration::from_secs(4)]);
    // The same request, without the answers that failed.
    assert!(asked.iter().all(|asked| asked.last_text() == "go"));
}

#[tokio::test(start_paused = true)]
async fn g_a_success_ends_the_retries() {
    let mut rig = rig([overloaded(), done()], 3);
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_eq!(retries(&told), (vec![1], vec![(true, 1, None)]));
    assert_eq!(told.count("agent_end"), 1);
}

#[tokio::test(start_paused = true)]
async fn g_what_was_shown_or_refused_is_not_tried_again() {
    let partial = Script::new().text("I will").fail(LlmError::new(
        ErrorClass::Transient(TransientCause::Network),
        "socket hang up",
    ));
    let refused = Script::failure(ErrorClass::Other(OtherCause::Refused), "stopped for safety");
    let bad = Script::failure(ErrorClass::Other(OtherCause::InvalidRequest), "bad request");
    let auth = Script::failure(ErrorClass::Auth, "invalid key");
    for failure in [partial, refused, bad, auth] {
        let mut rig = rig([failure], 3);
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
        assert_eq!(retries(&told), (vec![], vec![]));
    }
}

/// A: an empty answer is a failure that may pass.
#[tokio::test(start_paused = true)]
async fn a_an_empty_answer_is_asked_for_again() {
    let usage = Usage::from_parts(Tokens(100), Tokens::ZERO, Tokens::ZERO, Tokens::ZERO);
    let mut rig = rig([Script::new().usage(usage).stop(StopReason::Stop), done()], 3);
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_eq!(retries(&told).1, [(true, 1, None)]);
}

#[tokio::test(start_paused = true)]
async fn g_a_wait_that_is_cancelled_ends_the_retries_and_leaves_the_session_free() {
    for whole_run in [false, true] {
        let mut rig = rig([overloaded(), done()], 3);
        let session = rig.session.clone();
        let run = tokio::spawn(async move { session.prompt("go").await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        if whole_run {
            rig.session.abort();
        } else {
            assert!(rig.session.abort_retry());
        }
        let Prompted::Ran(report) = run.await.unwrap().unwrap() else {
            panic!("queued")
        };
        let expected = if whole_run {
            RunEnd::Cancelled
        } else {
            RunEnd::Failed
        };
        assert_eq!(report.end, expected);
        let told = Told(rig.events());
        let ends = retries(&told).1;
        assert_eq!(ends, [(false, 1, Some("Retry cancelled".to_owned()))]);
        let (report, _) = rig.run("again").await;
        assert_eq!(report.end, RunEnd::Completed);
    }
}

/// A: the next model takes over for the turn, and the user's own comes back with the next prompt.
#[tokio::test(start_paused = true)]
async fn a_another_model_takes_over_for_one_turn() {
    let other = Play::turns([done()]).model("other", 200_000);
    let fallback = Arc::clone(&other) as Arc<dyn LanguageModel>;
    let auth = Script::failure(ErrorClass::Auth, "invalid key");
    let mut rig = Play::turns([auth, done()]).rig_with(|options| options.models.fallbacks = vec![fallback]);
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_eq!(
        (
            told.count("model_fallback_start"),
            told.count("model_fallback_end")
        ),
        (1, 1)
    );
    let (report, _) = rig.run("again").await;
    assert_eq!((report.end, other.calls()), (RunEnd::Completed, 1));
}
