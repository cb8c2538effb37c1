//! What is wrong with settings. Nothing of it is fatal.

use std::fmt;

use serde::Serialize;

use super::Source;

/// Something that is wrong with a layer of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Where.
    pub source: Source,
    /// At which key; `None`: the whole layer.
    pub key: Option<String>,
    /// What.
    #[serde(flatten)]
    pub kind: ProblemKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "problem", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The file cannot be read. It counts as empty.
    Unreadable {
        /// Why.
        message: String,
    },
    /// The file is no JSON, or no object. It counts as empty and is never overwritten.
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1; 0: the line's beginning.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// Nobody knows the key. It stays where it is, and changes nothing.
    UnknownKey {
        /// The key that may be meant.
        nearest: Option<String>,
    },
    /// The value cannot be taken; the layer below decides.
    WrongValue {
        /// What the key takes.
        expected: String,
        /// What there is.
        found: String,
    },
    /// Only a trusted project may set the key (design page, D12). It is ignored.
    Untrusted,
    /// The key has a newer name. It still counts, unless the newer one is set too.
    Renamed {
        /// The newer name.
        to: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        let key = self.key.as_deref().unwrap_or("the settings");
        match &self.kind {
            ProblemKind::Unreadable { message } => write!(f, "cannot be read: {message}"),
            ProblemKind::Syntax {
                line,
                column,
                message,
            } => {
                write!(
                    f,
                    "line {line}, column {column}: {message}; the file counts as empty"
                )
            }
            ProblemKind::UnknownKey {
                nearest: Some(nearest),
            } => {
                write!(f, "there is no setting {key}; is {nearest} meant?")
            }
            ProblemKind::UnknownKey { nearest: None } => write!(f, "there is no setting {key}"),
            ProblemKind::WrongValue { expected, found } => {
                write!(f, "{key} takes {expected}, and not {found}")
            }
            ProblemKind::Untrusted => {
                write!(f, "{key} is ignored: this project is not trusted")
            }
            ProblemKind::Renamed { to } => write!(f, "{key} is called {to} now"),
        }
    }
}
