use proptest::prelude::*;

use super::*;

fn protect(spans: &[(usize, usize)]) -> LineSet {
    spans
        .iter()
        .filter_map(|&(a, b)| LineRange::from_indices(a - 1, b))
        .collect()
}

fn validate(records: &[(u64, u64)], lines: usize, protected: &[(usize, usize)]) -> Vec<(u32, u32)> {
    let records = records.iter().map(|&(start, end)| RawRange { start, end });
    ValidatedRanges::validate(records, lines, &protect(protected))
        .ranges()
        .iter()
        .map(|r| (r.start().get(), r.end().get()))
        .collect()
}

/// Besides the rows of the specification (`tests/verbatim/ranges.rs`, `parser.rs`).
#[test]
fn ends_beyond_the_region_and_touching_ranges() {
    assert_eq!(validate(&[(1, 4), (9, 12)], 20, &[(3, 10)]), [(1, 2), (11, 12)]);
    assert_eq!(validate(&[(1, u64::MAX)], 3, &[]), [(1, 3)]);
    assert_eq!(validate(&[(1, 9)], 0, &[]), []);
    assert_eq!(
        validate(&[(1, 2), (3, 4)], 9, &[]),
        [(1, 4)],
        "touching ranges are one"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_numbers_of_any_length_are_read() {
    assert_eq!(
        parse_records("1,2\n3\n4,5"),
        Err(RecordsError::Malformed { line: 2 })
    );
    assert_eq!(
        parse_records("1,99999999999999999999"),
        Ok(vec![RawRange {
            start: 1,
            end: u64::MAX
        }])
    );
}

proptest! {
    #[test]
    fn validated_ranges_hold_what_their_type_says(
        records in prop::collection::vec((0u64..30, 0u64..30), 0..15),
        spans in prop::collection::vec((1usize..20, 0usize..4), 0..4),
        lines in 0usize..25,
    ) {
        let spans: Vec<_> = spans.into_iter().map(|(a, n)| (a, a + n)).collect();
        let protected = protect(&spans);
        let once = ValidatedRanges::validate(
            records.iter().map(|&(start, end)| RawRange { start, end }), lines, &protected);
        let deleted = |n: u64| records.iter().any(|&(a, b)| (a.min(b)..=a.max(b)).contains(&n));
        for n in 1..=lines {
            let line = foldline_session_model::LineNumber::from_index(n - 1);
            let inside = once.ranges().iter().any(|r| r.start() <= line && line <= r.end());
            prop_assert_eq!(inside, deleted(n as u64) && !protected.contains(line));
        }
        prop_assert!(once.ranges().windows(2).all(|w| w[0].end() < w[1].start()));
        prop_assert!(once.ranges().iter().all(|r| r.end().index() < lines));
        let twice = ValidatedRanges::validate(once.ranges().iter().map(|&r| r.into()), lines, &protected);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn printed_records_are_parsed_again(records in prop::collection::vec(any::<(u64, u64)>(), 1..20)) {
        let records: Vec<_> = records.into_iter().map(|(start, end)| RawRange { start, end }).collect();
        let text = print_records(&records);
        prop_assert_eq!(parse_records(&text), Ok(records.clone()));
        for cut in 0..text.len() {
            match recover_records(&text[..cut]) {
                Ok(some) => prop_assert_eq!(&some[..], &records[..some.len()]),
                Err(e) => prop_assert_eq!(e, RecordsError::Empty),
            }
        }
    }

    #[test]
    fn parsing_is_total(text in "[0-9,\n\r -]{0,40}|.{0,40}") {
        let all = parse_records(&text).is_ok();
        let complete = recover_records(&text).is_ok();
        prop_assert!(!(text.ends_with('\n') && all != complete));
    }
}
