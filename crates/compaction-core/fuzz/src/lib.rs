//! What holds for verbatim compaction whatever it is given (spec "Verbatim", section 23).
//!
//! The bodies are plain functions over bytes: the fuzz target runs them on what it invents, and the tests of the crate
//! on a corpus and on random bytes.

use foldline_compaction_core::verbatim::marker::MAX_COUNT;
use foldline_compaction_core::verbatim::{
    Author, EarlierOrigin, Line, LinePart, LineRange, LineSet, ParameterLayer, Parameters, RawRange, Region,
    RegionBuilder, SectionKind, ValidatedRanges, View, parse_records, print_records, reconstruct,
    recover_records,
};
use foldline_session_model::LineNumber;
use foldline_session_model::tokens::{CharsPerFour, TokenCounter as _};

/// Runs all of them. The input is cut at bytes that no text has: first the answer of a planner, then protected lines,
/// then the sections of a transcript.
///
/// # Panics
/// When something does not hold.
pub fn verbatim(input: &[u8]) {
    let mut parts = input.split(|byte| *byte == 0xFF);
    let answer = text_of(parts.next());
    let spans = parts.next().unwrap_or_default();
    let sections: Vec<(u8, String)> = parts
        .map(|part| match part.split_first() {
            Some((kind, text)) => (*kind, text_of(Some(text))),
            None => (0, String::new()),
        })
        .collect();

    let records = answers(&answer);
    parameters(spans);
    for (_, text) in &sections {
        bare_text(text, &records, spans);
    }
    compactions(&sections, &records, spans);
}

