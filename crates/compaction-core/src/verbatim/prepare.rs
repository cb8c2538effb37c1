//! What a verbatim compaction works on: the region, and the tail that stays (spec "Verbatim", section 6).
//!
//! The region is the folded view without its newest messages: the text of the earlier compaction, its kept tail,
//! then everything since (D2, D8). Region and tail come from one list, so no message falls between them.

use foldline_session_model::entry::CompactionStrategy;
use foldline_session_model::fold::{Context, ContextItem};
use foldline_session_model::llm::{LlmMessage, Wrappers};
use foldline_session_model::message::Message;
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};
use serde::Deserialize;

use crate::redact::redact;

use super::line::{EarlierOrigin, Region, RegionBuilder, RegionTooLarge};
use super::line_set::LineRange;
use super::parameters::Parameters;
use super::provenance::{Provenance, ProvenanceError};
use super::serialize;

/// A region below this many lines is not worth a compaction.
pub const MIN_REGION_LINES: usize = 20;

/// Everything a planner needs. Nothing in it can be changed: hooks and planners only read it.
///
/// ```
/// # use foldline_compaction_core::verbatim::Preparation;
/// fn hook(preparation: &Preparation<'_, '_>) -> Option<u64> {
///     preparation.region().markers().first().map(|(_, lines)| *lines)
/// }
/// ```
///
/// ```compile_fail
/// # use foldline_compaction_core::verbatim::Preparation;
/// fn hook(preparation: &Preparation<'_, '_>) {
///     preparation.region().markers().first_mut().unwrap().1 = 0;
/// }
/// ```
#[derive(Debug)]
pub struct Preparation<'c, 'l> {
    context: &'c Context<'l>,
    region: Region<'static>,
    tail_text: String,
    /// The first item of the context that stays.
    tail_from: usize,
    parameters: Parameters,
    tokens_before: Tokens,
    tail_tokens: Tokens,
    /// Why the origin record of the earlier text was not believed.
    provenance_error: Option<ProvenanceError>,
}

/// Why there is nothing to compact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Nothing {
    /// All messages stay as messages.
    #[error("all {messages} messages are among the newest that stay")]
    OnlyTail {
        /// How many there are.
        messages: usize,
    },
    /// The region is too small to be worth it.
    #[error("the compactable part has {lines} lines, fewer than {MIN_REGION_LINES}")]
    TooSmall {
        /// Its lines.
        lines: usize,
    },
    /// The region is too large to be indexed.
    #[error(transparent)]
    TooLarge(#[from] RegionTooLarge),
}

/// Whether a region below [`MIN_REGION_LINES`] is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallRegion {
    /// It is refused: compacting it would free next to nothing.
    Refuse,
    /// It is taken: the context is known not to fit.
    Allow,
}

/// Prepares a verbatim compaction of a context.
///
/// # Errors
/// [`Nothing`] if there is no region worth compacting.
pub fn prepare<'c, 'l>(
    context: &'c Context<'l>,
    parameters: Parameters,
    small: SmallRegion,
    counter: &dyn TokenCounter,
) -> Result<Preparation<'c, 'l>, Nothing> {
    prepare_with(context, &Wrappers::default(), parameters, small, counter)
}

