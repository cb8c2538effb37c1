//! `retry.*`.

use std::collections::BTreeMap;
use std::time::Duration;

use foldline_llm_client::RetryPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FallbackRevertPolicy;
use crate::settings::ModelRole;

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
