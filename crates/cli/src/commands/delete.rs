//! `foldline delete`: moves a session to the trash, with everything of it that lies beside it.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldline_session_store::{DiskStore, Layout, SessionStore as _};
use serde::Serialize;

use crate::commit;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, Format, GOOD};
use crate::session::{Damage, Session};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is deleted: the session, its originals, backups and diagnostics move to a folder of
their own in $XDG_DATA_HOME/foldline/trash (or in .foldline-trash beside the session, if that is on another disk).
Move them back to undo it, remove the folder to be rid of them. A session that somebody writes is refused, and so is
a link to one: name the session by its own path.

Examples:
  foldline delete 0198f3a2
  foldline delete old/session.jsonl"
)]
pub(crate) struct Args {
    /// The session: a path, the start of an id, or `latest`.
    session: PathBuf,
}

#[derive(Serialize)]
struct Document {
    outcome: &'static str,
    /// The session as it was named.
    session: String,
    /// The folder that it is in now.
    trash: String,
    files: usize,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Silent)?;
    // Only the name itself: a link among the folders before it still leads there when the session is gone.
    if session.path.is_symlink() {
        return Err(link(&session.path));
    }
    if let Some(agent) = session.imported_from {
        let message = format!(
            "{} is a session of {agent}, which is never changed",
            session.path.display()
        );
        return Err(CommandError::new(ErrorKind::Usage, message).hint("delete it with that agent"));
    }
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let writer = commit::writer(&session, &store)?;
    let trashed = store
        .trash(writer, &layout.trash(), SystemTime::now())
        .map_err(|e| failed(&e))?;
    let document = Document {
        outcome: "committed",
        session: session.path.display().to_string(),
        trash: trashed.folder.display().to_string(),
        files: trashed.items,
    };
    output::result(format, &document, || {
        format!(
            "{GOOD}Moved{GOOD:#} {} to the trash\n  {BOLD}{}{BOLD:#}\n",
            document.session, document.trash
        )
    });
    Ok(Status::Done)
}

/// A link is not the session: it would lead nowhere, and others may lead to the session too.
fn link(path: &Path) -> CommandError {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let message = format!("{} is a link to {}", path.display(), target.display());
    CommandError::new(ErrorKind::Usage, message)
        .hint("name the session by that path to delete it, or remove the link with the tools of the system")
}
