//! What a summary works on: the messages that go, and the tail that stays (spec "Compaction core", 5).

use std::ops::Range;

use foldline_session_model::entry::{Compaction, EntryBody, EntryKind};
use foldline_session_model::fold::{Context, ContextItem};
use foldline_session_model::message::Message;
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};

use super::stored::StoredSummary;
use crate::accounting::{KeepWindow, Limits, RatioUse};
use crate::cut_point::{
    Crossing, CutPoint, KeepBudget, Step, StepKind, cut_within, find_cut_point, steps_of,
};
use crate::file_ops::{FailedCalls, FileOps, ToolTable};
use crate::settings::CompactionSettings;
use crate::verbatim::SmallRegion;

/// Which entries a second compaction works on (D2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Window {
    /// The folded view: what the earlier compaction kept, then everything since. Nothing is lost.
    #[default]
    FromFirstKept,
    /// Only what came after the earlier compaction. What that had kept is neither kept nor summarised; this is what the
    /// seeds' systems do.
    AfterCompaction,
}

/// How a compaction is prepared.
#[derive(Clone, Copy, Debug)]
pub struct PrepareOptions<'o> {
    /// The settings.
    pub settings: &'o CompactionSettings,
    /// The limits of the session's model; `None` if its window is unknown.
    pub limits: Option<&'o Limits>,
    /// A measured ratio of real to estimated tokens.
    pub ratio: RatioUse,
    /// Which entries count.
    pub window: Window,
    /// Whether a part that is hardly worth a summary is taken.
    pub small: SmallRegion,
    /// The most that the tail may take by its estimate, where the rebuilt context must fit; `None` if nothing bounds it
    /// but the keep window, which ends with a whole message.
    pub room: Option<Tokens>,
    /// Which tools touch files.
    pub tools: &'o ToolTable,
}

/// Everything that a summary is made from. Nothing in it can be changed: hooks and planners only read it.
#[derive(Debug)]
pub struct Preparation<'c, 'l> {
    context: &'c Context<'l>,
    history: Range<usize>,
    prefix: Range<usize>,
    kept_from: usize,
    first_kept: Option<EntryIx>,
    previous: Option<Box<Compaction<'l>>>,
    stored: Option<StoredSummary>,
    file_ops: FileOps,
    keep: KeepWindow,
    tokens_before: Tokens,
    kept_tokens: Tokens,
    compacted_tokens: Tokens,
}

/// Why there is nothing to compact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Nothing {
    /// The context holds no message.
    #[error("the session has no messages")]
    Empty,
    /// No message came after the newest compaction.
    #[error("the session is already compacted: no message came after that")]
    AlreadyCompacted,
    /// All messages are recent enough to stay.
    #[error("all {messages} messages fit into the part that stays")]
    AllKept {
        /// How many there are.
        messages: usize,
    },
    /// What could go is too little to be worth a summary.
    #[error("only {tokens} tokens could be summarised, fewer than the {least} that are worth it")]
    TooSmall {
        /// The tokens that could go.
        tokens: Tokens,
        /// The least that is worth it.
        least: Tokens,
    },
}

/// Less than this is not worth a summary: about four times what a short one takes (FB-031).
const LEAST_REGION: u64 = 1_000;

