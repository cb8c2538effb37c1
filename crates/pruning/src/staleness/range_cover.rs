//! Range cover: which earlier ranges of a file a later read shows (spec "Pruning", 5.4 and 15).

use std::collections::BTreeMap;

/// Ranges of lines of one file, none inside of another: ends rise with starts.
#[derive(Debug, Default)]
pub(super) struct RangeCover(BTreeMap<u64, u64>);

impl RangeCover {
    /// Whether one of the ranges holds all of this one and more.
    pub(super) fn contains_strictly(&self, (start, end): (u64, u64)) -> bool {
        // Of the ranges that begin early enough, the last one ends last. If it is this very range, no other holds it.
        self.0
            .range(..=start)
            .next_back()
            .is_some_and(|(s, e)| *e >= end && (*s, *e) != (start, end))
    }

    /// Adds a range. Whether one of the others holds all of it and more.
    pub(super) fn insert(&mut self, (start, end): (u64, u64)) -> bool {
        if let Some((&s, &e)) = self.0.range(..=start).next_back().filter(|(_, e)| **e >= end) {
            return (s, e) != (start, end);
        }
        while let Some((&inner, _)) = self.0.range(start..).next().filter(|(_, e)| **e <= end) {
            self.0.remove(&inner);
        }
        self.0.insert(start, end);
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::RangeCover;

    proptest! {
        #[test]
        fn answers_as_a_search_of_all_ranges(ranges in prop::collection::vec((1_u64..30, 0_u64..12), 1..40)) {
            let mut cover = RangeCover::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            for (start, len) in ranges {
                let range = (start, start + len);
                let expected = all.iter().any(|r| r.0 <= range.0 && r.1 >= range.1 && *r != range);
                prop_assert_eq!(cover.contains_strictly(range), expected);
                prop_assert_eq!(cover.insert(range), expected);
                all.push(range);
            }
        }
    }
}
