//! The part of a region that a model is shown (spec "Verbatim", section 8.5).

use foldline_session_model::LineNumber;

use super::line::Region;
use super::line_set::LineRange;
use super::parameters::Share;
use super::ranges::{RawRange, ValidatedRanges};

/// A region without its oldest lines, numbered from 1.
#[derive(Clone, Copy, Debug)]
pub struct View<'r> {
    region: &'r Region<'r>,
    withheld: usize,
}

impl<'r> View<'r> {
    /// The whole region.
    pub fn whole(region: &'r Region<'r>) -> Self {
        Self { region, withheld: 0 }
    }

    /// Half of what is shown now, the newer half; `None` if that would be nothing.
    pub fn smaller(self) -> Option<Self> {
        let shown = self.line_count();
        (shown >= 2).then(|| Self {
            withheld: self.withheld + (shown / 2).max(1),
            ..self
        })
    }

    /// How many lines it shows.
    pub fn line_count(&self) -> usize {
        self.region.line_count() - self.withheld
    }

    /// How many of the oldest lines it does not show.
    pub const fn withheld(&self) -> usize {
        self.withheld
    }

    /// The texts of its lines in order.
    pub fn lines(&self) -> impl Iterator<Item = &'r str> + use<'r> {
        let region = self.region;
        (self.withheld..region.line_count()).map(|at| region.line_text(LineNumber::from_index(at)))
    }

    /// Its protected lines in its own numbers.
    pub fn protected(&self) -> Vec<LineRange> {
        let spans = self.region.protected().ranges().iter().map(|span| span.indices());
        spans
            .filter_map(|span| {
                let start = span.start.max(self.withheld);
                let end = span.end.max(self.withheld);
                LineRange::from_indices(start - self.withheld, end - self.withheld)
            })
            .collect()
    }

    /// How many of its lines should stay: a share of them, and at least the protected ones.
    pub fn keep_target(&self, ratio: Share) -> usize {
        let protected: usize = self.protected().iter().map(|span| span.line_count()).sum();
        ratio.of(self.line_count()).max(protected)
    }

    /// The records of an answer as ranges of the region. What was withheld is deleted too; protected lines stay
    /// everywhere. Nothing if no record can be used.
    pub fn ranges(&self, records: &[RawRange]) -> Option<ValidatedRanges> {
        let shown = u64::try_from(self.line_count()).unwrap_or(u64::MAX);
        let offset = u64::try_from(self.withheld).unwrap_or(u64::MAX);
        let inside: Vec<RawRange> = records
            .iter()
            .map(|r| RawRange {
                start: r.start.min(r.end).max(1),
                end: r.start.max(r.end).min(shown),
            })
            .filter(|r| r.start <= r.end)
            .map(|r| RawRange {
                start: r.start + offset,
                end: r.end + offset,
            })
            .collect();
        let all = self.region.line_count();
        let protected = self.region.protected();
        if ValidatedRanges::validate(inside.iter().copied(), all, protected).is_empty() {
            return None;
        }
        let head = (offset > 0).then_some(RawRange {
            start: 1,
            end: offset,
        });
        Some(ValidatedRanges::validate(
            inside.into_iter().chain(head),
            all,
            protected,
        ))
    }
}
