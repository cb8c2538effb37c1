//! Sessions of other agents as sessions of this format.
//!
//! [`session`] recognises Claude Code transcripts and Codex rollouts by their content and gives the text of a
//! version 3 session that [`SessionLog::load`](crate::log::SessionLog::load) reads without damage. Ids come from
//! the source's session id and the position of a row, so importing twice gives the same text. What a session
//! cannot hold is listed with a reason, a count and the first line: every row of the source is either used or
//! listed.

mod claude_code;
mod codex;
mod content;
mod detect;
mod plan;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::LineNumber;

pub use detect::detect;

/// An agent whose sessions can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Agent {
    /// Claude Code: a transcript of rows linked by `uuid` and `parentUuid`.
    ClaudeCode,
    /// Codex: a rollout of `session_meta`, `response_item` and other rows.
    Codex,
}

/// An imported session, and how its source was accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The session as text: a header and one entry per line.
    pub text: String,
    /// Who wrote the source.
    pub agent: Agent,
    /// The source's own session id, which the imported session keeps.
    pub session_id: String,
    /// The working folder; empty if the source names none.
    pub cwd: String,
    /// When it began, as it stands in the source.
    pub started: String,
    /// The version of the program that wrote the source, if the source says so.
    pub agent_version: Option<String>,
    /// How many rows the source has; blank lines are no rows.
    pub rows: u32,
    /// How many rows are in the session, wholly or in part. The others are in `dropped`.
    pub rows_used: u32,
    /// How many messages the session has.
    pub messages: MessageCounts,
    /// How many compactions it has.
    pub compactions: u32,
    /// How often the user went back to an earlier point. The messages after that point are kept as a branch.
    pub rewinds: u32,
    /// What is not in the session, in order of its first line.
    pub dropped: Vec<Dropped>,
}

/// How many messages an imported session has, by role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// What the user said.
    pub user: u32,
    /// What a program said in the user's name: reminders, command output, environment descriptions.
    pub synthetic: u32,
    /// What a program said on its own behalf.
    pub developer: u32,
    /// What the model said and called.
    pub assistant: u32,
    /// What tools answered.
    pub tool_results: u32,
}

impl MessageCounts {
    /// All of them.
    pub const fn total(self) -> u32 {
        self.user + self.synthetic + self.developer + self.assistant + self.tool_results
    }
}

/// Something of the source that is not in the imported session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// What it is, in the source's own words: a row type, or a row type and a kind.
    pub what: String,
    /// Why it is not there.
    pub reason: DropReason,
    /// How many there are.
    pub count: u32,
    /// Where the first one stands.
    pub first_line: LineNumber,
}

/// Why something of a source is not in the imported session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The row is no JSON object.
    Damaged,
    /// Bookkeeping of the program: progress, file snapshots, queues, timing. The model never saw it.
    Bookkeeping,
    /// A message of a subagent: it has a conversation of its own.
    Subagent,
    /// It repeats what another row says.
    Duplicate,
    /// A message without any content.
    Empty,
    /// A compaction mark without a summary.
    NoSummary,
    /// A structured copy of a tool result for user interfaces. The result itself is there.
    DisplayCopy,
    /// Context that the program renders anew for each request; the row holds no message.
    Attachment,
    /// A step that the provider ran itself: it has no call and result that a session could hold.
    ProviderSide,
    /// A type that this crate does not know.
    Unknown,
}

impl DropReason {
    /// Whether the rest of the row is in the session.
    pub const fn is_part_of_row(self) -> bool {
        matches!(self, Self::DisplayCopy)
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "not a JSON object",
            Self::Bookkeeping => "bookkeeping of the program, never shown to the model",
            Self::Subagent => "a subagent's own conversation",
            Self::Duplicate => "repeats another row",
            Self::Empty => "a message without content",
            Self::NoSummary => "a compaction mark without a summary",
            Self::DisplayCopy => "a copy of a tool result for display",
            Self::Attachment => "context that the program renders anew for each request",
            Self::ProviderSide => "ran at the provider, without a call and a result of its own",
            Self::Unknown => "of an unknown type",
        })
    }
}

/// Why bytes could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The bytes are no session of a known agent.
    #[error("this is no Claude Code transcript and no Codex rollout")]
    NotRecognized,
}

/// Imports a session of whichever agent wrote it.
///
/// # Errors
/// [`ImportError::NotRecognized`] if the content is of no known agent. Damaged rows are listed, never an error.
pub fn session(bytes: &[u8]) -> Result<Imported, ImportError> {
    match detect(bytes).ok_or(ImportError::NotRecognized)? {
        Agent::ClaudeCode => Ok(claude_code::import(bytes)),
        Agent::Codex => Ok(codex::import(bytes)),
    }
}

impl Agent {
    /// The name that commands use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
