use foldline_agent_session::Extras;
use foldline_compaction_core::verbatim::VerbatimStats;
use foldline_compaction_core::verbatim::reconstruct::PercentTenths;
use foldline_session_model::Tokens;

use super::*;
use crate::commands::chat::markdown::Colours;

fn end(reason: Reason, action: CompactionAction, outcome: OperationOutcome) -> CompactionEnd {
    CompactionEnd {
        reason,
        action,
        mid_turn: false,
        outcome,
        result: None,
        aborted: outcome == OperationOutcome::Cancelled,
        will_retry: false,
        skipped: outcome == OperationOutcome::Skipped,
        error_message: None,
        continuation_skip_reason: None,
        unresolved_overflow: false,
        manual_takeover_pending: false,
        failure: None,
        unpaid: None,
    }
}

fn result(planner: &str, rung: &'static str) -> CompactionResult {
    CompactionResult {
        entry_id: "a1".into(),
        first_kept_entry_id: None,
        tokens_before: Tokens(51_234),
        tokens_after: Tokens(12_000),
        summary: "text".to_owned(),
        short_summary: None,
        planner: planner.to_owned(),
        rung,
        native: None,
        prepared: None,
        fallback_reasons: Vec::new(),
        elapsed_ms: 2_100,
        backup_path: None,
        extras: Extras::default(),
    }
}

#[test]
fn cards_by_kind_and_width() {
    let summary = CompactionEnd {
        result: Some(CompactionResult {
            short_summary: Some(
                "The parser reads tabs now \u{1b}[2Jand the tests of the lexer pass, but the printer still turns them \
                 into spaces in one place"
                    .to_owned(),
            ),
            fallback_reasons: vec!["my/large: HTTP 529: overloaded".to_owned()],
            ..result("my/small", "primary")
        }),
        ..end(
            Reason::Overflow,
            CompactionAction::ContextFull,
            OperationOutcome::Committed,
        )
    };
    let lines = CompactionEnd {
        result: Some(CompactionResult {
            extras: Extras {
                stats: Some(VerbatimStats {
                    lines_before: 1_500,
                    lines_deleted: 1_100,
                    lines_kept: 400,
                    range_count: 12,
                    tokens_before: Tokens(51_234),
                    tokens_after: Tokens(12_000),
                    percent_reduction: PercentTenths(766),
                }),
                ..Extras::default()
            },
            ..result("extractive", "extractive")
        }),
        ..end(
            Reason::Manual,
            CompactionAction::VerbatimLines,
            OperationOutcome::Committed,
        )
    };
    let fresh = CompactionEnd {
        result: Some(result("extension", "fresh")),
        ..end(
            Reason::Threshold,
            CompactionAction::VerbatimLines,
            OperationOutcome::Committed,
        )
    };
    let mut shown = String::new();
    for width in [79, 120] {
        for (name, end) in [("summary", &summary), ("lines", &lines), ("fresh", &fresh)] {
            let layout = Layout {
                width,
                colours: Colours::None,
            };
            let card = card(end, layout).unwrap();
            let bare = anstream::adapter::strip_str(&card).to_string();
            assert!(!bare.contains('\u{1b}'), "{bare:?}");
            shown.push_str(&format!("--- {name}, {width} columns\n{bare}\n"));
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn what_did_not_happen_is_told_if_someone_should_know() {
    use OperationOutcome::{Cancelled, Committed, Failed, Skipped};
    let because = |text: &str| Some(text.to_owned());
    for (reason, outcome, why, told) in [
        (Reason::Manual, Cancelled, None, because("Compaction cancelled")),
        (
            Reason::Overflow,
            Cancelled,
            None,
            because("Auto-compaction cancelled"),
        ),
        (
            Reason::Manual,
            Skipped,
            because("too small"),
            because("Nothing was compacted: too small"),
        ),
        (Reason::Threshold, Skipped, because("too small"), None),
        (
            Reason::Manual,
            Failed,
            because("Compaction failed: no (diagnostic: x)"),
            because("Compaction failed: no (diagnostic: x)"),
        ),
        (Reason::Manual, Failed, None, because("Compaction failed")),
        (Reason::Manual, Committed, None, None),
        (
            Reason::Threshold,
            Committed,
            because("still too large"),
            because("still too large"),
        ),
    ] {
        let end = CompactionEnd {
            error_message: why.clone(),
            ..end(reason, CompactionAction::ContextFull, outcome)
        };
        assert_eq!(failure(&end), told, "{reason:?} {outcome:?} {why:?}");
        assert!(
            card(
                &end,
                Layout {
                    width: 80,
                    colours: Colours::None
                }
            )
            .is_none()
        );
    }
    let unresolved = CompactionEnd {
        error_message: because("still too large"),
        unresolved_overflow: true,
        ..end(Reason::Overflow, CompactionAction::ContextFull, Skipped)
    };
    assert_eq!(failure(&unresolved), because("still too large"));
}

#[test]
fn loaders_say_why() {
    use CompactionAction::{ContextFull, Handoff, VerbatimLines};
    for (reason, action, text) in [
        (Reason::Manual, ContextFull, "Compacting context..."),
        (
            Reason::Overflow,
            VerbatimLines,
            "Context overflow detected. Auto-compacting...",
        ),
        (Reason::Idle, ContextFull, "Session is idle. Auto-compacting..."),
        (Reason::Threshold, Handoff, "Auto-handoff..."),
    ] {
        let start = CompactionStart {
            reason,
            action,
            mid_turn: false,
        };
        assert_eq!(loader(&start), text);
    }
}
