//! The tree of entries: the active path goes straight on, branches stand beside it, long runs are folded.

use foldline_session_model::EntryIx;
use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::fold::{LEAF_TYPE, PRUNE_TYPE, Profile, REVOKE_TYPE};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Labels;

use super::replaced::text_of;
use super::shown::Shown;
use crate::commands::tree::outline::Outline;

pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// How many entries there was no room for.
    pub(super) more: usize,
    pub(super) branches: usize,
}

pub(super) enum Node {
    Row(Row),
    /// Many rows in a line, of which nothing stands out.
    Folded {
        rows: Vec<Row>,
        more: usize,
        tokens: u64,
    },
    /// What hangs beside the row before.
    Branch(Vec<Node>),
}

pub(super) struct Row {
    pub(super) id: Shown,
    pub(super) kind: Shown,
    pub(super) text: Shown,
    pub(super) tokens: u64,
    pub(super) label: Option<Shown>,
    pub(super) place: Place,
    pub(super) look: Look,
}

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Where the session stands.
    Leaf,
    /// On the path to there.
    Active,
    /// On a branch that was left.
    Left,
}

/// How a row looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    /// What a user typed.
    Typed,
    Failed,
    /// Compactions, summaries, prunes.
    Boundary,
}

/// So many rows are written at most, folded ones included.
const MOST_ROWS: usize = 4000;
/// So many rows are behind one fold at most.
const MOST_FOLDED: usize = 200;
/// A run of fewer rows than this is not folded.
const SHORT_RUN: usize = 5;
const LONGEST_TEXT: usize = 160;

pub(super) fn collect(log: &SessionLog, path: &[EntryIx]) -> Tree {
    let mut active = vec![false; log.len()];
    for ix in path {
        if let Some(active) = active.get_mut(ix.index()) {
            *active = true;
        }
    }
    let labels = log.labels();
    let outline = Outline::of(log, &active);
    let mut builder = Builder {
        log,
        labels: &labels,
        outline: &outline,
        active: &active,
        leaf: log.stands_at(),
        left: MOST_ROWS,
        more: 0,
    };
    let mut nodes = Vec::new();
    for &root in outline.roots() {
        nodes.extend(builder.line(root));
    }
    Tree {
        nodes,
        more: builder.more,
        branches: outline.tips(),
    }
}

struct Builder<'b> {
    log: &'b SessionLog,
    labels: &'b Labels<'b>,
    outline: &'b Outline,
    active: &'b [bool],
    leaf: Option<EntryIx>,
    left: usize,
    more: usize,
}

