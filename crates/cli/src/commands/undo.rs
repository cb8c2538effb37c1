//! `foldline undo`: takes back the newest compaction or prune (D15).

use std::path::Path;

use foldline_agent_session::{UndoneHow, UndoneKind};
use foldline_session_model::EntryId;
use foldline_session_store::{DiskStore, SessionStore as _};
use serde::Serialize;

use crate::args;
use crate::door::{Door, session_error};
use crate::error::{CommandError, Status};
use crate::output::{self, BOLD, Format, GOOD};
use crate::progress::Progress;
use crate::session::{Damage, Session};
use crate::setup::Setup;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    reason: Option<&'static str>,
    /// What was taken back.
    entry_id: Option<EntryId>,
    kind: Option<&'static str>,
    /// `moved` to before it, or `revoked` because later turns stay.
    how: Option<&'static str>,
    /// The entry that says so.
    mark_entry_id: Option<EntryId>,
    new_leaf_id: Option<EntryId>,
    /// What was copied before this; if there was nothing to take back, what was before the newest prune that rewrote
    /// the session.
    backup_path: Option<String>,
}

/// The backup of the newest prune that rewrote a session.
fn before_rewrite(session: &Path) -> Option<String> {
    let session = session.canonicalize().ok()?;
    let backups = DiskStore::new().backups(&session).ok()?;
    let backup = backups.into_iter().find(|backup| backup.label == "prune")?;
    Some(backup.path.display().to_string())
}

pub(crate) fn run(args: &args::Undo, format: Format) -> Result<Status, CommandError> {
    let setup = Setup::without_model()?;
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let path = session.path.display().to_string();
    let stands_at = session.log.stands_at().map(|ix| session.log.entry_id(ix));
    let rewritten = before_rewrite(&session.path);
    let door = Door::of(session, setup.options_without_models())?;
    let progress = Progress::start("Taking back");
    let undone = door.run(&progress, door.session.undo());
    drop(progress);
    let document = match undone.map_err(|e| session_error(&e))? {
        None => Document {
            outcome: "skipped",
            reason: Some("no compaction and no prune is in force here"),
            new_leaf_id: stands_at,
            backup_path: rewritten,
            ..Document::default()
        },
        Some(undone) => Document {
            outcome: "committed",
            reason: None,
            entry_id: Some(undone.entry_id),
            kind: Some(match undone.kind {
                UndoneKind::Compaction => "compaction",
                UndoneKind::Prune => "prune",
            }),
            how: Some(match undone.how {
                UndoneHow::Moved => "moved",
                UndoneHow::Revoked => "revoked",
            }),
            mark_entry_id: Some(undone.mark_entry_id),
            new_leaf_id: undone.new_leaf_id,
            backup_path: undone.backup_path.map(|path| path.display().to_string()),
        },
    };
    output::result(format, &document, || text(&document, &path));
    Ok(Status::Done)
}

fn text(document: &Document, path: &str) -> String {
    if let Some(reason) = document.reason {
        let mut out = format!("Nothing was changed: {reason}\n");
        if let Some(backup) = &document.backup_path {
            out.push_str(&format!(
                "A prune rewrote the session, which no entry can take back. As it was before that it is in\n  {BOLD}{backup}{BOLD:#}\n\
                 Copy that over {path} to go back; turns since then are only in the session as it is now.\n"
            ));
        }
        return out;
    }
    let kind = document.kind.unwrap_or_default();
    let id = document.entry_id.as_ref().map_or("", EntryId::as_str);
    let what = if document.how == Some("revoked") {
        "the turns after it stay"
    } else {
        "nothing came after it"
    };
    format!("{GOOD}Took back{GOOD:#} the {kind} {BOLD}{id}{BOLD:#} of {path}: {what}\n")
}
