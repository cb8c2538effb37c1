//! Why a writer was not opened, and why a line was not appended.

use std::io;
use std::path::PathBuf;

use crate::line::InvalidLine;
use crate::lock::ForeignSign;
use crate::owner::Owner;

/// Why a writer was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such file.
    #[error("no session at {}", .0.display())]
    NotFound(PathBuf),
    /// Another process, or another writer of this one, has the session.
    #[error("{} is being written by {}", session.display(), owner.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string))]
    SessionBusy {
        /// The file.
        session: PathBuf,
        /// Who, if its record could be read.
        owner: Option<Owner>,
        /// The lock file, for the case that its owner is on a machine that will not come back.
        lock: PathBuf,
    },
    /// A program that does not know our lock is writing the session. Write to a copy instead.
    #[error("another program seems to be writing {}: {}", session.display(), describe(sign))]
    ForeignWriter {
        /// The file.
        session: PathBuf,
        /// How it was noticed.
        sign: ForeignSign,
    },
    /// The session is not what the caller planned for.
    #[error(transparent)]
    Changed(#[from] Changed),
    /// The system refused.
    #[error("cannot open {} for writing", session.display())]
    Io {
        /// The file.
        session: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A session changed behind our back.
#[derive(Debug, thiserror::Error)]
#[error("{} changed behind our back: {expected} bytes were expected, {found} were found{}", session.display(), if *replaced { ", in another file" } else { "" })]
#[non_exhaustive]
pub struct Changed {
    /// The file.
    pub session: PathBuf,
    /// The length that was planned for.
    pub expected: u64,
    /// The length that was found.
    pub found: u64,
    /// Whether another file took the name.
    pub replaced: bool,
}

/// Why a line was not appended. The log is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The line would damage the file.
    #[error(transparent)]
    InvalidLine(#[from] InvalidLine),
    /// An entry with this id is in the session.
    #[error("an entry with the id {id} is in {} already", session.display())]
    DuplicateId {
        /// The file.
        session: PathBuf,
        /// The id.
        id: String,
    },
    /// An entry before the header, or a second header.
    #[error("{} {}", session.display(), match problem { HeaderProblem::Missing => "has no header yet", HeaderProblem::Second => "has a header already", HeaderProblem::NotASession => "is not a session: its first line is no header" })]
    Header {
        /// The file.
        session: PathBuf,
        /// What is wrong.
        problem: HeaderProblem,
    },
    /// Somebody else wrote to the file. Nothing was written.
    #[error(transparent)]
    Changed(#[from] Changed),
    /// The disk or the quota is full.
    #[error("the disk is full: nothing was added to {}", session.display())]
    DiskFull {
        /// The file.
        session: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The line could not be made durable, so it was taken back.
    #[error("{} could not be synced: the line was taken back", session.display())]
    NotDurable {
        /// The file.
        session: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot append to {}", session.display())]
    Io {
        /// The file.
        session: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What is wrong with the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderProblem {
    /// The file is empty, or its header was torn: a header has to come first.
    Missing,
    /// There is one.
    Second,
    /// The file has content, but no header. It is never written to.
    NotASession,
}

fn describe(sign: &ForeignSign) -> String {
    match sign {
        ForeignSign::LockFile(path) => format!("its lock is {}", path.display()),
        ForeignSign::FreshGrowth { age } => format!("it grew {} ms ago", age.as_millis()),
    }
}
