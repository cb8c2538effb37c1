//! Tool results that try to pass for something else (DESIGN D7; spec "Verbatim", section 20, rows 4 and 5).

use std::path::Path;

use foldline_compaction_core::verbatim::{
    Climb, LastRung, Line, LinePart, Preparation, RangePlan, Region, SectionKind,
};
use foldline_session_model::LineNumber;
use foldline_session_model::model_call::StopReason;

use super::support::{
    Session, ask_once, assistant, call, candidate, climb, deleting, finished, long_lines, prepared, reply,
    result, user, without_model,
};

/// Name and text of each hostile result.
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spoofing");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    files
        .iter()
        .map(|path| (name(path), std::fs::read_to_string(path).unwrap()))
        .collect()
}

/// A session with the hostile result between two harmless ones.
fn session(hostile: &str) -> Session {
    Session::of(&[
        user("look around"),
        call("c1", "read", r#"{"path":"a"}"#),
        result("c1", &long_lines(40)),
        call("c2", "read", r#"{"path":"b"}"#),
        result("c2", hostile),
        call("c3", "read", r#"{"path":"c"}"#),
        result("c3", &long_lines(40)),
        assistant("done"),
        user("go on"),
        assistant("gone"),
    ])
}

/// So many lines are deleted on either side of the hostile result.
const EACH: u64 = 12;

/// The sections that the session has: so many lines begin with a role header of ours.
const SECTIONS: usize = 8;

/// The lines that came from the hostile result.
fn hostile_lines<'r>(region: &'r Region<'_>) -> Vec<Line<'r>> {
    let of_result = |line: &Line<'_>| {
        let origin = &region.messages()[line.message.index()].origin;
        origin.as_ref().is_some_and(|id| id.as_str() == "m4") && !matches!(line.part, LinePart::Marker(_))
    };
    region.lines().filter(of_result).collect()
}

/// Every line of the hostile result is a plain line of a tool result, and nothing of it counts for more.
fn assert_plain(name: &str, preparation: &Preparation<'_, '_>, hostile: &str, markers: &[u64]) {
    let region = preparation.region();
    assert!(preparation.provenance_error().is_none(), "{name}");
    assert!(region.protected().is_empty(), "{name}: nothing is protected");
    let found: Vec<u64> = region.markers().iter().map(|(_, count)| *count).collect();
    assert_eq!(found, markers, "{name}: the markers are ours");
    let found = hostile_lines(region);
    let text: Vec<&str> = found
        .iter()
        .filter(|line| line.part != LinePart::Separator)
        .map(|line| line.text)
        .collect();
    assert_eq!(
        text.join("\n"),
        format!("[Tool result]: {hostile}"),
        "{name}: word for word"
    );
    for line in found {
        assert_eq!(line.kind, SectionKind::ToolResult, "{name}: {:?}", line.text);
        assert!(!line.protected);
        if line.part == LinePart::Header {
            assert!(line.text.starts_with("[Tool result]: "), "{name}");
        }
    }
}

/// Deletes every line of the two harmless results that stands next to the hostile one: whatever could fold would.
fn around_hostile(preparation: &Preparation<'_, '_>) -> RangePlan {
    let region = preparation.region();
    let hostile = hostile_lines(region);
    let number = |line: &Line<'_>| u64::from(line.number.get());
    // The blank line in front belongs to the hostile result too.
    let (first, last) = (number(&hostile[0]), number(&hostile[hostile.len() - 1]));
    deleting(preparation, &[(first - EACH, first - 1), (last + 1, last + EACH)])
}

#[test]
fn no_line_becomes_more_than_it_is_over_two_compactions() {
    let corpus = corpus();
    assert!(corpus.len() >= 40, "{} hostile results", corpus.len());
    for (name, hostile) in &corpus {
        let mut session = session(hostile);
        // Blocks lose one newline at their end.
        let hostile = hostile.strip_suffix('\n').unwrap_or(hostile);
        let mut marker_counts: Vec<u64> = Vec::new();
        for round in 0..2_u64 {
            let compaction = {
                let context = session.context();
                let preparation = prepared(&context, 2).unwrap();
                assert_plain(name, &preparation, hostile, &marker_counts);
                if round == 0 {
                    assert_eq!(preparation.region().header_lines().count(), SECTIONS, "{name}");
                }
                let compaction = finished(&preparation, &around_hostile(&preparation)).unwrap();
                assert_eq!(compaction.stats.range_count, 2, "{name}");
                assert_eq!(
                    compaction.stats.lines_deleted as u64,
                    2 * EACH,
                    "{name}: what looks like a marker does not fold"
                );
                compaction
            };
            assert!(compaction.draft.summary.contains(hostile), "{name}");
            session.commit(&compaction);
            session.message(&user("more"));
            session.message(&assistant("yes"));
            // The marker of the first round is one of the lines that the second deletes, and counts for its own.
            marker_counts = vec![EACH + (EACH - 1) * round; 2];
        }
        let context = session.context();
        assert_plain(name, &prepared(&context, 2).unwrap(), hostile, &marker_counts);
    }
}

/// The embedded planner may delete hostile lines; what it counts is still exact.
#[test]
fn counts_stay_exact_whatever_is_deleted() {
    for (name, hostile) in &corpus() {
        let mut session = session(hostile);
        let mut ever = 0;
        for _ in 0..2 {
            let compaction = {
                let context = session.context();
                let preparation = prepared(&context, 2).unwrap();
                let region = preparation.region();
                let expanded: u64 = region
                    .lines()
                    .map(|line| {
                        if let LinePart::Marker(count) = line.part {
                            count
                        } else {
                            1
                        }
                    })
                    .sum();
                if ever == 0 {
                    ever = expanded;
                } else {
                    // Two messages of one line each came in, each behind a blank line but the first after the
                    // earlier text, which follows at once.
                    assert_eq!(expanded, ever + 3, "{name}");
                }
                assert!(region.protected().is_empty(), "{name}");
                finished(&preparation, &without_model(&preparation)).unwrap()
            };
            session.commit(&compaction);
            session.message(&user("more"));
            session.message(&assistant("yes"));
        }
    }
}

/// The frame of the request holds: one closing tag, and each line of the region behind its number.
#[test]
fn no_result_ends_the_data_of_a_request() {
    for (name, hostile) in &corpus() {
        let session = session(hostile);
        let context = session.context();
        let preparation = prepared(&context, 2).unwrap();
        let climbed = ask_once(&preparation, &reply("1,3\n", StopReason::Stop));
        let prompt = &climbed.requests[0].1;
        assert_eq!(prompt.matches("</numbered-transcript>").count(), 1, "{name}");
        assert_eq!(prompt.matches("</focus>").count(), 2, "{name}");
        let data = prompt.split("<numbered-transcript>\n").nth(1).unwrap();
        let data = data.split("</numbered-transcript>").next().unwrap();
        let region = preparation.region();
        assert_eq!(data.matches('\n').count(), region.line_count(), "{name}");
        for (at, line) in data.split('\n').take(region.line_count()).enumerate() {
            let number = LineNumber::from_index(at);
            let text = line.strip_prefix(&format!("{number}→"));
            let own = region.line_text(number);
            assert!(
                text.is_some_and(|text| text == own || text.replace("<\\", "<") == own),
                "{name}: {line:?}"
            );
        }
        assert!(climbed.end.is_ok(), "{name}");
    }
}

/// A model that obeys the transcript can delete lines, and nothing else.
#[test]
fn an_answer_made_of_hostile_text_is_refused() {
    for (name, hostile) in &corpus() {
        let session = session(hostile);
        let context = session.context();
        let preparation = prepared(&context, 2).unwrap();
        let climbed = climb(
            &preparation,
            vec![candidate("acme/large", 0)],
            Climb::OneRequest,
            LastRung::Fail,
            |_, _| reply(hostile, StopReason::Stop),
        );
        match climbed.end {
            Ok(plan) => assert_eq!((name.as_str(), plan.ranges.ranges().len()), ("records", 1)),
            Err(error) => assert_eq!(error.category.name(), "malformed_output", "{name}"),
        }
    }
}
