//! A volume in memory that can fail and crash.
//!
//! It keeps two states of everything: what programs see, and what would survive a loss of power. A sync
//! moves the first into the second. Each step that changes something is numbered, and a fault can be
//! planned for each number.

mod crash;
mod files;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{
    Access, FileIdentity, FileKind, FileStat, FolderItem, Links, StagedFile, Volume, VolumeFile, write_all,
};
use crate::owner::{Liveness, Owner};
use files::{MemoryFile, MemoryStaged};

/// What goes wrong at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A write takes only a part of its bytes, and says so.
    ShortWrite,
    /// The disk is full: a write takes a part of its bytes, then fails.
    DiskFull,
    /// The device fails.
    InputOutput,
    /// A change of names is refused, once.
    FailedRename,
    /// A sync fails, and what it should have saved counts as saved from then on unless written again.
    FailedSync,
    /// The machine stops in the middle of the step. Nothing works until [`MemoryStore::restart`].
    ///
    /// [`MemoryStore::restart`]: crate::MemoryStore::restart
    Crash,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::ShortWrite,
        Self::DiskFull,
        Self::InputOutput,
        Self::FailedRename,
        Self::FailedSync,
        Self::Crash,
    ];
}

/// Files of this process's memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<State>>);

impl fmt::Debug for Memory {
    /// Says how much there is; the contents would fill pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Memory")
            .field("files", &state.names.len())
            .field("steps", &state.steps)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
pub(crate) struct State {
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<PathBuf, u64>,
    /// The names that a crash leaves.
    durable_names: BTreeMap<PathBuf, u64>,
    folders: BTreeMap<PathBuf, u32>,
    next_inode: u64,
    next_temp: u64,
    /// Steps taken so far that change something.
    steps: u64,
    faults: BTreeMap<u64, Fault>,
    crashed: bool,
    /// Counts restarts: handles from before one are dead.
    epoch: u64,
    /// Which handle locks which inode.
    locks: BTreeMap<u64, u64>,
    next_handle: u64,
    /// Modified times: a clock that ticks with each change.
    ticks: u64,
    dead: Vec<Owner>,
}

#[derive(Debug, Default, Clone)]
struct Inode {
    content: Vec<u8>,
    durable: Vec<u8>,
    /// The front of the content that the system takes for durable because a sync failed on it.
    falsely_clean: bool,
    mode: u32,
    modified: u64,
}

/// The kinds of steps, so that a fault hits only what it can hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Write,
    Cut,
    Sync,
    Rename,
    Remove,
}

impl Memory {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A test that panics while it holds the lock has failed already.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, inode: u64) -> MemoryFile {
        let mut state = self.state();
        state.next_handle += 1;
        MemoryFile {
            memory: self.clone(),
            inode,
            handle: state.next_handle,
            epoch: state.epoch,
        }
    }

    pub(crate) fn plan_fault(&self, step: u64, fault: Fault) {
        self.state().faults.insert(step, fault);
    }

    pub(crate) fn clear_faults(&self) {
        self.state().faults.clear();
    }

    pub(crate) fn steps(&self) -> u64 {
        self.state().steps
    }

    pub(crate) fn restart(&self, seed: u64) {
        crash::restart(&mut self.state(), seed);
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.state().crashed
    }

    /// Ends every process but this one's view: handles are dead, locks free, contents as they are.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        state.locks.clear();
        state.epoch += 1;
    }

    pub(crate) fn declare_dead(&self, owner: Owner) {
        self.state().dead.push(owner);
    }
}

impl State {
    /// Counts a step; the fault planned for it, if it can hit this kind of step.
    fn step(&mut self, kind: Step) -> io::Result<Option<Fault>> {
        self.check_running()?;
        self.steps += 1;
        self.ticks += 1;
        let Some(fault) = self.faults.remove(&self.steps) else {
            return Ok(None);
        };
        let hits = match fault {
            Fault::ShortWrite => kind == Step::Write,
            Fault::DiskFull => matches!(kind, Step::Write | Step::Create),
            Fault::FailedRename => kind == Step::Rename,
            Fault::FailedSync => kind == Step::Sync,
            Fault::InputOutput | Fault::Crash => true,
        };
        Ok(hits.then_some(fault))
    }

