//! The writer of a session: appends whole lines, durably, and never over anything that it does not know.
//!
//! Contract: design page, "Durability"; spec "Session model", 6.2 and 11.1, steps 7 and 8.

mod end;
mod error;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustc_hash::FxHashSet;

use crate::line;
use crate::lock::{self, Before, Refused, SessionLock, Territory};
use crate::owner::Owner;
use crate::read::Stamp;
use crate::volume::{Volume, VolumeFile, is_disk_full};

pub use error::{AppendError, Changed, HeaderProblem, OpenError};

/// How a writer is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Who opens it.
    pub owner: Owner,
    /// The time of day; tells how fresh the signs of other writers are.
    pub now: SystemTime,
    /// Which state the caller planned for.
    pub expected: Expected,
}

/// Which state of the session the caller planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    Any,
    /// Exactly what a reader saw; growth since then is refused.
    Exactly(Stamp),
}

/// Whether an append waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Returns once this line, and every line before it, is on the disk.
    Commit,
    /// Returns once the system has the line. The next commit makes it durable.
    Later,
}

/// Where a line, or a group of lines, was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first byte.
    pub offset: u64,
    /// Its length without the line break; of a group, without the last one.
    pub len: u64,
    /// Where a torn tail was moved before.
    pub quarantined: Option<PathBuf>,
}

/// The one writer of a session. Its lock is free again when it is dropped.
///
/// A writer is cheap to open (tens of microseconds), so a caller that only commits opens it after the model
/// has replied, with [`Expected::Exactly`], and no lock is held across a model call.
#[derive(Debug)]
pub struct SessionWriter {
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) path: PathBuf,
    pub(crate) log: Box<dyn VolumeFile>,
    lock: SessionLock,
    pub(crate) stamp: Stamp,
    /// Bytes at the front that a sync has covered.
    synced: u64,
    /// A sync failed: the system may take pages for clean that never reached the disk.
    sync_failed: bool,
    name: Name,
    end: LogEnd,
    known: FxHashSet<Box<str>>,
}

/// Whether the name of the log would survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    /// Somebody may have been stopped between giving the name and syncing the folder.
    Unknown,
    /// The folder was synced since.
    Durable,
}

/// What the writer knows about the end of the log.
#[derive(Debug)]
enum LogEnd {
    /// Not looked at yet, or not since something went wrong.
    Unknown,
    /// Ends with a line break.
    Clean { has_header: bool },
    /// The last line is whole but has no line break.
    Unended { has_header: bool },
    /// A write of ours failed and could not be taken back: these bytes, or some of them, follow the stamp.
    Residue(Vec<u8>),
}

