//! Messages: what was said, by role (spec "Session model", 2).

mod content;
pub(crate) mod decode;

use std::borrow::Cow;

use crate::Tokens;
use crate::json::{Own, Raw};
use crate::model_call::Usage;

pub use content::{Block, Content, ToolCall};

/// A message of a session or of a context built from it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
    /// What the user said.
    User(UserMessage<'a>),
    /// What the program said on its own behalf.
    Developer(UserMessage<'a>),
    /// What the model said and called.
    Assistant(Box<AssistantMessage<'a>>),
    /// What a tool answered.
    ToolResult(ToolResult<'a>),
    /// A shell command that the user ran.
    BashExecution(Execution<'a>),
    /// Python code that the user ran.
    PythonExecution(Execution<'a>),
    /// A message that a program added.
    Custom(CustomContent<'a>),
    /// The same in version 1 and 2 files.
    HookMessage(CustomContent<'a>),
    /// Files that the user mentioned.
    FileMention(FileMention<'a>),
    /// The summary of a branch that was left.
    BranchSummary(SummaryText<'a>),
    /// The summary that stands for everything before the kept tail.
    CompactionSummary(SummaryText<'a>),
    /// The surviving lines of a verbatim compaction (seed 002).
    VerbatimBoundary(VerbatimBoundary<'a>),
    /// A role that this crate does not know: kept, never sent.
    Unknown(UnknownMessage<'a>),
}

/// A message of the user or of the program.
#[derive(Clone, Debug, Default)]
pub struct UserMessage<'a> {
    /// What it says.
    pub content: Content<'a>,
    /// Unix time in milliseconds, if the file says so.
    pub timestamp: Option<f64>,
    /// Whether a program wrote it in the user's name.
    pub synthetic: bool,
}

/// A message of the model.
#[derive(Clone, Debug, Default)]
pub struct AssistantMessage<'a> {
    /// Text, thinking and calls in order.
    pub content: Content<'a>,
    /// The wire protocol, for example `anthropic-messages`.
    pub api: Cow<'a, str>,
    /// The provider.
    pub provider: Cow<'a, str>,
    /// The model.
    pub model: Cow<'a, str>,
    /// What the provider counted, as recorded; `None` if the file does not say. Broken and negative numbers are 0, and of
    /// the cost only the sum is there.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The error, if it stopped with one.
    pub error_message: Option<Cow<'a, str>>,
    /// Unix time in milliseconds, if the file says so.
    pub timestamp: Option<f64>,
}

/// Why a model stopped, as session files record it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It had finished.
    Stop,
    /// The output limit cut it.
    Length,
    /// It waits for tools.
    ToolUse,
    /// The request failed.
    Error,
    /// It was cancelled.
    Aborted,
    /// The file does not say, or says something else.
    #[default]
    Unknown,
}

/// What a tool answered.
#[derive(Clone, Debug, Default)]
pub struct ToolResult<'a> {
    /// The call it answers.
    pub tool_call_id: Cow<'a, str>,
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// The answer.
    pub content: Content<'a>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// When the answer was replaced by a notice: Unix time in milliseconds.
    pub pruned_at: Option<f64>,
    /// The tool's own data.
    pub details: Option<Raw<'a>>,
    /// Unix time in milliseconds, if the file says so.
    pub timestamp: Option<f64>,
}

/// A command or code that the user ran.
#[derive(Clone, Debug, Default)]
pub struct Execution<'a> {
    /// The command or the code.
    pub source: Cow<'a, str>,
    /// What it printed.
    pub output: Cow<'a, str>,
    /// The exit code, if it is known.
    pub exit_code: Option<f64>,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether `output` is only a part.
    pub truncated: bool,
    /// Where all of the output is.
    pub full_output_path: Option<Cow<'a, str>>,
    /// Whether the model does not see it.
    pub excluded: bool,
    /// Unix time in milliseconds, if the file says so.
    pub timestamp: Option<f64>,
}

/// A message that a program added.
#[derive(Clone, Debug, Default)]
pub struct CustomContent<'a> {
    /// Who wrote it.
    pub custom_type: Cow<'a, str>,
    /// What it says.
    pub content: Content<'a>,
    /// Whether a user sees it.
    pub display: bool,
    /// The program's own data.
    pub details: Option<Raw<'a>>,
    /// `user` or `agent`, if the file says so.
    pub attribution: Option<Cow<'a, str>>,
    /// Whether the model does not see it.
    pub excluded: bool,
    /// Unix time in milliseconds, if known.
    pub timestamp: Option<f64>,
}

/// Files that the user mentioned.
#[derive(Clone, Debug, Default)]
pub struct FileMention<'a> {
    /// The files.
    pub files: Vec<MentionedFile<'a>>,
    /// Unix time in milliseconds, if the file says so.
    pub timestamp: Option<f64>,
}

/// One mentioned file.
#[derive(Clone, Debug, Default)]
pub struct MentionedFile<'a> {
    /// Its path.
    pub path: Cow<'a, str>,
    /// Its content.
    pub content: Cow<'a, str>,
    /// Its picture, if it is one.
    pub image: Option<Block<'a>>,
    /// Whether `content` is the file's.
    pub shown: Shown,
}

/// What the content of a mentioned file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shown {
    /// The file's.
    #[default]
    Whole,
    /// A note that the file stands elsewhere.
    Duplicate,
    /// A notice in the place of the file's content.
    Pruned,
}

/// A summary of a branch or of compacted history.
#[derive(Clone, Debug, Default)]
pub struct SummaryText<'a> {
    /// The text, exactly as stored.
    pub summary: Cow<'a, str>,
    /// The branch's `fromId`.
    pub from_id: Option<Cow<'a, str>>,
    /// The size of the context before a compaction.
    pub tokens_before: Tokens,
    /// The history that a provider returned in place of the messages.
    pub remote_history: Option<RemoteHistory<'a>>,
    /// Unix time in milliseconds, if known.
    pub timestamp: Option<f64>,
}

/// History that a provider compacted itself (`preserveData.openaiRemoteCompaction`).
#[derive(Clone, Debug)]
pub struct RemoteHistory<'a> {
    /// The only provider that can read it.
    pub provider: Cow<'a, str>,
    /// The API that it came through; `None` if the file does not say.
    pub api: Option<Cow<'a, str>>,
    /// The only model that can read it; `None` if the file does not say.
    pub model: Option<Cow<'a, str>>,
    /// The items, opaque.
    pub items: Raw<'a>,
}

/// The text that a verbatim compaction left.
#[derive(Clone, Debug, Default)]
pub struct VerbatimBoundary<'a> {
    /// Surviving lines and markers.
    pub text: Cow<'a, str>,
    /// The entry's details: statistics, provenance of the lines.
    pub details: Option<Raw<'a>>,
    /// Unix time in milliseconds, if known.
    pub timestamp: Option<f64>,
}

