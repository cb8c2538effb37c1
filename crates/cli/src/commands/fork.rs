//! `foldline fork`: a new session from the path to an entry.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldline_session_model::log::SessionLog;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryIx, HeaderDraft};
use foldline_session_store::{DiskStore, Layout, SessionStore as _};
use serde::Serialize;

use crate::args;
use crate::commit;
use crate::error::{CommandError, ErrorKind, Status};
use crate::new_file;
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

/// A new session that was written.
pub(crate) struct Forked {
    pub(crate) path: PathBuf,
    session_id: String,
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
    if let Some(output) = &args.output {
        new_file::check(output)?;
    }
    let forked = write(log, &session.path, leaf, args.output.as_deref())?;
    let document = Document {
        outcome: "committed",
        output: forked.path.display().to_string(),
        session_id: forked.session_id,
        leaf_id: leaf.map(|ix| log.id(ix).to_owned()),
        entries: forked.entries,
        artifacts: forked.artifacts,
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

/// Writes the path to an entry as a new session, beside the old one if no file is named. Originals that the path refers
/// to by number go with it.
///
/// # Errors
/// The file exists, or the disk refuses.
pub(crate) fn write(
    log: &SessionLog,
    source: &Path,
    leaf: Option<EntryIx>,
    output: Option<&Path>,
) -> Result<Forked, CommandError> {
    let store = DiskStore::new();
    let session_id = uuid::Uuid::now_v7().to_string();
    let path = match output {
        Some(output) => output.to_path_buf(),
        None => beside(source, &session_id)?,
    };
    let parent = std::path::absolute(source).unwrap_or_else(|_| source.to_path_buf());
    let header = HeaderDraft {
        id: session_id.clone(),
        timestamp: commit::now(),
        cwd: log.header().cwd.clone(),
        parent_session: Some(parent.display().to_string()),
        title: None,
    };
    let place = leaf.map_or(Leaf::BeforeFirst, |ix| Leaf::Entry(log.entry_id(ix)));
    let mut mint = || commit::fresh_id(|id| log.find(id).is_some());
    let text = log
        .branch(&place, &header, &mut mint)
        .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
    commit::create(&store, &path, &mut commit::lines_of(&text))?;
    let artifacts = store
        .artifacts(&path)
        .copy_from(&store.artifacts(source))
        .map_err(|e| {
            CommandError::from_error(ErrorKind::Failed, &e)
                .hint("the new session is there, but some of its originals are not")
        })?;
    Ok(Forked {
        path,
        session_id,
        entries: commit::lines_of(&text).count().saturating_sub(1),
        artifacts,
    })
}

/// A new name in the folder of the session, so that what lists the one lists the other.
fn beside(source: &Path, id: &str) -> Result<PathBuf, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let layout = Layout::at(PathBuf::new(), PathBuf::new(), Vec::new());
    let path = layout
        .new_session(Path::new(""), SystemTime::now(), id)
        .map_err(|e| failed(&e))?;
    Ok(source.with_file_name(path.file_name().unwrap_or_default()))
}
