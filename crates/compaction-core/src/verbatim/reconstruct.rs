//! Deletes ranges of lines and leaves a marker in place of each run (spec "Verbatim", section 11).

use std::hint::black_box;
use std::ops::Range;

use foldline_session_model::Tokens;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::line::Region;
use super::line_set::{LineRange, LineSet};
use super::marker;
use super::ranges::ValidatedRanges;

/// A region with lines deleted.
#[derive(Clone, Debug)]
pub struct Reconstruction<'r> {
    pub(crate) region: &'r Region<'r>,
    text: String,
    runs: Vec<Run>,
}

/// Deletes the ranges from the region.
///
/// Survivors keep their bytes and their order. A trusted marker next to deleted lines folds into their run,
/// chains of markers too; protected markers never do (spec "Verbatim", section 20, 3). Each run becomes one
/// marker whose count is cumulative: an earlier marker counts for the lines it stands for. Linear in the text.
pub fn reconstruct<'r>(region: &'r Region<'r>, ranges: &ValidatedRanges) -> Reconstruction<'r> {
    let runs = fold_markers(region, ranges.ranges());
    let text = write_text(region, &runs);
    Reconstruction { region, text, runs }
}

impl Reconstruction<'_> {
    /// The compacted text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The compacted text, owned.
    pub fn into_text(self) -> String {
        self.text
    }

    /// What was deleted, folded markers included, in order.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = LineRange> {
        self.runs.iter().map(|r| r.range)
    }

    /// What was deleted, with its text, in order: the difference to the region, for whoever wants to see it.
    pub fn removed(&self) -> impl ExactSizeIterator<Item = Removed<'_>> {
        self.runs.iter().map(|run| Removed {
            range: run.range,
            count: run.count,
            text: self.region.text_between(run.range.indices()),
        })
    }

    /// The protected spans of the region; all of them are in the text.
    pub fn kept_ranges(&self) -> &LineSet {
        self.region.protected()
    }

    /// How many lines the text has, new markers included.
    pub fn line_count(&self) -> usize {
        self.region.line_count() - self.deleted_lines() + self.runs.len()
    }

    /// The figures of this compaction. Both token numbers must come from one estimator (DESIGN D10).
    pub fn stats(&self, tokens_before: Tokens, tokens_after: Tokens) -> VerbatimStats {
        let lines_before = self.region.line_count();
        let lines_deleted = self.deleted_lines();
        VerbatimStats {
            lines_before,
            lines_deleted,
            lines_kept: lines_before - lines_deleted,
            range_count: self.runs.len(),
            tokens_before,
            tokens_after,
            percent_reduction: PercentTenths::reduction(tokens_before, tokens_after),
        }
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    fn deleted_lines(&self) -> usize {
        self.runs.iter().map(|r| r.range.line_count()).sum()
    }
}

/// A run of deleted lines with its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed<'r> {
    /// Where it was in the region.
    pub range: LineRange,
    /// The count of its marker: more than the lines of the range if earlier markers folded into it.
    pub count: u64,
    /// The lines, joined by newlines.
    pub text: &'r str,
}

/// A run of deleted lines and the count its marker shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) range: LineRange,
    count: u64,
}

/// Figures of a verbatim compaction, named as in the stored entry (spec "Verbatim", section 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerbatimStats {
    /// Lines of the region.
    pub lines_before: usize,
    /// Physical lines deleted, folded markers included.
    pub lines_deleted: usize,
    /// Lines left; new markers are not counted.
    pub lines_kept: usize,
    /// Runs of deleted lines.
    pub range_count: usize,
    /// Estimate before.
    pub tokens_before: Tokens,
    /// Estimate after.
    pub tokens_after: Tokens,
    /// How much smaller it is; negative when it grew.
    pub percent_reduction: PercentTenths,
}

/// A percentage with one decimal, in tenths of a percent; JSON shows it as JavaScript does (`41`, `18.7`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PercentTenths(pub i64);

impl PercentTenths {
    /// `(1 - after / before) * 100`, rounded half up to a tenth; 0 when nothing was there before.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and the number comes out of a division of token counts"
    )]
    pub fn reduction(before: Tokens, after: Tokens) -> Self {
        if before == Tokens::ZERO {
            return Self(0);
        }
        // Same steps as the systems whose entries carry this figure, so that it is equal to the last digit.
        let share = after.get() as f64 / before.get() as f64;
        Self(((1.0 - share) * 1000.0 + 0.5).floor() as i64)
    }
}