impl SessionWriter {
    pub(crate) fn open(
        volume: &Arc<dyn Volume>,
        session: &Path,
        territory: Territory,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => OpenError::NotFound(session.to_path_buf()),
            _ => OpenError::Io {
                session: session.to_path_buf(),
                source,
            },
        };
        // Two names of one session must meet at one lock.
        let path = volume.canonical(session).map_err(failed)?;
        let lock = SessionLock::acquire(volume, &path, &options.owner).map_err(|refused| match refused {
            Refused::Busy(owner) => OpenError::SessionBusy {
                session: path.clone(),
                owner,
                lock: lock::lock_path(&path),
            },
            Refused::Io(source) => OpenError::Io {
                session: path.clone(),
                source,
            },
        })?;
        let log = volume.open_append(&path).map_err(failed)?;
        let stat = log.stat().map_err(failed)?;
        let stamp = Stamp {
            len: stat.len,
            identity: stat.identity,
        };
        let suspect = lock.suspect_from;
        let mut writer = Self {
            volume: Arc::clone(volume),
            path,
            log,
            lock,
            stamp,
            // What earlier writers left was theirs to commit, unless they say that they could not.
            synced: suspect.unwrap_or(stamp.len).min(stamp.len),
            sync_failed: suspect.is_some(),
            name: Name::Unknown,
            end: LogEnd::Unknown,
            known: FxHashSet::default(),
        };
        if let Expected::Exactly(expected) = options.expected
            && expected != stamp
        {
            writer.stamp = expected;
            return Err(OpenError::Changed(writer.changed(stamp)));
        }
        let sign = lock::foreign_writer(
            &**volume,
            &writer.path,
            &writer.lock.before,
            territory,
            options.now,
        )
        .map_err(failed)?;
        match sign {
            Some(sign) => Err(OpenError::ForeignWriter {
                session: writer.path.clone(),
                sign,
            }),
            None => {
                // Another agent made it under a wide umask. Who may not change that can still write (R18).
                if stat.mode & 0o077 != 0 {
                    drop(writer.log.make_private());
                }
                Ok(writer)
            }
        }
    }

    /// The state of the session after the last append.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The session's file, with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The owner whose death left the session locked, if that is how this writer came by it.
    pub fn taken_over_from(&self) -> Option<&Owner> {
        match &self.lock.before {
            Before::TakenOver(owner) => Some(owner),
            _ => None,
        }
    }

    /// Tells the writer which ids the session holds, so that it can refuse to write one twice. Ids that it
    /// wrote itself it knows.
    pub fn remember_ids<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        self.known.extend(ids.into_iter().map(Box::from));
    }

    /// Appends one line: one write, of the whole line.
    ///
    /// A torn tail is first moved to a `.torn` file beside the session. What fails is taken back, so that the
    /// same append can be tried again.
    ///
    /// # Errors
    /// See [`AppendError`]; after any of them the log is as it was.
    pub fn append(&mut self, line: &str, durability: Durability) -> Result<Appended, AppendError> {
        self.append_lines(&[line], durability)
    }

    /// Appends lines that belong together: one write, of all of them, and a commit. What fails is taken back
    /// whole; only a loss of power in the midst of it can leave the first of them without the others.
    ///
    /// # Errors
    /// See [`AppendError`]; after any of them the log is as it was.
    pub fn append_group(&mut self, lines: &[&str]) -> Result<Appended, AppendError> {
        self.append_lines(lines, Durability::Commit)
    }

    fn append_lines(&mut self, lines: &[&str], durability: Durability) -> Result<Appended, AppendError> {
        let mut ids: Vec<Box<str>> = Vec::with_capacity(lines.len());
        let mut starts_with_header = false;
        for (at, line) in lines.iter().enumerate() {
            let head = line::check(line)?;
            let id = head.id.unwrap_or_default();
            if head.kind.as_deref() == Some("session") {
                if at > 0 {
                    return Err(self.header_problem(HeaderProblem::Second));
                }
                starts_with_header = true;
            } else if self.known.contains(&*id) || ids.iter().any(|other| **other == *id) {
                return Err(AppendError::DuplicateId {
                    session: self.path.clone(),
                    id: id.into_owned(),
                });
            } else {
                ids.push(id.into());
            }
        }
        self.check_unchanged()?;
        let quarantined = self.settle_end()?;
        let (has_header, needs_break) = match self.end {
            LogEnd::Clean { has_header } => (has_header, false),
            LogEnd::Unended { has_header } => (has_header, true),
            // `settle_end` leaves neither.
            LogEnd::Unknown | LogEnd::Residue(_) => (false, false),
        };
        let offset = self.stamp.len + u64::from(needs_break);
        if lines.is_empty() {
            return Ok(Appended {
                offset,
                len: 0,
                quarantined,
            });
        }
        match (starts_with_header, has_header) {
            (true, true) => return Err(self.header_problem(HeaderProblem::Second)),
            (false, false) => return Err(self.header_problem(HeaderProblem::Missing)),
            _ => {}
        }

        let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum::<usize>() + 1);
        if needs_break {
            bytes.push(b'\n');
        }
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        self.write_whole(&bytes)?;
        let before = self.stamp.len;
        self.stamp.len += bytes.len() as u64;
        if durability == Durability::Commit
            && let Err(source) = self.make_durable()
        {
            self.stamp.len = before;
            self.take_back(&bytes);
            return Err(AppendError::NotDurable {
                session: self.path.clone(),
                source,
            });
        }
        self.end = LogEnd::Clean { has_header: true };
        self.known.extend(ids);
        Ok(Appended {
            offset,
            len: bytes.len() as u64 - 1 - u64::from(needs_break),
            quarantined,
        })
    }

    fn header_problem(&self, problem: HeaderProblem) -> AppendError {
        AppendError::Header {
            session: self.path.clone(),
            problem,
        }
    }

    /// Makes every line appended so far durable.
    ///
    /// # Errors
    /// [`AppendError::NotDurable`]; the lines stay, and the next commit tries again.
    pub fn commit(&mut self) -> Result<(), AppendError> {
        self.make_durable().map_err(|source| AppendError::NotDurable {
            session: self.path.clone(),
            source,
        })
    }

    /// Checks that the file is what this writer left, under the name that it has.
    pub(crate) fn check_unchanged(&self) -> Result<(), AppendError> {
        let failed = |source| AppendError::Io {
            session: self.path.clone(),
            source,
        };
        let open = self.log.stat().map_err(failed)?;
        let named = self.volume.stat(&self.path).map_err(failed)?;
        let found = Stamp {
            len: named.len,
            identity: named.identity,
        };
        let residue = match &self.end {
            LogEnd::Residue(bytes) => bytes.len() as u64,
            _ => 0,
        };
        let expected = self.stamp.len..=self.stamp.len + residue;
        if named.identity == open.identity && expected.contains(&open.len) {
            return Ok(());
        }
        Err(self.changed(found).into())
    }

    fn changed(&self, found: Stamp) -> Changed {
        Changed {
            session: self.path.clone(),
            expected: self.stamp.len,
            found: found.len,
            replaced: found.identity != self.stamp.identity,
        }
    }

    fn failed(&self, source: io::Error) -> AppendError {
        let session = self.path.clone();
        if is_disk_full(&source) {
            AppendError::DiskFull { session, source }
        } else {
            AppendError::Io { session, source }
        }
    }

    /// After a rewrite: the log is another file, all of it durable.
    pub(crate) fn reopened(&mut self, log: Box<dyn VolumeFile>, stamp: Stamp) {
        self.log = log;
        self.stamp = stamp;
        self.synced = stamp.len;
        self.sync_failed = false;
        self.name = Name::Unknown;
        self.end = LogEnd::Unknown;
    }
}

impl Drop for SessionWriter {
    fn drop(&mut self) {
        self.lock
            .release(self.stamp, self.sync_failed.then_some(self.synced));
    }
}
