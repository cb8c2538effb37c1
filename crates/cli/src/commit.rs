//! Files that commands write whole: copies, forks, imports; and the writer for a repair.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldline_session_model::EntryId;
use foldline_session_model::log::Migration;
use foldline_session_store::{
    CreateError, DiskStore, Expected, OpenError, OpenOptions, Owner, SessionStore as _, SessionWriter,
};

use crate::error::{CommandError, ErrorKind};
use crate::session::Session;
use crate::{new_file, output};

pub(crate) fn not_imported(session: &Session) -> Result<(), CommandError> {
    if let Some(agent) = session.imported_from {
        let path = session.path.display();
        return Err(CommandError::new(
            ErrorKind::Usage,
            format!("{path} is a session of {agent}, which is never written"),
        )
        .hint(format!(
            "`foldline import {path}` makes a session that can be changed"
        )));
    }
    Ok(())
}

/// The writer of a session that is still the one that was read.
pub(crate) fn writer(session: &Session, store: &DiskStore) -> Result<SessionWriter, CommandError> {
    let options = OpenOptions {
        owner: Owner::this_process(),
        now: SystemTime::now(),
        expected: Expected::Exactly(session.stamp),
    };
    store.open(&session.path, &options).map_err(|e| match e {
        OpenError::SessionBusy { .. } | OpenError::ForeignWriter { .. } | OpenError::Changed(_) => {
            CommandError::from_error(ErrorKind::Busy, &e).hint("try again when the other one is done")
        }
        e => failed(&e),
    })
}

/// Writes a new session, which must not exist.
///
/// # Errors
/// The file exists, or the disk refuses.
pub(crate) fn create(
    store: &DiskStore,
    output: &Path,
    lines: &mut dyn Iterator<Item = &[u8]>,
) -> Result<(), CommandError> {
    store.create(output, lines).map_err(|e| match e {
        CreateError::AlreadyExists(path) => new_file::exists(&path),
        e => failed(&e),
    })?;
    Ok(())
}

/// A copy that a command works on under a name of its own, beside the name that it is to have. Dropped before it got
/// that, it is gone.
pub(crate) struct Draft {
    path: PathBuf,
    output: PathBuf,
    store: DiskStore,
}

impl Draft {
    /// Copies a session. The session is not touched.
    ///
    /// # Errors
    /// The session cannot be copied, or the disk refuses.
    pub(crate) fn of(session: &Session, output: &Path) -> Result<Self, CommandError> {
        let text = session.log.to_written_form().ok_or_else(|| read_only(session))?;
        let draft = Self {
            // Diagnostics take the name of a file without its extension, so they are named as those of the output are.
            path: output.with_extension(format!("foldline-draft-{}", fresh_id(|_| false))),
            output: output.to_path_buf(),
            store: DiskStore::new(),
        };
        create(&draft.store, &draft.path, &mut lines_of(&text))?;
        Ok(draft)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the copy its name.
    ///
    /// # Errors
    /// A file has that name by now, or the disk refuses. The copy is gone.
    pub(crate) fn publish(self) -> Result<(), CommandError> {
        self.store
            .publish_draft(&self.path, &self.output)
            .map_err(|e| match e {
                CreateError::AlreadyExists(path) => new_file::exists(&path),
                e => failed(&e),
            })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.path.symlink_metadata().is_ok()
            && let Err(error) = self.store.discard_draft(&self.path)
        {
            output::warning(&format!("{}: {error}", self.path.display()));
        }
    }
}

/// The lines of a text that a file is made of; blank ones are left out.
pub(crate) fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').filter(|line| !line.is_empty())
}

/// A new id of 8 hexadecimal digits that is not taken.
pub(crate) fn fresh_id(taken: impl Fn(&str) -> bool) -> EntryId {
    for _ in 0..100 {
        let id = uuid::Uuid::new_v4().simple().to_string();
        if let Some(id) = id.get(..8).filter(|id| !taken(id)) {
            return id.into();
        }
    }
    EntryId::from(uuid::Uuid::new_v4().to_string())
}

/// The time as session files write it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

/// A failure of the disk, and what can be done about it.
pub(crate) fn failed(error: &(dyn std::error::Error + 'static)) -> CommandError {
    with_system_hint(
        CommandError::from_error(ErrorKind::Failed, error),
        system_error(error),
    )
}

/// What can be done about what the system said.
pub(crate) fn with_system_hint(command_error: CommandError, system: Option<io::ErrorKind>) -> CommandError {
    match system {
        Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => command_error.hint(
            "the session and its folder must be writable: a backup and a lock go there; or write elsewhere",
        ),
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            command_error.hint("make room; `foldline gc` removes old backups")
        }
        _ => command_error,
    }
}

/// What the system said, if it was the system that refused.
fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let mut at = Some(error);
    while let Some(cause) = at {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        at = cause.source();
    }
    None
}

/// Whether a session has a version that is ever written.
///
/// # Errors
/// It has none.
pub(crate) fn not_read_only(session: &Session) -> Result<(), CommandError> {
    match session.log.disk_form().migration {
        Migration::ReadOnly => Err(read_only(session)),
        Migration::Needed | Migration::NotNeeded => Ok(()),
    }
}

fn read_only(session: &Session) -> CommandError {
    let message = format!("{} has a version that is never written", session.path.display());
    CommandError::new(ErrorKind::Failed, message)
}
