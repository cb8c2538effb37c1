//! Rows "Ranges and folding" (spec "Verbatim", sections 10, 11 and 21).
//!
//! Regions and results are spelled as there, with `|` between lines, because closing tags contain a `/`: `(n)` is
//! `(filtered n lines)`, ` P{4,5}` behind a region protects these lines, and `40 lines` is a region of that size.

use foldline_compaction_core::verbatim::{
    Author, LineRange, LineSet, RawRange, Reconstruction, Region, RegionBuilder, SectionKind,
    ValidatedRanges, marker, parse_records, reconstruct,
};
use foldline_session_model::LineNumber;
use proptest::prelude::*;

use super::support::lines;

fn spell(words: &str) -> String {
    if let Some(count) = words.strip_suffix(" lines") {
        return lines(count.parse().unwrap());
    }
    let line = |word: &str| match word.strip_prefix('(').and_then(|word| word.strip_suffix(')')) {
        Some(count) if count.parse::<u64>().is_ok() => format!("(filtered {count} lines)"),
        _ => word.to_owned(),
    };
    words.split('|').map(line).collect::<Vec<_>>().join("\n")
}

/// One protected line per number.
fn protect(numbers: &str) -> Vec<LineRange> {
    let number = |number: &str| LineNumber::new(number.parse().unwrap()).unwrap();
    numbers
        .split(',')
        .map(|text| LineRange::new(number(text), number(text)).unwrap())
        .collect()
}