fn text_of(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// The grammar of answers. Returns what can be read of one.
fn answers(answer: &str) -> Vec<RawRange> {
    let whole = parse_records(answer);
    if let Ok(records) = &whole {
        assert_eq!(
            parse_records(&print_records(records)).as_ref(),
            Ok(records),
            "what is printed is read again"
        );
    }
    // Only whole lines are taken from a cut answer, and each as the whole answer has it.
    let lines: Vec<usize> = answer.match_indices('\n').map(|(at, _)| at).collect();
    let step = lines.len() / 64 + 1;
    for cut in lines.iter().step_by(step).flat_map(|at| [*at, at + 1, at + 2]) {
        let Some(prefix) = answer.get(..cut) else { continue };
        if let (Ok(some), Ok(all)) = (recover_records(prefix), &whole) {
            assert_eq!(
                all.get(..some.len()),
                Some(&*some),
                "a cut answer says nothing new"
            );
        }
    }
    whole.or_else(|_| recover_records(answer)).unwrap_or_default()
}

fn parameters(bytes: &[u8]) {
    let number = |at: usize| {
        let bytes: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(f64::from_le_bytes(bytes))
    };
    let layer = ParameterLayer {
        ratio: number(0),
        preserve_recent: number(8),
        query: Some(text_of(bytes.get(16..))),
        budget: number(16),
    };
    let (merged, _) = Parameters::merge(std::slice::from_ref(&layer), Some(" "));
    assert!(merged.ratio.get() > 0.0 && merged.ratio.get() < 1.0);
    assert!(!merged.query.trim().is_empty());
    assert_eq!(
        Parameters::merge(&[layer.clone(), layer], Some(" ")).0,
        merged,
        "merging again changes nothing"
    );
}

/// Lines to protect: pairs of a distance and a length.
fn protected(bytes: &[u8]) -> Vec<LineRange> {
    let mut at = 0;
    let span = |pair: &[u8]| {
        let &[gap, len] = pair else { return None };
        let start = at + usize::from(gap);
        at = start + usize::from(len);
        LineRange::new(
            LineNumber::from_index(start),
            LineNumber::from_index(at.checked_sub(1)?),
        )
    };
    bytes.chunks(2).take(32).filter_map(span).collect()
}

fn bare_text(text: &str, records: &[RawRange], spans: &[u8]) {
    let region = Region::guessed_from_text(text).expect("it is small");
    let lines: Vec<&str> = region.lines().map(|line| line.text).collect();
    assert_eq!(
        lines.join("\n"),
        text,
        "lines are cut at newlines and nowhere else"
    );
    assert_eq!(lines, text.split('\n').collect::<Vec<_>>());
    deletion(&region.protect(protected(spans)), records);
}

/// Deletes records of a region. Returns nothing: everything is checked here.
fn deletion(region: &Region<'_>, records: &[RawRange]) {
    let count = region.line_count();
    let ranges = ValidatedRanges::validate(records.iter().copied(), count, region.protected());
    let again = ValidatedRanges::validate(
        ranges.ranges().iter().map(|r| (*r).into()),
        count,
        region.protected(),
    );
    assert_eq!(again, ranges, "normalising twice changes nothing");
    for range in ranges.ranges() {
        assert!(range.end().index() < count);
    }

    let result = reconstruct(region, &ranges);
    let deleted: LineSet = result.ranges().collect();
    assert_eq!(result.line_count() == 0, count == 0);
    assert_eq!(result.ranges().len(), deleted.ranges().len(), "runs are apart");
    let runs = deleted.ranges();
    let mut next_run = 0;
    let mut survivors = region
        .lines()
        .filter(|line| !deleted.contains(line.number))
        .peekable();
    for line in result.text().split('\n').take(result.line_count()) {
        // A survivor may look like a marker, so the place decides which of both a line is.
        let of_run = runs
            .get(next_run)
            .is_some_and(|run| survivors.peek().is_none_or(|line| line.number > run.start()));
        if of_run {
            next_run += 1;
            assert!(line.starts_with("(filtered ") && line.ends_with(" lines)"));
        } else {
            assert_eq!(
                survivors.next().map(|line| line.text),
                Some(line),
                "survivors are byte for byte"
            );
        }
    }
    assert!(
        survivors.next().is_none() && next_run == runs.len(),
        "every line and every run is there"
    );
    for line in region.lines().filter(|line| line.protected) {
        assert!(!deleted.contains(line.number), "protected lines stay");
    }
    let before = CharsPerFour.one(region.text());
    let stats = result.stats(before, CharsPerFour.one(result.text()));
    assert_eq!(stats.lines_kept + stats.lines_deleted, stats.lines_before);

    // What a model may be shown of it, and everything deleted.
    let mut view = View::whole(region);
    while let Some(smaller) = view.smaller() {
        assert!(smaller.line_count() < view.line_count());
        view = smaller;
        if let Some(ranges) = view.ranges(records) {
            assert!(ranges.ranges().iter().all(|r| r.end().index() < count));
        }
    }
    let all = ValidatedRanges::validate(
        [RawRange {
            start: 1,
            end: u64::MAX,
        }],
        count,
        region.protected(),
    );
    let nothing = reconstruct(region, &all);
    let protected = region.lines().filter(|line| line.protected);
    let mut rest = nothing.text().split('\n');
    for line in protected {
        assert!(
            rest.any(|kept| kept == line.text),
            "protected lines survive in order"
        );
    }
}

fn expanded(region: &Region<'_>) -> u64 {
    region.lines().fold(0_u64, |sum, line| {
        let count = if let LinePart::Marker(count) = line.part {
            count
        } else {
            1
        };
        sum.saturating_add(count).min(MAX_COUNT)
    })
}

/// Three compactions in a row, each over the text of the one before and the same sections once more.
fn compactions(sections: &[(u8, String)], records: &[RawRange], spans: &[u8]) {
    const KINDS: [SectionKind; 5] = [
        SectionKind::User,
        SectionKind::AssistantThinking,
        SectionKind::Assistant,
        SectionKind::ToolCalls,
        SectionKind::ToolResult,
    ];
    let mut earlier = None;
    let mut ever = 0_u64;
    for _ in 0..3 {
        let mut builder = RegionBuilder::new();
        let mut old_lines = 0;
        if let Some((text, record)) = &earlier {
            let text: &String = text;
            builder
                .earlier(text, EarlierOrigin::Recorded(record))
                .expect("a record fits its own text");
            old_lines = if text.is_empty() {
                0
            } else {
                text.split('\n').count()
            };
        }
        for (kind, text) in sections {
            let author = if kind & 0x80 == 0 {
                Author::Session
            } else {
                Author::Synthetic
            };
            builder.begin_message(None, author);
            builder.section(KINDS[usize::from(kind & 0x7F) % KINDS.len()], |out| {
                out.push_str(text);
            });
        }
        let region = builder.finish().expect("it is small");
        ever = ever.saturating_add((region.line_count() - old_lines) as u64);
        assert_eq!(
            expanded(&region),
            ever,
            "markers and lines account for every line there ever was"
        );
        assert!(
            region.markers().iter().all(|(line, _)| line.index() < old_lines),
            "only the earlier text has markers"
        );
        if spans.is_empty() {
            // The blank line in front of a section belongs to the span above it.
            let own =
                |line: &Line<'_>| line.kind == SectionKind::ToolResult && line.part != LinePart::Separator;
            let found = region.lines().find(|line| own(line) && line.protected);
            assert!(found.is_none(), "no tool result protects itself: {found:?}");
        }
        deletion(&region, records);
        let region = region.protect(protected(spans));
        deletion(&region, records);

        let ranges =
            ValidatedRanges::validate(records.iter().copied(), region.line_count(), region.protected());
        let result = reconstruct(&region, &ranges);
        let record = result.provenance();
        earlier = Some((result.into_text(), record));
    }
}
