//! From settings to the behaviour of a session.

use foldline_compaction_core::verbatim::Parameters;
use foldline_pruning::Staleness as Stale;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::ReasoningEffort;

use super::{InterruptMode, ModelChoice, QueueMode, Settings};
use crate::core::{
    BranchQuestion, HandoffCopy, Interrupt, LineSettings, MidTurn, PlannerChoice, SessionSettings, SoftLine,
};

impl From<&Settings> for SessionSettings {
    /// Everything that settings say about how a session behaves. Models, hooks and tools are the host's to make.
    fn from(settings: &Settings) -> Self {
        let mut pruning = settings.pruning.policy();
        if !settings.pruning.enabled {
            pruning.protect_tokens = Tokens(u64::MAX);
            pruning.staleness = Stale::Ignore;
        }
        let extension = settings.compaction.handoff_prompt_extension.trim();
        let (parameters, _) = Parameters::merge(&[settings.compaction.verbatim()], None);
        Self {
            compaction: settings.compaction.core.clone(),
            lines: LineSettings {
                parameters: Some(parameters),
                query: settings
                    .compaction
                    .query
                    .clone()
                    .filter(|query| !query.trim().is_empty()),
            },
            branch_reserve: settings.branch_summary.reserve_tokens,
            branch_question: match &settings.branch_summary {
                branch if branch.enabled && !branch.skip_prompt => BranchQuestion::Ask,
                _ => BranchQuestion::Never,
            },
            retry: settings.retry.turn_policy(),
            pruning,
            steering: settings.steering_mode.into(),
            follow_up: settings.follow_up_mode.into(),
            interrupt: match settings.interrupt_mode {
                InterruptMode::Immediate => Interrupt::Immediate,
                InterruptMode::Wait => Interrupt::Wait,
            },
            planner: match settings.compaction.model {
                Some(ModelChoice::Extractive) => PlannerChoice::Extractive,
                _ => PlannerChoice::Models,
            },
            handoff_prompt_extension: (!extension.is_empty()).then(|| extension.to_owned()),
            handoff_copy: if settings.compaction.handoff_save_to_disk {
                HandoffCopy::Artifact
            } else {
                HandoffCopy::None
            },
            background: Some(&settings.compaction.background)
                .filter(|background| background.enabled)
                .map(|background| SoftLine::percent(background.soft_percent)),
            mid_turn: if settings.compaction.mid_turn_enabled {
                MidTurn::On
            } else {
                MidTurn::Off
            },
            summary_reasoning: settings.compaction.thinking_level.unwrap_or_else(|| {
                // As hard as the model that works, but nobody waits for more than that.
                match settings.thinking_level.unwrap_or(ReasoningEffort::Unset) {
                    ReasoningEffort::Max => ReasoningEffort::High,
                    level => level,
                }
            }),
            ..Self::default()
        }
    }
}

impl From<QueueMode> for crate::queue::QueueMode {
    fn from(mode: QueueMode) -> Self {
        match mode {
            QueueMode::OneAtATime => Self::OneAtATime,
            QueueMode::All => Self::All,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_types, reason = "a settings file is a small value")]

    use foldline_session_model::Tokens;
    use serde_json::json;

    use super::super::{FileLayer, Layers, resolve};
    use crate::core::{Interrupt, PlannerChoice, SessionSettings};
    use crate::queue::QueueMode;

    fn settings(file: &serde_json::Value) -> SessionSettings {
        let layer = FileLayer::parse("settings.json".into(), &file.to_string());
        let resolved = resolve(&Layers {
            user: Some(&layer),
            ..Layers::default()
        });
        assert!(resolved.problems.is_empty(), "{:?}", resolved.problems);
        SessionSettings::from(&resolved.settings)
    }

    #[test]
    fn every_group_reaches_the_session() {
        let session = settings(&json!({
            "compaction": {"keepRecentTokens": 7_000, "compression_ratio": 0.25, "preserve_recent": 3,
                "query": "leases", "model": "extractive", "handoffPromptExtension": " Name the branch. "},
            "branchSummary": {"reserveTokens": 512},
            "pruning": {"protectTokens": 9, "enabled": true},
            "retry": {"maxRetries": 1},
            "steeringMode": "all",
            "interruptMode": "wait",
        }));
        assert!((session.compaction.keep_recent_tokens - 7_000.0).abs() < 0.5);
        let lines = session.lines.parameters.unwrap();
        assert_eq!((lines.preserve_recent, lines.query.as_str()), (3, "leases"));
        assert_eq!(session.lines.query.as_deref(), Some("leases"));
        assert_eq!(session.branch_reserve, Tokens(512));
        assert_eq!(session.pruning.protect_tokens, Tokens(9));
        assert_eq!(session.retry.max_retries, 1);
        assert_eq!(
            (session.steering, session.follow_up),
            (QueueMode::All, QueueMode::OneAtATime)
        );
        assert_eq!(session.interrupt, Interrupt::Wait);
        assert_eq!(session.planner, PlannerChoice::Extractive);
        assert_eq!(
            session.handoff_prompt_extension.as_deref(),
            Some("Name the branch.")
        );
    }

    #[test]
    fn without_settings_a_session_behaves_as_by_default() {
        let session = settings(&json!({"compaction": {"query": "  "}}));
        let default = SessionSettings::default();
        assert_eq!(session.compaction, default.compaction);
        assert_eq!(session.retry, default.retry);
        assert_eq!(session.pruning, default.pruning);
        assert_eq!(session.lines.query, None);
        assert_eq!(session.handoff_prompt_extension, None);
    }

    #[test]
    fn pruning_that_is_off_protects_everything() {
        let session = settings(&json!({"pruning": {"enabled": false}}));
        assert_eq!(session.pruning.protect_tokens, Tokens(u64::MAX));
    }
}
