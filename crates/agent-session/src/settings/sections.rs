//! The groups of settings, and the choices in them.

mod choices;
mod compaction;
mod providers;
mod pruning;
mod retry;
mod tools;

use foldline_session_model::Tokens;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::model_name::THINKING;
use crate::hooks::HookEvent;

pub use choices::{
    BusyPromptMode, Digests, DoubleEscapeAction, FallbackRevertPolicy, InterruptMode, NativeChoice,
    PruneStorage, QueueMode, Staleness, TreeFilterMode,
};
pub use compaction::{BackgroundSettings, Compaction};
pub use providers::{ApiKey, ModelLimits, ProviderSettings};
pub use pruning::PruningSettings;
pub use retry::{FallbackSettings, RetrySettings};
pub use tools::{ToolSettings, ToolsAllowed};

/// Summaries of branches that are left (seed 000, "Branch summarization pipeline").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummarySettings {
    /// Whether a move in the tree offers one.
    pub enabled: bool,
    /// Tokens of the window that stay free when one is made.
    #[schemars(with = "u64")]
    pub reserve_tokens: Tokens,
    /// Whether the question is left out, and no summary made.
    pub skip_prompt: bool,
}

impl Default for BranchSummarySettings {
    fn default() -> Self {
        Self {
            enabled: false,
            reserve_tokens: Tokens(16_384),
            skip_prompt: false,
        }
    }
}

/// Going on with a model of a larger window instead of compacting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextPromotion {
    /// Whether the model that a model names for it takes over.
    pub enabled: bool,
    /// Whether a model that names none goes on with the smallest larger one of its provider and API.
    pub auto_select: bool,
}

/// Reminders of open todos.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TodoSettings {
    /// Whether the agent is reminded of todos that are open when it stops.
    pub reminders: bool,
    /// How often the agent is reminded until the next prompt.
    #[serde(rename = "reminders.max")]
    pub reminders_max: u32,
}

impl Default for TodoSettings {
    fn default() -> Self {
        Self {
            reminders: true,
            reminders_max: 3,
        }
    }
}

/// A command that is run at events (docs/hooks.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookSettings {
    /// The events.
    pub events: Vec<HookEvent>,
    /// The program: a path, or a name that is looked up.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// After how many milliseconds it is stopped. Not set: 30,000, and for `session_before_compact`,
    /// `session_before_tree` and `tool_call` only when the work is cancelled.
    #[serde(default)]
    #[schemars(extend("minimum" = 1))]
    pub timeout_ms: Option<u64>,
}

pub(super) fn thinking_schema(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = THINKING.iter().map(|(name, _)| *name).collect();
    json_schema!({"type": ["string", "null"], "enum": names})
}
