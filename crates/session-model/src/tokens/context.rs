//! The size of a context: what a provider measured, and an estimate of what came after it (D10).

use super::TokenCounter;
use crate::entry::{EntryBody, EntryKind};
use crate::fold::{Context, PRUNE_TYPE, REVOKE_TYPE};
use crate::message::{AssistantMessage, Message, StopReason};
use crate::model_call::{self, Api};
use crate::{EntryIx, Tokens};

/// The size of a context, and where the number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextTokens {
    /// The size: what was measured and what was estimated.
    pub total: Tokens,
    /// The estimate of the messages that no measurement covers.
    pub estimated: Tokens,
    /// What the number rests on.
    pub source: TokenSource,
}

/// What the size of a context rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// The usage that a provider reported with a message of this context. It covers that message and all before
    /// it, and whatever else the request held.
    Measured {
        /// What it comes to.
        usage: Tokens,
        /// The position of the message among the items of the context.
        item: usize,
    },
    /// Nothing but estimates: no provider has seen this context yet.
    Estimated,
}

impl Context<'_> {
    /// The size of the context: the newest usage that was reported for it, and estimates of what follows.
    ///
    /// A compaction, a prune and a revocation begin a new generation of the context: usage reported before them
    /// tells the size of another one. Failed and cancelled answers measure nothing.
    pub fn tokens(&self, counter: &dyn TokenCounter) -> ContextTokens {
        let measured = self.newest_usage();
        let rest = measured.map_or(0, |(item, _)| item + 1);
        let unmeasured = self.items.get(rest..).unwrap_or_default();
        let estimated = unmeasured.iter().map(|item| counter.message(&item.message)).sum();
        match measured {
            Some((item, usage)) => ContextTokens {
                total: usage + estimated,
                estimated,
                source: TokenSource::Measured { usage, item },
            },
            None => ContextTokens {
                total: estimated,
                estimated,
                source: TokenSource::Estimated,
            },
        }
    }

    fn newest_usage(&self) -> Option<(usize, Tokens)> {
        // A rewriting prune leaves no entry, but the time at which it replaced an answer.
        let pruned = self.items.iter().filter_map(|item| match &item.message {
            Message::ToolResult(result) => result.pruned_at,
            _ => None,
        });
        let pruned = pruned.fold(f64::NEG_INFINITY, f64::max);
        let mut path = self.path.iter().rev();
        for (at, item) in self.items.iter().enumerate().rev() {
            for &ix in path.by_ref() {
                if self.begins_generation(ix) {
                    return None;
                }
                if ix == item.source {
                    break;
                }
            }
            let Message::Assistant(message) = &item.message else {
                continue;
            };
            if message.timestamp.is_some_and(|time| time < pruned) {
                return None;
            }
            if let Some(usage) = reported(message) {
                return Some((at, usage));
            }
        }
        None
    }

    fn begins_generation(&self, ix: EntryIx) -> bool {
        match self.log.kind(ix) {
            EntryKind::Compaction => self.compaction == Some(ix),
            EntryKind::Custom => matches!(
                self.log.entry(ix).map(|entry| entry.body),
                Ok(EntryBody::Custom(custom)) if custom.custom_type == PRUNE_TYPE || custom.custom_type == REVOKE_TYPE
            ),
            _ => false,
        }
    }
}

/// The size of the context after an answer, as its usage tells; `None` if that says nothing.
fn reported(message: &AssistantMessage<'_>) -> Option<Tokens> {
    if matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let usage = message.usage?;
    // Only one API needs a rule of its own; what others report adds up in one way.
    let api = Api::ALL.into_iter().find(|api| api.name() == message.api);
    let tokens = model_call::context_tokens(&usage, api.unwrap_or(Api::OpenAiCompletions));
    (tokens > Tokens::ZERO).then_some(tokens)
}

#[cfg(test)]
mod tests;
