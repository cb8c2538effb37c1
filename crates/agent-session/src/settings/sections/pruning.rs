//! `pruning.*`.

use foldline_pruning as pruning;
use foldline_session_model::Tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Digests, PruneStorage, Staleness};

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
