//! The door to the files of sessions, on disk or in memory.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::agents::AgentFolder;
use crate::append::{OpenError, OpenOptions, SessionWriter};
use crate::artifact::Artifacts;
use crate::backup::{self, Backup, BackupError};
use crate::blob::Blobs;
use crate::gc::{self, Leftover, TrashError, Trashed};
use crate::layout::Layout;
use crate::listing::{self, Count, ListError, Listing, Project, ResolveError};
use crate::lock::{self, Territory};
use crate::owner::Owner;
use crate::read::{ReadError, SessionReader, Snapshot, Stamp};
use crate::rewrite::{self, CreateError, Lines};
use crate::sidecar::{self, Sidecar, SidecarName};
use crate::volume::Volume;
use crate::volume::disk::Disk;
use crate::volume::memory::{Fault, Memory};

/// Where sessions are read from and written to.
///
/// [`DiskStore`] and [`MemoryStore`] differ in the volume below them only; all that protects a session is
/// the same code, and one suite of tests runs over both.
pub trait SessionStore: Debug + Send + Sync {
    /// The file system below.
    fn volume(&self) -> &Arc<dyn Volume>;

    /// Folders of other agents: a session in one of them may have a writer that knows no lock of ours.
    fn foreign_folders(&self) -> &[PathBuf] {
        &[]
    }

    /// Opens a session for reading ranges of bytes. Never blocks, never locks, never writes.
    ///
    /// # Errors
    /// The file is missing, or the system refuses.
    fn reader(&self, session: &Path) -> Result<SessionReader, ReadError> {
        SessionReader::open(&**self.volume(), session)
    }

    /// Reads a whole session.
    ///
    /// # Errors
    /// The file is missing, or the system refuses.
    fn read(&self, session: &Path) -> Result<Snapshot, ReadError> {
        self.reader(session)?.read_all()
    }

    /// Writes a new session, whole or not at all: 0600, in a folder that is made 0700 if it is missing.
    /// An existing file is never replaced.
    ///
    /// # Errors
    /// After any of them the file does not exist, or is the one that was there before.
    fn create(&self, session: &Path, lines: Lines<'_, '_>) -> Result<Stamp, CreateError> {
        rewrite::create(&**self.volume(), session, lines)
    }

    /// Gives a session that was made under another name in the same folder, a draft, the name that it is to have, in
    /// one step. An existing file is never replaced.
    ///
    /// # Errors
    /// The draft is still there, and what had the name has it.
    fn publish_draft(&self, draft: &Path, session: &Path) -> Result<(), CreateError> {
        rewrite::publish_draft(&**self.volume(), draft, session)
    }

    /// Removes a draft that came to nothing.
    ///
    /// # Errors
    /// The system refuses.
    fn discard_draft(&self, draft: &Path) -> Result<(), TrashError> {
        lock::forget(&**self.volume(), draft);
        gc::remove(&**self.volume(), draft)
    }

    /// Becomes the one writer of a session.
    ///
    /// # Errors
    /// Another writer has it, or it is not what the caller planned for; see [`OpenError`].
    fn open(&self, session: &Path, options: &OpenOptions) -> Result<SessionWriter, OpenError> {
        let foreign = self
            .foreign_folders()
            .iter()
            .any(|folder| session.starts_with(folder));
        let territory = if foreign {
            Territory::OtherAgent
        } else {
            Territory::Ours
        };
        SessionWriter::open(self.volume(), session, territory, options)
    }