    /// As [`State::step`], for steps that either happen or do not. A crash flips a coin.
    fn whole_step(&mut self, kind: Step, change: impl FnOnce(&mut Self)) -> io::Result<()> {
        match self.step(kind)? {
            None | Some(Fault::ShortWrite) => {
                change(self);
                Ok(())
            }
            Some(Fault::Crash) => {
                if self.steps.is_multiple_of(2) {
                    change(self);
                }
                self.crashed = true;
                Err(stopped())
            }
            Some(fault) => Err(error_of(fault)),
        }
    }

    fn check_running(&self) -> io::Result<()> {
        if self.crashed { Err(stopped()) } else { Ok(()) }
    }

    fn lookup(&self, path: &Path) -> io::Result<u64> {
        self.check_running()?;
        self.names.get(path).copied().ok_or_else(|| not_found(path))
    }

    fn stat(&self, inode: u64) -> io::Result<FileStat> {
        let file = self.inodes.get(&inode).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileStat {
            kind: FileKind::File,
            len: file.content.len() as u64,
            modified: UNIX_EPOCH + Duration::from_millis(file.modified),
            mode: file.mode,
            identity: FileIdentity { device: 0, inode },
        })
    }

    fn new_inode(&mut self, mode: u32) -> u64 {
        self.next_inode += 1;
        let inode = Inode {
            mode,
            modified: self.ticks,
            ..Inode::default()
        };
        self.inodes.insert(self.next_inode, inode);
        self.next_inode
    }
}

