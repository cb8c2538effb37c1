//! The groups of settings, and the choices in them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::verbatim::ParameterLayer;
use foldline_llm_client::RetryPolicy;
use foldline_pruning as pruning;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Api, ReasoningEffort};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::model_name::THINKING;
use super::{ModelChoice, ModelRole};
use crate::hooks::HookEvent;

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
    #[schemars(schema_with = "thinking_schema")]
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

/// What tool output may be replaced by notices (seed 000, "Pre-compaction pruning").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PruningSettings {
    /// Whether tool output is pruned before a compaction.
    pub enabled: bool,
    /// Tokens of the newest tool output that stay.
    #[schemars(with = "u64")]
    pub protect_tokens: Tokens,
    /// A prune that saves fewer tokens in all is not made.
    #[schemars(with = "u64")]
    pub minimum_savings: Tokens,
    /// A result whose notice saves fewer tokens is left alone.
    #[schemars(with = "u64")]
    pub entry_floor: Tokens,
    /// The newest turns that stay whole.
    pub protect_recent_turns: u32,
    /// Tools whose results stay.
    pub protected_tools: Vec<String>,
    /// Protected tools whose results may go once a later one makes them worthless.
    pub stale_overridable: Vec<String>,
    /// Whether a result that a later one makes worthless may go although it is new.
    pub staleness: Staleness,
    /// What a notice tells of the output that it stands for.
    pub digests: Digests,
    /// Where the originals are kept.
    pub storage: PruneStorage,
}

impl Default for PruningSettings {
    fn default() -> Self {
        let pruning::Policy {
            protect_tokens,
            minimum_savings,
            entry_floor,
            protect_recent_turns,
            protected_tools,
            stale_overridable,
            ..
        } = pruning::Policy::default();
        Self {
            enabled: true,
            protect_tokens,
            minimum_savings,
            entry_floor,
            protect_recent_turns,
            protected_tools,
            stale_overridable,
            staleness: Staleness::Track,
            digests: Digests::ErrorFirst,
            storage: PruneStorage::Mask,
        }
    }
}

impl PruningSettings {
    /// The policy of a prune.
    pub fn policy(&self) -> pruning::Policy {
        pruning::Policy {
            protect_tokens: self.protect_tokens,
            minimum_savings: self.minimum_savings,
            entry_floor: self.entry_floor,
            protect_recent_turns: self.protect_recent_turns,
            protected_tools: self.protected_tools.clone(),
            stale_overridable: self.stale_overridable.clone(),
            staleness: match self.staleness {
                Staleness::Track => pruning::Staleness::Track,
                Staleness::Ignore => pruning::Staleness::Ignore,
            },
            digests: match self.digests {
                Digests::ErrorFirst => pruning::Digests::ErrorFirst,
                Digests::None => pruning::Digests::None,
            },
        }
    }
}

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

/// What happens when a provider fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RetrySettings {
    /// Whether turns and compactions that failed for a passing reason are tried again.
    pub enabled: bool,
    /// How often a turn or a compaction is tried again.
    pub max_retries: u32,
    /// The first wait in milliseconds; each further one doubles.
    pub base_delay_ms: u64,
    /// The longest wait in milliseconds, whoever asks for it; 0 or less: any.
    pub max_delay_ms: i64,
    /// How often a request that was refused before any answer is sent again.
    pub request_max_retries: u32,
    /// How often a stream that broke off before any content is begun again.
    pub stream_max_retries: u32,
    /// How many milliseconds a stream may take to its first event; 0: any.
    pub stream_first_event_timeout_ms: u64,
    /// More models by role, tried after those of `modelRoles`. An older form: `modelRoles` takes lists too.
    pub fallback_chains: BTreeMap<String, ModelRole>,
    /// When the first model of a chain is used again.
    pub fallback_revert_policy: FallbackRevertPolicy,
    /// Going through a chain of models.
    pub fallback: FallbackSettings,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_retries: 3,
            base_delay_ms: 2_000,
            max_delay_ms: 300_000,
            request_max_retries: 5,
            stream_max_retries: 5,
            stream_first_event_timeout_ms: 100_000,
            fallback_chains: BTreeMap::new(),
            fallback_revert_policy: FallbackRevertPolicy::CooldownExpiry,
            fallback: FallbackSettings::default(),
        }
    }
}

impl RetrySettings {
    /// Longer than any session.
    const ANY_DELAY: Duration = Duration::from_secs(366 * 24 * 3600);

    /// The longest wait.
    pub fn max_delay(&self) -> Duration {
        match u64::try_from(self.max_delay_ms) {
            Ok(0) | Err(_) => Self::ANY_DELAY,
            Ok(ms) => Duration::from_millis(ms),
        }
    }

    /// How a turn of the agent is tried again.
    pub fn turn_policy(&self) -> RetryPolicy {
        RetryPolicy {
            max_retries: if self.enabled {
                self.max_retries as usize
            } else {
                0
            },
            base_delay: Duration::from_millis(self.base_delay_ms),
            max_delay: self.max_delay(),
            max_server_delay: self.max_delay(),
            ..RetryPolicy::TURN
        }
    }

    /// How long a stream may take to its first event.
    pub fn first_event_timeout(&self) -> Option<Duration> {
        (self.stream_first_event_timeout_ms > 0)
            .then(|| Duration::from_millis(self.stream_first_event_timeout_ms))
    }
}

