//! Rows "Parser (normal | truncated)" (spec "Verbatim", sections 9 and 21). `⏎` is a newline, as there.

use foldline_compaction_core::verbatim::{RawRange, parse_records, print_records, recover_records};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{StopReason, Usage};

use super::support::{Session, ask_once, long_lines, outcome_of_blocks, prepared, reply, span, user};

const REJECT: Option<usize> = None;

/// Text, records of a finished answer, records of one that its limit cut off.
const ROWS: &[(&str, Option<usize>, Option<usize>)] = &[
    ("5,10⏎20,30⏎", Some(2), Some(2)),
    ("5,10⏎20,30", Some(2), Some(1)),
    ("42,99", Some(1), REJECT),
    ("0,5⏎", Some(1), Some(1)),
    ("", REJECT, REJECT),
    ("⏎", REJECT, REJECT),
    ("1,2⏎⏎", REJECT, REJECT),
    ("⏎1,2", REJECT, REJECT),
    ("5,10⏎20,30⏎40", REJECT, Some(2)),
    ("5,10⏎20,30⏎12", REJECT, Some(2)),
    ("5,10⏎20,30⏎40,", REJECT, Some(2)),
    ("5,10⏎20,30⏎40,5", Some(3), Some(2)),
    ("5,10⏎20,30⏎300,30", Some(3), Some(2)),
    ("5,10⏎abc,5⏎20,30⏎40", REJECT, REJECT),
    ("5,10⏎⏎20,30⏎40", REJECT, REJECT),
    ("05,10", REJECT, REJECT),
    ("-5,10", REJECT, REJECT),
    ("+1,2", REJECT, REJECT),
    ("5.0,10", REJECT, REJECT),
    ("1e2,10", REJECT, REJECT),
    ("5,10,15", REJECT, REJECT),
    ("1, 2", REJECT, REJECT),
    ("1,2\r⏎", REJECT, REJECT),
    ("```⏎1,2⏎```", REJECT, REJECT),
    ("[1,2]", REJECT, REJECT),
    ("１,２", REJECT, REJECT),
    // Ends of any length are read and lie outside of every region.
    ("1,99999999999999999999999999⏎", Some(1), Some(1)),
    ("0,0", Some(1), REJECT),
];

#[test]
fn rows_of_the_parser() {
    for (row, normal, truncated) in ROWS {
        let text = row.replace('⏎', "\n");
        assert_eq!(
            parse_records(&text).ok().map(|records| records.len()),
            *normal,
            "{row:?}"
        );
        assert_eq!(
            recover_records(&text).ok().map(|records| records.len()),
            *truncated,
            "truncated {row:?}"
        );
    }
}

#[test]
fn row_50_records_and_one_that_is_cut_off() {
    let records: Vec<RawRange> = (1..=50)
        .map(|i| RawRange {
            start: 10 * i,
            end: 10 * i + 5,
        })
        .collect();
    let cut = format!("{}505,", print_records(&records));
    assert!(parse_records(&cut).is_err());
    assert_eq!(recover_records(&cut).unwrap(), records);
}

/// Blocks of an answer over 50 lines, of which some are protected; what comes of it finished and cut off.
#[test]
fn rows_of_the_parser_through_an_answer() {
    for (row, blocks, protected, normal, truncated) in [
        (
            "blocks `10,20` and `30,40`: the border is no newline",
            &["10,20", "30,40"][..],
            None,
            "malformed_output",
            "malformed_output",
        ),
        (
            "blocks `10,20` and `⏎30,`",
            &["10,20", "⏎30,"],
            None,
            "malformed_output",
            "recovered 1: 10-20",
        ),
        (
            "`1,3⏎` with P{1,2,3}",
            &["1,3⏎"],
            Some(span(1, 3)),
            "no_usable_ranges",
            "no_usable_ranges",
        ),
        (
            "`1,3⏎10,20⏎`, same P",
            &["1,3⏎10,20⏎"],
            Some(span(1, 3)),
            "ranked: 10-20",
            "recovered 2: 10-20",
        ),
        (
            "`10,20⏎40,60⏎`, 50 lines",
            &["10,20⏎40,60⏎"],
            None,
            "ranked: 10-20 40-50",
            "recovered 2: 10-20 40-50",
        ),
        (
            "a JSON object",
            &["{\"ranges\":[[10,20]]}⏎"],
            None,
            "malformed_output",
            "malformed_output",
        ),
    ] {
        let blocks: Vec<String> = blocks.iter().map(|block| block.replace('⏎', "\n")).collect();
        let told = |stop, usage| outcome_of_blocks(&blocks, stop, usage, protected);
        assert_eq!(told(StopReason::Stop, Usage::default()), normal, "{row}");
        assert_eq!(
            told(StopReason::Length, Usage::default()),
            truncated,
            "truncated {row}"
        );
        // Any other end but the output limit is a finished answer.
        assert_eq!(told(StopReason::ToolUse, Usage::default()), normal, "{row}");
    }
    let thought = Usage {
        output: Tokens(4096),
        reasoning: Some(Tokens(4096)),
        ..Usage::default()
    };
    assert_eq!(
        outcome_of_blocks(
            &["1,3\n".to_owned()],
            StopReason::Length,
            thought,
            Some(span(1, 3))
        ),
        "starved",
        "`1,3⏎` with P{{1,2,3}}, after reasoning"
    );
}

/// A plan comes out of an answer only as the parser reads it.
#[test]
fn rows_of_the_parser_through_a_plan() {
    let session = Session::of(&[user(&long_lines(60)), user("x"), user("y")]);
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    for (row, normal, truncated) in ROWS.iter().filter(|(row, ..)| *row != "0,0") {
        let text = row.replace('⏎', "\n");
        for (stop, records) in [(StopReason::Stop, normal), (StopReason::Length, truncated)] {
            let planned = ask_once(&preparation, &reply(&text, stop)).end;
            assert_eq!(planned.is_ok(), records.is_some(), "{row:?} {stop:?}");
        }
    }
}
