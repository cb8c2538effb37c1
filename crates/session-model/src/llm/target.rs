//! The LLM view for one model: opaque blocks are whole or absent (R15; spec, 8).
//!
//! Signed and redacted thinking, and history that a provider compacted itself, mean something only to the model that
//! made them. Every other model gets none of it: no thinking without its signature, no signature without its thinking.

use super::{LlmBlock, LlmMessage, LlmRole, TrailingCalls, Wrappers, convert, pairs};
use crate::fold::Context;
use crate::message::{AssistantMessage, Message, RemoteHistory, StopReason};
use crate::model_call::Origin;

impl Context<'_> {
    /// The context as messages of a call of `target`, repaired, without blocks that this model cannot read.
    ///
    /// A compaction with a provider's own history gives that history to its own provider and model, in place of the
    /// summary and of the kept tail, which it contains; all others get the summary and the tail (spec, 12 row 54).
    pub fn llm_view_for<'c>(
        &'c self,
        wrappers: &'c Wrappers,
        trailing: TrailingCalls,
        target: &Origin,
    ) -> Vec<LlmMessage<'c>> {
        let history = self.items.first().and_then(|item| match &item.message {
            Message::CompactionSummary(m) => m.remote_history.as_ref().filter(|h| reads(target, h)),
            _ => None,
        });
        let mut messages = Vec::with_capacity(self.items.len());
        for (at, item) in self.items.iter().enumerate() {
            if history.is_some() && self.kept_tail.contains(&at) {
                continue;
            }
            if let (Some(history), 0) = (history, at) {
                let fallback = convert::message(item, wrappers)
                    .and_then(|message| message.content.into_iter().next())
                    .and_then(|block| match block {
                        LlmBlock::Text(text) => Some(text),
                        _ => None,
                    });
                messages.push(LlmMessage {
                    source: item.source,
                    role: LlmRole::User,
                    content: vec![LlmBlock::RemoteHistory {
                        history,
                        target: target.clone(),
                        fallback: fallback.unwrap_or_default(),
                    }],
                });
                continue;
            }
            messages.extend(convert::message(item, wrappers).map(|message| for_target(message, target)));
        }
        pairs::repair(messages, wrappers, trailing)
    }
}

fn reads(target: &Origin, history: &RemoteHistory<'_>) -> bool {
    history.provider == target.provider.as_str()
        && history.api.as_deref().is_none_or(|api| api == target.api.name())
        && history
            .model
            .as_deref()
            .is_none_or(|model| model == target.model.as_str())
}

fn for_target<'c>(mut message: LlmMessage<'c>, target: &Origin) -> LlmMessage<'c> {
    if let LlmRole::Assistant { message: recorded } = message.role {
        let own = wrote(target, recorded);
        message.content.retain(|block| match block {
            // An empty signature is what is left of one that was too long to store.
            LlmBlock::Thinking { signature, .. } => own && signature.is_some_and(|s| !s.is_empty()),
            LlmBlock::RedactedThinking { data } => own && !data.is_empty(),
            _ => true,
        });
    }
    message
}

/// Whether the target wrote a message and finished it: a reply that failed may hold half of a signed block.
fn wrote(target: &Origin, message: &AssistantMessage<'_>) -> bool {
    message.provider == target.provider.as_str()
        && message.model == target.model.as_str()
        && (message.api.is_empty() || message.api == target.api.name())
        && !matches!(message.stop_reason, StopReason::Error | StopReason::Aborted)
}
