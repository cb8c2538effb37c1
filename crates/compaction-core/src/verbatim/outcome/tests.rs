use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    AssistantBlock, ErrorClass, LlmReply, OtherCause, StopReason, TransientCause, Usage,
};

use foldline_session_model::LineNumber;

use super::{CallFailure, Category, Outcome, Retries, outcome};
use crate::verbatim::{LineRange, Region, View};

#[allow(clippy::unnecessary_wraps, reason = "answers are results")]
fn reply(texts: &[&str], stop: StopReason, usage: Usage) -> Result<LlmReply, CallFailure> {
    let blocks = texts
        .iter()
        .map(|text| AssistantBlock::Text {
            text: (*text).to_owned().into(),
            signature: None,
        })
        .collect();
    Ok(LlmReply {
        blocks,
        usage,
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    })
}

fn usage(input: u64, output: u64, reasoning: Option<u64>) -> Usage {
    Usage {
        input: Tokens(input),
        output: Tokens(output),
        reasoning: reasoning.map(Tokens),
        ..Usage::default()
    }
}

/// The outcome over 50 lines, of which 1 to 3 are protected, as text.
fn read(answer: &Result<LlmReply, CallFailure>) -> String {
    let lines: Vec<String> = (1..=50).map(|i| format!("line {i}")).collect();
    let text = lines.join("\n");
    let spans = LineRange::new(LineNumber::FIRST, LineNumber::new(3).unwrap());
    let region = Region::guessed_from_text(&text).unwrap().protect(spans);
    match outcome(&View::whole(&region), answer, Some(Tokens(100_000))) {
        Outcome::Ranked { ranges, recovered } => {
            let ranges: Vec<String> = ranges
                .ranges()
                .iter()
                .map(|r| format!("{}..{}", r.start(), r.end()))
                .collect();
            let kind = recovered.map_or_else(|| "ranked".to_owned(), |n| format!("recovered {n}"));
            format!("{kind} {}", ranges.join(" "))
        }
        Outcome::Overflowed { .. } => "overflowed".to_owned(),
        Outcome::Limited {
            category, retries, ..
        } => {
            format!(
                "{}{}",
                category.name(),
                if retries == Retries::Exhausted {
                    " exhausted"
                } else {
                    ""
                }
            )
        }
        Outcome::Unusable { category } | Outcome::ProviderError { category, .. } => {
            category.name().to_owned()
        }
    }
}

/// Spec "Verbatim", section 21: the parser's table through both readings, and the outcomes.
#[test]
fn answers_come_to_outcomes() {
    let table: &[(&[&str], StopReason, &str)] = &[
        (&["5,10\n20,30\n"], StopReason::Stop, "ranked 5..10 20..30"),
        (&["5,10\n20,30"], StopReason::Stop, "ranked 5..10 20..30"),
        (&["5,10\n20,30"], StopReason::Length, "recovered 1 5..10"),
        (&["5,10\n20,30\n40"], StopReason::Stop, "malformed_output"),
        (
            &["5,10\n20,30\n40,"],
            StopReason::Length,
            "recovered 2 5..10 20..30",
        ),
        (&["42,99"], StopReason::Stop, "ranked 42..50"),
        (&["42,99"], StopReason::Length, "malformed_output"),
        (&["0,5\n"], StopReason::Stop, "ranked 4..5"),
        (&["30,20\n"], StopReason::Stop, "ranked 20..30"),
        (&[""], StopReason::Stop, "malformed_output"),
        (&["\n"], StopReason::Stop, "malformed_output"),
        (&["1,2\n\n"], StopReason::Stop, "malformed_output"),
        (&["5,10\n\n20,30\n40"], StopReason::Length, "malformed_output"),
        (&["05,10"], StopReason::Stop, "malformed_output"),
        (&["-5,10"], StopReason::Stop, "malformed_output"),
        (&["5, 10"], StopReason::Stop, "malformed_output"),
        (&["5,10\r\n"], StopReason::Stop, "malformed_output"),
        (&["```\n5,10\n```"], StopReason::Stop, "malformed_output"),
        (&["[5,10]"], StopReason::Stop, "malformed_output"),
        (&["５,１０"], StopReason::Stop, "malformed_output"),
        (&["10,20", "30,40"], StopReason::Stop, "malformed_output"),
        (&["10,20", "\n30,"], StopReason::Length, "recovered 1 10..20"),
        (&["1,3\n"], StopReason::Stop, "no_usable_ranges"),
        (&["1,3\n"], StopReason::Length, "no_usable_ranges"),
        (&["60,70\n"], StopReason::Stop, "no_usable_ranges"),
        (&["1,3\n10,20\n"], StopReason::ToolUse, "ranked 10..20"),
        (
            &["9,99999999999999999999999999\n"],
            StopReason::Stop,
            "ranked 9..50",
        ),
        (&["{\"ranges\":[[1,2]]}"], StopReason::Stop, "malformed_output"),
    ];
    for (texts, stop, expected) in table {
        assert_eq!(
            read(&reply(texts, *stop, Usage::default())),
            *expected,
            "{texts:?} {stop:?}"
        );
    }
}

