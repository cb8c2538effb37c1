//! From a region and a target to the ranges to delete.

use super::floors::{Dropped, Floors};
use super::focus;
use super::pack::{Packed, Target};
use super::rank::balanced;
use crate::verbatim::{Region, ValidatedRanges};

/// What the extractive planner decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct ExtractivePlan {
    /// The lines to delete.
    pub ranges: ValidatedRanges,
    /// Floors without room, in the order of the lines.
    pub dropped: Vec<Dropped>,
    /// Lines of the region that stay, old markers that stay as they are among them.
    pub kept_lines: usize,
    /// Characters of the text that will be written.
    pub chars: u64,
}

/// Plans a compaction without a model. `tail` is the text of the messages that are kept beside the region.
///
/// Floors take at most half of the target, lines about a focus that somebody named at most what then is left of three
/// quarters, and the ranking fills the rest. The target always wins, except over protected lines, which stay even if
/// they alone exceed it.
pub fn plan(
    region: &Region<'_>,
    tail: &str,
    target: Target,
    floors: Floors<'_>,
    focus: Option<&str>,
) -> ExtractivePlan {
    let ranking = balanced(region, tail);
    let wanted = floors.wanted(region);
    let mut packed = Packed::new(region);
    packed.pack(wanted.iter().map(|w| w.line), target.half());
    if let Some(focus) = focus {
        packed.pack(focus::lines(region, focus), target.three_quarters());
    }
    packed.pack(ranking.positions(), target);
    ExtractivePlan {
        ranges: packed.deleted(region),
        dropped: floors.dropped(region, &wanted, &packed),
        kept_lines: packed.line_count(),
        chars: packed.chars(),
    }
}

#[cfg(test)]
mod tests;