impl Volume for Memory {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let state = self.state();
        state.check_running()?;
        if state.names.contains_key(path) || state.folders.contains_key(path) {
            Ok(path.to_path_buf())
        } else {
            Err(not_found(path))
        }
    }

    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        let state = self.state();
        state.check_running()?;
        if let Some(mode) = state.folders.get(path) {
            let identity = FileIdentity { device: 1, inode: 0 };
            let modified = SystemTime::UNIX_EPOCH;
            return Ok(FileStat {
                kind: FileKind::Folder,
                len: 0,
                modified,
                mode: *mode,
                identity,
            });
        }
        state.stat(state.lookup(path)?)
    }

    fn open(&self, path: &Path, _links: Links) -> io::Result<Box<dyn VolumeFile>> {
        let inode = self.state().lookup(path)?;
        Ok(Box::new(self.handle(inode)))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        self.open(path, Links::Refuse)
    }

    fn open_or_create(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        match self.create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(path, Links::Refuse),
            other => other,
        }
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        let inode = {
            let mut state = self.state();
            state.check_running()?;
            if state.names.contains_key(path) {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    path.display().to_string(),
                ));
            }
            let mut made = 0;
            state.whole_step(Step::Create, |state| {
                made = state.new_inode(0o600);
                state.names.insert(path.to_path_buf(), made);
            })?;
            made
        };
        Ok(Box::new(self.handle(inode)))
    }

    fn stage(&self, folder: &Path, access: Access) -> io::Result<Box<dyn StagedFile>> {
        let (path, inode) = {
            let mut state = self.state();
            state.next_temp += 1;
            let path = folder.join(format!(".foldline-{}.tmp", state.next_temp));
            let mode = match access {
                Access::Private => 0o600,
                Access::Mode(mode) => mode,
            };
            let mut made = 0;
            state.whole_step(Step::Create, |state| {
                made = state.new_inode(mode);
                state.names.insert(path.clone(), made);
            })?;
            (path, made)
        };
        Ok(Box::new(MemoryStaged::new(
            self.clone(),
            path,
            self.handle(inode),
        )))
    }

    fn stage_copy(&self, source: &Path, len: u64, folder: &Path) -> io::Result<Box<dyn StagedFile>> {
        let bytes = {
            let state = self.state();
            let inode = state.lookup(source)?;
            let content = state.inodes.get(&inode).map(|file| &file.content);
            let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
            content
                .and_then(|content| content.get(..len))
                .ok_or(io::ErrorKind::UnexpectedEof)?
                .to_vec()
        };
        let mut staged = self.stage(folder, Access::Private)?;
        write_all(staged.file(), &bytes)?;
        Ok(staged)
    }

    fn rewrite_range(&self, path: &Path, _from: u64, _to: u64) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.lookup(path)?;
        if let Some(file) = state.inodes.get_mut(&inode) {
            file.falsely_clean = false;
        }
        files::sync(&mut state, inode)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<FolderItem>> {
        let state = self.state();
        state.check_running()?;
        if !state.folders.contains_key(folder) {
            return Err(not_found(folder));
        }
        let inside = |path: &PathBuf| path.parent() == Some(folder);
        let item = |path: &PathBuf, is_folder| {
            path.file_name().map(|name| FolderItem {
                name: name.to_os_string(),
                is_folder,
            })
        };
        let files = state
            .names
            .keys()
            .filter(|path| inside(path))
            .filter_map(|path| item(path, false));
        let folders = state
            .folders
            .keys()
            .filter(|path| inside(path))
            .filter_map(|path| item(path, true));
        let mut items: Vec<FolderItem> = files.chain(folders).collect();
        items.sort();
        Ok(items)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.check_running()?;
        for folder in folder.ancestors() {
            state.folders.entry(folder.to_path_buf()).or_insert(0o700);
        }
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.whole_step(Step::Sync, |state| {
            let inside = |path: &Path| path.parent() == Some(folder);
            state.durable_names.retain(|path, _| !inside(path));
            let names = state.names.iter().filter(|(path, _)| inside(path));
            state
                .durable_names
                .extend(names.map(|(path, inode)| (path.clone(), *inode)));
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.lookup(path)?;
        state.whole_step(Step::Remove, |state| {
            state.names.remove(path);
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.check_running()?;
        if state.folders.contains_key(from) {
            let moved = |path: &PathBuf| path.strip_prefix(from).ok().map(|rest| to.join(rest));
            let folders: Vec<_> = state
                .folders
                .iter()
                .filter_map(|(path, mode)| moved(path).map(|new| (path.clone(), new, *mode)))
                .collect();
            let files: Vec<_> = state
                .names
                .iter()
                .filter_map(|(path, inode)| moved(path).map(|new| (path.clone(), new, *inode)))
                .collect();
            return state.whole_step(Step::Rename, |state| {
                for (old, new, mode) in folders {
                    state.folders.remove(&old);
                    state
                        .folders
                        .insert(if new.ends_with("") { to.to_path_buf() } else { new }, mode);
                }
                for (old, new, inode) in files {
                    state.names.remove(&old);
                    state.names.insert(new, inode);
                }
            });
        }
        let inode = state.lookup(from)?;
        state.whole_step(Step::Rename, |state| {
            state.names.remove(from);
            state.names.insert(to.to_path_buf(), inode);
        })
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.stat(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    fn liveness(&self, owner: &Owner) -> Liveness {
        if self.state().dead.contains(owner) {
            Liveness::Dead
        } else {
            Liveness::Alive
        }
    }

    fn pause(&self, _pause: Duration) {}
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("{} does not exist", path.display()),
    )
}

fn stopped() -> io::Error {
    io::Error::other("the machine has stopped")
}

fn error_of(fault: Fault) -> io::Error {
    match fault {
        Fault::ShortWrite => io::ErrorKind::WriteZero.into(),
        Fault::DiskFull => io::ErrorKind::StorageFull.into(),
        Fault::FailedRename => io::ErrorKind::PermissionDenied.into(),
        Fault::InputOutput => io::Error::other("the device failed"),
        Fault::FailedSync => io::Error::other("the sync failed"),
        Fault::Crash => stopped(),
    }
}
