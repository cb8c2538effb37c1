//! Packs ranked lines into a target: the text that would be written, markers included, never exceeds it.

use std::ops::Range;

use super::kept_lines::KeptLines;
use super::need::char_count;
use crate::verbatim::{LinePart, LineRange, RawRange, Region, ValidatedRanges, marker};

/// How much may stay. The stricter of the limits wins; without one everything may stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    lines: Option<usize>,
    chars: Option<usize>,
}

impl Target {
    /// At most this many lines of the region, old markers that stay as they are among them; new markers are
    /// not counted.
    pub const fn lines(lines: usize) -> Self {
        Self {
            lines: Some(lines),
            chars: None,
        }
    }

    /// At most this many characters (Unicode scalar values), markers and newlines included.
    pub const fn chars(chars: usize) -> Self {
        Self {
            lines: None,
            chars: Some(chars),
        }
    }

    /// At most this many tokens of four characters.
    pub const fn tokens(tokens: usize) -> Self {
        Self::chars(tokens.saturating_mul(4))
    }

    /// A share of the tokens of a region, at four characters per token, both rounded as in the evaluation:
    /// the region's tokens up, the share down.
    pub fn percent_of(region: &Region<'_>, percent: usize) -> Self {
        let tokens = char_count(region.text()).div_ceil(4);
        Self::tokens(tokens.saturating_mul(percent) / 100)
    }

    /// Both targets at once.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let stricter = |a: Option<usize>, b: Option<usize>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            lines: stricter(self.lines, other.lines),
            chars: stricter(self.chars, other.chars),
        }
    }

    /// Half of it, rounded down.
    #[must_use]
    pub(super) fn half(self) -> Self {
        self.share(|n| n / 2)
    }

    /// Three quarters of it, rounded down.
    #[must_use]
    pub(super) fn three_quarters(self) -> Self {
        self.share(|n| n - n.div_ceil(4))
    }

    fn share(self, of: impl Fn(usize) -> usize) -> Self {
        Self {
            lines: self.lines.map(&of),
            chars: self.chars.map(&of),
        }
    }
}

/// The choice of lines so far.
#[derive(Clone, Debug)]
pub struct Packed {
    kept: KeptLines,
    kept_lines: usize,
    /// Old markers that stay as they are, alone in their gap: they are lines of the result too.
    lone_markers: usize,
    /// Characters of the text that would be written, and one for a newline at its end.
    size: u64,
    /// Characters of the lines above each line, each with its newline.
    above: Vec<u64>,
    /// What the trusted markers above each line stand for beyond their own line; empty without markers.
    hidden: Vec<u128>,
    is_marker: Vec<bool>,
}

impl Packed {
    /// Nothing is kept but protected lines, which stay whatever the target says.
    pub fn new(region: &Region<'_>) -> Self {
        let lines = region.line_count();
        let mut above = Vec::with_capacity(lines + 1);
        let mut hidden = Vec::new();
        let mut is_marker = Vec::new();
        let has_markers = !region.markers().is_empty();
        let (mut chars, mut more) = (0u64, 0u128);
        above.push(0);
        if has_markers {
            hidden.push(0);
        }
        for line in region.lines() {
            chars += char_count(line.text) as u64 + 1;
            above.push(chars);
            if has_markers {
                let count = if let LinePart::Marker(count) = line.part {
                    Some(count)
                } else {
                    None
                };
                more += u128::from(count.unwrap_or(1));
                hidden.push(more);
                is_marker.push(count.is_some());
            }
        }
        let mut this = Self {
            kept: KeptLines::new(lines),
            kept_lines: 0,
            lone_markers: 0,
            size: 0,
            above,
            hidden,
            is_marker,
        };
        this.size = this.gap_size(0..lines);
        this.lone_markers = usize::from(this.is_lone_marker(&(0..lines)));
        for range in region.protected().ranges() {
            for line in range.indices() {
                if !this.kept.contains(line) {
                    this.insert(line, Target::default());
                }
            }
        }
        this
    }

    /// Packs lines in the order given; one that does not fit is left out, later ones may still fit.
    pub fn pack(&mut self, order: impl IntoIterator<Item = usize>, target: Target) {
        for line in order {
            self.keep(line, target);
        }
    }

