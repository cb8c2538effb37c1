use foldline_session_model::model_call::{AssistantBlock, Usage};

use super::*;
use crate::testing::{text_reply, tool_call};

fn turn<'a>(text: Option<&'a str>, status: Option<u16>, codes: &'a [&'a str]) -> TurnEnd<'a> {
    TurnEnd {
        message: MessageFields {
            stop: StopReason::Error,
            error_message: text,
            usage: Usage::default(),
            content: Content::Empty,
        },
        facts: TransportFacts { status, codes },
        window: None,
        place: EndpointPlace::Remote,
    }
}

fn class(text: Option<&str>, status: Option<u16>, codes: &[&str]) -> RetryClass {
    retry_class(&turn(text, status, codes), &UserPatterns::default())
}

/// Text, status and codes of a failure, and what they call for.
type Row<'a> = (Option<&'a str>, Option<u16>, &'a [&'a str], RetryClass);

/// Each question wins over those below it.
#[test]
fn questions_in_order() {
    use RetryClass::{
        FirstEventTimeout, None as Nothing, Overflow, Terminal, Transient, Unknown, UsageLimit,
    };
    let all = "provider_safety_stop prompt is too long forbidden usage limit timed out while waiting for the first event overloaded";
    let rows: &[Row<'_>] = &[
        (Some(all), Some(500), &["refusal", FIRST_EVENT_TIMEOUT], Terminal),
        (Some(all), Some(500), &[FIRST_EVENT_TIMEOUT], FirstEventTimeout),
        (None, Some(500), &[], Nothing),
        (None, None, &["PROVIDER_SAFETY_STOP"], Terminal),
        (Some(all), Some(500), &[], Terminal),
        (
            Some("prompt is too long; forbidden; overloaded"),
            None,
            &[],
            Overflow,
        ),
        (Some("x"), Some(400), &["context_length_exceeded"], Overflow),
        (Some("Request exceeds the maximum size"), Some(413), &[], Overflow),
        (
            Some("Unexpected event order, got message_delta before \"message_start\": forbidden"),
            None,
            &[],
            Transient,
        ),
        (Some("stream envelope error: overloaded"), None, &[], Terminal),
        (Some("forbidden: usage limit, overloaded"), None, &[], Terminal),
        (
            Some("insufficient_quota: quota exceeded"),
            Some(429),
            &[],
            Terminal,
        ),
        (Some("GoUsageLimitError"), None, &[], Terminal),
        (Some("billing hard limit, try again in 5s"), None, &[], Terminal),
        (
            Some("The usage limit has been reached, overloaded"),
            Some(400),
            &[],
            UsageLimit,
        ),
        (Some("quota exceeded"), Some(429), &[], UsageLimit),
        (
            Some("This request would exceed your account's rate limit"),
            Some(429),
            &[],
            UsageLimit,
        ),
        (Some("overloaded"), Some(418), &[], Terminal),
        (Some("rate limit"), Some(418), &[], Transient),
        (Some("slow"), Some(408), &[], Transient),
        (Some("slow"), Some(425), &[], Transient),
        (Some("slow"), Some(429), &[], Transient),
        (Some("what"), Some(500), &[], Transient),
        (
            Some("OpenAI stream timed out while waiting for the first event"),
            None,
            &[],
            FirstEventTimeout,
        ),
        (Some("timed out"), None, &[], Transient),
        (Some("what is this"), None, &[], Unknown),
    ];
    for (text, status, codes, expected) in rows {
        assert_eq!(
            class(*text, *status, codes),
            *expected,
            "{text:?} {status:?} {codes:?}"
        );
    }
}

#[test]
fn texts_that_may_pass_and_texts_that_will_not() {
    for text in [
        "Overloaded",
        "Provider returned error",
        "429 slow down",
        "HTTP 500: oops",
        "error 502.",
        "(503)",
        "code 524",
        "Service Unavailable",
        "internal server error",
        "please retry your request",
        "network error",
        "connection refused",
        "ECONNRESET: other side closed",
        "TypeError: fetch failed",
        "upstream connect error or disconnect/reset before headers",
        "socket hang up",
        "The socket connection was closed unexpectedly",
        "request timed out",
        "terminated",
        "retry delay",
        "stream stalled while waiting for the next event",
        "Unknown error (no error details in response)",
        "getaddrinfo ENOTFOUND",
        "websocket closed",
        "zlib: incorrect header check",
        "Anthropic stream ended before message_stop",
        "http2 request did not get a response",
        "ResourceExhausted",
        crate::EMPTY_COMPLETION,
        "the stream fell silent",
        "the connection broke: reset by peer",
    ] {
        assert_eq!(class(Some(text), None, &[]), RetryClass::Transient, "{text}");
    }
    for text in [
        "Unauthorized",
        "permission denied",
        "Invalid API key",
        "bad_request",
        "missing required field: x",
        "invalid tool_choice",
        "unsupported parameter",
        "no such model",
        "The model does not exist",
        "Request was aborted",
        "the user aborted",
        "Monthly usage limit reached",
        "your available balance is 0",
    ] {
        assert_eq!(class(Some(text), None, &[]), RetryClass::Terminal, "{text}");
    }
    for text in ["took 1500 ms", "version 1.503", "5000 errors", "e500x"] {
        assert_eq!(class(Some(text), None, &[]), RetryClass::Unknown, "{text}");
    }
}

