//! `foldline list`: the sessions of this project or of this machine, and their backups.

use std::time::SystemTime;

use foldline_session_store::{
    Agent, AgentFolder, Backup, Count, DiskStore, Layout, Listing, Project, SessionStore as _, SessionSummary,
};
use serde::Serialize;

use crate::args;
use crate::environment::working_folder;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, DIM, Format, grouped};
use crate::view::first_line;

#[derive(Serialize)]
struct Document {
    sessions: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backups: Option<Vec<BackupRow>>,
}

#[derive(Serialize)]
struct Row {
    path: String,
    id: Option<String>,
    agent: &'static str,
    cwd: Option<String>,
    modified: String,
    title: Option<String>,
    entries: Option<u64>,
}

#[derive(Serialize)]
struct BackupRow {
    path: String,
    session: String,
    label: String,
    taken: String,
    bytes: u64,
}

pub(crate) fn run(args: &args::List, format: Format) -> Result<Status, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let store = DiskStore::new();
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let cwd = working_folder()?;
    let count = if args.count {
        Count::Entries
    } else {
        Count::Nothing
    };
    let ours = [AgentFolder {
        agent: Agent::Foldline,
        folder: layout.sessions(),
    }];
    let listing = if args.all {
        store.list(&layout.all_folders(), Project::Any, count)
    } else {
        store.list(&ours, Project::Only(&cwd), count)
    };
    let Listing {
        sessions, unreadable, ..
    } = listing.map_err(|e| failed(&e))?;
    for (path, error) in &unreadable {
        output::warning(&format!("{}: {error}", path.display()));
    }
    let mut backups = Vec::new();
    if args.backups {
        for session in &sessions {
            let of_session = store.backups(&session.path).map_err(|e| failed(&e))?;
            backups.extend(of_session.into_iter().map(|backup| backup_row(session, &backup)));
        }
    }
    let document = Document {
        sessions: sessions.into_iter().map(row).collect(),
        backups: args.backups.then_some(backups),
    };
    output::result(format, &document, || text(&document, args));
    Ok(Status::Done)
}

fn row(session: SessionSummary) -> Row {
    Row {
        path: session.path.display().to_string(),
        id: session.id,
        agent: session.agent.name(),
        cwd: session.cwd,
        modified: iso(session.modified),
        title: session.title,
        entries: session.entries,
    }
}

fn backup_row(session: &SessionSummary, backup: &Backup) -> BackupRow {
    BackupRow {
        path: backup.path.display().to_string(),
        session: session.path.display().to_string(),
        label: backup.label.clone(),
        taken: backup.taken.clone(),
        bytes: backup.len,
    }
}

fn iso(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map(|t| t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

fn text(document: &Document, args: &args::List) -> String {
    if document.sessions.is_empty() {
        let hint = if args.all {
            ""
        } else {
            "; `foldline list --all` looks everywhere"
        };
        return format!("No session found{hint}.\n");
    }
    let mut out = String::new();
    for row in &document.sessions {
        let id: String = row.id.as_deref().unwrap_or("-").chars().take(8).collect();
        let title = first_line(row.title.as_deref().unwrap_or("(no messages)"), 60);
        let entries = row
            .entries
            .map_or_else(String::new, |n| format!("  {} entries", grouped(n)));
        let modified = row.modified.replace('T', " ");
        let modified = modified.get(..16).unwrap_or(&modified);
        out.push_str(&format!(
            "{BOLD}{id:<8}{BOLD:#}  {modified}  {:<11}  {title}{entries}\n",
            row.agent
        ));
        if args.all {
            out.push_str(&format!("          {DIM}{}{DIM:#}\n", row.path));
        }
    }
    for backup in document.backups.iter().flatten() {
        out.push_str(&format!(
            "backup  {}  {} bytes  {}\n",
            backup.label,
            grouped(backup.bytes),
            backup.path
        ));
    }
    out
}