    /// Keeps a line if what is written then stays within the target, and says whether it is kept.
    ///
    /// What is left of the gap on either side comes along if its text is not longer than its marker. Old
    /// markers are no lines of their own: they are neither kept nor do they come along, they stay part of gaps.
    pub fn keep(&mut self, line: usize, target: Target) -> bool {
        self.kept.contains(line) || (self.is_marker.get(line) != Some(&true) && self.insert(line, target))
    }

    /// Whether a line is kept.
    pub fn contains(&self, line: usize) -> bool {
        self.kept.contains(line)
    }

    /// How many lines of the region stay, old markers that stay alone in their gap among them.
    pub fn line_count(&self) -> usize {
        self.kept_lines + self.lone_markers
    }

    /// Characters of the text that will be written.
    pub fn chars(&self) -> u64 {
        self.size.saturating_sub(1)
    }

    /// The ranges to delete. A gap of nothing but one old marker is none: that marker stays as it is.
    pub fn deleted(&self, region: &Region<'_>) -> ValidatedRanges {
        let mut ranges = Vec::new();
        let mut at = 0;
        let lines = region.line_count();
        while at < lines {
            if self.kept.contains(at) {
                at += 1;
                continue;
            }
            let gap = self.kept.gap(at);
            at = gap.end;
            if !self.is_lone_marker(&gap) {
                ranges.extend(LineRange::from_indices(gap.start, gap.end).map(RawRange::from));
            }
        }
        ValidatedRanges::validate(ranges, lines, region.protected())
    }

    fn insert(&mut self, line: usize, target: Target) -> bool {
        if line + 1 >= self.above.len() {
            return false;
        }
        let gap = self.kept.gap(line);
        let before = self.gap_size(gap.clone());
        let healed_start = if self.is_short(gap.start..line) {
            gap.start
        } else {
            line
        };
        let healed_end = if self.is_short(line + 1..gap.end) {
            gap.end
        } else {
            line + 1
        };
        // With a target in lines the neighbours come along only while there is room for them.
        let candidates = [healed_start..healed_end, line..line + 1];
        for (attempt, lines) in candidates.into_iter().enumerate() {
            let after = self.text_size(lines.clone())
                + self.gap_size(gap.start..lines.start)
                + self.gap_size(lines.end..gap.end);
            let size = self.size - before + after;
            let fits_chars = target.chars.is_none_or(|limit| size <= limit as u64 + 1);
            let lone = |part: Range<usize>| usize::from(self.is_lone_marker(&part));
            let lone_markers = self.lone_markers + lone(gap.start..lines.start) + lone(lines.end..gap.end)
                - lone(gap.clone());
            let fits_lines = target
                .lines
                .is_none_or(|limit| self.kept_lines + lone_markers + lines.len() <= limit);
            if fits_chars && fits_lines {
                self.size = size;
                self.kept_lines += lines.len();
                self.lone_markers = lone_markers;
                for line in lines {
                    self.kept.insert(line);
                }
                return true;
            }
            if attempt == 0 && fits_lines {
                return false;
            }
        }
        false
    }

    fn is_lone_marker(&self, gap: &Range<usize>) -> bool {
        gap.len() == 1 && self.is_marker.get(gap.start) == Some(&true)
    }

    /// Characters and newline of what is written for a gap.
    fn gap_size(&self, gap: Range<usize>) -> u64 {
        if gap.is_empty() {
            return 0;
        }
        if self.is_lone_marker(&gap) {
            return self.text_size(gap);
        }
        marker::len(self.gap_count(gap)) as u64 + 1
    }

    /// What the marker of a gap counts.
    fn gap_count(&self, gap: Range<usize>) -> u64 {
        match (self.hidden.get(gap.start), self.hidden.get(gap.end)) {
            (Some(start), Some(end)) => u64::try_from(end - start).unwrap_or(u64::MAX),
            _ => gap.len() as u64,
        }
    }

    fn text_size(&self, lines: Range<usize>) -> u64 {
        self.above[lines.end] - self.above[lines.start]
    }

    /// Whether the text of a part of a gap is not longer than the marker for it.
    fn is_short(&self, part: Range<usize>) -> bool {
        if self.text_size(part.clone()) > marker::len(marker::MAX_COUNT) as u64 + 1 {
            return false; // no marker is that long
        }
        self.text_size(part.clone()) <= self.gap_size(part.clone())
            && !self
                .is_marker
                .get(part)
                .is_some_and(|markers| markers.contains(&true))
    }
}

#[cfg(test)]
mod tests;