#[test]
fn replies_that_did_not_fail() {
    use Content::{Empty, Present};
    use StopReason::{Aborted, Length, Stop, ToolUse};
    let rows = [
        (Stop, Present, 0, 0, RetryClass::None),
        (Stop, Empty, 900, 0, RetryClass::Transient),
        (ToolUse, Empty, 900, 0, RetryClass::Transient),
        (Stop, Empty, 900, 7, RetryClass::None),
        // Usage of almost nothing is how an upstream overflow looks behind LiteLLM.
        (Stop, Empty, 0, 0, RetryClass::Overflow),
        (Stop, Empty, 1001, 0, RetryClass::Overflow),
        (Length, Empty, 900, 0, RetryClass::None),
        (Aborted, Empty, 900, 0, RetryClass::None),
    ];
    for (stop, content, input, output, expected) in rows {
        let mut ended = turn(Some("overloaded"), None, &[]);
        ended.window = Some(Tokens(1000));
        ended.message.stop = stop;
        ended.message.content = content;
        ended.message.usage = crate::testing::usage(input, output);
        assert_eq!(
            retry_class(&ended, &UserPatterns::default()),
            expected,
            "{stop:?} {content:?} {input} {output}"
        );
    }
}

#[test]
fn a_server_of_this_machine_that_is_not_there() {
    let rows = [
        (
            EndpointPlace::Local,
            "connection refused",
            None,
            RetryClass::LocalUnavailable,
        ),
        (
            EndpointPlace::Remote,
            "connection refused",
            None,
            RetryClass::Transient,
        ),
        (
            EndpointPlace::Local,
            "connection refused",
            Some(502),
            RetryClass::Transient,
        ),
        (
            EndpointPlace::Local,
            "the connection broke",
            None,
            RetryClass::Transient,
        ),
    ];
    for (place, text, status, expected) in rows {
        let mut ended = turn(Some(text), status, &[]);
        ended.place = place;
        assert_eq!(
            retry_class(&ended, &UserPatterns::default()),
            expected,
            "{place:?} {text}"
        );
    }
    let refused = LlmError::transient(TransientCause::Network, "no answer: Connection refused");
    assert_eq!(
        retry_class_of(&refused, EndpointPlace::Local),
        RetryClass::LocalUnavailable
    );
    assert_eq!(
        retry_class_of(&refused, EndpointPlace::Remote),
        RetryClass::Transient
    );
}

/// An error at hand and the message that a session records of it call for the same.
#[test]
fn errors_and_their_records_agree() {
    use ErrorClass::{Auth, Cancelled, Other, Quota, RateLimit};
    let transient = |cause, text: &str| LlmError::transient(cause, text);
    let rows = [
        (
            transient(TransientCause::Server, "HTTP 500: oops"),
            RetryClass::Transient,
        ),
        (
            transient(TransientCause::Overloaded, "Overloaded"),
            RetryClass::Transient,
        ),
        (
            transient(
                TransientCause::StreamEnded,
                "the stream ended without a stop reason",
            ),
            RetryClass::Transient,
        ),
        (
            transient(TransientCause::IdleTimeout, "the stream fell silent"),
            RetryClass::Transient,
        ),
        (
            transient(TransientCause::EmptyReply, crate::EMPTY_COMPLETION),
            RetryClass::Transient,
        ),
        (
            transient(
                TransientCause::FirstEventTimeout,
                "the provider did not begin to answer in time",
            ),
            RetryClass::FirstEventTimeout,
        ),
        (LlmError::new(RateLimit, "429 slow down"), RetryClass::Transient),
        (
            LlmError::new(Quota, "The usage limit has been reached"),
            RetryClass::UsageLimit,
        ),
        (LlmError::new(Auth, "401 Unauthorized"), RetryClass::Terminal),
        (
            LlmError::new(ErrorClass::OVERFLOW, "prompt is too long"),
            RetryClass::Overflow,
        ),
        (
            LlmError::new(ErrorClass::BodyTooLarge { limit: None }, "Payload Too Large"),
            RetryClass::Overflow,
        ),
        (
            LlmError::new(
                Other(OtherCause::Refused),
                "the provider stopped the reply for safety (refusal)",
            ),
            RetryClass::Terminal,
        ),
        (
            LlmError::new(Other(OtherCause::InvalidRequest), "invalid request"),
            RetryClass::Terminal,
        ),
        (
            LlmError::new(Other(OtherCause::Unknown), "what is this"),
            RetryClass::Unknown,
        ),
        (
            LlmError::new(Cancelled, "the request was cancelled"),
            RetryClass::None,
        ),
    ];
    for (error, expected) in rows {
        assert_eq!(retry_class_of(&error, EndpointPlace::Remote), expected, "{error}");
        let message = error.recorded_message();
        let mut ended = turn(Some(&message), error.status, &[]);
        ended.message.stop = error.stop_reason();
        assert_eq!(retry_class(&ended, &UserPatterns::default()), expected, "{error}");
    }
}

