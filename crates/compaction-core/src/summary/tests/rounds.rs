//! Many compactions in a row (R13).

use foldline_session_model::tokens::TokenCounter as _;

use super::*;
use crate::testing::{filler, prose};

/// A turn of about a thousand tokens that edits a file, split so that the tail begins within it.
fn turn(rows: Rows, round: usize) -> Rows {
    rows.user(
        &format!("u{round}"),
        &format!("Request {round}: change file {round}. {}", filler(100)),
    )
    .call(
        &format!("a{round}"),
        &format!("k{round}"),
        "edit",
        &format!("{{\"path\":\"src/file_{round}.rs\"}}"),
    )
    .result(&format!("t{round}"), &format!("k{round}"), "edit", &prose(1_500))
    .assistant(&format!("b{round}"), &filler(60))
}

fn rounds(count: usize, cap: u64, echo: impl Fn(&SummaryRequest, usize) -> LlmReply) -> Vec<String> {
    let setup = {
        let mut setup = Setup::new(200_000, 50);
        setup.settings.max_summary_tokens = Some(Tokens(cap));
        setup
    };
    let mut rows = Rows::new();
    let mut summaries = Vec::new();
    for round in 0..count {
        rows = turn(rows, round);
        let log = rows.log();
        let context = context(&log);
        let compaction = setup.compact(&context, |request| echo(request, round)).unwrap();
        assert!(
            Heuristic.one(&compaction.draft.summary) <= Tokens(cap),
            "round {round}"
        );
        summaries.push(compaction.draft.summary.clone());
        rows = appended(rows, &format!("C{round}"), &compaction);
    }
    summaries
}

fn between<'t>(text: &'t str, open: &str, close: &str) -> &'t str {
    text.split_once(open)
        .and_then(|(_, rest)| rest.split_once(close))
        .map_or("", |(inner, _)| inner)
}

/// Repeats the earlier notes and adds 400 tokens.
fn echo(request: &SummaryRequest, round: usize) -> LlmReply {
    let text = prompt(request);
    let previous = between(&text, "<previous-summary>\n", "\n</previous-summary>");
    let added = format!("- [x] Round {round}: {}", filler(380));
    let notes = if previous.is_empty() {
        format!("## Goal\nChange files.\n\n## Progress\n### Done\n{added}")
    } else {
        format!("{previous}\n\n### Done\n{added}")
    };
    reply(&notes)
}

#[test]
fn fb_125_fifty_rounds_stay_under_the_cap() {
    let summaries = rounds(50, 8_000, echo);
    let size = |round: usize| Heuristic.one(&summaries[round]).get();
    assert!(
        size(49) * 10 <= size(29) * 11 && size(49) * 10 >= size(29) * 9,
        "{} {}",
        size(29),
        size(49)
    );
    let last = &summaries[49];
    assert!(last.contains("Round 49") || last.contains("src/file_49.rs"));
}

#[test]
fn fb_127_nothing_nests_and_file_tags_stand_once() {
    for (round, summary) in rounds(31, 3_000, echo).iter().enumerate() {
        for once in [
            TURN_CONTEXT,
            "<read-files>",
            "<modified-files>",
            "<user-messages>",
            "<must-keep>",
        ] {
            assert!(
                summary.matches(once).count() <= 1,
                "round {round}: {once}\n{summary}"
            );
        }
    }
}

#[test]
fn a_model_that_repeats_its_whole_input_never_grows_the_summary() {
    let summaries = rounds(20, 3_000, |request, round| {
        reply(&format!(
            "{}\n\n## Goal\nRound {round} of an echo that is long enough to count as notes.",
            prompt(request)
        ))
    });
    for summary in &summaries {
        assert!(
            !summary.contains("<conversation>") && !summary.contains("Turn the conversation above"),
            "{summary}"
        );
        assert!(summary.matches("<modified-files>").count() == 1);
    }
}

#[test]
fn fifty_rounds_without_a_model_stay_under_the_cap_too() {
    let mut setup = Setup::new(200_000, 50);
    setup.settings.max_summary_tokens = Some(Tokens(3_000));
    let mut rows = Rows::new();
    for round in 0..50 {
        rows = turn(rows, round);
        let log = rows.log();
        let context = context(&log);
        let compaction = match setup.extractive(&context) {
            Ok(compaction) => compaction,
            // A full summary and a small turn: nothing is freed, nothing is written.
            Err(SummaryError::NotSmaller(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        let summary = &compaction.draft.summary;
        assert!(Heuristic.one(summary) <= Tokens(3_000));
        assert_eq!(summary.matches("<modified-files>").count(), 1);
        assert_eq!(summary.matches("without a model").count(), 1);
        rows = appended(rows, &format!("C{round}"), &compaction);
    }
}
