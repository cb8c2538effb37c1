//! `foldline gc`: removes old backups, and what sessions that are gone left behind.

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
    let mut removed = Vec::new();
    let mut bytes = 0;
    let mut projects: Vec<_> = Vec::new();
    for session in &listing.sessions {
        let backups = if args.dry_run {
            store
                .backups(&session.path)
                .map(|all| all.into_iter().skip(args.keep).collect())
        } else {
            store.clear_backups(&session.path, args.keep)
        };
        for backup in backups.map_err(|e| failed(&e))? {
            bytes += backup.len;
            removed.push(backup.path.display().to_string());
        }
        projects.extend(session.path.parent().map(std::path::Path::to_path_buf));
    }
    projects.retain(|folder| folder.starts_with(layout.sessions()));
    projects.sort();
    projects.dedup();
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
    let outcome = if args.dry_run || removed.is_empty() {
        "skipped"
    } else {
        "committed"
    };
    let document = Document {
        outcome,
        removed,
        bytes,
    };
    output::result(format, &document, || {
        let verb = if args.dry_run { "Would remove" } else { "Removed" };
        let mut out = format!("{verb} {} files\n", grouped(document.removed.len() as u64));
        for path in &document.removed {
            out.push_str(&format!("  {path}\n"));
        }
        out
    });
    Ok(Status::Done)
}
