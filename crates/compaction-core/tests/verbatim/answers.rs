//! A scripted model that answers well, badly, cut, emptily, with hostility and at length. In every failure there is an
//! error with its category and no plan, so there is nothing that could be written.

use foldline_compaction_core::verbatim::{CallFailure, Category, Retries};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, OtherCause, StopReason, TransientCause, Usage};

use super::support::{Session, ask_once, finished, long_lines, prepared, reply, user};

/// 60 lines in the region; lines 1 to 3 are protected.
fn session() -> Session {
    Session::of(&[
        user(&format!(
            "<keepContext>\nrule\n</keepContext>\n{}",
            long_lines(57)
        )),
        user("x"),
        user("y"),
    ])
}

/// The outcome of one request, as text: the ranges, or category and number of requests.
fn outcome(answer: &Result<foldline_session_model::model_call::LlmReply, CallFailure>) -> String {
    let session = session();
    let before = session.text();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let climbed = ask_once(&preparation, answer);
    let told = match climbed.end {
        Ok(plan) => {
            let compaction = finished(&preparation, &plan).unwrap();
            assert!(
                compaction
                    .draft
                    .summary
                    .starts_with("[User]: <keepContext>\nrule\n</keepContext>"),
                "protected lines stay whatever is answered"
            );
            let ranges: Vec<String> = plan
                .ranges
                .ranges()
                .iter()
                .map(|r| format!("{}-{}", r.start(), r.end()))
                .collect();
            ranges.join(" ")
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            format!("{} after {}", error.category.name(), error.attempts)
        }
    };
    assert_eq!(session.text(), before, "planning writes nothing");
    told
}

/// 25 shapes and more that models have been seen to answer with; each is refused as a whole.
#[test]
fn malformed_shapes_are_refused() {
    let shapes = [
        "5-10",
        "5,10,15",
        "5, 10",
        "5 ,10",
        " 5,10",
        "5,10 ",
        "5;10",
        "05,10",
        "+5,10",
        "-5,10",
        "5.0,10",
        "5e1,60",
        "0x5,10",
        "[5,10]",
        "(5,10)",
        "[[5,10],[20,30]]",
        "{\"ranges\":[[5,10]]}",
        "```\n5,10\n```",
        "- 5,10\n- 20,30",
        "1. 5,10",
        "Lines 5 to 10",
        "ranges:\n5,10",
        "5,10\n\n20,30",
        "5,10\r\n20,30\r\n",
        "5,10\n20,30\nDone.",
        "５,１０",
        "5→10",
        "5,10\n20",
        "5,",
        ",10",
        "5\n10",
        "5,10\u{feff}",
        "\u{feff}5,10",
        "5,10\t",
        "I cannot help with that.",
        "<answer>5,10</answer>",
        "",
        "\n",
        "   ",
        "null",
    ];
    assert!(shapes.len() >= 25);
    for shape in shapes {
        for stop in [StopReason::Stop, StopReason::ToolUse] {
            assert_eq!(
                outcome(&reply(shape, stop)),
                "malformed_output after 1",
                "{shape:?}"
            );
        }
    }
}

#[test]
fn good_answers_are_taken_in_any_order() {
    for (answer, ranges) in [
        ("10,20\n", "10-20"),
        ("40,50\n10,20", "10-20 40-50"),
        ("20,10\n", "10-20"),
        ("1,60\n", "4-60"),
        ("0,5\n", "4-5"),
        ("50,99999999999999999999999999", "50-60"),
        ("10,20\n21,30\n15,25\n", "10-30"),
        ("10,20\n10,20\n10,20\n", "10-20"),
        ("10,20\n900,901\n", "10-20"),
    ] {
        assert_eq!(outcome(&reply(answer, StopReason::Stop)), ranges, "{answer:?}");
    }
    for answer in ["1,3\n", "61,70\n", "0,0\n", "2,2\n1,1\n"] {
        assert_eq!(
            outcome(&reply(answer, StopReason::Stop)),
            "no_usable_ranges after 1",
            "{answer:?}"
        );
    }
}

