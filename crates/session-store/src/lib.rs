#![doc = include_str!("../README.md")]

mod aligned;
mod append;
mod backup;
mod line;
mod lock;
mod owner;
mod read;
mod rewrite;
mod store;
mod tail;
mod time;
mod torn;
mod volume;

pub use aligned::AlignedBuf;
pub use append::{
    AppendError, Appended, Changed, Durability, Expected, HeaderProblem, OpenError, OpenOptions,
    SessionWriter,
};
pub use backup::{BACKUPS_KEPT, Backup, BackupError};
pub use line::InvalidLine;
pub use lock::ForeignSign;
pub use owner::{Liveness, Owner};
pub use read::{LinesBackward, PlacedLine, ReadError, SessionReader, Snapshot, Stamp};
pub use rewrite::{CreateError, Lines, RewriteError};
pub use store::{DiskStore, MemoryStore, SessionStore};
pub use volume::Volume;
pub use volume::memory::Fault;
