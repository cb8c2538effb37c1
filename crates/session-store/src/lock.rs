//! One writer per session: an OS lock on a file beside the session, and in it the record of who holds it.
//!
//! The lock ends with the process that holds it, however that ends, so a dead owner never blocks anybody.
//! The record says who it is, and stands in for the lock where a file system or another machine does
//! not honour it. The file is kept after its use: to remove it would let two writers lock two files of
//! one name.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::owner::{Liveness, Owner};
use crate::read::Stamp;
use crate::volume::{Locked, Volume, VolumeFile, read_exact_at, write_all};

/// What a lock file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    /// Who holds the lock now.
    owner: Option<Owner>,
    /// Length of the session when its last owner let it go: growth beyond it is somebody else's.
    released_len: Option<u64>,
    /// Bytes from here on may never have reached the disk although a sync of them returned: one before it
    /// failed. While a writer holds the lock it stands where that writer began, for the case that it dies.
    suspect_from: Option<u64>,
}

/// How the lock came to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nobody ever held it.
    Fresh,
    /// The last owner let it go, with the session at this length.
    Released { len: u64 },
    /// The last owner died with it.
    TakenOver(Owner),
}

/// A held lock; dropped, it is free.
#[derive(Debug)]
pub(crate) struct SessionLock {
    file: Box<dyn VolumeFile>,
    pub(crate) before: Before,
    /// What the last owner left unsure, see [`Record::suspect_from`].
    pub(crate) suspect_from: Option<u64>,
}

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum Refused {
    Busy(Option<Owner>),
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl SessionLock {
    pub(crate) fn acquire(volume: &Arc<dyn Volume>, session: &Path, me: &Owner) -> Result<Self, Refused> {
        let path = lock_path(session);
        loop {
            let mut file = volume.open_or_create(&path)?;
            if file.try_lock()? == Locked::Busy {
                return Err(Refused::Busy(read_owner(&**volume, &*file)));
            }
            // The lock counts only if its file still has the name that others look for.
            match volume.stat(&path) {
                Ok(stat) if stat.identity == file.stat()?.identity => {}
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            }
            let Record {
                owner,
                released_len,
                suspect_from,
            } = read_record(&*file)?;
            let before = match (owner, released_len) {
                (Some(owner), _) => {
                    if owner != *me && volume.liveness(&owner) != Liveness::Dead {
                        return Err(Refused::Busy(Some(owner)));
                    }
                    Before::TakenOver(owner)
                }
                (None, Some(len)) => Before::Released { len },
                (None, None) => Before::Fresh,
            };
            let len = volume.stat(session)?.len;
            let record = Record {
                owner: Some(me.clone()),
                released_len: None,
                suspect_from: Some(suspect_from.map_or(len, |from| from.min(len))),
            };
            write_record(&mut *file, &record)?;
            return Ok(Self {
                file,
                before,
                suspect_from,
            });
        }
    }

    /// Lets the lock go, with a note of the session's length and of what is unsure. A note that cannot be
    /// written costs only the next owner's knowledge: the lock itself ends with the file.
    pub(crate) fn release(&mut self, stamp: Stamp, suspect_from: Option<u64>) {
        let note = Record {
            owner: None,
            released_len: Some(stamp.len),
            suspect_from,
        };
        if write_record(&mut *self.file, &note).is_err() {
            // An empty record reads as "nobody".
            self.file.set_len(0).ok();
        }
    }
}

/// The lock file of a session: hidden, beside it.
pub(crate) fn lock_path(session: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(session.file_name().unwrap_or_default());
    name.push(".foldline-lock");
    session.with_file_name(name)
}

/// Removes the lock file of a name that no session has any more, and that no other process knows.
pub(crate) fn forget(volume: &dyn Volume, session: &Path) {
    volume.remove(&lock_path(session)).ok();
}

/// The session that a lock file is of, by their names.
pub(crate) fn session_of(lock: &str) -> Option<&str> {
    lock.strip_prefix('.')?.strip_suffix(".foldline-lock")
}

/// Signs that a program which does not know our lock is writing a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignSign {
    /// A lock of its own beside the session.
    LockFile(PathBuf),
    /// In a folder of another agent, the session grew within the last few seconds, and not by us.
    FreshGrowth {
        /// How long ago.
        age: Duration,
    },
}

/// Whose folder a session lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Territory {
    Ours,
    OtherAgent,
}

/// A session that changed less than this long ago may be in use.
const FRESH: Duration = Duration::from_secs(10);
/// A lock of another program that nobody renewed for this long is left over.
const LEASE: Duration = Duration::from_secs(60);

/// Looks for signs of another writer.
pub(crate) fn foreign_writer(
    volume: &dyn Volume,
    session: &Path,
    before: &Before,
    territory: Territory,
    now: SystemTime,
) -> io::Result<Option<ForeignSign>> {
    let age_of = |modified: SystemTime| now.duration_since(modified).unwrap_or(Duration::ZERO);
    for suffix in [".lock", ".lck"] {
        let mut name = session.file_name().unwrap_or_default().to_os_string();
        name.push(suffix);
        let named = [session.with_file_name(name), session.with_extension(&suffix[1..])];
        for path in named {
            if let Ok(stat) = volume.stat(&path)
                && age_of(stat.modified) < LEASE
            {
                return Ok(Some(ForeignSign::LockFile(path)));
            }
        }
    }
    if territory == Territory::Ours {
        return Ok(None);
    }
    let stat = match volume.stat(session) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let grew_by_us = match before {
        Before::Fresh => false,
        Before::Released { len } => *len == stat.len,
        // The dead owner wrote until it died.
        Before::TakenOver(_) => true,
    };
    let age = age_of(stat.modified);
    Ok(
        (!grew_by_us && stat.modified > UNIX_EPOCH && age < FRESH)
            .then_some(ForeignSign::FreshGrowth { age }),
    )
}

/// The owner's record, read without the lock: it may be about to be written, so it is asked for a few times.
fn read_owner(volume: &dyn Volume, file: &dyn VolumeFile) -> Option<Owner> {
    for _ in 0..5 {
        if let Ok(Record {
            owner: Some(owner), ..
        }) = read_record(file)
        {
            return Some(owner);
        }
        volume.pause(Duration::from_millis(2));
    }
    None
}

fn read_record(file: &dyn VolumeFile) -> io::Result<Record> {
    const LONGEST: u64 = 64 * 1024;
    let len = file.stat()?.len.min(LONGEST);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    match read_exact_at(file, &mut bytes, 0) {
        // A record that does not parse was cut while it was written: nobody's.
        Ok(()) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Record::default()),
        Err(error) => Err(error),
    }
}

fn write_record(file: &mut dyn VolumeFile, record: &Record) -> io::Result<()> {
    let mut text = serde_json::to_vec(record).map_err(io::Error::other)?;
    text.push(b'\n');
    file.set_len(0)?;
    write_all(file, &text)
}