/// Cut at every byte by the output limit: whole records count, the rest is as if it had not been written.
#[test]
fn an_answer_cut_at_every_byte() {
    let whole = "41,48\n5,10\n20,30\n12,12\n";
    let by_records = [
        "41-48",
        "5-10 41-48",
        "5-10 20-30 41-48",
        "5-10 12-12 20-30 41-48",
    ];
    for cut in 0..=whole.len() {
        let text = &whole[..cut];
        let records = text.matches('\n').count();
        let expected = match records {
            0 => "malformed_output after 1",
            n => by_records[n - 1],
        };
        assert_eq!(outcome(&reply(text, StopReason::Length)), expected, "{text:?}");
    }
    // Cut without anybody saying so: an answer that ends in the middle of a record is no answer, and one that ends
    // inside of a number cannot be told from a whole one.
    for cut in 0..=whole.len() {
        let text = &whole[..cut];
        let last = text
            .strip_suffix('\n')
            .unwrap_or(text)
            .rsplit('\n')
            .next()
            .unwrap();
        let complete = last.split_once(',').is_some_and(|(_, end)| !end.is_empty());
        let malformed = outcome(&reply(text, StopReason::Stop)) == "malformed_output after 1";
        assert_eq!(malformed, !complete, "{text:?}");
    }
}

#[test]
fn hostile_and_huge_answers() {
    let huge = "10,20\n".repeat(200_000);
    assert_eq!(outcome(&reply(&huge, StopReason::Stop)), "10-20");
    let long_number = format!("10,{}", "9".repeat(1_000_000));
    assert_eq!(outcome(&reply(&long_number, StopReason::Stop)), "10-60");
    let prose = "Sure! Here is the transcript without the boring lines. ".repeat(20_000);
    assert_eq!(
        outcome(&reply(&prose, StopReason::Stop)),
        "malformed_output after 1"
    );
    assert_eq!(
        outcome(&reply(&prose, StopReason::Length)),
        "malformed_output after 1"
    );
    for text in [
        "</numbered-transcript>\n10,20",
        "(filtered 30 lines)",
        "[User]: 10,20",
        "10,20\u{0}",
        "10,20\u{2028}30,40",
        "10,20\n[Assistant]: 30,40\n",
    ] {
        assert_eq!(
            outcome(&reply(text, StopReason::Stop)),
            "malformed_output after 1",
            "{text:?}"
        );
    }
}

/// The excerpt in an error is the beginning of the answer, not all of it.
#[test]
fn an_error_shows_500_characters() {
    let session = session();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let answer = reply(&"é".repeat(900), StopReason::Stop);
    let error = ask_once(&preparation, &answer).end.unwrap_err();
    assert_eq!(error.excerpt.unwrap(), "é".repeat(500));
    let error = ask_once(&preparation, &reply("", StopReason::Stop))
        .end
        .unwrap_err();
    assert_eq!(error.excerpt, None);
}

#[test]
fn failures_of_the_provider_keep_their_category() {
    let fail = |class| {
        Err(CallFailure {
            class,
            message: "said no".to_owned(),
            retries: Retries::Exhausted,
        })
    };
    for (class, category) in [
        (ErrorClass::OVERFLOW, Category::ContextOverflow),
        (ErrorClass::RateLimit, Category::RateLimited),
        (ErrorClass::Quota, Category::Quota),
        (ErrorClass::Auth, Category::Unauthenticated),
        (
            ErrorClass::Transient(TransientCause::Network),
            Category::StreamError,
        ),
        (
            ErrorClass::Transient(TransientCause::EmptyReply),
            Category::StreamError,
        ),
        (ErrorClass::Other(OtherCause::Refused), Category::ProviderError),
        (
            ErrorClass::MediaRejected {
                message: None,
                entry: None,
            },
            Category::ProviderError,
        ),
    ] {
        assert_eq!(
            outcome(&fail(class.clone())),
            format!("{} after 1", category.name()),
            "{class:?}"
        );
    }
    let mut starved = reply("", StopReason::Length).unwrap();
    starved.usage = Usage {
        output: Tokens(4096),
        reasoning: Some(Tokens(4096)),
        ..Usage::default()
    };
    assert_eq!(outcome(&Ok(starved)), "starved after 1");
}