/// Prepares a compaction of a context.
///
/// # Errors
/// [`Nothing`] if there is nothing to do. The session is then left as it is, and no model is called.
pub fn prepare<'c, 'l>(
    context: &'c Context<'l>,
    options: &PrepareOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<Preparation<'c, 'l>, Nothing> {
    let boundary = usize::from(has_boundary(context));
    let window = window_of(context, options.window, boundary);
    if !anything_new(context, boundary) {
        return Err(if context.compaction.is_some() {
            Nothing::AlreadyCompacted
        } else {
            Nothing::Empty
        });
    }
    let path = context.path.get(window.path_from..).unwrap_or_default();
    let steps = steps_of(context, path, window.item_from, counter);
    let total: Tokens = steps.iter().map(|step| step.tokens).sum();
    let keep = KeepWindow::new(options.settings, options.limits, total, options.ratio);
    let budget = KeepBudget {
        tokens: keep.tokens,
        media: options.settings.keep_media_bytes,
    };
    let mut cut = find_cut_point(&steps, budget);
    if options.window == Window::FromFirstKept && keeps_too_much(&steps, &cut, budget, options.limits) {
        cut = nothing_kept(&steps);
    }
    if let Some(room) = options.room {
        cut = cut_within(&steps, cut, room).unwrap_or_else(|| nothing_kept(&steps));
    }

    let items = ItemPositions::new(&steps, window.item_from);
    let kept_from = items.at(cut.cut);
    let history_end = items.at(cut.turn_start.unwrap_or(cut.cut));
    // The lines of a verbatim compaction are transcript; the prose of a summary goes along as what it is (D8).
    let verbatim = matches!(
        context.items.first().map(|i| &i.message),
        Some(Message::VerbatimBoundary(_))
    );
    let history_from = if verbatim && boundary == 1 {
        0
    } else {
        window.item_from
    };
    let history = history_from..history_end.max(history_from);
    let prefix = history_end..kept_from;
    if history.is_empty() && prefix.is_empty() {
        return Err(Nothing::AllKept {
            messages: context.items.len() - boundary,
        });
    }
    let tokens = |range: Range<usize>| -> Tokens {
        let items = context.items.get(range).unwrap_or_default();
        items.iter().map(|item| counter.message(&item.message)).sum()
    };
    let compacted_tokens = tokens(history.clone()) + tokens(prefix.clone());
    let least = Tokens(
        options
            .limits
            .map_or(LEAST_REGION, |l| LEAST_REGION.min(l.window().get() / 20)),
    );
    if options.small == SmallRegion::Refuse && compacted_tokens < least {
        return Err(Nothing::TooSmall {
            tokens: compacted_tokens,
            least,
        });
    }
    let previous = if verbatim { None } else { previous(context) };
    let stored = previous.as_ref().map(|p| StoredSummary::parse(&p.summary));
    Ok(Preparation {
        context,
        first_kept: path
            .get(cut.first_kept)
            .copied()
            .filter(|_| cut.cut < steps.len()),
        file_ops: file_ops(
            context,
            previous.as_deref(),
            &(history.start..prefix.end),
            options.tools,
        ),
        history,
        prefix,
        kept_from,
        previous,
        stored,
        keep,
        tokens_before: tokens(0..context.items.len()),
        kept_tokens: tokens(kept_from..context.items.len()),
        compacted_tokens,
    })
}

/// Whether the first item stands for a compaction.
fn has_boundary(context: &Context<'_>) -> bool {
    context.compaction.is_some() && context.items.first().map(|item| item.source) == context.compaction
}

struct WindowStart {
    path_from: usize,
    item_from: usize,
}

fn window_of(context: &Context<'_>, window: Window, boundary: usize) -> WindowStart {
    let compaction = context
        .compaction
        .and_then(|compaction| context.path.iter().rposition(|ix| *ix == compaction));
    let after = compaction.map_or(0, |at| at + 1);
    if window == Window::FromFirstKept || compaction.is_none() {
        let first = context.items.get(boundary).map(|item| item.source);
        let path_from = match (compaction, first) {
            // Without a compaction the path counts from its root: metadata before the first message too.
            (Some(_), Some(first)) => context.path.iter().position(|ix| *ix == first).unwrap_or(after),
            _ => after,
        };
        return WindowStart {
            path_from,
            item_from: boundary,
        };
    }
    // The items are in the order of the path.
    let newer = context.path.get(after..).unwrap_or_default();
    let mut newer = newer.iter().rev();
    let mut item_from = context.items.len();
    while let Some(item) = item_from.checked_sub(1).and_then(|at| context.items.get(at)) {
        if item_from <= boundary || !newer.any(|ix| *ix == item.source) {
            break;
        }
        item_from -= 1;
    }
    WindowStart {
        path_from: after,
        item_from,
    }
}

/// Whether a message came after the newest compaction.
fn anything_new(context: &Context<'_>, boundary: usize) -> bool {
    let Some(compaction) = context.compaction else {
        return context.items.len() > boundary;
    };
    let newer = context.path.iter().rev().take_while(|ix| **ix != compaction);
    let Some(last) = context.items.last().filter(|_| context.items.len() > boundary) else {
        return false;
    };
    newer.into_iter().any(|ix| *ix == last.source)
}

/// Whether the tail behind the cut is so large, because of results that no tail begins with, that keeping it would
/// undo the compaction: it alone is over the threshold, nearly everything is in it, or its pictures are over their
/// budget.
fn keeps_too_much(steps: &[Step], cut: &CutPoint, budget: KeepBudget, limits: Option<&Limits>) -> bool {
    if cut.crossing != Crossing::Trailing {
        return false;
    }
    let (gone, tail) = steps.split_at(cut.cut.min(steps.len()));
    let tokens = |steps: &[Step]| -> Tokens { steps.iter().map(|step| step.tokens).sum() };
    let (goes, kept) = (tokens(gone), tokens(tail));
    let media: u64 = tail.iter().map(|step| step.media.get()).sum();
    limits.is_some_and(|limits| limits.exceeded_by(kept))
        || goes.get() < (goes + kept).get() / 20
        || media > budget.media.get()
}

/// The cut behind everything. What the user asked for in the last turn is in the summary word for word.
fn nothing_kept(steps: &[Step]) -> CutPoint {
    CutPoint {
        first_kept: steps.len(),
        cut: steps.len(),
        turn_start: crate::cut_point::split_turn(steps, steps.len()),
        crossing: Crossing::Trailing,
    }
}

/// From positions of steps to positions of items.
struct ItemPositions(Vec<usize>);

impl ItemPositions {
    fn new(steps: &[Step], first: usize) -> Self {
        let mut at = first;
        let mut positions = Vec::with_capacity(steps.len() + 1);
        for step in steps {
            positions.push(at);
            at += usize::from(!matches!(step.kind, StepKind::Metadata | StepKind::Compaction));
        }
        positions.push(at);
        Self(positions)
    }

    fn at(&self, step: usize) -> usize {
        self.0.get(step).or(self.0.last()).copied().unwrap_or_default()
    }
}

fn previous<'l>(context: &Context<'l>) -> Option<Box<Compaction<'l>>> {
    match context.log.entry(context.compaction?).ok()?.body {
        EntryBody::Compaction(compaction) => Some(compaction),
        _ => None,
    }
}

