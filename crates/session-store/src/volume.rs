//! The few things a store asks of a file system.
//!
//! Everything that protects a session (one write per line, quarantine, backups, atomic rewrite, locks) is
//! written once, above this trait. The disk and its twin in memory only differ below it, so a fault that the
//! twin injects runs through the code that the disk runs.

pub(crate) mod disk;
pub(crate) mod memory;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::owner::{Liveness, Owner};

/// What tells one file from another that later took its name (device and inode on Unix).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// What kind of thing has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, which is never followed where a name comes from outside.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Its length in bytes.
    pub len: u64,
    /// When its content last changed.
    pub modified: SystemTime,
    /// Permission bits (0o600); 0 where the system has none.
    pub mode: u32,
    pub(crate) identity: FileIdentity,
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FolderItem {
    pub(crate) name: OsString,
    pub(crate) is_folder: bool,
}

impl FolderItem {
    /// The name, without its folder.
    pub fn name(&self) -> &std::ffi::OsStr {
        &self.name
    }
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Follow it: the user named this path.
    Follow,
    /// Refuse it: the name came from a session or from a model.
    Refuse,
}

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// 0600.
    Private,
    /// The mode of the file that it replaces.
    Mode(u32),
}

/// Whether publishing may replace a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// An existing file is replaced in one step.
    Replace,
    /// An existing file is an error of kind `AlreadyExists`.
    Refuse,
}

/// How long an OS lock is asked for: never longer than the question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locked {
    /// The lock is held until the file is closed.
    Held,
    /// Somebody else holds it.
    Busy,
}

/// An open file.
#[allow(clippy::missing_errors_doc, reason = "every step fails as the system says")]
pub trait VolumeFile: Debug + Send + Sync {
    /// Length, identity and mode of the open file, whatever its name now points at.
    fn stat(&self) -> io::Result<FileStat>;
    /// Reads at an offset; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// One write at the end. May write less than was asked for.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts the file.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Takes all rights from everyone but the owner: 0600. Nothing to do where the system has no such rights.
    fn make_private(&mut self) -> io::Result<()>;
    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Asks for the file's exclusive lock without waiting.
    fn try_lock(&mut self) -> io::Result<Locked>;
}

/// A file that has no name of its own yet; dropped, it is gone.
#[allow(clippy::missing_errors_doc, reason = "every step fails as the system says")]
pub trait StagedFile: Debug + Send {
    /// The file to write to.
    fn file(&mut self) -> &mut dyn VolumeFile;
    /// Gives the file its name in one step. On failure the staged file comes back, for another try.
    fn publish(self: Box<Self>, target: &Path, existing: Existing) -> Result<(), Unpublished>;
}

/// A staged file that could not get its name.
#[derive(Debug)]
pub struct Unpublished {
    pub(crate) error: io::Error,
    pub(crate) staged: Option<Box<dyn StagedFile>>,
}

/// A file system.
#[allow(clippy::missing_errors_doc, reason = "every step fails as the system says")]
pub trait Volume: Debug + Send + Sync {
    /// The path with links and dots resolved, so that one session has one lock.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Length, kind and identity of what a name stands for; never follows a link at its end.
    fn stat(&self, path: &Path) -> io::Result<FileStat>;
    /// Opens a regular file for reading.
    fn open(&self, path: &Path, links: Links) -> io::Result<Box<dyn VolumeFile>>;
    /// Opens a regular file for reading and for appending.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>>;
    /// Opens a private file for reading and appending, and creates it if it is missing.
    fn open_or_create(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>>;
    /// Creates a private file; an existing one is an error of kind `AlreadyExists`.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>>;
    /// Starts a file that gets its name later, in the same folder.
    fn stage(&self, folder: &Path, access: Access) -> io::Result<Box<dyn StagedFile>>;
    /// Starts a private copy of the first `len` bytes of a file.
    fn stage_copy(&self, source: &Path, len: u64, folder: &Path) -> io::Result<Box<dyn StagedFile>>;
    /// Writes a range of a file over itself and syncs it: after a failed sync the system may believe
    /// that pages are clean which never reached the disk.
    fn rewrite_range(&self, path: &Path, from: u64, to: u64) -> io::Result<()>;
    /// The names in a folder, sorted.
    fn list(&self, folder: &Path) -> io::Result<Vec<FolderItem>>;
    /// Creates a folder and its missing parents, each 0700.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Moves a file or a folder to another name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Moves a file to a name in the same folder that nothing has: an existing file is an error of kind `AlreadyExists`.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Whether a process that wrote an owner record still runs.
    fn liveness(&self, owner: &Owner) -> Liveness;
    /// Waits between two tries.
    fn pause(&self, pause: Duration);
}

/// Writes all bytes, however many writes it takes. For files that have no name yet; a log gets whole lines.
pub(crate) fn write_all(file: &mut dyn VolumeFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives a staged file its name. A refusal that may pass (another program has the target open) is retried.
pub(crate) fn publish(
    volume: &dyn Volume,
    mut staged: Box<dyn StagedFile>,
    target: &Path,
    existing: Existing,
) -> io::Result<()> {
    const TRIES: u32 = 4;
    let mut tried = 0;
    loop {
        tried += 1;
        match staged.publish(target, existing) {
            Ok(()) => break,
            Err(Unpublished {
                error,
                staged: Some(again),
            }) if tried < TRIES && may_pass(&error) => {
                staged = again;
                volume.pause(Duration::from_millis(10 * u64::from(tried)));
            }
            Err(Unpublished { error, .. }) => return Err(error),
        }
    }
    match target.parent() {
        Some(folder) => volume.sync_folder(folder),
        None => Ok(()),
    }
}

fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, PermissionDenied, ResourceBusy};
    matches!(error.kind(), Interrupted | PermissionDenied | ResourceBusy)
}

/// Whether the disk or a quota is full.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Reads a whole range; an error of kind `UnexpectedEof` if the file is shorter.
pub(crate) fn read_exact_at(file: &dyn VolumeFile, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buffer = buffer.get_mut(read..).unwrap_or_default();
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