/// As [`prepare`], where the model sees branch summaries in other wrappers than the usual ones. The text of an earlier
/// compaction is taken raw in any case.
///
/// # Errors
/// [`Nothing`] if there is no region worth compacting.
pub fn prepare_with<'c, 'l>(
    context: &'c Context<'l>,
    wrappers: &Wrappers,
    mut parameters: Parameters,
    small: SmallRegion,
    counter: &dyn TokenCounter,
) -> Result<Preparation<'c, 'l>, Nothing> {
    // The focus is mostly a message of the user, and goes into the request and the entry (D18).
    parameters.query = redact(&parameters.query).into_owned();
    let seen = context.converted(wrappers);
    let visible: Vec<usize> = visible_items(context);
    let pairs: Vec<(usize, &LlmMessage<'_>)> = visible.into_iter().zip(&seen).collect();
    let boundary = usize::from(context.compaction.is_some() && pairs.first().is_some_and(|(i, _)| *i == 0));
    let messages = pairs.len() - boundary;
    let region_len = boundary + messages.saturating_sub(parameters.preserve_recent);
    let (region_part, tail_part) = pairs.split_at(region_len.min(pairs.len()));
    let tail_from = tail_part.first().map_or(context.items.len(), |(i, _)| *i);

    let mut builder = RegionBuilder::new();
    let mut provenance_error = None;
    for (i, message) in region_part {
        let Some(item) = context.items.get(*i) else {
            continue;
        };
        if boundary == 1 && *i == 0 {
            provenance_error = add_earlier(&mut builder, item).err();
        } else {
            serialize::add_message(&mut builder, context, item, message);
        }
    }
    let region = builder.finish()?;
    if region_part.is_empty() && small == SmallRegion::Refuse {
        return Err(Nothing::OnlyTail { messages });
    }
    if region.line_count() < MIN_REGION_LINES && small == SmallRegion::Refuse {
        return Err(Nothing::TooSmall {
            lines: region.line_count(),
        });
    }

    let mut tail = RegionBuilder::new();
    for (i, message) in tail_part {
        if let Some(item) = context.items.get(*i) {
            serialize::add_message(&mut tail, context, item, message);
        }
    }
    let tail_text = tail.finish()?.text().to_owned();
    let tokens = |items: &[ContextItem<'_>]| items.iter().map(|item| counter.message(&item.message)).sum();
    let tail_tokens = tokens(context.items.get(tail_from..).unwrap_or_default());
    Ok(Preparation {
        context,
        region,
        tail_text,
        tail_from,
        parameters,
        tokens_before: tokens(&context.items),
        tail_tokens,
        provenance_error,
    })
}

fn visible_items(context: &Context<'_>) -> Vec<usize> {
    (0..context.items.len())
        .filter(|i| {
            context
                .items
                .get(*i)
                .is_some_and(|item| item.message.is_visible())
        })
        .collect()
}

/// What this crate reads from the details of a verbatim compaction.
#[derive(Deserialize)]
struct Recorded {
    provenance: Option<Provenance>,
    rung: Option<String>,
}

fn add_earlier(builder: &mut RegionBuilder, item: &ContextItem<'_>) -> Result<(), ProvenanceError> {
    match &item.message {
        Message::VerbatimBoundary(boundary) => {
            let recorded: Option<Recorded> = boundary
                .details
                .as_deref()
                .and_then(|raw| serde_json::from_str(raw.get()).ok());
            // A text with a record of ours was redacted when it was made. Nobody knows that of any other.
            match &recorded {
                Some(Recorded {
                    provenance: Some(provenance),
                    ..
                }) => builder.earlier(&boundary.text, EarlierOrigin::Recorded(provenance)),
                // A hook may write any text.
                Some(Recorded { rung: Some(rung), .. }) if rung == "extension" => {
                    builder.earlier(&redact(&boundary.text), EarlierOrigin::Unknown)
                }
                _ => builder.earlier(&redact(&boundary.text), EarlierOrigin::ForeignVerbatim),
            }
        }
        Message::CompactionSummary(summary) => {
            builder.earlier(&redact(&summary.summary), EarlierOrigin::Unknown)
        }
        _ => Ok(()),
    }
}

impl<'c, 'l> Preparation<'c, 'l> {
    /// Protects more lines of the region, besides those that its text does (spec "Verbatim", section 5.3): no planner
    /// can delete them, and they are protected in later compactions too. Lines outside of the region are ignored.
    #[must_use]
    pub fn protect(self, lines: impl IntoIterator<Item = LineRange>) -> Self {
        Self {
            region: self.region.protect(lines),
            ..self
        }
    }

    /// The lines that may be deleted, and the protected ones among them.
    pub fn region(&self) -> &Region<'static> {
        &self.region
    }

    /// The context that is compacted.
    pub fn context(&self) -> &'c Context<'l> {
        self.context
    }

    /// The tail in the form of the region: what the lines that stay need not repeat.
    pub fn tail_text(&self) -> &str {
        &self.tail_text
    }

    /// What was asked for.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The entry at which the tail begins; `None` if no message stays.
    pub fn first_kept(&self) -> Option<EntryId> {
        self.tail()
            .first()
            .map(|item| self.context.log.entry_id(item.source))
    }

    /// The items that stay as they are.
    pub fn tail(&self) -> &'c [ContextItem<'l>] {
        self.context.items.get(self.tail_from..).unwrap_or_default()
    }

    /// The items that the region stands for, the earlier compaction included.
    pub fn compacted(&self) -> &'c [ContextItem<'l>] {
        self.context.items.get(..self.tail_from).unwrap_or_default()
    }

    /// The entries that the region stands for.
    pub fn compacted_entries(&self) -> impl Iterator<Item = EntryIx> + use<'c, 'l> {
        self.compacted().iter().map(|item| item.source)
    }

    /// The estimate of the whole context as it is.
    pub fn tokens_before(&self) -> Tokens {
        self.tokens_before
    }

    /// The estimate of the tail.
    pub fn tail_tokens(&self) -> Tokens {
        self.tail_tokens
    }

    /// Why the origin record of the earlier text was not believed, if it was not: its lines count as ordinary
    /// text then.
    pub fn provenance_error(&self) -> Option<&ProvenanceError> {
        self.provenance_error.as_ref()
    }

    /// Which compaction came before, if one is active.
    pub fn earlier(&self) -> Option<CompactionStrategy> {
        match &self.context.items.first()?.message {
            Message::VerbatimBoundary(_) => Some(CompactionStrategy::VerbatimLines),
            Message::CompactionSummary(_) => Some(CompactionStrategy::Prose),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
