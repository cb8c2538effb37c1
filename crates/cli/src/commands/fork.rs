//! `foldline fork`: a new session from the path to an entry.

use std::path::PathBuf;
use std::time::SystemTime;

use foldline_session_model::HeaderDraft;
use foldline_session_model::tree::Leaf;
use foldline_session_store::{DiskStore, Layout, SessionStore as _};
use serde::Serialize;

use crate::args;
use crate::commit;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, Format, GOOD, grouped};
use crate::session::{Damage, Session};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    output: String,
    session_id: String,
    leaf_id: Option<String>,
    entries: usize,
    artifacts: usize,
}

pub(crate) fn run(args: &args::Fork, format: Format) -> Result<Status, CommandError> {
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let log = &session.log;
    let leaf = match &args.at {
        Some(at) => log.stands_for(session.find(at)?),
        None => log.stands_at(),
    };
    let id = uuid::Uuid::now_v7().to_string();
    let output = match &args.output {
        Some(output) => output.clone(),
        None => beside(&session, &id)?,
    };
    let source = std::path::absolute(&session.path).unwrap_or_else(|_| session.path.clone());
    let header = HeaderDraft {
        id: id.clone(),
        timestamp: commit::now(),
        cwd: log.header().cwd.clone(),
        parent_session: Some(source.display().to_string()),
        title: None,
    };
    let place = leaf.map_or(Leaf::BeforeFirst, |ix| Leaf::Entry(log.entry_id(ix)));
    let mut mint = || commit::fresh_id(|id| log.find(id).is_some());
    let text = log
        .branch(&place, &header, &mut mint)
        .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
    commit::create(&store, &output, &mut commit::lines_of(&text))?;
    // Originals that the path refers to by number go with it.
    let artifacts = store
        .artifacts(&output)
        .copy_from(&store.artifacts(&session.path))
        .map_err(|e| {
            CommandError::from_error(ErrorKind::Failed, &e)
                .hint("the new session is there, but some of its originals are not")
        })?;
    let document = Document {
        outcome: "committed",
        output: output.display().to_string(),
        session_id: id,
        leaf_id: leaf.map(|ix| log.id(ix).to_owned()),
        entries: commit::lines_of(&text).count().saturating_sub(1),
        artifacts,
    };
    output::result(format, &document, || {
        format!(
            "{GOOD}Forked{GOOD:#} {BOLD}{}{BOLD:#}\n  entries {}\n  source  unchanged\n",
            document.output,
            grouped(document.entries as u64)
        )
    });
    Ok(Status::Done)
}

/// A new name in the folder of the session, so that what lists the one lists the other.
fn beside(session: &Session, id: &str) -> Result<PathBuf, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let layout = Layout::at(PathBuf::new(), PathBuf::new(), Vec::new());
    let path = layout
        .new_session(std::path::Path::new(""), SystemTime::now(), id)
        .map_err(|e| failed(&e))?;
    Ok(session.path.with_file_name(path.file_name().unwrap_or_default()))
}
