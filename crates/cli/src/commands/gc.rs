//! `foldline gc`: removes old backups, and what sessions that are gone left behind.

use std::path::Path;
use std::time::SystemTime;

use foldline_session_store::{Agent, AgentFolder, Count, DiskStore, Layout, Project, SessionStore as _};
use serde::Serialize;

use crate::args;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, Format, grouped};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    removed: Vec<String>,
    bytes: u64,
    /// Backups of sessions that are gone: they may be all that is left of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<String>,
}

pub(crate) fn run(args: &args::Gc, format: Format) -> Result<Status, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let store = DiskStore::new();
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let ours = [AgentFolder {
        agent: Agent::Foldline,
        folder: layout.sessions(),
    }];
    // Sessions in other agents' folders may have backups of ours too.
    let folders = if args.all {
        layout.all_folders()
    } else {
        ours.to_vec()
    };
    let listing = store
        .list(&folders, Project::Any, Count::Nothing)
        .map_err(|e| failed(&e))?;
    let projects = store
        .project_folders(&layout.sessions())
        .map_err(|e| failed(&e))?;
    let mut removed = Vec::new();
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut clear = |session: &Path, keep: usize| -> Result<(), CommandError> {
        for backup in store.old_backups(session, keep).map_err(|e| failed(&e))? {
            if !args.dry_run {
                store.remove_backup(&backup).map_err(|e| failed(&e))?;
            }
            bytes += backup.len;
            removed.push(backup.path.display().to_string());
        }
        Ok(())
    };
    for session in &listing.sessions {
        clear(&session.path, args.keep)?;
    }
    for folder in &projects {
        for session in store.orphaned_backups(folder).map_err(|e| failed(&e))? {
            clear(&session, args.keep.max(1))?;
            let backups = store.backups(&session).map_err(|e| failed(&e))?;
            kept.extend(backups.into_iter().map(|backup| backup.path));
        }
    }
    for folder in &projects {
        for leftover in store
            .leftovers(folder, SystemTime::now())
            .map_err(|e| failed(&e))?
        {
            if !args.dry_run {
                store.remove_leftover(&leftover).map_err(|e| failed(&e))?;
            }
            removed.push(leftover.path.display().to_string());
        }
    }
    let kept: Vec<String> = kept.iter().map(|path| path.display().to_string()).collect();
    let kept: Vec<String> = kept.into_iter().filter(|path| !removed.contains(path)).collect();
    let outcome = if args.dry_run || removed.is_empty() {
        "skipped"
    } else {
        "committed"
    };
    let document = Document {
        outcome,
        removed,
        bytes,
        kept,
    };
    output::result(format, &document, || {
        let verb = if args.dry_run { "Would remove" } else { "Removed" };
        let mut out = format!("{verb} {} files\n", grouped(document.removed.len() as u64));
        for path in &document.removed {
            out.push_str(&format!("  {path}\n"));
        }
        if !document.kept.is_empty() {
            out.push_str("These backups stay: they may be all that is left of sessions that are gone\n");
        }
        for path in &document.kept {
            out.push_str(&format!("  {path}\n"));
        }
        out
    });
    Ok(Status::Done)
}
