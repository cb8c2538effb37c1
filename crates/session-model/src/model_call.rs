//! The plain data of a model call: what is asked, what comes back, what it cost, and how it failed.
//!
//! Planners build an [`LlmRequest`] and read an [`LlmReply`] without knowing any provider; the crate
//! that talks to providers takes and returns the same values. A request borrows its texts, so that a
//! transcript is not copied on the way out.

mod error;
mod profile;
mod reply;
mod request;
mod usage;

pub use error::{ErrorClass, OtherCause, TransientCause};
pub use profile::{
    Api, CacheLifetime, Capabilities, ImageInput, MaxTokensField, ModelProfile, ModelRef, Prices,
    PromptCache, ReasoningStyle, SystemRole,
};
pub use reply::{LlmReply, StopReason};
pub use request::{
    ArgumentsState, AssistantBlock, CacheHint, Image, InputBlock, LlmRequest, MessageContent, Origin,
    RawJson, ReasoningEffort, RequestMessage, ToolCall, ToolChoice, ToolOutcome, ToolSpec,
};
pub use usage::{Cost, Usage, context_tokens, prompt_tokens};

#[cfg(test)]
mod tests;