/// Deletes records such as `2-4, 9-7` from a region and shows what there is to see.
fn deleted<T>(region: &str, records: &str, show: impl FnOnce(&Reconstruction<'_>) -> T) -> T {
    let (words, numbers) = match region.split_once(" P{") {
        Some((words, numbers)) => (words, numbers.trim_end_matches('}')),
        None => (region, ""),
    };
    let text = spell(words);
    let mut region = Region::guessed_from_text(&text).unwrap();
    if !numbers.is_empty() {
        region = region.protect(protect(numbers));
    }
    let answer = records.replace(", ", "\n").replace('-', ",");
    let ranges = ValidatedRanges::validate(
        parse_records(&answer).unwrap(),
        region.line_count(),
        region.protected(),
    );
    show(&reconstruct(&region, &ranges))
}

fn ranges_of(result: &Reconstruction<'_>) -> String {
    show(result.ranges())
}

fn show(ranges: impl Iterator<Item = LineRange>) -> String {
    let ranges: Vec<String> = ranges
        .map(|range| format!("[{}..{}]", range.start(), range.end()))
        .collect();
    ranges.join(",")
}

/// Region, raw deletions, what is deleted.
#[test]
fn rows_of_ranges() {
    for (region, records, expected) in [
        // `-2`, `2.9` and `nope` are no numbers of the grammar (below); what their sum comes to is.
        ("a|b|c|d|e|f", "9-4, 0-2, 2-3", "[1..6]"),
        (
            "one|[User]: task|three||[Assistant]: ok|six P{4}",
            "1-6",
            "[1..3],[5..6]",
        ),
        ("a|b P{1,2}", "1-2", ""),
        (
            "noise|<keepContext>|x|</keepContext>|more",
            "1-5",
            "[1..1],[5..5]",
        ),
        ("40 lines", "20-10, 5-8, 7-12", "[5..20]"),
        ("40 lines", "0-3, 30-900", "[1..3],[30..40]"),
        ("40 lines P{5,6,15}", "1-20", "[1..4],[7..14],[16..20]"),
        ("3 lines", "0-0", ""),
        ("3 lines", "9-12", ""),
    ] {
        assert_eq!(
            deleted(region, records, ranges_of),
            expected,
            "{region}: {records}"
        );
    }
    // Ends that are missing or no whole numbers are refused with all of their answer, not rounded.
    for records in ["9,4\n-2,-2", "9,4\n2.9,3.2", "9,4\nnope,4", "9,4\n{}", "1,", ",2"] {
        assert!(parse_records(records).is_err(), "{records:?}");
    }
}

/// Region, raw deletions, text, what is deleted.
#[test]
fn rows_of_folding() {
    for (region, records, expected, ranges) in [
        (" α |β|γ|δ|ε", "2-2", " α |(1)|γ|δ|ε", "[2..2]"),
        ("a|b|(12)|d|e|f|g", "2-6", "a|(16)|g", "[2..6]"),
        ("a|(3)|(4)|d|e", "4-4", "a|(8)|e", "[2..4]"),
        ("a|(3)|(4)|b|c|d", "5-5", "a|(3)|(4)|b|(1)|d", "[5..5]"),
        ("a|b|(3)|c|d", "2-2, 4-4", "a|(5)|d", "[2..4]"),
        // Ours: a protected marker stays, and nothing folds over it.
        ("a|b|(3)|c P{3}", "1-4", "(2)|(3)|(1)", "[1..2],[4..4]"),
    ] {
        let found = deleted(region, records, |result| {
            (result.text().to_owned(), ranges_of(result))
        });
        assert_eq!(found, (spell(expected), ranges.to_owned()), "{region}: {records}");
    }
}

#[test]
fn row_a_to_h_over_three_rounds_counts_eight_lines_in_each() {
    let mut text = spell("a|b|c|d|e|f|g|h");
    for (records, expected) in [("2-4", "a|(3)|e|f|g|h"), ("3-4", "a|(5)|g|h"), ("3-3", "a|(6)|h")] {
        let words = text.replace('\n', "|");
        text = deleted(&words, records, |result| result.text().to_owned());
        assert_eq!(text, spell(expected));
        let lines: u64 = text
            .split('\n')
            .map(|line| marker::parse(line).unwrap_or(1))
            .sum();
        assert_eq!(lines, 8, "{text}");
    }
}

#[test]
fn row_kept_ranges_name_the_protected_spans() {
    let region = "[User]: <keepContext>|rule|</keepContext>|t|t";
    let (kept, text) = deleted(region, "1-5", |result| {
        (
            show(result.kept_ranges().ranges().iter().copied()),
            result.text().to_owned(),
        )
    });
    assert_eq!(kept, "[1..3]");
    assert_eq!(text, spell("[User]: <keepContext>|rule|</keepContext>|(2)"));
}

/// Ours: a line of fresh text that looks like a marker counts for one line, whether it goes or stays.
#[test]
fn row_a_fresh_look_alike_between_deletions_counts_as_one_line() {
    let mut builder = RegionBuilder::new();
    builder.begin_message(None, Author::Session);
    builder.section(SectionKind::ToolResult, |text| {
        text.push_str(&spell("a|b|(1000000)|c|d"));
    });
    let region = builder.finish().unwrap();
    for (records, expected) in [
        ("2,2\n4,4", "[Tool result]: a|(1)|(1000000)|(1)|d"),
        ("2,4", "[Tool result]: a|(3)|d"),
    ] {
        let ranges = ValidatedRanges::validate(
            parse_records(records).unwrap(),
            region.line_count(),
            region.protected(),
        );
        assert_eq!(reconstruct(&region, &ranges).text(), spell(expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    /// Up to 15 records over 8 lines: in bounds, sorted, disjoint, without protected lines; once more changes nothing.
    #[test]
    fn row_random_records(
        records in prop::collection::vec((0_u64..20, 0_u64..20), 0..=15),
        protected in prop::collection::btree_set(1_u32..=8, 0..8),
    ) {
        let span = |n: &u32| LineNumber::new(*n).and_then(|n| LineRange::new(n, n));
        let protected: LineSet = protected.iter().filter_map(span).collect();
        let records = records.iter().map(|&(start, end)| RawRange { start, end });
        let once = ValidatedRanges::validate(records, 8, &protected);
        let mut after = 0;
        for range in once.ranges() {
            prop_assert!(range.start().index() >= after && range.start() <= range.end());
            prop_assert!(range.end().index() < 8);
            let mut lines = (range.start().index()..=range.end().index()).map(LineNumber::from_index);
            prop_assert!(!lines.any(|line| protected.contains(line)));
            after = range.end().index() + 1;
        }
        let twice = ValidatedRanges::validate(once.ranges().iter().map(|&r| r.into()), 8, &protected);
        prop_assert_eq!(twice, once);
    }
}
