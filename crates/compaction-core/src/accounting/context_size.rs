//! The one number for the size of a context (D10, R06).

use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::{Context, Masked, REVOKE_TYPE};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{AssistantMessage, Message, RecordedUsage, StopReason};
use foldline_session_model::model_call::{self, Api, Usage};
use foldline_session_model::tokens::{IMAGE_TOKENS, TokenCounter};
use foldline_session_model::{EntryIx, Tokens};
use serde::Serialize;

/// How large a context is, and how that is known. Trigger, cut, gauge and report use this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContextSize {
    /// The size.
    #[serde(rename = "value")]
    pub tokens: Tokens,
    /// How it is known.
    pub source: SizeSource,
}

/// How the size of a context is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SizeSource {
    /// A provider counted most of it; what came later is estimated.
    Measured,
    /// All of it is estimated.
    Estimated,
}

impl ContextSize {
    /// The size of a context: the newest usage of the same generation and an estimate of what followed, or an estimate
    /// of everything with `overhead` (system text, tools). `pending` is the estimate of what is about to be added.
    ///
    /// Usage counts only if it is newer than the newest compaction and nothing was revoked since; what a prune
    /// replaced after it is taken off.
    pub fn of(context: &Context<'_>, overhead: Tokens, pending: Tokens, counter: &dyn TokenCounter) -> Self {
        let estimate = |items: &[foldline_session_model::fold::ContextItem<'_>]| -> Tokens {
            items.iter().map(|item| counter.message(&item.message)).sum()
        };
        match anchor(context) {
            Some(anchor) => {
                let trailing = context.items.get(anchor.item + 1..).unwrap_or_default();
                let before = context.items.get(..anchor.item).unwrap_or_default();
                let pruned: Tokens = before
                    .iter()
                    .filter_map(|item| match item.masked {
                        Masked::ByEntry { mask, original } if anchor.later.contains(&mask) => {
                            Some(original.saturating_sub(counter.message(&item.message)))
                        }
                        _ => None,
                    })
                    .sum();
                Self {
                    tokens: anchor.tokens.saturating_sub(pruned) + estimate(trailing) + pending,
                    source: SizeSource::Measured,
                }
            }
            None => Self {
                tokens: overhead + estimate(&context.items) + pending,
                source: SizeSource::Estimated,
            },
        }
    }
}

/// The message whose usage counts.
struct Anchor {
    item: usize,
    tokens: Tokens,
    prompt: Tokens,
    /// Entries of programs on the path after it.
    later: Vec<EntryIx>,
}

fn anchor(context: &Context<'_>) -> Option<Anchor> {
    let generation = context
        .compaction
        .and_then(|compaction| context.path.iter().rposition(|ix| *ix == compaction))
        .map_or(0, |at| at + 1);
    let mut path = context.path.get(generation..)?.iter().rev();
    let mut later = Vec::new();
    for (item, found) in context.items.iter().enumerate().rev() {
        loop {
            let ix = *path.next()?;
            if context.log.kind(ix) == EntryKind::Custom {
                if is_revocation(context.log, ix) {
                    return None;
                }
                later.push(ix);
            }
            if ix == found.source {
                break;
            }
        }
        let Message::Assistant(message) = &found.message else {
            continue;
        };
        if let Some(usage) = usable(message) {
            let tokens = model_call::context_tokens(&usage.0, usage.1);
            if tokens > Tokens::ZERO {
                let prompt = match model_call::prompt_tokens(&usage.0, usage.1) {
                    Tokens::ZERO => tokens,
                    prompt => prompt,
                };
                return Some(Anchor {
                    item,
                    tokens,
                    prompt,
                    later,
                });
            }
        }
    }
    None
}

fn is_revocation(log: &SessionLog, ix: EntryIx) -> bool {
    memchr::memmem::find(log.raw_line(ix), REVOKE_TYPE.as_bytes()).is_some()
}

/// The usage of a message that was neither cancelled nor failed.
fn usable(message: &AssistantMessage<'_>) -> Option<(Usage, Api)> {
    if matches!(message.stop_reason, StopReason::Aborted | StopReason::Error) {
        return None;
    }
    message.usage.map(|usage| by_api(usage, &message.api))
}

fn by_api(usage: RecordedUsage, api: &str) -> (Usage, Api) {
    let usage = Usage {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        total_tokens: usage.total,
        ..Usage::default()
    };
    // Only one API has a rule of its own; of the others the parts are added.
    (usage, Api::from_name(api).unwrap_or(Api::OpenAiCompletions))
}

/// The context tokens of a recorded usage by the arithmetic of its API.
pub fn usage_tokens(usage: RecordedUsage, api: &str) -> Tokens {
    let (usage, api) = by_api(usage, api);
    model_call::context_tokens(&usage, api)
}

/// The newest usage on a path that counts at all, whatever came after it, as context tokens. A figure for statistics;
/// decisions take [`ContextSize`].
pub fn newest_usage(log: &SessionLog, path: &[EntryIx]) -> Option<Tokens> {
    path.iter()
        .rev()
        .filter(|ix| log.kind(**ix) == EntryKind::Message)
        .find_map(|ix| match *log.message(*ix)? {
            Message::Assistant(message) => usable(&message),
            _ => None,
        })
        .map(|(usage, api)| model_call::context_tokens(&usage, api))
}

/// How much more a provider counted than the estimate says, both without pictures. `None` if nothing was measured.
/// `overhead` is the estimate of system text and tools.
pub fn correction_ratio(context: &Context<'_>, overhead: Tokens, counter: &dyn TokenCounter) -> Option<f64> {
    let anchor = anchor(context)?;
    let before = context.items.get(..anchor.item)?;
    let estimated: Tokens = before.iter().map(|item| counter.message(&item.message)).sum();
    let pictures: usize = before
        .iter()
        .filter_map(|item| item.message.content())
        .map(foldline_session_model::message::Content::image_count)
        .sum();
    let pictures = Tokens(pictures as u64 * IMAGE_TOKENS.get());
    let actual = anchor.prompt.saturating_sub(pictures);
    let estimated = (estimated + overhead).saturating_sub(pictures);
    (actual > Tokens::ZERO && estimated > Tokens::ZERO).then(|| actual.get() as f64 / estimated.get() as f64)
}

/// What every request costs besides its messages, as far as a measurement shows it: the measured prompt without the
/// estimate of its messages (FB-022). `None` if nothing was measured.
pub fn measured_overhead(context: &Context<'_>, counter: &dyn TokenCounter) -> Option<Tokens> {
    let anchor = anchor(context)?;
    let before = context.items.get(..anchor.item)?;
    let estimated: Tokens = before.iter().map(|item| counter.message(&item.message)).sum();
    Some(anchor.prompt.saturating_sub(estimated))
}

#[cfg(test)]
mod tests;
