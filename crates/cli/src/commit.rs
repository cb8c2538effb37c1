//! How every command writes: planned entries, appended in one step if the session is still the one that was read.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldline_session_model::log::Migration;
use foldline_session_model::{EntryDraft, EntryId, EntryIx, Envelope};
use foldline_session_store::{
    CreateError, DiskStore, Expected, OpenError, OpenOptions, Owner, SessionStore as _, SessionWriter,
};

use crate::error::{CommandError, ErrorKind};
use crate::session::Session;

/// Entries that belong together: all of them are written, or none.
#[must_use = "nothing is written before the commit"]
pub(crate) struct Commit<'s> {
    session: &'s Session,
    timestamp: String,
    lines: Vec<String>,
    ids: Vec<EntryId>,
}

/// When the session is copied beforehand. A file of an old form is always copied before it is migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backup {
    /// Always; the name says what for.
    Before(&'static str),
    /// Only before a migration.
    OnlyToMigrate,
}

impl<'s> Commit<'s> {
    /// A commit without entries.
    pub(crate) fn on(session: &'s Session) -> Self {
        Self {
            session,
            timestamp: now(),
            lines: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// Adds an entry and returns its id, which later entries may refer to.
    pub(crate) fn add(&mut self, parent: Option<EntryId>, draft: &EntryDraft) -> EntryId {
        let used =
            |id: &str| self.session.log.find(id).is_some() || self.ids.iter().any(|own| own.as_str() == id);
        let id = fresh_id(used);
        self.ids.push(id.clone());
        let envelope = Envelope {
            id: id.clone(),
            parent,
            timestamp: self.timestamp.clone(),
        };
        self.lines.push(draft.line(&envelope));
        id
    }

    /// Appends the entries to the session. Returns the backup, if one was made.
    ///
    /// # Errors
    /// Somebody else writes the session or wrote it since it was read, or the disk refuses.
    pub(crate) fn append(self, store: &DiskStore, backup: Backup) -> Result<Option<PathBuf>, CommandError> {
        let session = self.session;
        not_imported(session)?;
        let migrated = match session.log.disk_form().migration {
            Migration::ReadOnly => return Err(read_only(session)),
            Migration::Needed => Some(session.log.to_written_form().ok_or_else(|| read_only(session))?),
            Migration::NotNeeded => None,
        };
        let mut writer = writer(session, store)?;
        let backup = match (migrated, backup) {
            (Some(text), _) => Some(
                writer
                    .rewrite(&mut lines_of(&text), "migrate", SystemTime::now())
                    .map_err(|e| failed(&e))?,
            ),
            (None, Backup::Before(label)) => {
                Some(writer.backup(label, SystemTime::now()).map_err(|e| failed(&e))?)
            }
            (None, Backup::OnlyToMigrate) => None,
        };
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        writer.append_group(&lines).map_err(|e| failed(&e))?;
        Ok(backup)
    }

    /// Writes a copy of the session with the entries at its end. The session is not touched.
    ///
    /// # Errors
    /// The file exists, or the disk refuses.
    pub(crate) fn write_copy(self, store: &DiskStore, output: &Path) -> Result<(), CommandError> {
        let text = self
            .session
            .log
            .to_written_form()
            .ok_or_else(|| read_only(self.session))?;
        let mut lines = lines_of(&text).chain(self.lines.iter().map(String::as_bytes));
        create(store, output, &mut lines)
    }
}

/// Writes the session anew with other lines in the place of some entries. Returns the backup.
///
/// # Errors
/// As [`Commit::append`]; the session is as it was then.
pub(crate) fn rewrite(
    session: &Session,
    store: &DiskStore,
    replaced: &BTreeMap<EntryIx, String>,
    label: &str,
) -> Result<PathBuf, CommandError> {
    not_imported(session)?;
    let text = session
        .log
        .to_written_form_with(replaced)
        .ok_or_else(|| read_only(session))?;
    writer(session, store)?
        .rewrite(&mut lines_of(&text), label, SystemTime::now())
        .map_err(|e| failed(&e))
}

fn not_imported(session: &Session) -> Result<(), CommandError> {
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
        CreateError::AlreadyExists(_) => {
            CommandError::from_error(ErrorKind::Usage, &e).hint("name a file that does not exist yet")
        }
        e => failed(&e),
    })?;
    Ok(())
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

fn failed(error: &(dyn std::error::Error + 'static)) -> CommandError {
    let command_error = CommandError::from_error(ErrorKind::Failed, error);
    match system_error(error) {
        Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => command_error
            .hint("the folder of the session must be writable too: a backup and a lock go there; or write elsewhere"),
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

fn read_only(session: &Session) -> CommandError {
    let message = format!("{} has a version that is never written", session.path.display());
    CommandError::new(ErrorKind::Failed, message)
}
