//! One row of the drawing.

use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::fold::{PRUNE_TYPE, Profile, REVOKE_TYPE};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Labels;
use foldline_session_model::{EntryIx, Tokens};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::drawing::IdWidths;
use crate::output::{BOLD, DIM, GOOD, NOTE, grouped};
use crate::view::{is_harmless, plain};

/// An entry as it is drawn.
pub(super) struct Row<'l> {
    pub(super) ix: EntryIx,
    kind: String,
    text: String,
    tokens: Tokens,
    label: Option<&'l str>,
    is_leaf: bool,
    is_boundary: bool,
    /// Never folded away.
    pub(super) stands_out: bool,
    /// What a user typed.
    pub(super) is_typed: bool,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// On the path to the leaf.
    Active,
    /// Elsewhere.
    Left,
}

/// As much of a text as a row could show.
const LONGEST: usize = 400;

impl<'l> Row<'l> {
    pub(super) fn of(log: &SessionLog, labels: &'l Labels<'_>, ix: EntryIx, leaf: Option<EntryIx>) -> Self {
        let mut row = Self {
            ix,
            kind: log.kind_text(ix).into_owned(),
            text: String::new(),
            tokens: Tokens::ZERO,
            label: labels.of(ix),
            is_leaf: leaf == Some(ix),
            is_boundary: false,
            stands_out: false,
            is_typed: false,
        };
        match log.kind(ix) {
            EntryKind::Custom | EntryKind::Label | EntryKind::ModelChange | EntryKind::SessionInfo => {
                row.bookkeeping(log);
            }
            _ => {
                if let Ok(Some(message)) = log.own_message(ix, Profile::Auto) {
                    row.message(&message);
                }
            }
        }
        row.is_boundary |= matches!(log.kind(ix), EntryKind::Compaction | EntryKind::BranchSummary);
        row.stands_out |= row.is_boundary || row.is_leaf || row.label.is_some();
        row
    }

    fn message(&mut self, message: &Message<'_>) {
        self.tokens = Heuristic.message(message);
        self.is_typed = matches!(message, Message::User(_) | Message::BashExecution(_));
        self.kind = match message {
            Message::ToolResult(m) if m.is_error => "failed".to_owned(),
            Message::ToolResult(_) => "result".to_owned(),
            Message::CompactionSummary(_) | Message::VerbatimBoundary(_) => "compaction".to_owned(),
            Message::BranchSummary(_) => "summary".to_owned(),
            Message::BashExecution(_) => "bash".to_owned(),
            Message::PythonExecution(_) => "python".to_owned(),
            Message::FileMention(_) => "files".to_owned(),
            Message::Custom(m) | Message::HookMessage(m) => m.custom_type.to_string(),
            other => other.role().to_owned(),
        };
        let text = one_line(&plain(message));
        self.text = match message {
            Message::ToolResult(m) => format!("{}: {text}", m.tool_name),
            Message::Assistant(m) => {
                let calls: Vec<&str> = m.content.tool_calls().map(|call| &*call.name).collect();
                match (text.is_empty(), calls.is_empty()) {
                    (_, true) => text,
                    (true, false) => format!("[{}]", calls.join(", ")),
                    (false, false) => format!("[{}] {text}", calls.join(", ")),
                }
            }
            _ => text,
        };
    }

    fn bookkeeping(&mut self, log: &SessionLog) {
        let Ok(entry) = log.entry(self.ix) else { return };
        match entry.body {
            EntryBody::Custom(custom) => match &*custom.custom_type {
                PRUNE_TYPE => {
                    "prune".clone_into(&mut self.kind);
                    self.stands_out = true;
                }
                REVOKE_TYPE => {
                    "undo".clone_into(&mut self.kind);
                    self.stands_out = true;
                }
                other => self.text = one_line(other),
            },
            EntryBody::Label(label) => {
                let target = log.find(&label.target_id).map_or("", |ix| log.id(ix));
                self.text = format!("{} on {target}", label.label.as_deref().unwrap_or("no label"));
            }
            EntryBody::ModelChange(change) => {
                "model".clone_into(&mut self.kind);
                let model = change.model.or(change.model_id).unwrap_or_default();
                self.text = one_line(&model);
            }
            EntryBody::SessionInfo(info) => self.text = one_line(&info.name.unwrap_or_default()),
            _ => {}
        }
    }
}

/// Prints one row: tokens, the branch, the id, what it is, what it says.
pub(super) fn print(
    out: &mut String,
    row: &Row<'_>,
    prefix: &str,
    marker: Marker,
    ids: &IdWidths,
    log: &SessionLog,
    width: usize,
) {
    let tokens = match row.tokens {
        Tokens::ZERO => String::new(),
        tokens => grouped(tokens.get()),
    };
    let sign = match (marker, row.is_boundary) {
        (Marker::Active, false) => '●',
        (Marker::Left, false) => '○',
        (Marker::Active, true) => '◆',
        (Marker::Left, true) => '◇',
    };
    let id = ids.shown(log, row.ix);
    let here = if row.is_leaf { " ← here" } else { "" };
    let label = row
        .label
        .map(|label| format!(" [{}]", cut(&one_line(label), 24)))
        .unwrap_or_default();
    let kind = cut(&row.kind, 14);
    let taken = 8 + 1 + prefix.width() + 2 + id.width() + 1 + kind.width() + label.width() + here.width() + 2;
    let text = cut(&row.text, width.saturating_sub(taken));
    let (kind, id) = match marker {
        Marker::Active => (format!("{BOLD}{kind}{BOLD:#}"), id.to_owned()),
        Marker::Left => (kind, format!("{DIM}{id}{DIM:#}")),
    };
    let line =
        format!("{tokens:>8} {prefix}{sign} {id} {kind}{NOTE}{label}{NOTE:#}{GOOD}{here}{GOOD:#}  {text}");
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Prints one row for many.
pub(super) fn folded(out: &mut String, rows: &[Row<'_>], prefix: &str, width: usize) {
    let tokens: Tokens = rows.iter().map(|row| row.tokens).sum();
    let typed = rows.iter().filter(|row| row.is_typed).count();
    let failed = rows.iter().filter(|row| row.kind == "failed").count();
    let mut text = format!("{} entries", grouped(rows.len() as u64));
    for (count, what) in [(typed, "from the user"), (failed, "failed")] {
        if count > 0 {
            text.push_str(&format!(", {} {what}", grouped(count as u64)));
        }
    }
    let text = cut(&text, width.saturating_sub(8 + 1 + prefix.width() + 2));
    out.push_str(&format!(
        "{:>8} {prefix}{DIM}⋮ {text}{DIM:#}\n",
        grouped(tokens.get())
    ));
}

/// The text on one line, without control characters.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| is_harmless(*c)).take(LONGEST));
        if line.len() > LONGEST {
            break;
        }
    }
    line
}

/// The text in at most `width` columns of a terminal.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}
