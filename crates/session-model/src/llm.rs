//! The LLM view: a context as the messages of a model call (spec "Session model", 8 and 9).
//!
//! Roles become user, assistant and tool result. Every call gets exactly one result and every result follows its
//! call; a result whose call is gone becomes text of the user that names the call (D5). All of this happens on
//! the view: the log is not touched, and nothing is dropped.

mod convert;
mod pairs;
mod request;
mod target;
#[cfg(test)]
mod tests;
mod wrappers;

use std::borrow::Cow;

use crate::EntryIx;
use crate::fold::Context;
use crate::message::{AssistantMessage, RemoteHistory, ToolCall};
use crate::model_call::Origin;

pub use wrappers::{Around, Wrappers};

/// One message of a model call.
#[derive(Clone, Debug)]
pub struct LlmMessage<'c> {
    /// The entry that it comes from.
    pub source: EntryIx,
    /// Who speaks.
    pub role: LlmRole<'c>,
    /// What is said.
    pub content: Vec<LlmBlock<'c>>,
}

/// Who speaks in a model call.
#[derive(Clone, Debug)]
pub enum LlmRole<'c> {
    /// The user.
    User,
    /// The program. Providers without such a role get it as the user.
    Developer,
    /// The model.
    Assistant {
        /// The recorded message, for provider, model and usage.
        message: &'c AssistantMessage<'c>,
    },
    /// A tool.
    ToolResult {
        /// The call that it answers, as announced in this view.
        call_id: Cow<'c, str>,
        /// The tool.
        tool_name: Cow<'c, str>,
        /// Whether the tool failed.
        is_error: bool,
        /// Where the result comes from.
        origin: ResultOrigin,
    },
}

/// Where a tool result of a view comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOrigin {
    /// The log.
    Recorded,
    /// The repair: the log has no result for the call.
    Repair,
}

/// A block of a message of a model call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LlmBlock<'c> {
    /// Text.
    Text(Cow<'c, str>),
    /// A picture.
    Image {
        /// Base64, or a reference to a blob.
        data: &'c str,
        /// Its media type.
        mime_type: &'c str,
    },
    /// Thinking with its signature.
    Thinking {
        /// The thinking.
        thinking: &'c str,
        /// The provider's signature.
        signature: Option<&'c str>,
        /// Whether the provider hides the text.
        redacted: bool,
    },
    /// Thinking that only its provider can read.
    RedactedThinking {
        /// The opaque payload.
        data: &'c str,
    },
    /// A call of a tool.
    ToolCall {
        /// Its id in this view: a repeated id gets a suffix.
        id: Cow<'c, str>,
        /// The call.
        call: &'c ToolCall<'c>,
    },
    /// History that a provider compacted itself, in place of a summary and of the kept tail. Only in views for a model
    /// that can read it.
    RemoteHistory {
        /// The items, to be sent as they are.
        history: &'c RemoteHistory<'c>,
        /// The model that reads them.
        target: Origin,
        /// The wrapped summary, for one more try if the provider refuses the items.
        fallback: Cow<'c, str>,
    },
    /// A block of a type that this crate does not know.
    Unknown {
        /// Its type.
        kind: &'c str,
    },
}

/// Whether calls without a result at the very end of a context get one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailingCalls {
    /// They do: the tools will not run any more.
    Answer,
    /// They do not: the tools are about to run.
    Leave,
}

impl Context<'_> {
    /// The context as messages of a model call, repaired.
    pub fn llm_view<'c>(&'c self, wrappers: &'c Wrappers, trailing: TrailingCalls) -> Vec<LlmMessage<'c>> {
        pairs::repair(self.converted(wrappers), wrappers, trailing)
    }

    /// The context as messages of a model call, without the repair of calls and results.
    pub fn converted<'c>(&'c self, wrappers: &'c Wrappers) -> Vec<LlmMessage<'c>> {
        self.items
            .iter()
            .filter_map(|item| convert::message(item, wrappers))
            .collect()
    }
}

impl LlmMessage<'_> {
    /// The texts of the message, without thinking and calls.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            LlmBlock::Text(text) => Some(&**text),
            _ => None,
        })
    }

    /// The role as providers name it.
    pub const fn role_name(&self) -> &'static str {
        match self.role {
            LlmRole::User => "user",
            LlmRole::Developer => "developer",
            LlmRole::Assistant { .. } => "assistant",
            LlmRole::ToolResult { .. } => "toolResult",
        }
    }
}
