//! From deleted ranges to the entry, if it pays (spec "Verbatim", sections 3, 11 and 20; D11).

use foldline_session_model::message::{Message, VerbatimBoundary};
use foldline_session_model::model_call::ReasoningEffort;
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{Author, CompactionDraft, EntryId, Tokens};
use serde::Serialize;

use super::parameters::Parameters;
use super::prepare::Preparation;
use super::provenance::Provenance;
use super::ranges::ValidatedRanges;
use super::reconstruct::{PercentTenths, VerbatimStats, reconstruct};

/// The version of the request and of the details that this crate writes.
pub const PROMPT_VERSION: u32 = 4;

/// Who chose the lines. Readers accept any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rung {
    /// A model.
    Planned,
    /// The embedded planner, without a model.
    Extractive,
    /// Nobody: every line that is not protected went, because nothing else fits.
    Fresh,
    /// A hook wrote the text.
    Extension,
}

impl Rung {
    /// The name in `details.rung`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Extractive => "extractive",
            Self::Fresh => "fresh",
            Self::Extension => "extension",
        }
    }
}

/// What is to be deleted, and who says so.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct RangePlan {
    /// The lines.
    pub ranges: ValidatedRanges,
    /// Who chose them.
    pub rung: Rung,
    /// The model, if it is not the session's own.
    pub planner: Option<Planner>,
    /// How many of the oldest lines the model was not shown; they are deleted too.
    pub withheld: usize,
    /// What ranked first and did not fit.
    pub dropped: Vec<DroppedLine>,
    /// What becomes of the tail.
    pub tail: TailFate,
}

/// A model that planned in place of the session's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planner {
    /// Its provider.
    pub provider: String,
    /// Its id.
    pub id: String,
    /// How hard it thought.
    pub thinking_level: ReasoningEffort,
}

/// What becomes of the newest messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFate {
    /// They stay as messages.
    Kept,
    /// They go too: they alone do not fit.
    Dropped,
}

