//! `foldline import`: another agent's session as one of ours.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use foldline_session_model::import::{self, Imported};
use foldline_session_store::{DiskStore, Layout, SessionStore as _};
use serde::Serialize;

use crate::args;
use crate::commit;
use crate::environment::working_folder;
use crate::error::{CommandError, ErrorKind, Status};
use crate::new_file;
use crate::output::{self, Format, GOOD, grouped};
use crate::session;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    agent: &'static str,
    session_id: String,
    output: String,
    messages: u32,
    compactions: u32,
    rewinds: u32,
    dropped: Vec<DroppedRow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DroppedRow {
    what: String,
    reason: String,
    count: u32,
    first_line: u32,
}

pub(crate) fn run(args: &args::Import, format: Format) -> Result<Status, CommandError> {
    if let Some(output) = &args.output {
        new_file::check(output)?;
    }
    let store = DiskStore::new();
    let bytes = store
        .read(&args.file)
        .map_err(|e| session::read_error(&args.file, &e))?;
    let imported = import::session(&bytes).map_err(|e| {
        CommandError::new(ErrorKind::NoSession, format!("{}: {e}", args.file.display()))
            .hint("sessions of pi, oh-my-pi, gajae-code and atomic need no import")
    })?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => place(&imported)?,
    };
    commit::create(&store, &output, &mut commit::lines_of(imported.text.as_bytes()))?;
    let document = Document {
        outcome: "committed",
        agent: imported.agent.name(),
        output: output.display().to_string(),
        messages: imported.messages.total(),
        compactions: imported.compactions,
        rewinds: imported.rewinds,
        dropped: imported
            .dropped
            .iter()
            .map(|dropped| DroppedRow {
                what: dropped.what.clone(),
                reason: dropped.reason.to_string(),
                count: dropped.count,
                first_line: dropped.first_line.get(),
            })
            .collect(),
        session_id: imported.session_id,
    };
    output::result(format, &document, || text(&document));
    Ok(Status::Done)
}

/// Where an imported session goes by default: among our sessions of its project, under its own time and id, so
/// that a second import finds the first.
fn place(imported: &Imported) -> Result<PathBuf, CommandError> {
    let failed = |e: &dyn std::error::Error| {
        CommandError::from_error(ErrorKind::Failed, e).hint("name the new session with --output FILE")
    };
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let cwd = if imported.cwd.is_empty() {
        working_folder()?
    } else {
        PathBuf::from(&imported.cwd)
    };
    let started = imported
        .started
        .parse::<jiff::Timestamp>()
        .ok()
        .and_then(|at| u64::try_from(at.as_millisecond()).ok())
        .map_or(SystemTime::UNIX_EPOCH, |ms| {
            SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
        });
    layout
        .new_session(&cwd, started, &imported.session_id)
        .map_err(|e| failed(&e))
}

fn text(document: &Document) -> String {
    let mut out = format!(
        "{GOOD}Imported{GOOD:#} {} messages from {} into {}\n",
        grouped(document.messages.into()),
        document.agent,
        document.output
    );
    for row in &document.dropped {
        out.push_str(&format!(
            "  not there: {} {} ({}), first on line {}\n",
            grouped(row.count.into()),
            row.what,
            row.reason,
            row.first_line
        ));
    }
    out
}
