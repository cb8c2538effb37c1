//! The planner's answer: `start,end` records, and the ranges of lines that may really be deleted
//! (spec "Verbatim", sections 9.1, 9.2 and 10).

use thiserror::Error;

use super::line_set::{LineRange, LineSet};

/// One record as the planner wrote it: in any order, possibly outside of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawRange {
    /// One end; numbers too large for the type stop at its maximum.
    pub start: u64,
    /// The other end.
    pub end: u64,
}

impl From<LineRange> for RawRange {
    fn from(range: LineRange) -> Self {
        Self {
            start: range.start().get().into(),
            end: range.end().get().into(),
        }
    }
}

/// Why an answer holds no usable records.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordsError {
    /// A line is not exactly `start,end`; one such line rejects the whole answer.
    #[error("line {line} of the answer is not a `start,end` record")]
    Malformed {
        /// The line of the answer, counted from 1.
        line: usize,
    },
    /// The answer has no (complete) record at all.
    #[error("the answer has no complete `start,end` record")]
    Empty,
}

/// Parses a finished answer: every line is `start,end`; one final newline is allowed (section 9.1).
///
/// # Errors
/// [`RecordsError`] when any line is something else, blank lines included, or there is no record.
pub fn parse_records(text: &str) -> Result<Vec<RawRange>, RecordsError> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return Err(RecordsError::Empty);
    }
    // A record takes at least four bytes with its newline, about nine in practice.
    let mut records = Vec::with_capacity(body.len() / 8 + 1);
    let bytes = body.as_bytes();
    let mut at = 0;
    loop {
        let Some((record, end)) = record_at(bytes, at) else {
            return Err(RecordsError::Malformed {
                line: records.len() + 1,
            });
        };
        records.push(record);
        if end == bytes.len() {
            return Ok(records);
        }
        at = end + 1;
    }
}

/// Recovers the complete records of an answer that the output limit cut off: what follows the last newline
/// is dropped even if it looks complete, everything before it must be valid (section 9.2).
///
/// # Errors
/// [`RecordsError`] when there is no complete line or a complete line is not a record.
pub fn recover_records(text: &str) -> Result<Vec<RawRange>, RecordsError> {
    match memchr::memrchr(b'\n', text.as_bytes()) {
        Some(end) => parse_records(text.get(..=end).unwrap_or_default()),
        None => Err(RecordsError::Empty),
    }
}

/// Writes records in the form that [`parse_records`] reads.
pub fn print_records(records: &[RawRange]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(records.len() * 10);
    for r in records {
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "{},{}", r.start, r.end);
    }
    out
}

/// Ranges that are in order, disjoint, inside of the region and free of protected lines.
/// Only validation makes them, so whoever holds one may delete it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatedRanges {
    ranges: Vec<LineRange>,
}

impl ValidatedRanges {
    /// Normalises records against a region of `line_count` lines (section 10): swapped ends are turned round,
    /// ends are clamped, overlapping and touching ranges joined, protected lines taken out.
    pub fn validate(
        records: impl IntoIterator<Item = RawRange>,
        line_count: usize,
        protected: &LineSet,
    ) -> Self {
        let last = u64::try_from(line_count).unwrap_or(u64::MAX);
        let merged: LineSet = records
            .into_iter()
            .filter_map(|r| {
                let start = r.start.min(r.end).max(1);
                let end = r.start.max(r.end).min(last);
                // Both fit: they are between 1 and the number of lines.
                LineRange::from_indices(usize::try_from(start - 1).ok()?, usize::try_from(end).ok()?)
            })
            .collect();
        Self {
            ranges: without(merged.ranges(), protected),
        }
    }

    /// The ranges in order.
    pub fn ranges(&self) -> &[LineRange] {
        &self.ranges
    }

    /// Whether nothing is left to delete.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many lines would be deleted, markers that fold in not counted.
    pub fn line_count(&self) -> usize {
        self.ranges.iter().map(|r| r.line_count()).sum()
    }
}

/// Takes the protected lines out of sorted ranges.
fn without(ranges: &[LineRange], protected: &LineSet) -> Vec<LineRange> {
    if protected.is_empty() {
        return ranges.to_vec();
    }
    let mut out = Vec::with_capacity(ranges.len());
    let mut spans = protected.ranges();
    for range in ranges {
        let mut from = range.indices().start;
        let to = range.indices().end;
        while let Some((span, rest)) = spans.split_first() {
            let span = span.indices();
            if span.start >= to {
                break;
            }
            out.extend(LineRange::from_indices(from, span.start));
            from = from.max(span.end);
            if span.end > to {
                break; // it may reach into the next range
            }
            spans = rest;
        }
        out.extend(LineRange::from_indices(from, to));
    }
    out
}

/// The record that starts at `at` and ends at a newline or the end, with that end.
fn record_at(bytes: &[u8], at: usize) -> Option<(RawRange, usize)> {
    let (start, comma) = number_at(bytes, at)?;
    if bytes.get(comma) != Some(&b',') {
        return None;
    }
    let (end, stop) = number_at(bytes, comma + 1)?;
    matches!(bytes.get(stop), None | Some(b'\n')).then_some((RawRange { start, end }, stop))
}

/// An unsigned number without leading zero; stops at the largest one.
fn number_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let digits = bytes.get(at..)?;
    let mut value = 0u64;
    let mut len = 0;
    for b in digits {
        if !b.is_ascii_digit() {
            break;
        }
        value = value.saturating_mul(10).saturating_add(u64::from(b - b'0'));
        len += 1;
    }
    let leading_zero = len > 1 && digits.first() == Some(&b'0');
    (len > 0 && !leading_zero).then_some((value, at + len))
}

#[cfg(test)]
mod tests;
