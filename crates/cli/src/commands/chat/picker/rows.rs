//! The places of a session as rows.

use foldline_session_model::EntryIx;
use foldline_session_model::entry::EntryBody;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Message, StopReason};

use crate::commands::tree::outline::Outline;
use crate::view::{first_line, plain};

/// A place that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands::chat) struct Row {
    pub(in crate::commands::chat) id: String,
    pub(super) text: String,
    pub(super) label: Option<String>,
    pub(super) kind: RowKind,
    /// On the path to where the session stands.
    pub(super) is_active: bool,
    pub(in crate::commands::chat) is_leaf: bool,
    /// How many branches it hangs below.
    pub(super) depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    User,
    Assistant,
    /// An answer that only calls tools.
    Calls,
    Tool,
    Boundary,
    /// Labels, models and the like.
    Bookkeeping,
}

/// The longest text of a row.
const LONGEST: usize = 300;

/// The places of a session: what goes straight on below each other, branches before it and further to the right.
pub(in crate::commands::chat) fn rows(log: &SessionLog) -> Vec<Row> {
    let leaf = log.stands_at();
    let mut active = vec![false; log.len()];
    for ix in leaf.map(|leaf| log.path(leaf)).unwrap_or_default() {
        if let Some(active) = active.get_mut(ix.index()) {
            *active = true;
        }
    }
    let outline = Outline::of(log, &active);
    let labels = log.labels();
    let mut open: Vec<(EntryIx, usize)> = outline.roots().iter().rev().map(|root| (*root, 0)).collect();
    let mut rows = Vec::new();
    while let Some((ix, depth)) = open.pop() {
        let (kind, text) = described(log, ix);
        rows.push(Row {
            id: log.id(ix).to_owned(),
            text,
            label: labels.of(ix).map(|label| first_line(label, 40)),
            kind,
            is_active: active.get(ix.index()).copied().unwrap_or_default(),
            is_leaf: leaf == Some(ix),
            depth,
        });
        open.extend(outline.onward(ix).map(|next| (next, depth)));
        open.extend(outline.beside(ix).rev().map(|next| (next, depth + 1)));
    }
    rows
}

fn described(log: &SessionLog, ix: EntryIx) -> (RowKind, String) {
    if let Ok(EntryBody::Compaction(compaction)) = log.entry(ix).map(|entry| entry.body) {
        let thousands = (compaction.tokens_before.get() + 500) / 1000;
        let text = compaction.short_summary.unwrap_or(compaction.summary);
        let text = first_line(&text, LONGEST);
        return (
            RowKind::Boundary,
            format!("[compaction: {thousands}k tokens] {text}"),
        );
    }
    let Ok(Some(message)) = log.own_message(ix, Profile::Auto) else {
        return (RowKind::Bookkeeping, first_line(&log.kind_text(ix), LONGEST));
    };
    let text = first_line(&plain(&message), LONGEST);
    match &message {
        Message::User(_) | Message::BashExecution(_) => (RowKind::User, format!("user: {text}")),
        Message::Assistant(answer) => {
            let failed = matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
            if text.is_empty() && !failed {
                let calls: Vec<String> = answer
                    .content
                    .tool_calls()
                    .map(|call| first_line(&call.name, 40))
                    .collect();
                return (RowKind::Calls, format!("assistant: [{}]", calls.join(", ")));
            }
            let text = if text.is_empty() { "(failed)" } else { &text };
            (RowKind::Assistant, format!("assistant: {text}"))
        }
        Message::ToolResult(result) => (
            RowKind::Tool,
            format!("{}: {text}", first_line(&result.tool_name, 40)),
        ),
        Message::BranchSummary(_) => (RowKind::Boundary, format!("[branch] {text}")),
        other => (RowKind::Boundary, format!("{}: {text}", other.role())),
    }
}
