//! Entries: the records that form the tree of a session (spec "Session model", 1.4 and 1.5).

pub(crate) mod decode;
mod evicted;
mod kind;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::Tokens;
use crate::json::Raw;
use crate::message::{Content, Message};

pub use evicted::Evicted;
pub use kind::EntryKind;

/// One decoded entry. Everything borrows from its line where it can.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The entry's id.
    pub id: Cow<'a, str>,
    /// The id of the entry before it; `None` at a root.
    pub parent_id: Option<Cow<'a, str>>,
    /// When it was written, as it stands in the file: usually ISO 8601 with milliseconds.
    pub timestamp: Cow<'a, str>,
    /// What the entry says.
    pub body: EntryBody<'a>,
}

/// What an entry says, by its type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EntryBody<'a> {
    /// A message of the conversation.
    Message(Box<Message<'a>>),
    /// A message that a program added; it is in the context unless it excludes itself.
    CustomMessage(CustomMessage<'a>),
    /// A compaction: everything before its kept tail leaves the context.
    Compaction(Box<Compaction<'a>>),
    /// The summary of a branch that was left.
    BranchSummary(BranchSummary<'a>),
    /// Data of a program; never in the context.
    Custom(Custom<'a>),
    /// A label on another entry.
    Label(Label<'a>),
    /// From here on another model answers.
    ModelChange(ModelChange<'a>),
    /// From here on another thinking level holds.
    ThinkingLevelChange(ThinkingLevelChange<'a>),
    /// From here on another service tier holds.
    ServiceTierChange(ServiceTierChange<'a>),
    /// From here on another mode holds (plan mode, for example).
    ModeChange(ModeChange<'a>),
    /// From here on another set of tools is selected.
    ToolSelection(ToolSelection<'a>),
    /// The session's name.
    SessionInfo(SessionInfo<'a>),
    /// Any other type, known or not: a node of the tree that says nothing to the model.
    Other,
}

/// A `custom_message` entry.
#[derive(Clone, Debug)]
pub struct CustomMessage<'a> {
    /// Who wrote it, for example `handoff`.
    pub custom_type: Cow<'a, str>,
    /// What it says.
    pub content: Content<'a>,
    /// Whether a user sees it. The model sees it in any case.
    pub display: bool,
    /// The program's own data.
    pub details: Option<Raw<'a>>,
    /// `user` or `agent`, if the file says so.
    pub attribution: Option<Cow<'a, str>>,
    /// Whether the model does not see it.
    pub excluded: bool,
}

/// A `compaction` entry of either kind.
#[derive(Clone, Debug)]
pub struct Compaction<'a> {
    /// Prose, or the surviving lines of a verbatim compaction.
    pub summary: Cow<'a, str>,
    /// A line for user interfaces.
    pub short_summary: Option<Cow<'a, str>>,
    /// Where the kept tail begins. `None`: nothing before the compaction is kept.
    pub first_kept: Option<Cow<'a, str>>,
    /// The size of the context before it.
    pub tokens_before: Tokens,
    /// File lists, statistics, provenance.
    pub details: Option<Raw<'a>>,
    /// Data that a provider wants back, for example its own replacement history.
    pub preserve_data: Option<Raw<'a>>,
    /// Whether an extension wrote the text.
    pub from_extension: bool,
    /// Which kind of text it is.
    pub strategy: CompactionStrategy,
}

/// How a compaction made its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompactionStrategy {
    /// A model or an extension wrote a summary.
    Prose,
    /// Lines were deleted and the rest kept word for word: `details.strategy` is `verbatim-lines` (seed 002).
    VerbatimLines,
}

impl CompactionStrategy {
    /// The name in `details.strategy`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prose => "context-full",
            Self::VerbatimLines => "verbatim-lines",
        }
    }
}

/// A `branch_summary` entry.
#[derive(Clone, Debug)]
pub struct BranchSummary<'a> {
    /// The text.
    pub summary: Cow<'a, str>,
    /// In our files the leaf that was left; in older ones the navigation target.
    pub from_id: Cow<'a, str>,
    /// File lists.
    pub details: Option<Raw<'a>>,
    /// Whether an extension wrote the text.
    pub from_extension: bool,
}

/// A `custom` entry.
#[derive(Clone, Debug)]
pub struct Custom<'a> {
    /// Who wrote it, for example `foldline/prune`.
    pub custom_type: Cow<'a, str>,
    /// The program's own data.
    pub data: Option<Raw<'a>>,
}

/// A `label` entry.
#[derive(Clone, Debug)]
pub struct Label<'a> {
    /// The labelled entry.
    pub target_id: Cow<'a, str>,
    /// The label; `None` or empty clears it.
    pub label: Option<Cow<'a, str>>,
}

/// A `model_change` entry in either shape.
#[derive(Clone, Debug)]
pub struct ModelChange<'a> {
    /// For which role; `None` is the default role.
    pub role: Option<Cow<'a, str>>,
    /// The provider, of the shape with two fields.
    pub provider: Option<Cow<'a, str>>,
    /// The model, of the shape with two fields.
    pub model_id: Option<Cow<'a, str>>,
    /// `provider/model`, of the shape with one field.
    pub model: Option<Cow<'a, str>>,
}

/// A `thinking_level_change` entry.
#[derive(Clone, Debug)]
pub struct ThinkingLevelChange<'a> {
    /// The level; `None` is off.
    pub level: Option<Cow<'a, str>>,
}

/// A `service_tier_change` entry.
#[derive(Clone, Debug)]
pub struct ServiceTierChange<'a> {
    /// The tier as written: text, an object by model family, or `None`.
    pub tier: Option<Raw<'a>>,
}

/// A `mode_change` entry.
#[derive(Clone, Debug)]
pub struct ModeChange<'a> {
    /// The mode; `none` leaves it.
    pub mode: Cow<'a, str>,
    /// The mode's own data.
    pub data: Option<Raw<'a>>,
}

/// An `mcp_tool_selection` or `discovered_builtin_tool_selection` entry.
#[derive(Clone, Debug)]
pub struct ToolSelection<'a> {
    /// The selected tools.
    pub names: Vec<Cow<'a, str>>,
}

/// A `session_info` entry.
#[derive(Clone, Debug)]
pub struct SessionInfo<'a> {
    /// The name; `None` or empty clears it.
    pub name: Option<Cow<'a, str>>,
}
