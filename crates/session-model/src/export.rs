//! The folded view as a session of another agent, or as a document.
//!
//! What is exported is what a model would see now: calls and results are paired, prune notices stand in place
//! of what they replaced, and the newest compaction stands for everything before it. Ids come from the target's
//! session id and the position of a row, and the time comes in as an argument, so the same view gives the same
//! text. What a format cannot hold is counted.

mod claude_code;
mod codex;
mod markdown;
mod pi;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::fold::Context;
use crate::llm::{LlmBlock, LlmMessage, LlmRole, TrailingCalls, Wrappers};
use crate::message::{Message, ToolCall};
use crate::{EntryIx, Tokens};

pub use claude_code::claude_code;
pub use codex::codex;
pub use markdown::markdown;
pub use pi::pi;

/// The session that an export becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'t> {
    /// Its id: a UUID, which both Claude Code and Codex expect.
    pub session_id: &'t str,
    /// The working folder in which it will be resumed.
    pub cwd: &'t str,
    /// The time as ISO 8601 in UTC with milliseconds, for what has none of its own.
    pub timestamp: &'t str,
}

/// An exported session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The file's content.
    pub text: String,
    /// What the format cannot hold.
    pub omitted: Vec<Omitted>,
}

/// Something that is not in an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Omitted {
    /// What it is.
    pub part: OmittedPart,
    /// How many there are.
    pub count: u32,
}

/// What a format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OmittedPart {
    /// Thinking without a signature of the target's provider, which would refuse it.
    Thinking,
    /// A picture that is a reference to a file elsewhere. A line of text says so in its place.
    Image,
    /// A block of an unknown type.
    UnknownBlock,
    /// A message of which nothing is left without these parts.
    EmptyMessage,
}

impl OmittedPart {
    /// A few words for users.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Thinking => "thinking that the provider would refuse",
            Self::Image => "pictures that are stored elsewhere",
            Self::UnknownBlock => "blocks of an unknown type",
            Self::EmptyMessage => "messages without any other content",
        }
    }
}

/// What stands in the place of a picture that is stored elsewhere.
const IMAGE_ELSEWHERE: &str = "[A picture stood here; it is stored elsewhere.]";

/// Counts what is left out.
#[derive(Debug, Default)]
struct Omissions(std::collections::BTreeMap<OmittedPart, u32>);

impl Omissions {
    fn add(&mut self, part: OmittedPart) {
        *self.0.entry(part).or_default() += 1;
    }

    fn finish(self) -> Vec<Omitted> {
        self.0
            .into_iter()
            .map(|(part, count)| Omitted { part, count })
            .collect()
    }
}

/// One message of the view with what an export needs to know about its origin.
struct Turn<'c> {
    message: LlmMessage<'c>,
    speaker: Speaker,
    /// The entry's own time, if it is one that other programs read.
    timestamp: Option<&'c str>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    /// The compaction that stands for everything before it.
    Summary {
        tokens_before: Tokens,
    },
    /// The user's own words.
    User,
    /// A program in the user's name.
    Program,
    /// The program on its own behalf.
    Developer,
    Assistant,
    Tool,
}

/// The view, message by message.
fn turns<'c>(context: &'c Context<'_>, wrappers: &'c Wrappers) -> Vec<Turn<'c>> {
    let sources: FxHashMap<EntryIx, &Message<'_>> = context
        .items
        .iter()
        .map(|item| (item.source, &item.message))
        .collect();
    context
        .llm_view(wrappers, TrailingCalls::Answer)
        .into_iter()
        .map(|message| {
            let timestamp = context.log.timestamp(message.source);
            Turn {
                speaker: speaker(&message, sources.get(&message.source).copied()),
                timestamp: crate::time::unix_millis(timestamp).map(|_| timestamp),
                message,
            }
        })
        .collect()
}

fn speaker(message: &LlmMessage<'_>, source: Option<&Message<'_>>) -> Speaker {
    match (&message.role, source) {
        (LlmRole::Assistant { .. }, _) => Speaker::Assistant,
        (LlmRole::ToolResult { .. }, _) => Speaker::Tool,
        (LlmRole::Developer, _) => Speaker::Developer,
        (LlmRole::User, Some(Message::User(user))) if !user.synthetic => Speaker::User,
        (LlmRole::User, Some(Message::CompactionSummary(summary))) => Speaker::Summary {
            tokens_before: summary.tokens_before,
        },
        (LlmRole::User, Some(Message::VerbatimBoundary(_))) => Speaker::Summary {
            tokens_before: Tokens::ZERO,
        },
        (LlmRole::User, _) => Speaker::Program,
    }
}

/// The texts of a message, line by line.
fn joined_text(message: &LlmMessage<'_>) -> String {
    message.texts().collect::<Vec<_>>().join("\n")
}

/// Whether a picture is part of the session: Base64 and not a reference.
fn is_inline(data: &str) -> bool {
    !data.is_empty() && !data.contains(':')
}

/// The only text of a result, if it has no other content.
fn only_text<'m>(content: &'m [LlmBlock<'_>]) -> Option<&'m str> {
    match content {
        [] => Some(""),
        [LlmBlock::Text(text)] => Some(text),
        _ => None,
    }
}

/// The arguments of a call as an object on one line: providers take nothing else.
fn argument_object(call: &ToolCall<'_>) -> String {
    let json = call.arguments.as_deref().map_or("{}", |raw| raw.get());
    let line = json.replace(['\n', '\r'], " ");
    if line.trim_start().starts_with('{') {
        line
    } else {
        format!("{{\"input\":{line}}}")
    }
}
