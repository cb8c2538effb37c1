//! `foldline navigate`: moves the leaf to another entry.

use foldline_branch_summary::Navigation;
use foldline_session_model::{EntryDraft, EntryId};
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::commit::{Backup, Commit};
use crate::error::{CommandError, Status};
use crate::output::{self, BOLD, DIM, Format, GOOD, grouped};
use crate::session::{Damage, Session};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    reason: Option<&'static str>,
    old_leaf_id: Option<EntryId>,
    new_leaf_id: Option<EntryId>,
    editor_text: Option<String>,
    summary_entry_id: Option<EntryId>,
    abandoned: Vec<EntryId>,
    backup_path: Option<String>,
}

pub(crate) fn run(args: &args::Navigate, format: Format) -> Result<Status, CommandError> {
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let log = &session.log;
    let target = session.find(&args.target)?;
    let navigation = Navigation::plan(log, target);
    let mut document = Document {
        outcome: "committed",
        reason: None,
        old_leaf_id: navigation.old_leaf.map(|ix| log.entry_id(ix)),
        new_leaf_id: navigation.new_leaf.map(|ix| log.entry_id(ix)),
        editor_text: navigation.editor_text.clone(),
        summary_entry_id: None,
        abandoned: navigation
            .abandoned
            .entries()
            .iter()
            .map(|ix| log.entry_id(*ix))
            .collect(),
        backup_path: None,
    };
    let mut commit = Commit::on(&session);
    let label = args.label.as_deref().zip(navigation.target);
    if let Some((label, target)) = label {
        // Before the move, which has to be the last record of the file.
        let leaf = log.leaf().map(|ix| log.entry_id(ix));
        let label = commit.add(leaf, &EntryDraft::label(&log.entry_id(target), Some(label)));
        if navigation.new_leaf == navigation.old_leaf {
            document.new_leaf_id = Some(label);
        }
    }
    match navigation.move_leaf(log) {
        Some(append) => {
            commit.add(append.parent, &append.draft);
        }
        None if label.is_some() => {}
        None => {
            document.outcome = "skipped";
            document.reason = Some("the session stands there already");
        }
    }
    if document.outcome == "committed" {
        let backup = commit.append(&store, Backup::OnlyToMigrate)?;
        document.backup_path = backup.map(|path| path.display().to_string());
    }
    output::result(format, &document, || text(&document, &session));
    Ok(Status::Done)
}

fn text(document: &Document, session: &Session) -> String {
    let place = match &document.new_leaf_id {
        Some(id) => format!("at {BOLD}{id}{BOLD:#}"),
        None => "before its first entry".to_owned(),
    };
    let mut out = match document.reason {
        Some(reason) => format!("Nothing was changed: {reason}\n"),
        None => format!("{GOOD}Moved{GOOD:#} {} stands {place}\n", session.path.display()),
    };
    match (document.abandoned.len(), &document.old_leaf_id) {
        (0, _) | (_, None) => {}
        (count, Some(old)) => out.push_str(&format!(
            "  left    {} entries; `foldline navigate` to {old} brings them back\n",
            grouped(count as u64)
        )),
    }
    if let Some(text) = &document.editor_text {
        out.push_str(&format!(
            "  editor  {DIM}the message that you typed there{DIM:#}\n{text}\n"
        ));
    }
    out
}
