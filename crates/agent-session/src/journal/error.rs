//! Why a session is not written, or not opened.

use std::io;
use std::path::PathBuf;

use foldline_session_model::log::LoadError;
use foldline_session_store::{
    AppendError, BackupError, CreateError, OpenError, ReadError, ResumeError, RewriteError,
};

/// Why nothing was written. The session is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Somebody else writes the session, or wrote it since it was read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The line was refused, or the disk refuses.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// No backup, no change.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The session could not be brought into today's form.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// The session stands elsewhere than the plan says.
    #[error("the session moved on while this was planned")]
    Moved,
    /// The session has a version that is never written.
    #[error("{} has a version that is never written", .0.display())]
    ReadOnly(PathBuf),
}

impl CommitError {
    /// Whether another writer is the cause.
    pub const fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::Open(
                OpenError::SessionBusy { .. } | OpenError::ForeignWriter { .. } | OpenError::Changed(_)
            ) | Self::Append(AppendError::Changed(_))
        )
    }

    /// What the system said, if it was the system that refused.
    pub fn system(&self) -> Option<io::ErrorKind> {
        system_of(self)
    }

    /// The failure with all of its causes in one line.
    pub fn full_text(&self) -> String {
        full_text_of(self)
    }

    /// Whether the same commit may succeed in a moment.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Open(OpenError::SessionBusy { .. } | OpenError::Io { .. })
                | Self::Append(
                    AppendError::Io { .. } | AppendError::NotDurable { .. } | AppendError::DiskFull { .. }
                )
        )
    }
}

/// What the system said, if it was the system that refused.
pub(crate) fn system_of(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let mut at = Some(error);
    while let Some(cause) = at {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        at = cause.source();
    }
    None
}

/// A failure with all of its causes in one line.
pub(crate) fn full_text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Why a session was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadSessionError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is no session.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It cannot be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// It cannot be created.
    #[error(transparent)]
    Create(#[from] CreateError),
}
