//! What is wrong with a session file. Each damage costs only itself.

use std::fmt;

use crate::{ByteLen, EntryId, LineNumber};

/// One damage and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The line in the file as it was read.
    pub line: LineNumber,
    /// Where that line begins.
    pub offset: ByteLen,
    /// What is wrong.
    pub kind: DamageKind,
}

/// What is wrong with a line, or with the place of an entry in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The line is no JSON. Its bytes are kept.
    Malformed {
        /// What the parser says.
        message: String,
    },
    /// The last line is no JSON and has no newline: a write was cut off.
    TornTail,
    /// NUL bytes, as file systems leave them after a crash. What follows them on the line is read.
    NulBytes,
    /// A JSON value that is no object.
    NotAnObject,
    /// An object without the fields that make it an entry.
    NotAnEntry,
    /// Several records on one line. Each is read.
    Glued {
        /// How many.
        records: u32,
    },
    /// Text after a complete record, or a torn record before one. The record is read.
    ExtraText,
    /// Something before the header that is no part of a session.
    BeforeHeader,
    /// A second header. The first holds.
    SecondHeader,
    /// A patch record that applies to nothing, or in a version that has none.
    IdlePatch,
    /// Bytes that are no UTF-8. They read as U+FFFD.
    InvalidUtf8,
    /// An id that an earlier entry has too. The last one holds.
    DuplicateId {
        /// The id.
        id: EntryId,
    },
    /// An entry whose parent is not in the file. It is a root.
    MissingParent {
        /// The entry.
        id: EntryId,
        /// The parent it names.
        parent: EntryId,
    },
    /// An entry whose line of parents leads back to itself. The path stops there.
    Cycle {
        /// The entry.
        id: EntryId,
    },
    /// An index of version 1 that names no entry. Nothing is kept.
    IndexOutOfRange {
        /// The index.
        index: i64,
    },
    /// A compaction whose `firstKeptEntryId` is on no path to it. Nothing is kept.
    UnknownFirstKept {
        /// The compaction.
        id: EntryId,
        /// What it names.
        first_kept: EntryId,
    },
}

impl DamageKind {
    /// A short name that never changes, for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "malformed",
            Self::TornTail => "torn_tail",
            Self::NulBytes => "nul_bytes",
            Self::NotAnObject => "not_an_object",
            Self::NotAnEntry => "not_an_entry",
            Self::Glued { .. } => "glued",
            Self::ExtraText => "extra_text",
            Self::BeforeHeader => "before_header",
            Self::SecondHeader => "second_header",
            Self::IdlePatch => "idle_patch",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::DuplicateId { .. } => "duplicate_id",
            Self::MissingParent { .. } => "missing_parent",
            Self::Cycle { .. } => "cycle",
            Self::IndexOutOfRange { .. } => "index_out_of_range",
            Self::UnknownFirstKept { .. } => "unknown_first_kept",
        }
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { message } => write!(f, "the line is not valid JSON: {message}"),
            Self::TornTail => f.write_str("the last line was cut off while it was written"),
            Self::NulBytes => f.write_str("NUL bytes, probably left by a crash"),
            Self::NotAnObject => f.write_str("the line is not a JSON object"),
            Self::NotAnEntry => f.write_str("the object lacks a type or an id"),
            Self::Glued { records } => write!(f, "{records} records stand on one line"),
            Self::ExtraText => f.write_str("a record shares its line with other text"),
            Self::BeforeHeader => f.write_str("text before the session header"),
            Self::SecondHeader => f.write_str("a second session header; the first one holds"),
            Self::IdlePatch => f.write_str("a patch record that applies to nothing"),
            Self::InvalidUtf8 => f.write_str("bytes that are not valid UTF-8"),
            Self::DuplicateId { id } => write!(f, "the id {id} was used before; the last entry holds"),
            Self::MissingParent { id, parent } => write!(f, "the parent {parent} of entry {id} is missing"),
            Self::Cycle { id } => write!(f, "entry {id} is among its own ancestors"),
            Self::IndexOutOfRange { index } => {
                write!(f, "the index {index} of the first kept entry names none")
            }
            Self::UnknownFirstKept { id, first_kept } => {
                write!(
                    f,
                    "compaction {id} keeps from {first_kept}, which is not before it"
                )
            }
        }
    }
}
