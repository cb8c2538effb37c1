use foldline_llm_client::Jitter;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{OtherCause, TransientCause};

use super::*;

/// Waits of 2 s, doubling, without chance.
const POLICY: RetryPolicy = RetryPolicy {
    jitter: Jitter::None,
    ..RetryPolicy::TURN
};

/// The first failure of a request of which nothing was shown, with nobody standing by.
const FIRST: Facts = Facts {
    retries: 0,
    replay: ReplaySafety::Safe,
    place: EndpointPlace::Remote,
    fallback: Fallback::None,
    media: Media::Whole,
    random: 0.5,
};

const STANDING_BY: Facts = Facts {
    fallback: Fallback::Available,
    ..FIRST
};

fn after(class: ErrorClass, facts: Facts) -> AfterFailure {
    after_failure(&LlmError::new(class, "it failed"), &facts, &POLICY)
}

fn retry(attempt: u32, seconds: u64) -> AfterFailure {
    AfterFailure::Retry {
        attempt,
        delay: Duration::from_secs(seconds),
    }
}

const BODY: ErrorClass = ErrorClass::BodyTooLarge { limit: None };
const OVERLOADED: ErrorClass = ErrorClass::Transient(TransientCause::Overloaded);

fn picture(entry: &str) -> ErrorClass {
    ErrorClass::MediaRejected {
        message: Some(3),
        entry: Some(EntryId::from(entry)),
    }
}

#[test]
fn a_cancel_is_no_failure() {
    assert_eq!(after(ErrorClass::Cancelled, STANDING_BY), AfterFailure::Cancelled);
}

/// Only a smaller request can pass, so neither a wait nor another model is tried first.
#[test]
fn what_is_too_large_goes_to_maintenance() {
    let rate = ErrorClass::RequestTooLarge {
        limit: Some(Tokens(30_000)),
        requested: Some(Tokens(40_000)),
    };
    for class in [ErrorClass::OVERFLOW, rate] {
        for facts in [FIRST, STANDING_BY] {
            assert_eq!(after(class.clone(), facts), AfterFailure::Maintain, "{class}");
        }
    }
}

/// R16: a body over a gateway's limit is mostly pictures.
#[test]
fn a_body_loses_pictures_first_and_then_history() {
    let reduced = Facts {
        media: Media::Reduced,
        ..FIRST
    };
    assert_eq!(after(BODY, FIRST), AfterFailure::LessMedia);
    assert_eq!(after(BODY, reduced), AfterFailure::Maintain);
}

/// R16: a refused picture is left out, and the turn tried once more.
#[test]
fn a_refused_picture_is_left_out_once() {
    let entry = Some(EntryId::from("aaaaaaaa"));
    assert_eq!(
        after(picture("aaaaaaaa"), FIRST),
        AfterFailure::WithoutMedia(entry)
    );
    let unnamed = ErrorClass::MediaRejected {
        message: None,
        entry: None,
    };
    assert_eq!(after(unnamed, FIRST), AfterFailure::WithoutMedia(None));
    let reduced = Facts {
        media: Media::Reduced,
        ..FIRST
    };
    assert_eq!(after(picture("aaaaaaaa"), reduced), AfterFailure::GiveUp);
}

#[test]
fn what_may_pass_is_tried_again_as_often_as_the_settings_say() {
    let passing = [
        ErrorClass::RateLimit,
        OVERLOADED,
        ErrorClass::Transient(TransientCause::Network),
        ErrorClass::Transient(TransientCause::EmptyReply),
        ErrorClass::Transient(TransientCause::FirstEventTimeout),
        ErrorClass::Quota,
        ErrorClass::Other(OtherCause::Unknown),
    ];
    for class in passing {
        let at = |retries| after(class.clone(), Facts { retries, ..FIRST });
        assert_eq!(at(0), retry(1, 2), "{class}");
        assert_eq!(at(1), retry(2, 4), "{class}");
        assert_eq!(at(2), retry(3, 8), "{class}");
        assert_eq!(at(3), AfterFailure::GiveUp, "{class}");
    }
}

/// G: "hint 11180000 ms with maxDelay 100 -> 100".
#[test]
fn a_wait_that_the_provider_asks_for_is_capped() {
    let mut error = LlmError::new(ErrorClass::RateLimit, "slow down");
    error.retry_after = Some(Duration::from_secs(11_180));
    let policy = RetryPolicy {
        max_delay: Duration::from_millis(100),
        ..POLICY
    };
    let follows = after_failure(&error, &FIRST, &policy);
    let expected = AfterFailure::Retry {
        attempt: 1,
        delay: Duration::from_millis(100),
    };
    assert_eq!(follows, expected);
}

/// A second answer would differ from the one that the user saw begin.
#[test]
fn what_was_shown_is_never_replayed() {
    let shown = Facts {
        replay: ReplaySafety::ContentShown,
        ..STANDING_BY
    };
    for class in [OVERLOADED, ErrorClass::RateLimit, ErrorClass::Auth] {
        assert_eq!(after(class.clone(), shown), AfterFailure::GiveUp, "{class}");
    }
}

#[test]
fn another_model_takes_over_when_waiting_does_not_help() {
    let terminal = [
        ErrorClass::Auth,
        ErrorClass::Other(OtherCause::InvalidRequest),
        ErrorClass::Other(OtherCause::NotFound),
        ErrorClass::Other(OtherCause::Refused),
    ];
    for class in terminal {
        assert_eq!(after(class.clone(), FIRST), AfterFailure::GiveUp, "{class}");
        assert_eq!(
            after(class.clone(), STANDING_BY),
            AfterFailure::NextModel,
            "{class}"
        );
    }
    let exhausted = Facts {
        retries: 3,
        ..STANDING_BY
    };
    assert_eq!(after(OVERLOADED, exhausted), AfterFailure::NextModel);
    assert_eq!(after(OVERLOADED, STANDING_BY), retry(1, 2));
}

#[test]
fn a_server_of_this_machine_that_does_not_run_is_not_waited_for() {
    let error = LlmError::new(
        ErrorClass::Transient(TransientCause::Network),
        "connection refused",
    );
    let local = Facts {
        place: EndpointPlace::Local,
        ..FIRST
    };
    assert_eq!(after_failure(&error, &local, &POLICY), AfterFailure::GiveUp);
    assert_eq!(after_failure(&error, &FIRST, &POLICY), retry(1, 2));
}

#[test]
fn no_retries_are_no_retries() {
    let policy = RetryPolicy {
        max_retries: 0,
        ..POLICY
    };
    let error = LlmError::new(OVERLOADED, "overloaded");
    assert_eq!(after_failure(&error, &FIRST, &policy), AfterFailure::GiveUp);
}