/// Going through a chain of models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FallbackSettings {
    /// How often each model of the chain is asked.
    #[schemars(range(min = 1))]
    pub max_attempts: u32,
}

impl Default for FallbackSettings {
    fn default() -> Self {
        Self { max_attempts: 3 }
    }
}

/// A provider. What is left out is as Foldline knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSettings {
    /// Its address, with https or on this machine.
    pub base_url: Option<String>,
    /// How it is spoken to.
    #[schemars(schema_with = "api_schema")]
    pub api: Option<Api>,
    /// The environment variable that holds its key.
    pub key_env: Option<String>,
    /// Its key itself; `keyEnv` wins when that variable is set. Never shown.
    pub key: Option<ApiKey>,
    /// Whether its key and the conversation may travel unencrypted to another machine.
    pub allow_plain_http: bool,
}

/// A key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key, to be sent to its provider.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([redacted])")
    }
}

/// What is known about a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelLimits {
    /// The context window in tokens: prompt and output together.
    #[schemars(with = "Option<u64>", extend("minimum" = 1))]
    pub context_window: Option<Tokens>,
    /// The most tokens of one answer.
    #[schemars(with = "Option<u64>", extend("minimum" = 1))]
    pub max_output: Option<Tokens>,
    /// The model that takes over when the window is full: `provider/model`, or an id of the same provider.
    pub context_promotion_target: Option<String>,
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

/// Which tools the model may call, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSettings {
    /// Which tools there are for the model.
    pub allowed: ToolsAllowed,
    /// Folders outside of the working folder that tools may use.
    pub folders: Vec<PathBuf>,
}

/// Which tools the model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ToolsAllowedForm", into = "ToolsAllowedForm")]
pub enum ToolsAllowed {
    /// Those that only read.
    #[default]
    ReadOnly,
    /// All.
    All,
    /// None.
    None,
    /// Those of these names.
    Named(Vec<String>),
}

/// How [`ToolsAllowed`] is written.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-expected" = "`read-only`, `all`, `none`, or a list of names"))]
enum ToolsAllowedForm {
    Group(ToolGroup),
    Named(Vec<String>),
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ToolGroup {
    ReadOnly,
    All,
    None,
}

impl From<ToolsAllowedForm> for ToolsAllowed {
    fn from(form: ToolsAllowedForm) -> Self {
        match form {
            ToolsAllowedForm::Group(ToolGroup::ReadOnly) => Self::ReadOnly,
            ToolsAllowedForm::Group(ToolGroup::All) => Self::All,
            ToolsAllowedForm::Group(ToolGroup::None) => Self::None,
            ToolsAllowedForm::Named(names) => Self::Named(names),
        }
    }
}

impl From<ToolsAllowed> for ToolsAllowedForm {
    fn from(allowed: ToolsAllowed) -> Self {
        match allowed {
            ToolsAllowed::ReadOnly => Self::Group(ToolGroup::ReadOnly),
            ToolsAllowed::All => Self::Group(ToolGroup::All),
            ToolsAllowed::None => Self::Group(ToolGroup::None),
            ToolsAllowed::Named(names) => Self::Named(names),
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

/// A choice among words.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }
    )+};
}

choices! {
    /// How many queued messages are handed over at once.
    QueueMode {
        /// The oldest.
        #[default]
        OneAtATime,
        /// All.
        All,
    }
    /// Whether a steering message stops tools that run.
    InterruptMode {
        /// It does.
        #[default]
        Immediate,
        /// It waits for them.
        Wait,
    }
    /// What a prompt becomes that is sent while the agent works.
    BusyPromptMode {
        /// A steering message.
        #[default]
        Steer,
        /// A follow-up.
        Queue,
    }
    /// When the first model of a chain is used again.
    FallbackRevertPolicy {
        /// Once it may be asked again.
        #[default]
        CooldownExpiry,
        /// Not in this session.
        Never,
    }
    /// What pressing Escape twice at an empty prompt does.
    DoubleEscapeAction {
        /// It shows the tree.
        #[default]
        Tree,
        /// It offers to fork.
        Fork,
        /// Nothing.
        None,
    }
    /// What the view of the tree shows at first.
    TreeFilterMode {
        /// What is said.
        #[default]
        Default,
        /// Nothing of tools.
        NoTools,
        /// What the user said.
        UserOnly,
        /// What has a label.
        LabeledOnly,
        /// Every entry.
        All,
    }
    /// Whether a result that a later one makes worthless may go although it is new.
    Staleness {
        /// It may.
        #[default]
        Track,
        /// Only age counts.
        Ignore,
    }
    /// What a notice tells of the output that it stands for.
    Digests {
        /// Exit status, error line, path, counts and the last line.
        #[default]
        ErrorFirst,
        /// Only how large it was.
        None,
    }
    /// Where the originals of pruned output are kept.
    PruneStorage {
        /// In the session, behind a mask.
        #[default]
        Mask,
        /// In files beside the session, which is rewritten.
        Rewrite,
    }
}

pub(super) fn thinking_schema(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = THINKING.iter().map(|(name, _)| *name).collect();
    json_schema!({"type": ["string", "null"], "enum": names})
}

fn api_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": Api::ALL.map(Api::name)})
}
