//! The settings of compaction, as settings files hold them: any number is accepted here, and
//! [`Limits`](crate::accounting::Limits) turns them into numbers that fit together (D9).

use serde::{Deserialize, Serialize};

use foldline_session_model::{ByteLen, Tokens};

/// The settings below `compaction.`; the names and defaults are those of seed 000, "Settings and defaults".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSettings {
    /// Whether anything happens without being asked for. Manual compaction always works.
    pub enabled: bool,
    /// How a context is made smaller.
    pub strategy: Strategy,
    /// How the threshold follows from the window when nothing overrides it.
    pub threshold_rule: ThresholdRule,
    /// The threshold as a percentage of the window; not positive: not set.
    pub threshold_percent: f64,
    /// The threshold in tokens; not positive: not set. Wins over the percentage.
    pub threshold_tokens: f64,
    /// Tokens of the window that stay free; also sizes the output of summaries.
    pub reserve_tokens: f64,
    /// Tokens of recent messages that stay as they are.
    pub keep_recent_tokens: f64,
    /// Bytes of encoded pictures that recent messages hold at most. A message with more of them goes into the
    /// summary, unless it is the last one.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub keep_media_bytes: ByteLen,
    /// Tokens of user messages that stay word for word beside a summary.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub keep_user_tokens: Tokens,
    /// The most tokens of a stored summary. Not set: a tenth of the window, at most 8,000.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub max_summary_tokens: Option<Tokens>,
    /// What happens when something that must not be lost is in neither summary nor tail.
    pub gate: GateMode,
    /// Where the line for user interfaces comes from.
    pub short_summary: ShortSummary,
    /// Whether unfinished work goes on after an automatic compaction.
    pub auto_continue: bool,
    /// Whether remote summarisers may be used.
    pub remote_enabled: bool,
    /// An endpoint that takes `{systemPrompt, prompt}` and gives `{summary}`.
    pub remote_endpoint: Option<String>,
    /// Whether a session that lies idle is compacted.
    pub idle_enabled: bool,
    /// From which size an idle session is compacted.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub idle_threshold_tokens: Tokens,
    /// After how many seconds a session is idle; clamped to 60 to 3,600.
    pub idle_timeout_seconds: f64,
    /// Whether tool output is pruned below the threshold when that pays.
    pub maintenance_pruning_enabled: bool,
    /// The least that such a prune must save.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub maintenance_pruning_min_savings_tokens: Tokens,
    /// What follows when the model-driven rungs fail and the context must become smaller.
    pub fallback: Fallback,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            strategy: Strategy::Auto,
            threshold_rule: ThresholdRule::ShareAndReserve,
            threshold_percent: -1.0,
            threshold_tokens: -1.0,
            reserve_tokens: 16_384.0,
            keep_recent_tokens: 20_000.0,
            keep_media_bytes: ByteLen(1_000_000),
            keep_user_tokens: Tokens(4_000),
            max_summary_tokens: None,
            gate: GateMode::Append,
            short_summary: ShortSummary::Derived,
            auto_continue: true,
            remote_enabled: true,
            remote_endpoint: None,
            idle_enabled: false,
            idle_threshold_tokens: Tokens(200_000),
            idle_timeout_seconds: 300.0,
            maintenance_pruning_enabled: false,
            maintenance_pruning_min_savings_tokens: Tokens(8_000),
            fallback: Fallback::Extractive,
        }
    }
}

/// How a context is made smaller (DESIGN, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// `context-full` with a model, `verbatim-lines` with the embedded planner (D17).
    #[default]
    Auto,
    /// Old messages become a summary.
    ContextFull,
    /// Lines are deleted, the others stay word for word.
    VerbatimLines,
    /// A document opens a new session.
    Handoff,
    /// Nothing happens without being asked for.
    Off,
}

/// Who plans a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planner {
    /// A model.
    Model,
    /// The embedded planner, without a model.
    Extractive,
}

impl Strategy {
    /// What `auto` means for this planner; everything else means itself.
    #[must_use]
    pub const fn resolved(self, planner: Planner) -> Self {
        match (self, planner) {
            (Self::Auto, Planner::Model) => Self::ContextFull,
            (Self::Auto, Planner::Extractive) => Self::VerbatimLines,
            (strategy, _) => strategy,
        }
    }

    /// The strategy of a compaction that someone asked for: never a handoff, and not `off` (D17).
    #[must_use]
    pub const fn manual(self, planner: Planner) -> Self {
        match self {
            Self::Handoff | Self::Off => Self::Auto.resolved(planner),
            strategy => strategy.resolved(planner),
        }
    }
}

/// How the threshold follows from the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdRule {
    /// The window without 15 % of it, or without the reserve if that is more (seed 000).
    #[default]
    ShareAndReserve,
    /// The window without the reserve (seeds 001 and 002).
    ReserveOnly,
}

/// What happens when something that must not be lost is in neither summary nor tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GateMode {
    /// It is appended in a short list.
    #[default]
    Append,
    /// The summary is refused.
    Reject,
    /// Nobody looks.
    Off,
}

/// Where the line for user interfaces comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ShortSummary {
    /// From the summary.
    #[default]
    Derived,
    /// From a request of its own.
    Model,
}

/// What follows when the model-driven rungs fail and the context must become smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// The embedded planner.
    #[default]
    Extractive,
    /// The failure is reported.
    None,
}

impl CompactionSettings {
    /// The idle time in seconds, between 60 and 3,600.
    pub fn idle_timeout(&self) -> f64 {
        if self.idle_timeout_seconds.is_nan() {
            return Self::default().idle_timeout_seconds;
        }
        self.idle_timeout_seconds.clamp(60.0, 3_600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_follows_the_planner_and_manual_is_never_a_handoff() {
        use Planner::{Extractive, Model};
        assert_eq!(Strategy::Auto.resolved(Model), Strategy::ContextFull);
        assert_eq!(Strategy::Auto.resolved(Extractive), Strategy::VerbatimLines);
        assert_eq!(Strategy::Handoff.resolved(Model), Strategy::Handoff);
        for strategy in [Strategy::Handoff, Strategy::Off, Strategy::Auto] {
            assert_eq!(strategy.manual(Model), Strategy::ContextFull);
        }
        assert_eq!(Strategy::ContextFull.manual(Extractive), Strategy::ContextFull);
    }

    #[test]
    fn a_settings_file_may_hold_a_part_only() {
        let settings: CompactionSettings =
            serde_json::from_str(r#"{"strategy":"handoff","reserveTokens":-5,"gate":"reject"}"#).unwrap();
        let expected = CompactionSettings {
            strategy: Strategy::Handoff,
            reserve_tokens: -5.0,
            gate: GateMode::Reject,
            ..CompactionSettings::default()
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn the_idle_time_has_bounds() {
        for (set, used) in [(1.0, 60.0), (300.0, 300.0), (1e9, 3600.0), (f64::NAN, 300.0)] {
            let settings = CompactionSettings {
                idle_timeout_seconds: set,
                ..CompactionSettings::default()
            };
            assert!((settings.idle_timeout() - used).abs() < f64::EPSILON, "{set}");
        }
    }
}
