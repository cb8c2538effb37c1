//! Backups beside a session: one before each compaction and each rewrite, the newest three of each kind kept.
//!
//! Their names follow spec "Verbatim line compaction", 15; the label says that they are ours, because only
//! ours are ever removed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::read::Stamp;
use crate::time;
use crate::volume::{Existing, Volume, is_disk_full, publish};

/// How many backups of a session are kept of each [`BackupKind`].
pub const BACKUPS_KEPT: usize = 3;

const OURS: &str = "foldline-";
/// The one label of backups before an append.
const APPEND: &str = "compact";
const SUFFIX: &str = ".bak";

/// A backup of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The file.
    pub path: PathBuf,
    /// What it was made for: `compact`, `migrate`, `rewrite`, `repair`.
    pub label: String,
    /// When, as the file name says it.
    pub taken: String,
    /// Its length in bytes.
    pub len: u64,
    /// Tells apart two that were made in one millisecond.
    number: u32,
}

impl Backup {
    /// What it was made before.
    pub fn kind(&self) -> BackupKind {
        if self.label == APPEND {
            BackupKind::Append
        } else {
            BackupKind::Rewrite
        }
    }
}

/// What a backup was made before. Each kind is counted for itself, so that no number of appends pushes out an original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupKind {
    /// An append: the session holds all that the backup holds.
    Append,
    /// A rewrite: only the backup has the lines as they were.
    Rewrite,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The disk or the quota is full.
    #[error("the disk is full: no backup of {}", session.display())]
    DiskFull {
        /// The session.
        session: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot back up {}", session.display())]
    Io {
        /// The session.
        session: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl BackupError {
    fn new(session: &Path, source: io::Error) -> Self {
        let session = session.to_path_buf();
        if is_disk_full(&source) {
            Self::DiskFull { session, source }
        } else {
            Self::Io { session, source }
        }
    }
}

/// Copies the session as it is at `stamp` to a new file, exclusively and durably, then removes the oldest
/// of ours beyond [`BACKUPS_KEPT`] of each kind.
pub(crate) fn take(
    volume: &dyn Volume,
    session: &Path,
    stamp: Stamp,
    label: &str,
    now: SystemTime,
) -> Result<PathBuf, BackupError> {
    let failed = |source| BackupError::new(session, source);
    let folder = session.parent().unwrap_or(Path::new(""));
    let taken = time::for_file_name(now);
    let label = sanitise(label);
    let mut number = 1_u32;
    let made = loop {
        let target = session.with_file_name(name(session, &taken, &label, number));
        // Asked first: a copy of a gigabyte only to find the name taken would be a waste. Publishing is
        // exclusive all the same.
        if volume.stat(&target).is_ok() {
            number += 1;
            continue;
        }
        let mut staged = volume.stage_copy(session, stamp.len, folder).map_err(failed)?;
        staged.file().sync().map_err(failed)?;
        match publish(volume, staged, &target, Existing::Refuse) {
            Ok(()) => break target,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(error)),
        }
    };
    // The backup is made; an old one that cannot be removed is no reason to fail. `gc` finds it again.
    if let Ok(backups) = list(volume, session) {
        for old in beyond(backups, BACKUPS_KEPT) {
            volume.remove(&old.path).ok();
        }
    }
    Ok(made)
}

/// Our backups of a session, newest first.
pub(crate) fn list(volume: &dyn Volume, session: &Path) -> Result<Vec<Backup>, BackupError> {
    let failed = |source| BackupError::new(session, source);
    let folder = session.parent().unwrap_or(Path::new(""));
    let mut backups = Vec::new();
    for item in volume.list(folder).map_err(failed)? {
        let Some((taken, label, number)) = parse(session, &item.name) else {
            continue;
        };
        let path = session.with_file_name(&item.name);
        let Ok(stat) = volume.stat(&path) else { continue };
        backups.push(Backup {
            path,
            label,
            taken,
            len: stat.len,
            number,
        });
    }
    backups.sort_by(|a, b| (&b.taken, b.number).cmp(&(&a.taken, a.number)));
    Ok(backups)
}

/// What is not among the newest `keep` of its kind.
pub(crate) fn beyond(backups: Vec<Backup>, keep: usize) -> Vec<Backup> {
    let (mut appends, mut rewrites) = (0, 0);
    let is_old = |backup: &Backup| {
        let count = match backup.kind() {
            BackupKind::Append => &mut appends,
            BackupKind::Rewrite => &mut rewrites,
        };
        *count += 1;
        *count > keep
    };
    backups.into_iter().filter(is_old).collect()
}

/// The sessions that files in a folder are backups of by their names, whether they exist or not.
pub(crate) fn sessions(volume: &dyn Volume, folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for item in volume.list(folder)? {
        let name = item.name().to_string_lossy();
        let Some((before, _)) = name.rsplit_once(&format!(".{OURS}")) else {
            continue;
        };
        let Some((session, _)) = before.rsplit_once('.') else {
            continue;
        };
        let session = folder.join(session);
        if !item.is_folder && parse(&session, item.name()).is_some() {
            found.insert(session);
        }
    }
    Ok(found)
}

fn name(session: &Path, taken: &str, label: &str, number: u32) -> std::ffi::OsString {
    let mut name = session.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{taken}.{OURS}{label}"));
    if number > 1 {
        name.push(format!(".{number}"));
    }
    name.push(SUFFIX);
    name
}

fn parse(session: &Path, name: &OsStr) -> Option<(String, String, u32)> {
    let session = session.file_name()?.as_encoded_bytes();
    let rest = name.as_encoded_bytes().strip_prefix(session)?;
    let rest = std::str::from_utf8(rest)
        .ok()?
        .strip_prefix('.')?
        .strip_suffix(SUFFIX)?;
    let mut parts = rest.split('.');
    let taken = parts.next()?;
    let label = parts.next()?.strip_prefix(OURS)?;
    let number = match parts.next() {
        Some(number) => number.parse().ok()?,
        None => 1,
    };
    parts
        .next()
        .is_none()
        .then(|| (taken.to_owned(), label.to_owned(), number))
}

fn sanitise(label: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let label: String = label.chars().take(40).map(plain).collect();
    if label.is_empty() {
        "backup".to_owned()
    } else {
        label
    }
}