#[test]
fn usage_tells_starved_and_overflowed_answers() {
    let table = [
        (
            &[""][..],
            StopReason::Length,
            usage(10, 4096, Some(4096)),
            "starved",
        ),
        (
            &["1,3\n"][..],
            StopReason::Length,
            usage(10, 4096, Some(4096)),
            "starved",
        ),
        (
            &[""][..],
            StopReason::Length,
            usage(10, 4096, Some(0)),
            "malformed_output",
        ),
        (
            &["5,10\n"][..],
            StopReason::Stop,
            usage(200_000, 9, None),
            "overflowed",
        ),
        (
            &["5,10\n"][..],
            StopReason::Stop,
            Usage::from_parts(Tokens(10), Tokens(9), Tokens(0), Tokens(200_000)),
            "overflowed",
        ),
        (
            &[""][..],
            StopReason::Length,
            usage(99_500, 0, None),
            "overflowed",
        ),
        (
            &[""][..],
            StopReason::Length,
            usage(98_500, 0, None),
            "malformed_output",
        ),
    ];
    for (texts, stop, usage, expected) in table {
        assert_eq!(read(&reply(texts, stop, usage)), expected, "{usage:?}");
    }
}

#[test]
fn failures_have_categories() {
    let fail = |class, retries| {
        Err(CallFailure {
            class,
            message: "m".to_owned(),
            retries,
        })
    };
    let table = [
        (ErrorClass::OVERFLOW, Retries::None, "overflowed"),
        (
            ErrorClass::BodyTooLarge { limit: None },
            Retries::None,
            "overflowed",
        ),
        (
            ErrorClass::RequestTooLarge {
                limit: None,
                requested: None,
            },
            Retries::None,
            "overflowed",
        ),
        (
            ErrorClass::RateLimit,
            Retries::Exhausted,
            "rate_limited exhausted",
        ),
        (ErrorClass::RateLimit, Retries::None, "rate_limited"),
        (ErrorClass::Quota, Retries::None, "quota"),
        (ErrorClass::Auth, Retries::None, "unauthenticated"),
        (
            ErrorClass::Transient(TransientCause::StreamEnded),
            Retries::None,
            "stream_error",
        ),
        (
            ErrorClass::Other(OtherCause::Refused),
            Retries::None,
            "provider_error",
        ),
    ];
    for (class, retries, expected) in table {
        assert_eq!(read(&fail(class.clone(), retries)), expected, "{class:?}");
    }
    assert!(Category::Quota.is_limit() && !Category::Starved.is_limit());
}

/// Cut anywhere, an answer never yields a range that the whole answer does not have.
#[test]
fn an_answer_cut_at_any_byte_yields_only_whole_records() {
    let whole = "5,10\n20,30\n41,48\n";
    let all = ["", "5..10", "5..10 20..30", "5..10 20..30 41..48"];
    for cut in 0..=whole.len() {
        let text = &whole[..cut];
        let lines = text.matches('\n').count();
        let expected = if lines == 0 {
            "malformed_output".to_owned()
        } else {
            format!("recovered {lines} {}", all[lines])
        };
        assert_eq!(
            read(&reply(&[text], StopReason::Length, Usage::default())),
            expected,
            "{text:?}"
        );
    }
}
