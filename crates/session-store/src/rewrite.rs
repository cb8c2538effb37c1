//! Files that are written whole: a new session, and the rewrite of one. All of it, or nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::append::{AppendError, Changed, SessionWriter};
use crate::backup::{self, BackupError};
use crate::lock;
use crate::read::Stamp;
use crate::volume::{Access, Existing, Volume, VolumeFile, is_disk_full, publish, write_all};

/// Bytes collected before they are written.
const CHUNK: usize = 1 << 20;

/// Why a session was not created. Nothing has that name now that had not before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// There is a file already.
    #[error("{} exists already", .0.display())]
    AlreadyExists(PathBuf),
    /// A line holds a line break, or is empty.
    #[error("line {line} of the new file is empty or holds a line break")]
    InvalidLine {
        /// Which one, from 1.
        line: usize,
    },
    /// The disk or the quota is full.
    #[error("the disk is full: {} was not created", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot create {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why a session was not rewritten. It is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// Somebody else wrote to the file.
    #[error(transparent)]
    Changed(#[from] Changed),
    /// There is no backup, so there is no rewrite.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A line holds a line break, or is empty.
    #[error("line {line} of the new content is empty or holds a line break")]
    InvalidLine {
        /// Which one, from 1.
        line: usize,
    },
    /// The disk or the quota is full.
    #[error("the disk is full: {} was not rewritten", session.display())]
    DiskFull {
        /// The file.
        session: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot rewrite {}", session.display())]
    Io {
        /// The file.
        session: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Lines of a file that is written whole, without their line breaks.
pub type Lines<'a, 'l> = &'a mut dyn Iterator<Item = &'l [u8]>;

/// Writes a new file, 0600: in a folder that is created 0700 if it is missing, whole or not at all.
pub(crate) fn create(volume: &dyn Volume, path: &Path, lines: Lines<'_, '_>) -> Result<Stamp, CreateError> {
    let failed = |source: io::Error| {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::AlreadyExists => CreateError::AlreadyExists(path),
            _ if is_disk_full(&source) => CreateError::DiskFull { path, source },
            _ => CreateError::Io { path, source },
        }
    };
    if volume.stat(path).is_ok() {
        return Err(CreateError::AlreadyExists(path.to_path_buf()));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    if !folder.as_os_str().is_empty() {
        volume.create_folder(folder).map_err(failed)?;
    }
    let mut staged = volume.stage(folder, Access::Private).map_err(failed)?;
    let stamp = write_lines(staged.file(), lines).map_err(|error| match error {
        WriteLines::InvalidLine(line) => CreateError::InvalidLine { line },
        WriteLines::Io(source) => failed(source),
    })?;
    publish(volume, staged, path, Existing::Refuse).map_err(failed)?;
    Ok(stamp)
}

/// Gives a draft its name; its lock was nobody else's.
pub(crate) fn publish_draft(volume: &dyn Volume, draft: &Path, session: &Path) -> Result<(), CreateError> {
    let failed = |source: io::Error| {
        let path = session.to_path_buf();
        match source.kind() {
            io::ErrorKind::AlreadyExists => CreateError::AlreadyExists(path),
            _ => CreateError::Io { path, source },
        }
    };
    volume.rename_new(draft, session).map_err(failed)?;
    lock::forget(volume, draft);
    match session.parent() {
        Some(folder) => volume.sync_folder(folder).map_err(failed),
        None => Ok(()),
    }
}

impl SessionWriter {
    /// Copies the session to a backup beside it, before a compaction is appended.
    ///
    /// # Errors
    /// No backup, no compaction: the caller stops here.
    pub fn backup(&mut self, label: &str, now: SystemTime) -> Result<PathBuf, BackupError> {
        backup::take(&*self.volume, &self.path, self.stamp, label, now)
    }

    /// Replaces the content of the session: a backup, then a new file in the same folder with the same rights,
    /// then the change of names in one step. Returns the path of the backup.
    ///
    /// # Errors
    /// After any error the session is as it was before.
    pub fn rewrite(
        &mut self,
        lines: Lines<'_, '_>,
        label: &str,
        now: SystemTime,
    ) -> Result<PathBuf, RewriteError> {
        let session = self.path.clone();
        let failed = |source: io::Error| {
            let session = session.clone();
            if is_disk_full(&source) {
                RewriteError::DiskFull { session, source }
            } else {
                RewriteError::Io { session, source }
            }
        };
        let unchanged = |writer: &Self| match writer.check_unchanged() {
            Ok(()) => Ok(()),
            Err(AppendError::Changed(changed)) => Err(RewriteError::Changed(changed)),
            Err(AppendError::Io { source, .. }) => Err(failed(source)),
            Err(other) => Err(failed(io::Error::other(other))),
        };
        unchanged(self)?;
        let folder = session.parent().unwrap_or(Path::new(""));
        let mode = self.log.stat().map_err(failed)?.mode;
        let mut staged = self.volume.stage(folder, Access::Mode(mode)).map_err(failed)?;
        write_lines(staged.file(), lines).map_err(|error| match error {
            WriteLines::InvalidLine(line) => RewriteError::InvalidLine { line },
            WriteLines::Io(source) => failed(source),
        })?;
        let made = self.backup(label, now)?;
        // A program that knows no lock may have written in the meantime: its lines are not replaced.
        unchanged(self)?;
        let published = publish(&*self.volume, staged, &session, Existing::Replace);
        // Opened by name whatever happened: if only the folder's sync failed, the new file is in place.
        let log = self.volume.open_append(&session).map_err(failed)?;
        let stat = log.stat().map_err(failed)?;
        if stat.identity != self.stamp.identity {
            self.reopened(
                log,
                Stamp {
                    len: stat.len,
                    identity: stat.identity,
                },
            );
        }
        published.map_err(failed)?;
        Ok(made)
    }
}

enum WriteLines {
    InvalidLine(usize),
    Io(io::Error),
}

fn write_lines(file: &mut dyn VolumeFile, lines: Lines<'_, '_>) -> Result<Stamp, WriteLines> {
    let mut chunk = Vec::new();
    for (index, line) in lines.enumerate() {
        if line.is_empty() || memchr::memchr(b'\n', line).is_some() {
            return Err(WriteLines::InvalidLine(index + 1));
        }
        chunk.extend_from_slice(line);
        chunk.push(b'\n');
        if chunk.len() >= CHUNK {
            write_all(file, &chunk).map_err(WriteLines::Io)?;
            chunk.clear();
        }
    }
    write_all(file, &chunk).map_err(WriteLines::Io)?;
    file.sync().map_err(WriteLines::Io)?;
    let stat = file.stat().map_err(WriteLines::Io)?;
    Ok(Stamp {
        len: stat.len,
        identity: stat.identity,
    })
}
