use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::verbatim::{Author, EarlierOrigin, RegionBuilder, SectionKind, reconstruct};

#[derive(Deserialize)]
struct Vectors {
    pack: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    lens: Vec<usize>,
    ranking: Vec<usize>,
    limit: usize,
    kept: Vec<u8>,
    size: u64,
    text: String,
}

fn kept(packed: &Packed, lines: usize) -> Vec<u8> {
    (0..lines).map(|line| u8::from(packed.contains(line))).collect()
}

#[test]
fn packing_is_that_of_the_reference() {
    let vectors: Vectors = serde_json::from_str(include_str!("../vectors.json")).unwrap();
    for case in vectors.pack {
        let text = case
            .lens
            .iter()
            .map(|&n| "x".repeat(n))
            .collect::<Vec<_>>()
            .join("\n");
        let region = Region::guessed_from_text(&text).unwrap();
        let mut packed = Packed::new(&region);
        packed.pack(case.ranking, Target::chars(case.limit));
        assert_eq!(kept(&packed, case.lens.len()), case.kept);
        assert_eq!(packed.chars(), case.size);
        assert_eq!(reconstruct(&region, &packed.deleted(&region)).text(), case.text);
    }
}

#[test]
fn a_target_in_lines_is_met_to_the_line() {
    let text = (0..40).map(|i| i.to_string()).collect::<Vec<_>>().join("\n");
    let region = Region::guessed_from_text(&text).unwrap();
    for limit in 0..=41 {
        let mut packed = Packed::new(&region);
        packed.pack((0..40).rev().step_by(3).chain(0..40), Target::lines(limit));
        assert_eq!(packed.line_count(), limit.min(40));
    }
}

#[test]
fn the_stricter_target_wins() {
    let both = Target::lines(10)
        .and(Target::tokens(5))
        .and(Target::lines(12))
        .and(Target::default());
    assert_eq!(
        both,
        Target {
            lines: Some(10),
            chars: Some(20)
        }
    );
    assert_eq!(
        both.half(),
        Target {
            lines: Some(5),
            chars: Some(10)
        }
    );
    let region = Region::guessed_from_text("123456789").unwrap();
    assert_eq!(Target::percent_of(&region, 50), Target::chars(4));
}

#[test]
fn old_markers_stay_part_of_gaps() {
    let text = "first line, long enough\n(filtered 99 lines)\n\nlast line, long enough too";
    let region = Region::guessed_from_text(text).unwrap();
    let mut packed = Packed::new(&region);
    packed.pack([0, 3], Target::default());
    assert_eq!(
        kept(&packed, 4),
        [1, 0, 0, 1],
        "the short gap is not healed over its marker"
    );
    let all = reconstruct(&region, &packed.deleted(&region));
    assert_eq!(
        all.text(),
        "first line, long enough\n(filtered 100 lines)\nlast line, long enough too"
    );

    packed.pack([2], Target::default());
    assert!(!packed.contains(1));
    assert!(
        packed.deleted(&region).is_empty(),
        "a lone old marker stays as it is"
    );
    assert_eq!(packed.chars(), text.len() as u64);
    assert_eq!(packed.line_count(), 4, "the marker is a line of the result");
}

#[test]
fn protected_lines_stay_whatever_the_target_says() {
    let region = Region::guessed_from_text("[User]: <keepContext>\nrule\n</keepContext>\nx\ny").unwrap();
    let mut packed = Packed::new(&region);
    packed.pack([4, 3], Target::chars(0));
    let text = reconstruct(&region, &packed.deleted(&region)).into_text();
    assert_eq!(
        text, "[User]: <keepContext>\nrule\n</keepContext>\nx\ny",
        "short gaps come along"
    );
}

prop_compose! {
    fn lines()(lines in prop::collection::vec(
        prop_oneof![3 => "[a-zé ]{0,40}", 1 => (0u64..2000).prop_map(|n| format!("(filtered {n} lines)"))], 1..40
    )) -> String { lines.join("\n") }
}

proptest! {
    #[test]
    fn what_is_written_is_within_the_target(
        earlier in lines(),
        fresh in lines(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        chars in 30usize..800,
        line_limit in 0usize..50,
    ) {
        let mut b = RegionBuilder::new();
        b.earlier(&earlier, EarlierOrigin::ForeignVerbatim).unwrap();
        b.begin_message(None, Author::Session);
        b.section(SectionKind::ToolResult, |t| t.push_str(&fresh));
        let region = b.finish().unwrap();
        let n = region.line_count();
        let mut packed = Packed::new(&region);
        let before = packed.chars();
        let lines_at_least = packed.line_count();
        packed.pack(order.iter().map(|i| i.index(n)), Target::chars(chars).and(Target::lines(line_limit)));
        let text = reconstruct(&region, &packed.deleted(&region)).into_text();
        prop_assert_eq!(text.chars().count() as u64, packed.chars());
        prop_assert!(packed.chars() <= before.max(chars as u64));
        prop_assert!(packed.line_count() <= line_limit.max(lines_at_least));
        prop_assert_eq!(packed.line_count(), n - packed.deleted(&region).line_count());
        prop_assert!(region.markers().iter().all(|(line, _)| !packed.contains(line.index())));
        let lines_before: u64 = region.lines().map(|l| if let LinePart::Marker(n) = l.part { n } else { 1 }).sum();
        let trusted = |line: &str| !fresh.split('\n').any(|f| f == line);
        if region.markers().iter().all(|(l, _)| trusted(region.line_text(*l))) && fresh.split('\n').all(|l| marker::parse(l).is_none()) {
            let after: u64 = text.split('\n').map(|l| marker::parse(l).unwrap_or(1)).sum();
            prop_assert_eq!(after, lines_before);
        }
    }
}
