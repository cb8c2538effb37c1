//! What a branch summary is made from (seed 000, "Preparation and token budget"; spec "Compaction core", 15.2, 15.3).

use foldline_compaction_core::file_ops::{FailedCalls, FileOps, ToolTable};
use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::fold::{Context, ContextItem, FoldError, Profile};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};
use serde::Serialize;

use crate::abandoned::Abandoned;

#[cfg(test)]
mod tests;

/// How many tokens of messages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// All of them.
    Unlimited,
    /// So many, the newest.
    Tokens(Tokens),
}

/// The window that is assumed for a model of which none is known.
const ASSUMED_WINDOW: Tokens = Tokens(128_000);

impl Budget {
    /// The window of the summarising model without the reserve (seed 000). The reserve is at most half of the window,
    /// so a small window has a small budget and not none (CD12, D9).
    pub fn for_window(window: Option<Tokens>, reserve: Tokens) -> Self {
        let window = window
            .filter(|window| *window > Tokens::ZERO)
            .unwrap_or(ASSUMED_WINDOW);
        let reserve = reserve.min(Tokens(window.get() / 2));
        Self::Tokens(window.saturating_sub(reserve).max(Tokens(1)))
    }

    fn has_room(self, used: Tokens, more: Tokens) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Tokens(budget) => used.saturating_add(more) <= budget,
        }
    }

    /// Whether less than nine tenths are used: then a summary that does not fit is taken all the same, because it
    /// stands for everything before it.
    fn has_room_for_a_summary(self, used: Tokens) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Tokens(budget) => u128::from(used.get()) * 10 < u128::from(budget.get()) * 9,
        }
    }
}

/// How a branch is prepared.
#[derive(Clone, Copy, Debug)]
pub struct PrepareOptions<'o> {
    /// How much is read.
    pub budget: Budget,
    /// Whose compactions count.
    pub profile: Profile,
    /// Which tools touch files.
    pub tools: &'o ToolTable,
    /// A message whose text goes back to the editor: it is not summarised.
    pub in_editor: Option<EntryIx>,
}

/// The messages of a branch that its summary is made from, and what is not among them.
#[derive(Clone, Debug)]
pub struct Preparation<'l> {
    /// All that a model could see of the branch, tool results included.
    branch: Context<'l>,
    /// Which of `branch.items` were chosen: their places, in order.
    chosen: Vec<usize>,
    tokens: Tokens,
    file_ops: FileOps,
    left_out: Vec<LeftOut>,
}

/// An entry that a model could see and that the summary is not made from (DESIGN, rule 6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The entry.
    pub entry_id: EntryId,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why the summary is not made from an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LeftOutReason {
    /// The output of a tool: its call says what was done, and the answer after it what came of it.
    ToolResult,
    /// Older than what the budget has room for.
    Budget,
    /// Its text goes back to the editor.
    InEditor,
}

/// Chooses the messages: the newest that fit into the budget. File operations are taken from all entries.
///
/// # Errors
/// [`FoldError`] if an entry that was only believed to be one is broken.
pub fn prepare<'l>(
    log: &'l SessionLog,
    abandoned: &Abandoned,
    options: &PrepareOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<Preparation<'l>, FoldError> {
    let path = abandoned.path();
    let mut items = log.unfolded(path, abandoned.start()..path.len(), options.profile)?;
    let file_ops = file_ops(log, abandoned, &items, options.tools);
    items.retain(|item| item.message.is_visible());

    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    let mut tokens = Tokens::ZERO;
    let mut leave = |item: &ContextItem<'_>, reason| {
        left_out.push(LeftOut {
            entry_id: log.entry_id(item.source),
            reason,
        });
    };
    let mut full = false;
    for (at, item) in items.iter().enumerate().rev() {
        if matches!(item.message, Message::ToolResult(_)) {
            leave(item, LeftOutReason::ToolResult);
            continue;
        }
        if options.in_editor == Some(item.source) {
            leave(item, LeftOutReason::InEditor);
            continue;
        }
        if full {
            leave(item, LeftOutReason::Budget);
            continue;
        }
        let size = counter.message(&item.message);
        if !options.budget.has_room(tokens, size) {
            full = true;
            if !(is_summary(&item.message) && options.budget.has_room_for_a_summary(tokens)) {
                leave(item, LeftOutReason::Budget);
                continue;
            }
        }
        tokens = tokens.saturating_add(size);
        chosen.push(at);
    }
    chosen.reverse();
    left_out.reverse();
    Ok(Preparation {
        branch: Context {
            log,
            leaf: path.last().copied(),
            path: abandoned.entries().to_vec(),
            items,
            kept_tail: 0..0,
            compaction: None,
            profile: options.profile,
        },
        chosen,
        tokens,
        file_ops,
        left_out,
    })
}

impl<'l> Preparation<'l> {
    /// The chosen messages, oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &ContextItem<'l>> {
        self.chosen.iter().filter_map(|at| self.branch.items.get(*at))
    }

    /// Whether there is nothing to summarise.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// The estimate of the chosen messages.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// What was done to files in all of the branch, and before it as earlier summaries in it say.
    pub fn file_ops(&self) -> &FileOps {
        &self.file_ops
    }

    /// What a model could see of the branch and is not among the messages, oldest first.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// All that a model could see of the branch.
    pub fn branch(&self) -> &Context<'l> {
        &self.branch
    }

    /// The chosen messages with the tool results among them, for a summary that quotes.
    pub(crate) fn readable(&self) -> Context<'l> {
        let from = self.chosen.first().copied().unwrap_or(self.branch.items.len());
        let in_editor = |item: &ContextItem<'_>| {
            let id = self.branch.log.id(item.source);
            self.left_out
                .iter()
                .any(|left| left.reason == LeftOutReason::InEditor && left.entry_id.as_str() == id)
        };
        Context {
            items: self
                .branch
                .items
                .iter()
                .skip(from)
                .filter(|item| !in_editor(item))
                .cloned()
                .collect(),
            ..self.branch.clone()
        }
    }
}

fn is_summary(message: &Message<'_>) -> bool {
    matches!(
        message,
        Message::BranchSummary(_) | Message::CompactionSummary(_) | Message::VerbatimBoundary(_)
    )
}

/// One pass over the branch in order, because a moved file is known under its last name only: the lists of earlier
/// summaries and compactions (CD13), those of extensions aside, and the calls that did not fail.
fn file_ops(
    log: &SessionLog,
    abandoned: &Abandoned,
    items: &[ContextItem<'_>],
    tools: &ToolTable,
) -> FileOps {
    let mut ops = FileOps::default();
    let failed = FailedCalls::of(items.iter().map(|item| &item.message));
    let mut items = items.iter().peekable();
    for &ix in abandoned.entries() {
        if matches!(log.kind(ix), EntryKind::BranchSummary | EntryKind::Compaction) {
            let details = match log.entry(ix).map(|entry| entry.body) {
                Ok(EntryBody::BranchSummary(summary)) if !summary.from_extension => summary.details,
                Ok(EntryBody::Compaction(compaction)) if !compaction.from_extension => compaction.details,
                _ => None,
            };
            if let Some(details) = details {
                ops.add_details(details.get());
            }
        }
        if let Some(item) = items.next_if(|item| item.source == ix) {
            ops.add_calls(std::iter::once(&item.message), &failed, tools);
        }
    }
    ops
}
