//! Settings: what a user and a project may choose, where each value comes from, and what is wrong with it
//! (seeds 000 and 002, "Settings"; spec "Orchestrator and clients", 13.3; design page, D12).
//!
//! [`resolve`] lays layers over the defaults and is pure: values in, [`Resolved`] out. [`SettingsFiles`] reads and
//! writes the files. Nothing here fails because of a bad value: it is reported, and what lies below it holds.

mod apply;
mod catalog;
mod environment;
mod files;
mod layers;
mod model_name;
mod problem;
mod reference;
mod sections;
mod trust;
mod write;

pub use environment::Environment;
pub use files::{AutoCompaction, SetError, SettingsFiles};
pub use layers::{EffectiveKey, FileLayer, Layers, Overrides, ProjectTrust, Resolved, Source, resolve};
pub use model_name::{ModelChoice, ModelRole, NamedModel};
pub use problem::{Problem, ProblemKind};
pub use reference::{reference, schema};
pub use sections::{
    ApiKey, BackgroundSettings, BranchSummarySettings, BusyPromptMode, Compaction, ContextPromotion, Digests,
    DoubleEscapeAction, FallbackRevertPolicy, FallbackSettings, HookSettings, InterruptMode, ModelLimits,
    NativeChoice, ProviderSettings, PruneStorage, PruningSettings, QueueMode, RetrySettings, Staleness,
    TodoSettings, ToolSettings, ToolsAllowed, TreeFilterMode,
};
pub use trust::{TrustChange, TrustError, TrustedProjects};

use std::collections::BTreeMap;

use foldline_compaction_core::settings::Strategy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of Foldline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The model that works: `provider/model`, or `extractive` for none. Not set: `extractive`.
    pub model: Option<ModelChoice>,
    /// How hard the model thinks. Not set: the provider decides.
    #[schemars(schema_with = "sections::thinking_schema")]
    pub thinking_level: Option<foldline_session_model::model_call::ReasoningEffort>,
    /// Models by role: one name, or several that are tried in order. The role `default` stands in for the model
    /// when its credentials fail.
    pub model_roles: BTreeMap<String, ModelRole>,
    /// Models that take over for one turn when the model fails for good: `provider/model`, with `:low` or another
    /// thinking level after it if that matters.
    pub fallback_models: Vec<NamedModel>,
    /// Providers by name: those that Foldline does not know, and corrections of those that it does.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// What is known about models better than Foldline knows it, by `provider/model`.
    pub models: BTreeMap<String, ModelLimits>,
    /// How a context stays small.
    pub compaction: Compaction,
    /// What tool output may be replaced by notices.
    pub pruning: PruningSettings,
    /// Summaries of branches that are left.
    pub branch_summary: BranchSummarySettings,
    /// Going on with a model of a larger window instead of compacting.
    pub context_promotion: ContextPromotion,
    /// What happens when a provider fails.
    pub retry: RetrySettings,
    /// How many steering messages are handed over at once.
    pub steering_mode: QueueMode,
    /// How many follow-up messages are handed over at once.
    pub follow_up_mode: QueueMode,
    /// Whether a steering message stops tools that run.
    pub interrupt_mode: InterruptMode,
    /// What a prompt becomes that is sent while the agent works.
    pub busy_prompt_mode: BusyPromptMode,
    /// Reminders of open todos.
    pub todo: TodoSettings,
    /// Which tools the model may call, and where.
    pub tools: ToolSettings,
    /// Commands that are run at events, by name; they run in the order of their names.
    pub hooks: BTreeMap<String, HookSettings>,
    /// What pressing Escape twice at an empty prompt does.
    pub double_escape_action: DoubleEscapeAction,
    /// What the view of the tree shows at first.
    pub tree_filter_mode: TreeFilterMode,
}

impl Settings {
    /// Whether contexts are compacted without being asked for.
    pub fn auto_compaction(&self) -> bool {
        self.compaction.core.enabled && self.compaction.core.strategy != Strategy::Off
    }

    /// The models of a role, in the order in which they are tried: those of `modelRoles`, then those of
    /// `retry.fallbackChains`, each once.
    pub fn role_models(&self, role: &str) -> Vec<NamedModel> {
        let chains = [self.model_roles.get(role), self.retry.fallback_chains.get(role)];
        let mut models = Vec::new();
        for model in chains.into_iter().flatten().flat_map(ModelRole::models) {
            if !models.contains(model) {
                models.push(model.clone());
            }
        }
        models
    }
}

/// The key that somebody may have meant who wrote one that there is not.
pub fn nearest_key(key: &str) -> Option<String> {
    let mut parent: Vec<String> = key.split('.').map(str::to_owned).collect();
    let name = parent.pop().unwrap_or_default();
    catalog::nearest(&parent, &name)
}

#[cfg(test)]
mod tests;