impl RangePlan {
    /// A plan that keeps the tail.
    pub fn new(ranges: ValidatedRanges, rung: Rung) -> Self {
        Self {
            ranges,
            rung,
            planner: None,
            withheld: 0,
            dropped: Vec::new(),
            tail: TailFate::Kept,
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
    #[error("{}, {shortfall} too few", change(*before, *after))]
    Insufficient {
        /// The estimate before.
        before: Tokens,
        /// The estimate after.
        after: Tokens,
        /// How many more tokens had to be freed.
        shortfall: Tokens,
    },
}

/// What a plan would make of a context (R02).
fn change(before: Tokens, after: Tokens) -> String {
    if after > before {
        format!("inflated: the context would grow from {before} to {after} tokens")
    } else {
        format!("insufficient: the context would shrink from {before} to {after} tokens only")
    }
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
    rung: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    planner_model: Option<&'d Planner>,
    #[serde(skip_serializing_if = "is_zero")]
    withheld_lines: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<Provenance>,
    #[serde(skip_serializing_if = "<[DroppedLine]>::is_empty")]
    dropped: &'d [DroppedLine],
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
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

/// Deletes the lines of a plan and makes the entry. `tokens_before` is the number that the entry records.
///
/// # Errors
/// [`NotSmaller`] if the compaction does not pay. The session is then left as it is.
pub fn finish(
    preparation: &Preparation<'_, '_>,
    plan: &RangePlan,
    demand: Demand,
    tokens_before: Tokens,
    counter: &dyn TokenCounter,
) -> Result<VerbatimCompaction, NotSmaller> {
    if plan.ranges.is_empty() && plan.tail == TailFate::Kept {
        return Err(NotSmaller::NothingDeleted);
    }
    let result = reconstruct(preparation.region(), &plan.ranges);
    let after = after(preparation, result.text(), plan.tail, counter);
    let before = preparation.tokens_before();
    pays(before, after, demand)?;
    let stats = result.stats(before, after);
    let provenance = Some(result.provenance());
    Ok(compaction(
        preparation,
        plan,
        result.into_text(),
        stats,
        provenance,
        tokens_before,
    ))
}

/// Makes the entry from a text that a hook wrote in place of the region (spec "Verbatim", section 15). It is stored
/// as it is; the tail is not the hook's to move.
///
/// # Errors
/// [`OverrideError`] if the text is blank, or if it does not pay.
pub fn finish_override(
    preparation: &Preparation<'_, '_>,
    text: &str,
    demand: Demand,
    tokens_before: Tokens,
    counter: &dyn TokenCounter,
) -> Result<VerbatimCompaction, OverrideError> {
    if text.trim().is_empty() {
        return Err(OverrideError::Blank);
    }
    let after = after(preparation, text, TailFate::Kept, counter);
    let before = preparation.tokens_before();
    pays(before, after, demand)?;
    let lines_before = preparation.region().line_count();
    let lines_kept = text.split('\n').count();
    let stats = VerbatimStats {
        lines_before,
        lines_deleted: lines_before.saturating_sub(lines_kept),
        lines_kept,
        range_count: 0,
        tokens_before: before,
        tokens_after: after,
        percent_reduction: PercentTenths::reduction(before, after),
    };
    let nothing = ValidatedRanges::validate([], lines_before, preparation.region().protected());
    let plan = RangePlan::new(nothing, Rung::Extension);
    Ok(compaction(
        preparation,
        &plan,
        text.to_owned(),
        stats,
        None,
        tokens_before,
    ))
}

/// Why a hook's text is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// It holds nothing but white space.
    #[error("No compacted text provided by extension")]
    Blank,
    /// It does not make the context smaller.
    #[error(transparent)]
    NotSmaller(#[from] NotSmaller),
}

/// The estimate of the rebuilt context.
fn after(
    preparation: &Preparation<'_, '_>,
    text: &str,
    tail: TailFate,
    counter: &dyn TokenCounter,
) -> Tokens {
    let boundary = VerbatimBoundary {
        text: text.into(),
        ..VerbatimBoundary::default()
    };
    let tail = match tail {
        TailFate::Kept => preparation.tail_tokens(),
        TailFate::Dropped => Tokens::ZERO,
    };
    counter.message(&Message::VerbatimBoundary(boundary)) + tail
}

fn pays(before: Tokens, after: Tokens, demand: Demand) -> Result<(), NotSmaller> {
    let least = demand.least(before);
    if before.saturating_sub(after) < least {
        let shortfall = after.saturating_add(least).saturating_sub(before);
        return Err(NotSmaller::Insufficient {
            before,
            after,
            shortfall,
        });
    }
    Ok(())
}

fn compaction(
    preparation: &Preparation<'_, '_>,
    plan: &RangePlan,
    text: String,
    stats: VerbatimStats,
    provenance: Option<Provenance>,
    tokens_before: Tokens,
) -> VerbatimCompaction {
    let details = Details {
        strategy: "verbatim-lines",
        prompt_version: PROMPT_VERSION,
        parameters: preparation.parameters(),
        stats: &stats,
        rung: plan.rung.as_str(),
        planner_model: plan.planner.as_ref(),
        withheld_lines: plan.withheld,
        provenance,
        dropped: &plan.dropped,
    };
    // Plain data with string keys always serialises.
    let details =
        serde_json::to_string(&details).unwrap_or_else(|_| "{\"strategy\":\"verbatim-lines\"}".to_owned());
    let draft = CompactionDraft {
        summary: text,
        short_summary: None,
        first_kept: preparation.first_kept().filter(|_| plan.tail == TailFate::Kept),
        tokens_before,
        details,
        preserve_data: None,
        author: if plan.rung == Rung::Extension {
            Author::Extension
        } else {
            Author::Foldline
        },
    };
    VerbatimCompaction { draft, stats }
}