    /// Our backups of a session, newest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn backups(&self, session: &Path) -> Result<Vec<Backup>, BackupError> {
        backup::list(&**self.volume(), session)
    }

    /// Our backups of a session that are not among the newest `keep` of their kind, newest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn old_backups(&self, session: &Path, keep: usize) -> Result<Vec<Backup>, BackupError> {
        Ok(backup::beyond(self.backups(session)?, keep))
    }

    /// Removes a backup.
    ///
    /// # Errors
    /// The system refuses.
    fn remove_backup(&self, backup: &Backup) -> Result<(), TrashError> {
        gc::remove(&**self.volume(), &backup.path)
    }

    /// The artifacts of a session.
    fn artifacts(&self, session: &Path) -> Artifacts {
        Artifacts::of(self.volume(), session)
    }

    /// The blobs in a folder, see [`Layout::blobs`].
    fn blobs(&self, folder: &Path) -> Blobs {
        Blobs::at(self.volume(), folder)
    }

    /// Writes a diagnostic beside a session: private, under a name of its own.
    fn sidecar(&self, session: &Path, name: &SidecarName<'_>, content: &[u8]) -> Sidecar {
        sidecar::write(&**self.volume(), session, name, content)
    }

    /// The folders below a folder of ours that may hold sessions or what is left of some, with itself: also those in
    /// which no session is any more. A folder that does not exist has none.
    ///
    /// # Errors
    /// The folder exists and cannot be read.
    fn project_folders(&self, sessions: &Path) -> Result<Vec<PathBuf>, TrashError> {
        gc::project_folders(&**self.volume(), sessions)
    }

    /// What is left over in a folder of ours, and can be removed: see [`SessionStore::remove_leftover`].
    ///
    /// # Errors
    /// The folder cannot be read.
    fn leftovers(&self, folder: &Path, now: SystemTime) -> Result<Vec<Leftover>, TrashError> {
        gc::leftovers(&**self.volume(), folder, now)
    }

    /// Where the sessions were that are gone from a folder and have backups of ours there. The newest of these may be
    /// all that is left of a session.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn orphaned_backups(&self, folder: &Path) -> Result<Vec<PathBuf>, TrashError> {
        gc::orphaned_backups(&**self.volume(), folder)
    }

    /// Removes a leftover.
    ///
    /// # Errors
    /// The system refuses.
    fn remove_leftover(&self, leftover: &Leftover) -> Result<(), TrashError> {
        gc::remove(&**self.volume(), &leftover.path)
    }

    /// Moves a session with all that lies beside it to the trash, see [`Layout::trash`]; if that is on another disk,
    /// to a hidden folder beside the session. The writer shows that nobody else uses the session.
    ///
    /// # Errors
    /// The system refuses.
    fn trash(&self, writer: SessionWriter, trash: &Path, now: SystemTime) -> Result<Trashed, TrashError> {
        gc::trash(&**self.volume(), writer.path(), trash, now)
    }

    /// Lists the sessions in some folders from their heads and tails, the newest first.
    ///
    /// # Errors
    /// A folder exists but cannot be read.
    fn list(
        &self,
        folders: &[AgentFolder],
        project: Project<'_>,
        count: Count,
    ) -> Result<Listing, ListError> {
        listing::list(&**self.volume(), folders, project, count)
    }

    /// Finds the session that a person means: a path (from `cwd`), `latest` (of the project at `cwd`), or the
    /// start of an id, looked for in the project, then in all our sessions, then in other agents'.
    ///
    /// # Errors
    /// There is none, or several ids start so.
    fn resolve(&self, layout: &Layout, cwd: &Path, name: &str) -> Result<PathBuf, ResolveError> {
        listing::resolve(&**self.volume(), layout, cwd, name)
    }
}

/// Sessions on this machine's disks.
#[derive(Debug, Clone)]
pub struct DiskStore {
    volume: Arc<dyn Volume>,
    foreign: Vec<PathBuf>,
}

impl DiskStore {
    /// A store that knows no folders of other agents.
    pub fn new() -> Self {
        Self {
            volume: Arc::new(Disk),
            foreign: Vec::new(),
        }
    }

    /// The same store, which takes sessions in these folders for those of other agents.
    #[must_use]
    pub fn with_foreign_folders(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.foreign.extend(folders);
        self
    }
}

impl Default for DiskStore {
    fn default() -> Self {
        Self::new()
    }
}

impl SessionStore for DiskStore {
    fn volume(&self) -> &Arc<dyn Volume> {
        &self.volume
    }

    fn foreign_folders(&self) -> &[PathBuf] {
        &self.foreign
    }
}

/// Sessions in memory, for tests and for runs that leave nothing behind. Can fail and crash on demand.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    memory: Memory,
    volume: Arc<dyn Volume>,
    foreign: Vec<PathBuf>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        let memory = Memory::default();
        Self {
            volume: Arc::new(memory.clone()),
            memory,
            foreign: Vec::new(),
        }
    }

    /// The same store, which takes sessions in these folders for those of other agents.
    #[must_use]
    pub fn with_foreign_folders(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.foreign.extend(folders);
        self
    }

    /// How many steps that change something were taken so far.
    pub fn steps(&self) -> u64 {
        self.memory.steps()
    }

    /// Plans a fault for a step, counted as [`MemoryStore::steps`] counts. It has no effect if that step
    /// is of a kind that it cannot hit.
    pub fn plan_fault(&self, step: u64, fault: Fault) {
        self.memory.plan_fault(step, fault);
    }

    /// Forgets the faults that were planned and did not happen yet.
    pub fn clear_faults(&self) {
        self.memory.clear_faults();
    }

    /// Starts the machine again, after a crash or out of the blue: what was not synced is there in part or
    /// not at all, as the seed has it; writers from before are dead.
    pub fn restart(&self, seed: u64) {
        self.memory.restart(seed);
    }

    /// Whether a planned crash has happened.
    pub fn has_stopped(&self) -> bool {
        self.memory.has_stopped()
    }

    /// Kills the writers, as a signal would: their locks are free, what they wrote is there.
    pub fn kill_writers(&self) {
        self.memory.kill();
    }

    /// Makes a process count as ended. Every other owner counts as alive.
    pub fn declare_dead(&self, owner: Owner) {
        self.memory.declare_dead(owner);
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl SessionStore for MemoryStore {
    fn volume(&self) -> &Arc<dyn Volume> {
        &self.volume
    }

    fn foreign_folders(&self) -> &[PathBuf] {
        &self.foreign
    }
}
