//! What hooks answer. Every field may be left out; fields that nobody knows are ignored.

use std::collections::BTreeMap;

use foldline_session_model::model_call::RawJson;
use foldline_session_model::{EntryId, Tokens};
use serde::Deserialize;

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }
    )+};
}

answers! {
    /// To `session_before_switch`.
    BeforeSwitchAnswer {
        /// Whether the session is kept.
        cancel: bool,
    }

    /// To `input`.
    InputAnswer {
        /// What becomes of the text.
        action: InputAction,
        /// The new text, for `transform`.
        text: Option<String>,
        /// The new images, for `transform`; not set: as they were.
        images: Option<Vec<RawJson<'static>>>,
    }

    /// To `before_agent_start`.
    AgentStartAnswer {
        /// A message that goes before the prompt's answer.
        message: Option<HookMessage>,
        /// The system prompt of this run.
        system_prompt: Option<String>,
    }

    /// To `context`.
    ContextAnswer {
        /// The messages of this request.
        messages: Option<Vec<RawJson<'static>>>,
    }

    /// To `tool_call`.
    ToolCallAnswer {
        /// Whether the call is blocked.
        block: bool,
        /// Why; the model reads it.
        reason: Option<String>,
    }

    /// To `tool_result`; what is not set stays.
    ToolResultAnswer {
        /// What the model reads: a list of blocks.
        content: Option<RawJson<'static>>,
        /// The tool's own data.
        details: Option<RawJson<'static>>,
        /// Whether the tool failed.
        is_error: Option<bool>,
    }

    /// To `session_before_compact`.
    BeforeCompactAnswer {
        /// Whether nothing happens.
        cancel: bool,
        /// The compaction, in place of a summary.
        compaction: Option<HookCompaction>,
        /// The text of the region, in place of a plan by lines; blank is refused.
        compacted_text: Option<String>,
    }

    /// To `session.compacting`.
    CompactingAnswer {
        /// Lines of additional context.
        context: Vec<String>,
        /// The prompt in place of the usual one.
        prompt: Option<String>,
        /// What is stored with the compaction.
        preserve_data: Option<BTreeMap<String, RawJson<'static>>>,
    }

    /// To `session_before_tree`.
    BeforeTreeAnswer {
        /// Whether nothing happens.
        cancel: bool,
        /// The summary; it counts only if the user wants one.
        summary: Option<HookTreeSummary>,
        /// What the summary should look at.
        custom_instructions: Option<String>,
        /// Whether that is the whole prompt.
        replace_instructions: Option<bool>,
        /// The label to set.
        label: Option<String>,
    }
}

/// What becomes of what the user typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputAction {
    /// It is sent.
    #[default]
    Continue,
    /// It is sent as the answer has it.
    Transform,
    /// It is done with.
    Handled,
}

/// A message that a hook adds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookMessage {
    /// Its type, of the hook's choice.
    pub custom_type: String,
    /// A text, or a list of blocks.
    pub content: RawJson<'static>,
    /// Whether the user sees it.
    #[serde(default)]
    pub display: bool,
    /// The hook's own data.
    #[serde(default)]
    pub details: Option<RawJson<'static>>,
    /// In whose name it speaks: `user` or `agent`.
    #[serde(default)]
    pub attribution: Option<String>,
}

/// A compaction that a hook made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookCompaction {
    /// The summary.
    pub summary: String,
    /// The line for user interfaces.
    #[serde(default)]
    pub short_summary: Option<String>,
    /// The first entry that stays; not set: as prepared.
    #[serde(default)]
    pub first_kept_entry_id: Option<EntryId>,
    /// The size of the context before; not set: as prepared.
    #[serde(default)]
    pub tokens_before: Option<Tokens>,
    /// The hook's own data on the entry.
    #[serde(default)]
    pub details: Option<RawJson<'static>>,
    /// What the next compaction is told.
    #[serde(default)]
    pub preserve_data: Option<RawJson<'static>>,
}

/// A summary of a branch that a hook made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookTreeSummary {
    /// The summary.
    pub summary: String,
    /// The hook's own data on the entry.
    #[serde(default)]
    pub details: Option<RawJson<'static>>,
}

impl BeforeCompactAnswer {
    /// Whether it says anything: only then does it take the place of an earlier hook's answer.
    pub fn says_something(&self) -> bool {
        self.cancel || self.compaction.is_some() || self.compacted_text.is_some()
    }
}

impl BeforeTreeAnswer {
    /// Whether it says anything: only then does it take the place of an earlier hook's answer.
    pub fn says_something(&self) -> bool {
        *self != Self::default()
    }
}
