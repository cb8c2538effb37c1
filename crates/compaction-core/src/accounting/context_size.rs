//! The one number for the size of a context (D10, R06).

use foldline_session_model::Tokens;
use foldline_session_model::fold::Context;
use foldline_session_model::message::{AssistantMessage, Message, StopReason};
use foldline_session_model::model_call::{self, Api, Usage};
use foldline_session_model::tokens::{TokenCounter, TokenSource};
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
    pub fn of(context: &Context<'_>, overhead: Tokens, pending: Tokens, counter: &dyn TokenCounter) -> Self {
        let size = context.tokens(counter);
        let (source, overhead) = match size.source {
            TokenSource::Measured { .. } => (SizeSource::Measured, Tokens::ZERO),
            TokenSource::Estimated => (SizeSource::Estimated, overhead),
        };
        Self {
            tokens: size.total + overhead + pending,
            source,
        }
    }
}

/// The message whose usage counts.
struct Anchor {
    item: usize,
    prompt: Tokens,
}

fn anchor(context: &Context<'_>, counter: &dyn TokenCounter) -> Option<Anchor> {
    let TokenSource::Measured { usage, item } = context.tokens(counter).source else {
        return None;
    };
    let Message::Assistant(message) = &context.items.get(item)?.message else {
        return None;
    };
    let (parts, api) = usable(message)?;
    let prompt = match model_call::prompt_tokens(&parts, api) {
        Tokens::ZERO => usage,
        prompt => prompt,
    };
    Some(Anchor { item, prompt })
}

/// The usage of a message that was neither cancelled nor failed.
fn usable(message: &AssistantMessage<'_>) -> Option<(Usage, Api)> {
    if matches!(message.stop_reason, StopReason::Aborted | StopReason::Error) {
        return None;
    }
    message.usage.map(|usage| (usage, api(&message.api)))
}

/// The API of a name. Only one has a rule of its own; of the others the parts are added.
fn api(name: &str) -> Api {
    Api::from_name(name).unwrap_or(Api::OpenAiCompletions)
}

/// The context tokens of a recorded usage by the arithmetic of its API.
pub fn usage_tokens(usage: &Usage, api: &str) -> Tokens {
    model_call::context_tokens(usage, self::api(api))
}

/// How much more a provider counted than the estimate says, both without pictures. `None` if nothing was measured.
/// `overhead` is the estimate of system text and tools.
pub fn correction_ratio(context: &Context<'_>, overhead: Tokens, counter: &dyn TokenCounter) -> Option<f64> {
    let anchor = anchor(context, counter)?;
    let before = context.items.get(..anchor.item)?;
    let estimated: Tokens = before.iter().map(|item| counter.message(&item.message)).sum();
    let contents = before.iter().filter_map(|item| item.message.content());
    let pictures: Tokens = contents.map(|content| counter.pictures(content)).sum();
    let actual = anchor.prompt.saturating_sub(pictures);
    let estimated = (estimated + overhead).saturating_sub(pictures);
    (actual > Tokens::ZERO && estimated > Tokens::ZERO).then(|| actual.get() as f64 / estimated.get() as f64)
}

/// What every request costs besides its messages, as far as a measurement shows it: the measured prompt without the
/// estimate of its messages (FB-022). `None` if nothing was measured.
pub fn measured_overhead(context: &Context<'_>, counter: &dyn TokenCounter) -> Option<Tokens> {
    let anchor = anchor(context, counter)?;
    let before = context.items.get(..anchor.item)?;
    let estimated: Tokens = before.iter().map(|item| counter.message(&item.message)).sum();
    Some(anchor.prompt.saturating_sub(estimated))
}

#[cfg(test)]
mod tests;
