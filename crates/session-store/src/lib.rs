#![doc = include_str!("../README.md")]

mod agents;
mod aligned;
mod append;
mod artifact;
mod backup;
mod blob;
mod gc;
mod layout;
mod line;
mod listing;
mod lock;
mod owner;
mod read;
mod repair;
mod resume;
mod rewrite;
mod sidecar;
mod store;
mod tail;
mod time;
mod torn;
mod volume;

pub use agents::{Agent, AgentFolder};
pub use aligned::AlignedBuf;
pub use append::{
    AppendError, Appended, Changed, Durability, Expected, HeaderProblem, OpenError, OpenOptions,
    SessionWriter,
};
pub use artifact::{ARTIFACT_CAP, ArtifactError, ArtifactId, ArtifactRef, Artifacts, StoredArtifact};
pub use backup::{BACKUPS_KEPT, Backup, BackupError, BackupKind};
pub use blob::{BlobError, BlobRef, Blobs};
pub use gc::{Leftover, LeftoverKind, TrashError, Trashed};
pub use layout::{Layout, LayoutError};
pub use line::InvalidLine;
pub use listing::{Count, ListError, Listing, Project, ResolveError, SessionSummary};
pub use lock::ForeignSign;
pub use owner::{Liveness, Owner};
pub use read::{LinesBackward, PlacedLine, ReadError, SessionReader, Snapshot, Stamp};
pub use repair::{RepairStep, Repaired, plan_repair, plan_session_repair};
pub use resume::{ResumeError, ResumeExtent, Resumed};
pub use rewrite::{CreateError, Lines, RewriteError};
pub use sidecar::{Sidecar, SidecarName};
pub use store::{DiskStore, MemoryStore, SessionStore};
pub use volume::Volume;
pub use volume::memory::Fault;