fn file_ops(
    context: &Context<'_>,
    previous: Option<&Compaction<'_>>,
    compacted: &Range<usize>,
    tools: &ToolTable,
) -> FileOps {
    let mut ops = FileOps::default();
    if let Some(details) = previous
        .filter(|p| !p.from_extension)
        .and_then(|p| p.details.as_ref())
    {
        ops.add_details(details.get());
    }
    let failed = FailedCalls::of(context.messages());
    let items = context.items.get(compacted.clone()).unwrap_or_default();
    for item in items {
        if context.log.kind(item.source) == EntryKind::BranchSummary
            && let Ok(entry) = context.log.entry(item.source)
            && let EntryBody::BranchSummary(branch) = entry.body
            && let Some(details) = branch.details.filter(|_| !branch.from_extension)
        {
            ops.add_details(details.get());
        }
        ops.add_calls(std::iter::once(&item.message), &failed, tools);
    }
    ops
}

impl<'c, 'l> Preparation<'c, 'l> {
    /// The context that is compacted.
    pub fn context(&self) -> &'c Context<'l> {
        self.context
    }

    /// The messages before the split turn, or before the tail.
    pub fn history(&self) -> &'c [ContextItem<'l>] {
        self.context.items.get(self.history.clone()).unwrap_or_default()
    }

    /// The beginning of the turn whose end is kept; empty for a clean cut.
    pub fn turn_prefix(&self) -> &'c [ContextItem<'l>] {
        self.context.items.get(self.prefix.clone()).unwrap_or_default()
    }

    /// History and turn prefix: all that the summary stands for, besides the earlier summary.
    pub fn compacted(&self) -> &'c [ContextItem<'l>] {
        self.context
            .items
            .get(self.history.start..self.prefix.end)
            .unwrap_or_default()
    }

    pub(super) fn history_range(&self) -> Range<usize> {
        self.history.clone()
    }

    pub(super) fn prefix_range(&self) -> Range<usize> {
        self.prefix.clone()
    }

    /// The messages that stay.
    pub fn kept(&self) -> &'c [ContextItem<'l>] {
        self.context.items.get(self.kept_from..).unwrap_or_default()
    }

    /// The first entry of the tail; `None` if no message stays.
    pub fn first_kept(&self) -> Option<EntryId> {
        self.first_kept.map(|ix| self.context.log.entry_id(ix))
    }

    /// The earlier compaction whose text is a summary.
    pub fn previous(&self) -> Option<&Compaction<'l>> {
        self.previous.as_deref()
    }

    /// The earlier summary, without the blocks that come with it.
    pub fn previous_summary(&self) -> Option<&str> {
        self.stored
            .as_ref()
            .map(|s| s.prose.as_str())
            .filter(|s| !s.is_empty())
    }

    /// The parts of the earlier summary.
    pub(crate) fn stored(&self) -> Option<&StoredSummary> {
        self.stored.as_ref()
    }

    /// The files of everything that is compacted, and of the earlier compactions.
    pub fn file_ops(&self) -> &FileOps {
        &self.file_ops
    }

    /// What the tail was planned with.
    pub fn keep(&self) -> KeepWindow {
        self.keep
    }

    /// The estimate of the whole context as it is.
    pub fn tokens_before(&self) -> Tokens {
        self.tokens_before
    }

    /// The estimate of the tail.
    pub fn kept_tokens(&self) -> Tokens {
        self.kept_tokens
    }

    /// The estimate of history and turn prefix.
    pub fn compacted_tokens(&self) -> Tokens {
        self.compacted_tokens
    }
}
