//! Failures of commands: a kind for programs and exit codes, a message, and a hint for people.

use std::fmt;

/// What went wrong.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The command could not do its work.
    Failed,
    /// The command line asks for something impossible.
    Usage,
    /// There is no session to read.
    NoSession,
    /// A model or the way to it failed.
    Provider,
    /// Somebody else writes the session.
    Busy,
    /// Somebody cancelled.
    Cancelled,
}

impl ErrorKind {
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoSession => 3,
            Self::Provider => 4,
            Self::Busy => 5,
            Self::Cancelled => 130,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NoSession => "no_session",
            Self::Provider => "provider",
            Self::Busy => "session_busy",
            Self::Cancelled => "cancelled",
        }
    }
}

impl CommandError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    /// A failure with all of its causes in one line.
    pub(crate) fn from_error(kind: ErrorKind, error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(kind, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Done, or nothing to do.
    Done,
    /// The file is damaged.
    Damaged,
    /// The result tells that it did not come to its end, and why.
    Ended(ErrorKind),
}

impl Status {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Damaged => 3,
            Self::Ended(kind) => kind.exit_code(),
        }
    }
}
