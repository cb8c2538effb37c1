//! How large the context was after each message of the active path.

use foldline_compaction_core::accounting::usage_tokens;
use foldline_session_model::EntryIx;
use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::fold::{Context, PRUNE_TYPE, Profile, REVOKE_TYPE};
use foldline_session_model::message::{AssistantMessage, Message, StopReason};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;

use super::compactions::Compaction;

#[derive(Default)]
pub(super) struct Timeline {
    /// One for each message of the path, and one for each mark.
    pub(super) points: Vec<Point>,
    pub(super) marks: Vec<Mark>,
    /// After how many messages a turn of the user begins.
    pub(super) turns: Vec<usize>,
    /// How many messages the path has.
    pub(super) messages: usize,
}

/// The size of the context at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// How many messages came before, this one included.
    pub(super) at: usize,
    /// By our estimate.
    pub(super) estimated: u64,
    /// As the provider counted it: with its instructions and tools.
    pub(super) measured: Option<u64>,
}

/// Something that made the context smaller, or larger again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) at: usize,
    pub(super) kind: MarkKind,
    pub(super) before: u64,
    pub(super) after: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// A compaction, by its number in the report.
    Compaction(usize),
    Prune,
    Undo,
}

pub(super) fn collect(context: &Context<'_>, compactions: &[Compaction]) -> Timeline {
    let log = context.log;
    let mut timeline = Timeline::default();
    let mut size = 0_u64;
    for &ix in &context.path {
        let kind = match log.kind(ix) {
            EntryKind::Compaction => compactions
                .binary_search_by_key(&ix, |compaction| compaction.ix)
                .ok()
                .and_then(|at| compactions.get(at))
                .map(|compaction| MarkKind::Compaction(compaction.number)),
            EntryKind::Custom => mark_of(context, ix),
            _ => {
                if let Some(message) = log.context_message(ix) {
                    timeline.message(&message, &mut size);
                }
                continue;
            }
        };
        let Some(kind) = kind else { continue };
        // What these do depends on all that came before, so the fold itself says it.
        let Ok(folded) = log.context(&Leaf::Entry(log.entry_id(ix)), Profile::Auto) else {
            continue;
        };
        let after = folded.messages().map(|m| Heuristic.message(m).get()).sum();
        timeline.marks.push(Mark {
            at: timeline.messages,
            kind,
            before: size,
            after,
        });
        size = after;
        timeline.points.push(Point {
            at: timeline.messages,
            estimated: size,
            measured: None,
        });
    }
    timeline
}

impl Timeline {
    fn message(&mut self, message: &Message<'_>, size: &mut u64) {
        let tokens = Heuristic.message(message).get();
        if tokens == 0 && !message.is_visible() {
            return;
        }
        if matches!(message, Message::User(m) if !m.synthetic) {
            self.turns.push(self.messages);
        }
        *size = size.saturating_add(tokens);
        self.messages += 1;
        self.points.push(Point {
            at: self.messages,
            estimated: *size,
            measured: match message {
                Message::Assistant(m) => measured(m),
                _ => None,
            },
        });
    }
}

fn mark_of(context: &Context<'_>, ix: EntryIx) -> Option<MarkKind> {
    let Ok(EntryBody::Custom(custom)) = context.log.entry(ix).map(|entry| entry.body) else {
        return None;
    };
    match &*custom.custom_type {
        PRUNE_TYPE => Some(MarkKind::Prune),
        REVOKE_TYPE => Some(MarkKind::Undo),
        _ => None,
    }
}

/// The size of the context after an answer, as the provider counted it; failed answers say nothing.
fn measured(message: &AssistantMessage<'_>) -> Option<u64> {
    if matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let tokens = usage_tokens(&message.usage?, &message.api).get();
    (tokens > 0).then_some(tokens)
}