#[test]
fn what_was_shown_is_not_taken_back() {
    let mut reply = text_reply("");
    assert_eq!(replay_safety(None), ReplaySafety::Safe);
    for (blocks, expected) in [
        (vec![], ReplaySafety::Safe),
        (text_reply("  ").blocks, ReplaySafety::Safe),
        (text_reply("x").blocks, ReplaySafety::ContentShown),
        (
            vec![AssistantBlock::Thinking {
                text: "hm".into(),
                signature: None,
            }],
            ReplaySafety::ContentShown,
        ),
        (
            tool_call("c", "read", "{}").into_iter().collect(),
            ReplaySafety::ContentShown,
        ),
    ] {
        reply.blocks = blocks;
        assert_eq!(replay_safety(Some(&reply)), expected, "{reply:?}");
    }
}

#[test]
fn retries_are_bounded() {
    let policy = RetryPolicy {
        jitter: Jitter::None,
        ..RetryPolicy::TURN
    };
    let decide = |class, replay, failed| decide_retry(class, replay, failed, None, &policy, 0.0);
    for (class, retried) in [
        (RetryClass::Transient, true),
        (RetryClass::Unknown, true),
        (RetryClass::FirstEventTimeout, true),
        (RetryClass::UsageLimit, true),
        (RetryClass::None, false),
        (RetryClass::Terminal, false),
        (RetryClass::Overflow, false),
        (RetryClass::LocalUnavailable, false),
    ] {
        for failed in 0..5_u32 {
            let expected = match (retried, failed < 3) {
                (false, _) => RetryDecision::GiveUp(GiveUp::NotRetried),
                (true, false) => RetryDecision::GiveUp(GiveUp::Exhausted),
                (true, true) => RetryDecision::Retry {
                    attempt: failed + 1,
                    delay: Duration::from_secs(2 << failed),
                },
            };
            assert_eq!(
                decide(class, ReplaySafety::Safe, failed),
                expected,
                "{class:?} {failed}"
            );
        }
    }
    assert_eq!(
        decide(RetryClass::Transient, ReplaySafety::ContentShown, 0),
        RetryDecision::GiveUp(GiveUp::ContentShown)
    );
}

#[test]
fn delays_of_turns() {
    let policy = RetryPolicy::TURN;
    // (retry, hint in ms, random, cap in ms) -> ms
    for (attempt, hint, random, cap, expected) in [
        (1, None, 0.0, 300_000, 0),
        (1, None, 0.5, 300_000, 1000),
        (1, None, 0.999_999, 300_000, 1999),
        (2, None, 0.5, 300_000, 2000),
        (3, None, 0.333_33, 300_000, 2666),
        (9, None, 0.5, 300_000, 150_000),
        (9999, None, 0.5, 300_000, 150_000),
        (1, None, 7.0, 300_000, 2000),
        (1, None, -7.0, 300_000, 0),
        (1, None, f64::NAN, 300_000, 0),
        (1, Some(500), 0.5, 300_000, 500),
        (5, Some(31_000), 0.5, 300_000, 31_000),
        (1, Some(11_180_000), 0.5, 300_000, 300_000),
        (1, Some(11_180_000), 0.5, 100, 100),
    ] {
        let policy = RetryPolicy {
            max_delay: Duration::from_millis(cap),
            ..policy
        };
        let delay = retry_delay(&policy, attempt, hint.map(Duration::from_millis), random);
        assert_eq!(delay.as_millis(), expected, "{attempt} {hint:?} {random} {cap}");
    }
    let uncapped = RetryPolicy {
        max_delay: Duration::MAX,
        jitter: Jitter::None,
        ..policy
    };
    assert_eq!(retry_delay(&uncapped, 13, None, 0.0).as_secs(), 8192);
    let hint = Some(Duration::from_secs(11_180));
    assert_eq!(retry_delay(&uncapped, 1, hint, 0.0).as_secs(), 11_180);
    assert_eq!(fallback_delay(&policy, 1, hint, 0.5).as_secs(), 11_180);
    assert_eq!(
        fallback_delay(&policy, 2, Some(Duration::from_millis(1)), 0.5).as_millis(),
        2000
    );
}

#[test]
fn delays_of_maintenance() {
    let policy = RetryPolicy::TURN;
    for (attempt, hint, expected) in [
        (0, None, 2000),
        (1, None, 4000),
        (2, None, 8000),
        (3, None, 16_000),
        (20, None, 300_000),
        (99, None, 300_000),
        (0, Some(500), 2000),
        (0, Some(31_000), 31_000),
        (0, Some(11_180_000), 300_000),
    ] {
        let delay = maintenance_delay(&policy, attempt, hint.map(Duration::from_millis));
        assert_eq!(delay.as_millis(), expected, "{attempt} {hint:?}");
    }
}
