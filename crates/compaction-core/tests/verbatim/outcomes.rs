//! Rows "Outcomes" (spec "Verbatim", sections 9 and 21).
//!
//! How often a request is tried again, in which order that is told, and of which class a text is, is the client's
//! part: `foldline-llm-client`, `retry` and `classify`. What comes here is the class and whether the tries are used up.

use foldline_compaction_core::verbatim::{
    CallFailure, Category, Climb, Ladder, LastRung, RangePrompts, Region, Retries, Step, View, outcome,
};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    CacheHint, ErrorClass, LlmReply, OtherCause, ReasoningEffort, StopReason, TransientCause, Usage,
};
use foldline_session_model::tokens::Heuristic;

use super::support::{Session, ask_once, candidate, climb, lines, long_lines, prepared, reply, told, user};

fn session() -> Session {
    Session::of(&[user(&long_lines(60)), user("x"), user("y")])
}

/// The outcome of an answer over 50 lines, for a model with a window of 100,000 tokens.
fn read(answer: &Result<LlmReply, CallFailure>) -> String {
    let text = lines(50);
    let region = Region::guessed_from_text(&text).unwrap();
    told(outcome(&View::whole(&region), answer, Some(Tokens(100_000))))
}

fn used(
    text: &str,
    stop: StopReason,
    input: u64,
    output: u64,
    reasoning: u64,
) -> Result<LlmReply, CallFailure> {
    let mut answer = reply(text, stop)?;
    answer.usage = Usage {
        input: Tokens(input),
        output: Tokens(output),
        reasoning: Some(Tokens(reasoning)),
        ..Usage::default()
    };
    Ok(answer)
}

#[test]
fn rows_of_outcomes_by_answer() {
    use StopReason::{Length, Stop};
    for (row, answer, expected) in [
        ("ranked", used("5,10\n", Stop, 900, 5, 0), "ranked: 5-10"),
        (
            "recovered",
            used("5,10\n6,", Length, 900, 5, 0),
            "recovered 1: 5-10",
        ),
        (
            "length, empty, reasoning 4096",
            used("", Length, 900, 4096, 4096),
            "starved",
        ),
        (
            "length, empty, reasoning 0",
            used("", Length, 900, 4096, 0),
            "malformed_output",
        ),
        (
            "stop with input 200000 of 100000, although the text is valid",
            used("5,10\n", Stop, 200_000, 5, 0),
            "overflowed",
        ),
        (
            "stop, with most of the input read from a cache",
            reply("5,10\n", Stop).map(|answer| LlmReply {
                usage: Usage::from_parts(Tokens(10), Tokens(9), Tokens::ZERO, Tokens(200_000)),
                ..answer
            }),
            "overflowed",
        ),
        (
            "length, output 0, input 99.5 %",
            used("", Length, 99_500, 0, 0),
            "overflowed",
        ),
        (
            "length, output 0, input 98.5 %",
            used("", Length, 98_500, 0, 0),
            "malformed_output",
        ),
        (
            "an answer that failed, whatever it says",
            used("5,10\n", StopReason::Error, 900, 5, 0),
            "provider_error",
        ),
        (
            "an answer that was stopped, whatever it says",
            used("5,10\n", StopReason::Aborted, 900, 5, 0),
            "stream_error",
        ),
    ] {
        assert_eq!(read(&answer), expected, "{row}");
    }
}

/// Row, class, whether the tries are used up, outcome.
#[test]
fn rows_of_outcomes_by_failure() {
    use ErrorClass::{Auth, Other, Quota, RateLimit, Transient};
    for (row, class, retries, expected) in [
        (
            "429 Too Many Requests, after 3 calls",
            RateLimit,
            Retries::Exhausted,
            "rate_limited, exhausted",
        ),
        (
            "429 Too Many Requests, retries off",
            RateLimit,
            Retries::None,
            "rate_limited",
        ),
        ("insufficient_quota", Quota, Retries::None, "quota"),
        ("the usage limit has been reached", Quota, Retries::None, "quota"),
        (
            "500, 501, 599: of the server, tried again, and no limit of the user",
            Transient(TransientCause::Server),
            Retries::Exhausted,
            "stream_error",
        ),
        (
            "a connection that broke",
            Transient(TransientCause::Network),
            Retries::Exhausted,
            "stream_error",
        ),
        (
            "499, 600, `model 5000`",
            Other(OtherCause::Unknown),
            Retries::None,
            "provider_error",
        ),
        (
            "a refusal",
            Other(OtherCause::Refused),
            Retries::None,
            "provider_error",
        ),
        ("no key", Auth, Retries::None, "unauthenticated"),
        (
            "prompt is too long",
            ErrorClass::OVERFLOW,
            Retries::None,
            "overflowed",
        ),
        (
            "a body of too many bytes",
            ErrorClass::BodyTooLarge { limit: None },
            Retries::None,
            "overflowed",
        ),
        (
            "a request larger than the rate of a minute",
            ErrorClass::RequestTooLarge {
                limit: None,
                requested: None,
            },
            Retries::None,
            "overflowed",
        ),
    ] {
        let answer = Err(CallFailure {
            class,
            message: row.to_owned(),
            retries,
        });
        assert_eq!(read(&answer), expected, "{row}");
    }
}

/// A plan that was read from a cut answer is a plan: nobody is asked again, however far the ladder could go.
#[test]
fn row_recovered_without_another_request() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    for (how_far, last) in [
        (Climb::OneRequest, LastRung::Fail),
        (Climb::AllModels, LastRung::ModelFree { limit: None }),
    ] {
        let models = vec![candidate("acme/large", 0), candidate("beta/small", 0)];
        let climbed = climb(&preparation, models, how_far, last, |_, _| {
            reply("5,40\n41,", StopReason::Length)
        });
        assert_eq!(climbed.requests.len(), 1);
        let plan = climbed.end.unwrap();
        assert_eq!(plan.ranges.ranges().len(), 1);
        assert_eq!(plan.planner, None);
    }
}

/// A limit of the user ends a compaction that somebody asked for after its one request, and says which limit.
#[test]
fn row_a_limit_ends_the_only_request() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    for (class, category) in [
        (ErrorClass::Quota, Category::Quota),
        (ErrorClass::RateLimit, Category::RateLimited),
    ] {
        let answer = Err(CallFailure {
            class,
            message: "The usage limit has been reached".to_owned(),
            retries: Retries::None,
        });
        let error = ask_once(&preparation, &answer).end.unwrap_err();
        assert_eq!((error.category, error.attempts), (category, 1));
        assert_eq!(error.to_string(), "The usage limit has been reached");
    }
}

/// No output limit, no cache of another conversation, and the thinking that was asked for or none.
#[test]
fn row_the_request_has_no_output_limit() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    for reasoning in [
        ReasoningEffort::Unset,
        ReasoningEffort::Off,
        ReasoningEffort::High,
    ] {
        let mut model = candidate("acme/large", 0);
        model.reasoning = reasoning;
        let prompts = RangePrompts::default();
        let mut ladder = Ladder::new(
            &preparation,
            &prompts,
            vec![model],
            Climb::OneRequest,
            LastRung::Fail,
        );
        let Step::Ask { request, .. } = ladder.step(&Heuristic) else {
            panic!("the model is asked")
        };
        assert_eq!(request.max_output, None);
        assert_eq!(request.reasoning, reasoning);
        assert_eq!((request.cache, &request.session_key), (CacheHint::Off, &None));
        assert_eq!((request.messages.len(), request.tools.len()), (1, 0));
    }
}