impl Builder<'_> {
    /// A line with its branches. Branches lie at most as deep as the logarithm of the number of entries, so this may
    /// call itself.
    fn line(&mut self, from: EntryIx) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut run: Vec<EntryIx> = Vec::new();
        let mut at = Some(from);
        while let Some(ix) = at {
            run.push(ix);
            at = self.outline.onward(ix);
            let beside: Vec<EntryIx> = self.outline.beside(ix).collect();
            if !beside.is_empty() || at.is_none() {
                self.run(&std::mem::take(&mut run), &mut nodes);
            }
            for branch in beside {
                let branch = self.line(branch);
                if !branch.is_empty() {
                    nodes.push(Node::Branch(branch));
                }
            }
        }
        nodes
    }

    /// Writes a run without branches, and folds what does not stand out.
    fn run(&mut self, run: &[EntryIx], nodes: &mut Vec<Node>) {
        let mut plain: Vec<Row> = Vec::new();
        let last = run.len().saturating_sub(1);
        for (at, &ix) in run.iter().enumerate() {
            if self.left == 0 {
                self.more += run.len() - at;
                break;
            }
            self.left -= 1;
            let row = self.row(ix);
            let stands_out = at == 0
                || at == last
                || row.label.is_some()
                || row.place == Place::Leaf
                || matches!(row.look, Look::Boundary | Look::Typed);
            if stands_out {
                self.fold(std::mem::take(&mut plain), nodes);
                nodes.push(Node::Row(row));
            } else {
                plain.push(row);
            }
        }
        self.fold(plain, nodes);
    }

    fn fold(&mut self, mut rows: Vec<Row>, nodes: &mut Vec<Node>) {
        if rows.len() < SHORT_RUN {
            nodes.extend(rows.into_iter().map(Node::Row));
            return;
        }
        let tokens = rows.iter().map(|row| row.tokens).sum();
        let more = rows.len().saturating_sub(MOST_FOLDED);
        rows.truncate(MOST_FOLDED);
        self.left += more;
        nodes.push(Node::Folded { rows, more, tokens });
    }

    fn row(&self, ix: EntryIx) -> Row {
        let is_active = self.active.get(ix.index()).copied().unwrap_or_default();
        let (kind, text, tokens, look) = self.content(ix);
        Row {
            id: Shown::line(self.log.id(ix), 40),
            kind: Shown::line(&kind, 20),
            text: Shown::line(&text, LONGEST_TEXT),
            tokens,
            label: self.labels.of(ix).map(|label| Shown::line(label, 60)),
            place: match (self.leaf == Some(ix), is_active) {
                (true, _) => Place::Leaf,
                (false, true) => Place::Active,
                (false, false) => Place::Left,
            },
            look,
        }
    }

    fn content(&self, ix: EntryIx) -> (String, String, u64, Look) {
        let log = self.log;
        if let Ok(Some(message)) = log.own_message(ix, Profile::Auto) {
            let tokens = Heuristic.message(&message).get();
            let text = text_of(&message);
            let (kind, look) = match &message {
                Message::User(m) if !m.synthetic => ("user", Look::Typed),
                Message::BashExecution(_) | Message::PythonExecution(_) => ("command", Look::Typed),
                Message::ToolResult(m) if m.is_error => {
                    return (
                        "failed".to_owned(),
                        format!("{}: {text}", m.tool_name),
                        tokens,
                        Look::Failed,
                    );
                }
                Message::ToolResult(m) => {
                    return (
                        "result".to_owned(),
                        format!("{}: {text}", m.tool_name),
                        tokens,
                        Look::Plain,
                    );
                }
                Message::CompactionSummary(_) | Message::VerbatimBoundary(_) => {
                    ("compaction", Look::Boundary)
                }
                Message::BranchSummary(_) => ("summary", Look::Boundary),
                Message::FileMention(_) => ("files", Look::Plain),
                Message::Custom(m) | Message::HookMessage(m) => (&*m.custom_type, Look::Plain),
                other => (other.role(), Look::Plain),
            };
            return (kind.to_owned(), text, tokens, look);
        }
        let (kind, text, look) = self.bookkeeping(ix);
        (kind, text, 0, look)
    }

    fn bookkeeping(&self, ix: EntryIx) -> (String, String, Look) {
        let log = self.log;
        let kind = log.kind_text(ix).into_owned();
        if log.kind(ix) == EntryKind::Compaction {
            return (kind, "(not taken into account)".to_owned(), Look::Boundary);
        }
        match log.entry(ix).map(|entry| entry.body) {
            Ok(EntryBody::Custom(custom)) => match &*custom.custom_type {
                PRUNE_TYPE => ("prune".to_owned(), String::new(), Look::Boundary),
                REVOKE_TYPE => ("undo".to_owned(), String::new(), Look::Boundary),
                LEAF_TYPE => ("move".to_owned(), String::new(), Look::Plain),
                other => (kind, other.to_owned(), Look::Plain),
            },
            Ok(EntryBody::Label(label)) => (
                kind,
                label.label.as_deref().unwrap_or("no label").to_owned(),
                Look::Plain,
            ),
            Ok(EntryBody::ModelChange(change)) => (
                "model".to_owned(),
                change.model.or(change.model_id).unwrap_or_default().into_owned(),
                Look::Plain,
            ),
            Ok(EntryBody::SessionInfo(info)) => {
                (kind, info.name.unwrap_or_default().into_owned(), Look::Plain)
            }
            _ => (kind, String::new(), Look::Plain),
        }
    }
}
