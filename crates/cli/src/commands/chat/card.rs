//! The card of a compaction, and the words for one that did not happen (spec "Orchestrator and clients", 16; "Verbatim",
//! 19).

use foldline_agent_session::event::{
    CompactionAction, CompactionEnd, CompactionResult, CompactionStart, OperationOutcome,
};
use foldline_compaction_core::decide::Reason;

use super::markdown::Layout;
use super::screen::wrap;
use crate::output::grouped;
use crate::output::styles::{BOLD, DIM, GOOD};

/// What stands on the screen while a compaction runs.
pub(super) fn loader(start: &CompactionStart) -> &'static str {
    match (start.reason, start.action) {
        (Reason::Manual, _) => "Compacting context...",
        (Reason::Overflow, _) => "Context overflow detected. Auto-compacting...",
        (Reason::Idle, CompactionAction::Handoff) => "Session is idle. Auto-handoff...",
        (Reason::Idle, _) => "Session is idle. Auto-compacting...",
        (Reason::Threshold, CompactionAction::Handoff) => "Auto-handoff...",
        (Reason::Threshold, _) => "Auto-compacting...",
    }
}

/// The card of a compaction that was committed.
pub(super) fn card(end: &CompactionEnd, layout: Layout) -> Option<String> {
    let result = end.result.as_ref()?;
    let title = match (end.action, result.rung) {
        (CompactionAction::VerbatimLines, "fresh") => "✻ Context cleared (compaction degraded)",
        (CompactionAction::VerbatimLines, _) => "✻ Context compacted",
        _ => "[compaction]",
    };
    let mut card = format!("{GOOD}{BOLD}{title}{BOLD:#}{GOOD:#}\n");
    for line in body(result)
        .iter()
        .flat_map(|line| wrap(line, layout.width.saturating_sub(2)))
    {
        card.push_str(&format!("  {line}\n"));
    }
    card.push_str(&format!(
        "  {DIM}/summary shows what stays, /undo takes it back{DIM:#}"
    ));
    Some(card)
}

fn body(result: &CompactionResult) -> Vec<String> {
    let (before, after) = (result.tokens_before.get(), result.tokens_after.get());
    let percent = before.saturating_sub(after) * 100 / before.max(1);
    let mut lines = vec![format!(
        "Compacted from {} tokens to {} ({percent}% less) in {}s",
        grouped(before),
        grouped(after),
        result.elapsed_ms.div_ceil(1000)
    )];
    if let Some(stats) = &result.extras.stats {
        lines.push(format!(
            "{} of {} lines stay, word for word",
            grouped(stats.lines_kept as u64),
            grouped(stats.lines_before as u64)
        ));
    }
    let by = match result.planner.as_str() {
        "extractive" => "planned without a model (extractive)".to_owned(),
        "extension" => "written by a hook".to_owned(),
        model => format!("by {model}"),
    };
    lines.push(by);
    lines.extend(result.short_summary.clone());
    lines.extend(
        result
            .fallback_reasons
            .iter()
            .map(|why| format!("before it: {why}")),
    );
    lines
}

/// What is said of a compaction that did not happen. `None`: nothing, because nobody asked and nothing is wrong.
pub(super) fn failure(end: &CompactionEnd) -> Option<String> {
    let is_manual = end.reason == Reason::Manual;
    let why = end.error_message.as_deref();
    match end.outcome {
        OperationOutcome::Committed => why.map(str::to_owned),
        OperationOutcome::Cancelled if is_manual => Some("Compaction cancelled".to_owned()),
        OperationOutcome::Cancelled if end.action == CompactionAction::Handoff => {
            Some("Auto-handoff cancelled".to_owned())
        }
        OperationOutcome::Cancelled => Some("Auto-compaction cancelled".to_owned()),
        OperationOutcome::Skipped if is_manual => Some(match why {
            Some(why) => format!("Nothing was compacted: {why}"),
            None => "Nothing was compacted".to_owned(),
        }),
        OperationOutcome::Skipped => why.filter(|_| end.unresolved_overflow).map(str::to_owned),
        OperationOutcome::Failed => Some(why.unwrap_or("Compaction failed").to_owned()),
    }
}

#[cfg(test)]
mod tests;