/// A message of an unknown role.
#[derive(Clone, Debug, Default)]
pub struct UnknownMessage<'a> {
    /// The role.
    pub role: Cow<'a, str>,
    /// Its content, if it has one of the usual form.
    pub content: Content<'a>,
}

impl Default for Message<'_> {
    fn default() -> Self {
        Self::Unknown(UnknownMessage::default())
    }
}

impl<'a> Message<'a> {
    /// The role as session files name it. A verbatim boundary is a `custom` message there (seed 002).
    pub fn role(&self) -> &str {
        match self {
            Self::User(_) => "user",
            Self::Developer(_) => "developer",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::PythonExecution(_) => "pythonExecution",
            Self::Custom(_) | Self::VerbatimBoundary(_) => "custom",
            Self::HookMessage(_) => "hookMessage",
            Self::FileMention(_) => "fileMention",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::Unknown(m) => &m.role,
        }
    }

    /// The content of roles that have one.
    pub fn content(&self) -> Option<&Content<'a>> {
        match self {
            Self::User(m) | Self::Developer(m) => Some(&m.content),
            Self::Assistant(m) => Some(&m.content),
            Self::ToolResult(m) => Some(&m.content),
            Self::Custom(m) | Self::HookMessage(m) => Some(&m.content),
            Self::Unknown(m) => Some(&m.content),
            _ => None,
        }
    }

    pub(crate) fn content_mut(&mut self) -> Option<&mut Content<'a>> {
        match self {
            Self::User(m) | Self::Developer(m) => Some(&mut m.content),
            Self::ToolResult(m) => Some(&mut m.content),
            Self::Custom(m) | Self::HookMessage(m) => Some(&mut m.content),
            _ => None,
        }
    }

    /// Unix time in milliseconds, if known.
    pub fn timestamp(&self) -> Option<f64> {
        match self {
            Self::User(m) | Self::Developer(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
            Self::BashExecution(m) | Self::PythonExecution(m) => m.timestamp,
            Self::Custom(m) | Self::HookMessage(m) => m.timestamp,
            Self::FileMention(m) => m.timestamp,
            Self::BranchSummary(m) | Self::CompactionSummary(m) => m.timestamp,
            Self::VerbatimBoundary(m) => m.timestamp,
            Self::Unknown(_) => None,
        }
    }

    /// Whether the message starts a turn of the user: typed text, a command, or a summary in the user's place
    /// (seed 000, "Split-turn handling").
    pub fn starts_turn(&self) -> bool {
        matches!(
            self,
            Self::User(_) | Self::BashExecution(_) | Self::Custom(_) | Self::BranchSummary(_)
        )
    }

    /// Whether the model sees the message and it counts as one of the newest messages that a verbatim
    /// compaction keeps (spec "Verbatim line compaction", 5.4).
    pub fn is_visible(&self) -> bool {
        match self {
            Self::Assistant(_) | Self::ToolResult(_) => true,
            Self::User(m) | Self::Developer(m) => m.content.is_visible(),
            Self::Custom(m) | Self::HookMessage(m) => !m.excluded && m.content.is_visible(),
            Self::BashExecution(m) | Self::PythonExecution(m) => !m.excluded,
            Self::FileMention(m) => !m.files.is_empty(),
            Self::BranchSummary(m) => !m.summary.is_empty(),
            Self::CompactionSummary(m) => !m.summary.is_empty() || m.remote_history.is_some(),
            Self::VerbatimBoundary(m) => !m.text.is_empty(),
            Self::Unknown(_) => false,
        }
    }

    /// The message with data of its own.
    #[must_use]
    pub fn into_owned(self) -> Message<'static> {
        self.own()
    }
}
