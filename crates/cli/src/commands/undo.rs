//! `foldline undo`: takes back the newest compaction or prune (D15).

use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, EntryId};
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::commit::{Backup, Commit};
use crate::error::{CommandError, Status};
use crate::output::{self, BOLD, Format, GOOD};
use crate::session::{Damage, Session};

#[derive(Serialize)]
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
    backup_path: Option<String>,
}

pub(crate) fn run(args: &args::Undo, format: Format) -> Result<Status, CommandError> {
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let log = &session.log;
    let context = session.context(&Leaf::Last)?;
    let Some(undo) = context.undo() else {
        let document = Document {
            outcome: "skipped",
            reason: Some("no compaction and no prune is in force here"),
            entry_id: None,
            kind: None,
            how: None,
            mark_entry_id: None,
            new_leaf_id: log.stands_at().map(|ix| log.entry_id(ix)),
            backup_path: None,
        };
        output::result(format, &document, || {
            "Nothing was changed: no compaction and no prune is in force here\n".to_owned()
        });
        return Ok(Status::Done);
    };
    let kind = log.find(undo.target.as_str()).map(|ix| log.kind(ix));
    let kind = match kind {
        Some(foldline_session_model::entry::EntryKind::Compaction) => "compaction",
        _ => "prune",
    };
    let revoked = undo.append.draft == EntryDraft::revocation(&undo.target);
    let mut commit = Commit::on(&session);
    let mark = commit.add(undo.append.parent.clone(), &undo.append.draft);
    let backup = commit.append(&store, Backup::OnlyToMigrate)?;
    let new_leaf_id = if revoked {
        Some(mark.clone())
    } else {
        let parent = undo.append.parent.as_ref().and_then(|id| log.find(id.as_str()));
        parent
            .and_then(|ix| log.stands_for(ix))
            .map(|ix| log.entry_id(ix))
    };
    let document = Document {
        outcome: "committed",
        reason: None,
        entry_id: Some(undo.target),
        kind: Some(kind),
        how: Some(if revoked { "revoked" } else { "moved" }),
        mark_entry_id: Some(mark),
        new_leaf_id,
        backup_path: backup.map(|path| path.display().to_string()),
    };
    output::result(format, &document, || text(&document, &session));
    Ok(Status::Done)
}

fn text(document: &Document, session: &Session) -> String {
    let kind = document.kind.unwrap_or_default();
    let id = document.entry_id.as_ref().map_or("", EntryId::as_str);
    let what = if document.how == Some("revoked") {
        "the turns after it stay"
    } else {
        "nothing came after it"
    };
    format!(
        "{GOOD}Took back{GOOD:#} the {kind} {BOLD}{id}{BOLD:#} of {}: {what}\n",
        session.path.display()
    )
}
