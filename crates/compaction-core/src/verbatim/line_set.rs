//! Sets of lines as sorted, disjoint ranges.

use foldline_session_model::LineNumber;

/// A range of lines, both ends included; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineRange {
    start: LineNumber,
    end: LineNumber,
}

impl LineRange {
    /// The range from `start` to `end`; `None` when it would be empty.
    pub fn new(start: LineNumber, end: LineNumber) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    /// The range of the lines at positions `from..to`, counted from 0.
    pub(crate) fn from_indices(from: usize, to: usize) -> Option<Self> {
        (from < to).then(|| Self {
            start: LineNumber::from_index(from),
            end: LineNumber::from_index(to - 1),
        })
    }

    /// The first line.
    pub const fn start(self) -> LineNumber {
        self.start
    }

    /// The last line.
    pub const fn end(self) -> LineNumber {
        self.end
    }

    /// How many lines it holds.
    pub const fn line_count(self) -> usize {
        self.end.index() - self.start.index() + 1
    }

    /// The range with its end moved on to the position before `to`, if it is not there yet.
    #[must_use]
    pub(crate) fn extended_to(self, to: usize) -> Self {
        let last = to.checked_sub(1).map_or(self.end, LineNumber::from_index);
        Self {
            end: self.end.max(last),
            ..self
        }
    }

    /// The positions counted from 0.
    pub(crate) const fn indices(self) -> std::ops::Range<usize> {
        self.start.index()..self.end.index() + 1
    }
}

/// A set of lines: sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineSet {
    ranges: Vec<LineRange>,
}

impl LineSet {
    /// The empty set.
    pub const EMPTY: Self = Self { ranges: Vec::new() };

    /// The ranges in order.
    pub fn ranges(&self) -> &[LineRange] {
        &self.ranges
    }

    /// Whether no line is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many lines are in the set.
    pub fn line_count(&self) -> usize {
        self.ranges.iter().map(|r| r.line_count()).sum()
    }

    /// Whether a line is in the set.
    pub fn contains(&self, line: LineNumber) -> bool {
        let at = self.ranges.partition_point(|r| r.end() < line);
        self.ranges.get(at).is_some_and(|r| r.start() <= line)
    }

    /// The part of the set up to a last line.
    #[must_use]
    pub(crate) fn up_to(&self, line_count: usize) -> Self {
        self.ranges
            .iter()
            .filter_map(|r| LineRange::from_indices(r.indices().start, r.indices().end.min(line_count)))
            .collect()
    }
}

impl FromIterator<LineRange> for LineSet {
    /// Ranges may come in any order and overlap; overlapping and touching ones become one.
    fn from_iter<I: IntoIterator<Item = LineRange>>(iter: I) -> Self {
        let mut ranges: Vec<LineRange> = iter.into_iter().collect();
        if !ranges.is_sorted() {
            ranges.sort_unstable();
        }
        ranges.dedup_by(|next, last| {
            let touches = next.start.index() <= last.end.index() + 1;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        Self { ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(usize, usize)]) -> LineSet {
        ranges
            .iter()
            .filter_map(|&(a, b)| LineRange::from_indices(a, b))
            .collect()
    }

    #[test]
    fn touching_and_nested_ranges_become_one() {
        let s = set(&[(6, 8), (0, 2), (1, 9), (9, 10), (12, 13)]);
        assert_eq!(s, set(&[(0, 10), (12, 13)]));
        assert_eq!(s.line_count(), 11);
        assert!(s.contains(LineNumber::FIRST));
        assert!(!s.contains(LineNumber::from_index(10)));
        assert!(s.contains(LineNumber::from_index(12)));
        assert!(!s.contains(LineNumber::from_index(13)));
        assert_eq!(s.up_to(5), set(&[(0, 5)]));
    }
}
