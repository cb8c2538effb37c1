use super::*;
use crate::verbatim::{RawRange, Region};

/// `(n)` stands for `(filtered n lines)`, a line ending in `!` is protected.
fn spell(short: &str) -> (String, Vec<LineRange>) {
    let mut protected = Vec::new();
    let line = |(i, word): (usize, &str)| {
        let plain = word.strip_suffix('!').unwrap_or(word);
        if plain != word {
            protected.extend(LineRange::from_indices(i, i + 1));
        }
        match plain.strip_prefix('(').and_then(|n| n.strip_suffix(')')) {
            Some(n) => format!("(filtered {n} lines)"),
            None => plain.to_owned(),
        }
    };
    let lines: Vec<String> = short.split('/').enumerate().map(line).collect();
    (lines.join("\n"), protected)
}

fn delete(region: &str, records: &[(u64, u64)]) -> (String, Vec<(u32, u32)>) {
    let (text, protected) = spell(region);
    let region = Region::guessed_from_text(&text).unwrap().protect(protected);
    let records = records.iter().map(|&(start, end)| RawRange { start, end });
    let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
    let out = reconstruct(&region, &ranges);
    assert_eq!(out.line_count(), out.text().split('\n').count());
    let ranges = out.ranges().map(|r| (r.start().get(), r.end().get())).collect();
    (out.into_text(), ranges)
}

#[test]
fn folding_table() {
    for (region, records, expected, ranges) in [
        (" α /β/γ/δ/ε", vec![(2, 2)], " α /(1)/γ/δ/ε", vec![(2, 2)]),
        ("a/b/(12)/d/e/f/g", vec![(2, 6)], "a/(16)/g", vec![(2, 6)]),
        ("a/(3)/(4)/d/e", vec![(4, 4)], "a/(8)/e", vec![(2, 4)]),
        ("a/(3)/(4)/b/c/d", vec![(5, 5)], "a/(3)/(4)/b/(1)/d", vec![(5, 5)]),
        ("a/(3)/(4)/b", vec![(2, 2)], "a/(7)/b", vec![(2, 3)]),
        ("a/b/(3)/c/d", vec![(2, 2), (4, 4)], "a/(5)/d", vec![(2, 4)]),
        ("a/b/(3)!/c", vec![(1, 4)], "(2)/(3)/(1)", vec![(1, 2), (4, 4)]),
        ("a/b/c", vec![(1, 3)], "(3)", vec![(1, 3)]),
        ("a/b/c", vec![], "a/b/c", vec![]),
        ("(2)/a/(3)", vec![(2, 2)], "(6)", vec![(1, 3)]),
        ("(2)/(0)/a", vec![(3, 3)], "(3)", vec![(1, 3)]),
        ("a//b", vec![(1, 1), (3, 3)], "(1)//(1)", vec![(1, 1), (3, 3)]),
        (
            "a/(9999999999999999999)/b",
            vec![(1, 1)],
            "(9999999999999999999)/b",
            vec![(1, 2)],
        ),
    ] {
        let (text, found) = delete(region, &records);
        assert_eq!(text, spell(expected).0, "{region}");
        assert_eq!(found, ranges, "{region}");
    }
}

#[test]
fn counts_add_up_over_three_rounds() {
    let mut text = "a\nb\nc\nd\ne\nf\ng\nh".to_owned();
    for (start, end) in [(2, 4), (3, 4), (3, 3)] {
        let region = Region::guessed_from_text(&text).unwrap();
        let ranges =
            ValidatedRanges::validate([RawRange { start, end }], region.line_count(), region.protected());
        let next = reconstruct(&region, &ranges).into_text();
        text = next;
        let lines: u64 = text.split('\n').map(|l| marker::parse(l).unwrap_or(1)).sum();
        assert_eq!(lines, 8, "{text}");
    }
}

#[test]
fn what_was_removed_is_shown_with_its_text() {
    let (text, _) = spell("a/b/(3)/c/d/e");
    let region = Region::guessed_from_text(&text).unwrap();
    let records = [RawRange { start: 2, end: 2 }, RawRange { start: 6, end: 6 }];
    let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
    let result = reconstruct(&region, &ranges);
    let removed: Vec<(u32, u32, u64, &str)> = result
        .removed()
        .map(|r| (r.range.start().get(), r.range.end().get(), r.count, r.text))
        .collect();
    assert_eq!(removed, [(2, 3, 4, "b\n(filtered 3 lines)"), (6, 6, 1, "e")]);
}

#[test]
fn figures_have_the_stored_names_and_number_forms() {
    let region = Region::guessed_from_text("a\nb\nc").unwrap();
    let ranges = ValidatedRanges::validate(
        [RawRange { start: 2, end: 2 }],
        region.line_count(),
        region.protected(),
    );
    let stats = reconstruct(&region, &ranges).stats(Tokens(1000), Tokens(813));
    assert_eq!(
        serde_json::to_string(&stats).unwrap(),
        r#"{"linesBefore":3,"linesDeleted":1,"linesKept":2,"rangeCount":1,"tokensBefore":1000,"tokensAfter":813,"percentReduction":18.7}"#
    );
    for (before, after, json) in [
        (0, 5, "0"),
        (10, 10, "0"),
        (3, 9, "-200"),
        (100, 59, "41"),
        (2000, 2001, "0"),
        (2000, 2004, "-0.2"),
    ] {
        let percent = PercentTenths::reduction(Tokens(before), Tokens(after));
        assert_eq!(serde_json::to_string(&percent).unwrap(), json);
        assert_eq!(serde_json::from_str::<PercentTenths>(json).unwrap(), percent);
    }
}
