//! The lines of a verbatim compaction: what it kept, and behind each marker what it removed.

use std::ops::Range;

use foldline_compaction_core::verbatim::{LinePart, Region, marker};
use foldline_session_model::LineNumber;

use super::compactions::Budget;
use super::shown::Shown;

/// Runs of lines of a region, by their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Run {
    Kept(Range<usize>),
    /// With the count of the marker that stands for them.
    Removed(Range<usize>, u64),
}

/// Matches what a compaction left with the region that it worked on. `None` if they do not fit: the text was then made
/// from other lines, for example by another program.
pub(super) fn align(text: &str, region: &Region<'_>) -> Option<Vec<Run>> {
    let lines: Vec<(&str, u64)> = region
        .lines()
        .map(|line| match line.part {
            LinePart::Marker(count) => (line.text, count),
            _ => (line.text, 1),
        })
        .collect();
    // A line that looks like a marker and is also in the region may be either.
    align_by(text, &lines, Ambiguous::Kept).or_else(|| align_by(text, &lines, Ambiguous::Marker))
}

/// What a line is that can be read as a line of the region and as a marker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ambiguous {
    Kept,
    Marker,
}

fn align_by(text: &str, lines: &[(&str, u64)], ambiguous: Ambiguous) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        let same = lines.get(at).is_some_and(|(original, _)| *original == line);
        let count = marker::parse(line);
        if same && (count.is_none() || ambiguous == Ambiguous::Kept) {
            match runs.last_mut() {
                Some(Run::Kept(range)) => range.end = at + 1,
                _ => runs.push(Run::Kept(at..at + 1)),
            }
            at += 1;
            continue;
        }
        // A marker counts for the lines that were removed, and for those that earlier markers among them stand for.
        let count = count?;
        let start = at;
        let mut left = count;
        while left > 0 {
            left = left.checked_sub(lines.get(at)?.1)?;
            at += 1;
        }
        runs.push(Run::Removed(start..at, count));
    }
    (at == lines.len()).then_some(runs)
}

/// Lines as the page shows them.
pub(super) struct Lines {
    pub(super) pieces: Vec<Piece>,
    /// What there was no room for.
    pub(super) left_lines: usize,
}

pub(super) enum Piece {
    Kept(Vec<ShownLine>),
    /// Kept lines in the middle of many.
    Folded(Vec<ShownLine>),
    Removed {
        count: u64,
        /// The first and the last line of the region.
        first: usize,
        last: usize,
        /// The entry that the first line came from, if that is known.
        entry: Option<Shown>,
        lines: Vec<ShownLine>,
        /// How many more lines there are.
        more: usize,
    },
}

pub(super) struct ShownLine {
    /// The role of the message that begins here.
    pub(super) role: &'static str,
    /// The line, or what follows the role.
    pub(super) text: Shown,
}

const LONGEST_LINE: usize = 1000;
/// Of a long kept run this much is shown at its ends; the rest is folded.
const ENDS: usize = 12;
/// Of the lines behind one marker at most so many are shown.
const MOST_REMOVED: usize = 400;

pub(super) fn collect(region: &Region<'_>, runs: &[Run], budget: &mut Budget) -> Lines {
    let mut roles = vec![""; region.line_count()];
    let mut origins = vec![None; region.line_count()];
    for ((line, role), origin) in region.lines().zip(&mut roles).zip(&mut origins) {
        if line.part == LinePart::Header {
            *role = line.kind.header().trim_end();
        }
        *origin = region
            .messages()
            .get(line.message.index())
            .and_then(|message| message.origin.as_ref());
    }
    let shown = |at: usize| {
        let text = region.line_text(LineNumber::from_index(at));
        let (role, rest) = match roles.get(at) {
            Some(role) => text.strip_prefix(role).map_or(("", text), |rest| (*role, rest)),
            None => ("", text),
        };
        ShownLine {
            role,
            // The region is redacted text.
            text: Shown::redacted_line(rest, LONGEST_LINE),
        }
    };
    let mut lines = Lines {
        pieces: Vec::new(),
        left_lines: 0,
    };
    let take = |range: Range<usize>, budget: &mut Budget| -> Vec<ShownLine> {
        range
            .map(shown)
            .take_while(|line| budget.take(line.text.len()))
            .collect()
    };
    for run in runs {
        match run {
            Run::Kept(range) => {
                let parts = if range.len() > 3 * ENDS {
                    vec![
                        (range.start..range.start + ENDS, false),
                        (range.start + ENDS..range.end - ENDS, true),
                        (range.end - ENDS..range.end, false),
                    ]
                } else {
                    vec![(range.clone(), false)]
                };
                for (part, folded) in parts {
                    let taken = take(part.clone(), budget);
                    lines.left_lines += part.len() - taken.len();
                    if !taken.is_empty() {
                        lines.pieces.push(if folded {
                            Piece::Folded(taken)
                        } else {
                            Piece::Kept(taken)
                        });
                    }
                }
            }
            Run::Removed(range, count) => {
                if !budget.take(0) {
                    lines.left_lines += range.len();
                    continue;
                }
                let taken = take(range.start..range.end.min(range.start + MOST_REMOVED), budget);
                lines.pieces.push(Piece::Removed {
                    count: *count,
                    first: range.start + 1,
                    last: range.end,
                    entry: origins
                        .get(range.start)
                        .copied()
                        .flatten()
                        .map(|id| Shown::line(id.as_str(), 80)),
                    more: range.len() - taken.len(),
                    lines: taken,
                });
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use foldline_compaction_core::verbatim::{RawRange, ValidatedRanges, reconstruct};

    use super::*;

    fn region(lines: &[&str]) -> String {
        lines.join("\n")
    }

    #[test]
    fn what_was_kept_and_removed_is_found_again() {
        let text = region(&["[User]: a", "b", "c", "d", "(filtered 7 lines)", "e", "f"]);
        let region = Region::guessed_from_text(&text).unwrap();
        for deleted in [
            vec![],
            vec![(2, 2)],
            vec![(1, 3)],
            vec![(4, 4)],
            vec![(6, 7)],
            vec![(2, 2), (6, 6)],
            vec![(1, 7)],
        ] {
            let raw = deleted.iter().map(|&(start, end)| RawRange { start, end });
            let ranges = ValidatedRanges::validate(raw, 7, region.protected());
            let result = reconstruct(&region, &ranges);
            let runs = align(result.text(), &region).unwrap_or_else(|| panic!("{deleted:?}"));
            let removed: Vec<(usize, usize, u64)> = runs
                .iter()
                .filter_map(|run| match run {
                    Run::Removed(range, count) => Some((range.start, range.end, *count)),
                    Run::Kept(_) => None,
                })
                .collect();
            let expected: Vec<(usize, usize, u64)> = result
                .removed()
                .map(|r| (r.range.start().index(), r.range.end().index() + 1, r.count))
                .collect();
            assert_eq!(removed, expected, "{deleted:?}");
        }
    }

    #[test]
    fn a_text_of_other_lines_does_not_fit() {
        let text = region(&["[User]: a", "b", "c"]);
        let region = Region::guessed_from_text(&text).unwrap();
        for other in [
            "[User]: a\n(filtered 1 lines)",
            "[User]: a\n(filtered 3 lines)",
            "[User]: x\n(filtered 2 lines)",
            "(filtered 9999999999999999999 lines)",
            "",
        ] {
            assert_eq!(align(other, &region), None, "{other:?}");
        }
    }
}
