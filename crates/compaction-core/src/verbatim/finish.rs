//! From deleted ranges to the entry, if it pays (spec "Verbatim", sections 3, 11 and 20; D11).

use foldline_session_model::message::{Message, VerbatimBoundary};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{Author, CompactionDraft, EntryId, Tokens};
use serde::Serialize;

use super::parameters::Parameters;
use super::prepare::Preparation;
use super::provenance::Provenance;
use super::ranges::ValidatedRanges;
use super::reconstruct::{VerbatimStats, reconstruct};

/// The version of the request and of the details that this crate writes.
pub const PROMPT_VERSION: u32 = 4;

/// Who chose the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rung {
    /// A model.
    Planned,
    /// The embedded planner, without a model.
    Extractive,
}

impl Rung {
    /// The name in `details.rung`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Extractive => "extractive",
        }
    }
}

/// A verbatim compaction that is ready to be committed.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct VerbatimCompaction {
    /// The entry.
    pub draft: CompactionDraft,
    /// Its figures, over the whole context.
    pub stats: VerbatimStats,
}

/// Why a compaction is not committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSmaller {
    /// The planner deleted nothing.
    #[error("no line could be deleted")]
    NothingDeleted,
    /// The rebuilt context would not be smaller by what is asked for (D11).
    #[error("the context would shrink from {before} to {after} tokens only, {shortfall} too few")]
    Insufficient {
        /// The estimate before.
        before: Tokens,
        /// The estimate after.
        after: Tokens,
        /// How many more tokens had to be freed.
        shortfall: Tokens,
    },
}

/// How much smaller the context must become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Smaller at all: someone asked for it.
    Any,
    /// By at least 5 %: nobody asked.
    FivePercent,
}

impl Demand {
    /// How many tokens must be freed.
    pub fn least(self, before: Tokens) -> Tokens {
        match self {
            Self::Any => Tokens(1),
            Self::FivePercent => Tokens((before.get() / 20).max(1)),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'d> {
    strategy: &'static str,
    prompt_version: u32,
    parameters: &'d Parameters,
    stats: &'d VerbatimStats,
    rung: &'d str,
    provenance: Provenance,
    dropped: &'d [DroppedLine],
}

/// A line that had to stay by its kind and for which there was no room (DESIGN, rule 6 and section 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DroppedLine {
    /// The entry that it came from, if that is known.
    pub entry_id: Option<EntryId>,
    /// Why it ranked first.
    pub reason: &'static str,
    /// How many such lines of that entry.
    pub lines: u32,
}

/// Deletes the ranges and makes the entry. `tokens_before` is the number that the entry records.
///
/// # Errors
/// [`NotSmaller`] if the compaction does not pay. The session is then left as it is.
pub fn finish(
    preparation: &Preparation<'_, '_>,
    ranges: &ValidatedRanges,
    rung: &Rung,
    dropped: &[DroppedLine],
    demand: Demand,
    tokens_before: Tokens,
    counter: &dyn TokenCounter,
) -> Result<VerbatimCompaction, NotSmaller> {
    if ranges.is_empty() {
        return Err(NotSmaller::NothingDeleted);
    }
    let result = reconstruct(preparation.region(), ranges);
    let boundary = VerbatimBoundary {
        text: result.text().into(),
        ..VerbatimBoundary::default()
    };
    let after = counter.message(&Message::VerbatimBoundary(boundary)) + preparation.tail_tokens();
    let before = preparation.tokens_before();
    let least = demand.least(before);
    let freed = before.saturating_sub(after);
    if freed < least {
        let shortfall = after.saturating_add(least).saturating_sub(before);
        return Err(NotSmaller::Insufficient {
            before,
            after,
            shortfall,
        });
    }
    let stats = result.stats(before, after);
    let details = Details {
        strategy: "verbatim-lines",
        prompt_version: PROMPT_VERSION,
        parameters: preparation.parameters(),
        stats: &stats,
        rung: rung.as_str(),
        provenance: result.provenance(),
        dropped,
    };
    // Plain data with string keys always serialises.
    let details =
        serde_json::to_string(&details).unwrap_or_else(|_| "{\"strategy\":\"verbatim-lines\"}".to_owned());
    let draft = CompactionDraft {
        summary: result.into_text(),
        short_summary: None,
        first_kept: preparation.first_kept(),
        tokens_before,
        details,
        preserve_data: None,
        author: Author::Foldline,
    };
    Ok(VerbatimCompaction { draft, stats })
}
