//! `compaction.*` (seeds 000 and 002, "Settings").

use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::verbatim::ParameterLayer;
use foldline_session_model::model_call::ReasoningEffort;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::ModelChoice;

/// How a context stays small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Compaction {
    /// Triggers, budgets and summaries.
    #[serde(flatten)]
    pub core: CompactionSettings,
    /// The share of the compactable lines that stay word for word; strategy `verbatim-lines`.
    #[serde(rename = "compression_ratio")]
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub compression_ratio: f64,
    /// How many of the newest messages stay as messages, rounded down; strategy `verbatim-lines`.
    #[serde(rename = "preserve_recent")]
    #[schemars(range(min = 0))]
    pub preserve_recent: f64,
    /// What the kept lines should be about. Not set or blank: the last user message.
    pub query: Option<String>,
    /// The model that summarises. Not set: the model that works.
    pub model: Option<ModelChoice>,
    /// How hard the summarising model thinks. Not set: as hard as the model that works, with a cap.
    #[schemars(schema_with = "super::thinking_schema")]
    pub thinking_level: Option<ReasoningEffort>,
    /// Whether an automatic handoff document is kept as an artifact too.
    pub handoff_save_to_disk: bool,
    /// Text that is added to the instructions for handoff documents.
    pub handoff_prompt_extension: String,
    /// Whether the context is looked at after each batch of tools within a run.
    pub mid_turn_enabled: bool,
    /// Preparing a compaction beside the agent.
    pub background: BackgroundSettings,
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            core: CompactionSettings::default(),
            compression_ratio: 0.5,
            preserve_recent: 2.0,
            query: None,
            model: None,
            thinking_level: None,
            handoff_save_to_disk: false,
            handoff_prompt_extension: String::new(),
            mid_turn_enabled: true,
            background: BackgroundSettings::default(),
        }
    }
}

impl Compaction {
    /// The parameters of a verbatim compaction, as a layer below those of a call.
    pub fn verbatim(&self) -> ParameterLayer {
        ParameterLayer {
            ratio: Some(self.compression_ratio),
            preserve_recent: Some(self.preserve_recent),
            query: self.query.clone(),
            budget: None,
        }
    }
}

/// Preparing a compaction beside the agent (design page, D21).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackgroundSettings {
    /// Whether a compaction is prepared beside the agent before it is due.
    pub enabled: bool,
    /// From which size of the context on, as a percentage of the threshold.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 100))]
    pub soft_percent: f64,
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            soft_percent: 80.0,
        }
    }
}