impl Serialize for PercentTenths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 % 10 == 0 {
            serializer.serialize_i64(self.0 / 10)
        } else {
            serializer.serialize_f64(self.0 as f64 / 10.0)
        }
    }
}

impl<'de> Deserialize<'de> for PercentTenths {
    #[allow(clippy::cast_possible_truncation, reason = "the cast saturates")]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self((f64::deserialize(deserializer)? * 10.0).round() as i64))
    }
}

/// The runs to delete: the ranges, the markers beside them in chains, and what thereby touches, joined.
fn fold_markers(region: &Region<'_>, ranges: &[LineRange]) -> Vec<Run> {
    let protected = region.protected();
    let foldable: Vec<usize> = region
        .markers()
        .iter()
        .filter(|(at, _)| !protected.contains(*at))
        .map(|(at, _)| at.index())
        .collect();
    let marker_at = |position: usize| foldable.get(position).copied();

    let mut runs: Vec<Run> = Vec::with_capacity(ranges.len());
    let mut next = 0; // the first marker not yet passed
    let mut done = 0; // the line after the last run
    for range in ranges {
        let mut lines = range.indices();
        while marker_at(next).is_some_and(|m| m < lines.start) {
            next += 1;
        }
        let mut above = next;
        while above > 0 && lines.start > done && marker_at(above - 1) == Some(lines.start - 1) {
            above -= 1;
            lines.start -= 1;
        }
        while marker_at(next).is_some_and(|m| m <= lines.end) {
            if marker_at(next) == Some(lines.end) {
                lines.end += 1;
            }
            next += 1;
        }
        match runs.last_mut() {
            Some(last) if lines.start <= done => last.range = last.range.extended_to(lines.end),
            _ => runs
                .extend(LineRange::from_indices(lines.start, lines.end).map(|range| Run { range, count: 0 })),
        }
        done = done.max(lines.end);
    }

    let mut markers = region.markers().iter().peekable();
    for run in &mut runs {
        run.count = run.range.line_count() as u64;
        while markers.next_if(|(at, _)| *at < run.range.start()).is_some() {}
        while let Some((_, lines)) = markers.next_if(|(at, _)| *at <= run.range.end()) {
            // The marker's own line is not one of the deleted lines, those it stands for are.
            run.count = run
                .count
                .saturating_sub(1)
                .saturating_add(*lines)
                .min(marker::MAX_COUNT);
        }
    }
    runs
}

/// Copies what stays in whole stretches and writes a marker for each run, into one buffer of the right size. Only the
/// stretches that stay are read: a text may be far larger than what a cache holds.
fn write_text(region: &Region<'_>, runs: &[Run]) -> String {
    let deleted: usize = runs.iter().map(|r| region.byte_len(r.range.indices())).sum();
    let markers: usize = runs.iter().map(|r| marker::len(r.count) + 1).sum();
    let mut out = String::with_capacity(region.text().len() + 1 + markers - deleted);
    let copy = |out: &mut String, lines: Range<usize>| {
        if !lines.is_empty() {
            out.push_str(region.text_between(lines));
            out.push('\n');
        }
    };
    let mut from = 0;
    for together in runs.chunks(RUNS_TOGETHER) {
        fetch_survivors(region, from, together);
        for run in together {
            let lines = run.range.indices();
            copy(&mut out, from..lines.start);
            marker::write(&mut out, run.count);
            out.push('\n');
            from = lines.end;
        }
    }
    copy(&mut out, from..region.line_count());
    out.pop(); // the newline after the last line
    out
}

/// Runs whose surroundings are read together.
const RUNS_TOGETHER: usize = 64;

/// Of lines that stay, so many are read ahead: what follows them is foreseen by the processor.
const LINES_FETCHED: usize = 4;

/// Reads some of the lines that stay above each run, the first of them at `from`. They stand far apart in a large
/// text: to wait for each of them when it is copied would take longer than everything else, this way the waits overlap.
fn fetch_survivors(region: &Region<'_>, mut from: usize, runs: &[Run]) {
    let mut seen = 0;
    for run in runs {
        let lines = run.range.indices();
        let few = (from..=lines.start).take(LINES_FETCHED);
        seen ^= few.fold(0, |all, line| all ^ region.first_byte_at(line));
        from = lines.end;
    }
    black_box(seen);
}

#[cfg(test)]
mod tests;
