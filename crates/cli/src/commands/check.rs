//! `foldline check`: every damage of a session file, and its repair.

use std::time::SystemTime;

use foldline_session_store::{DiskStore, Repaired, SessionStore as _, plan_session_repair};
use serde::Serialize;

use crate::args;
use crate::commit;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, Format, GOOD, grouped};
use crate::session::{Damage, Session};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    entries: usize,
    damaged: Vec<DamageRow>,
    repaired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantine_path: Option<String>,
}

#[derive(Serialize)]
struct DamageRow {
    line: u32,
    offset: u64,
    kind: &'static str,
    message: String,
}

pub(crate) fn run(args: &args::Check, format: Format) -> Result<Status, CommandError> {
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Silent)?;
    let damaged: Vec<DamageRow> = session
        .log
        .damage()
        .iter()
        .map(|damage| DamageRow {
            line: damage.line.get(),
            offset: damage.offset.get(),
            kind: damage.kind.name(),
            message: damage.kind.to_string(),
        })
        .collect();
    let repaired = if args.repair && !damaged.is_empty() {
        Some(repair(&store, &session)?)
    } else {
        None
    };
    let status = match (&repaired, damaged.is_empty()) {
        (Some(_), _) | (None, true) => Status::Done,
        (None, false) => Status::Damaged,
    };
    let document = Document {
        entries: session.log.len(),
        damaged,
        repaired: repaired.is_some(),
        backup_path: repaired.as_ref().map(|r| r.backup.display().to_string()),
        quarantine_path: repaired
            .and_then(|r| r.quarantine)
            .map(|path| path.display().to_string()),
    };
    output::result(format, &document, || text(&session, &document));
    Ok(status)
}

/// Moves the damage beside the session and rewrites it without; the original is kept.
fn repair(store: &DiskStore, session: &Session) -> Result<Repaired, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    if session.imported_from.is_some() {
        return Err(
            CommandError::new(ErrorKind::Usage, "another agent's file is never changed")
                .hint("`foldline import` makes a session of it"),
        );
    }
    let snapshot = store.read(&session.path).map_err(|e| failed(&e))?;
    let steps = plan_session_repair(&snapshot).map_err(|e| failed(&e))?;
    let mut writer = commit::writer(session, store)?;
    writer
        .repair(&snapshot, &steps, SystemTime::now())
        .map_err(|e| failed(&e))
}

fn text(session: &Session, document: &Document) -> String {
    let path = session.path.display();
    let entries = grouped(document.entries as u64);
    if document.damaged.is_empty() {
        return format!("{GOOD}{path}{GOOD:#}: {entries} entries, no damage\n");
    }
    let mut out = format!("{BOLD}{path}{BOLD:#}: {entries} entries can be read\n");
    for row in &document.damaged {
        out.push_str(&format!("  line {}: {} [{}]\n", row.line, row.message, row.kind));
    }
    if let Some(backup) = &document.backup_path {
        out.push_str(&format!("{GOOD}Repaired{GOOD:#}; the original is {backup}\n"));
    }
    if let Some(quarantine) = &document.quarantine_path {
        out.push_str(&format!("The damaged lines are in {quarantine}\n"));
    }
    out
}
