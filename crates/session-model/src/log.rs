//! A session log: the lines of a file, which of them are entries, and the tree that these form.

mod append;
pub(crate) mod build;
mod damage;
mod entry_head;
pub(crate) mod header;
pub(crate) mod index;
mod migrate;
#[cfg(feature = "rayon")]
mod parallel;
mod patch;
pub(crate) mod scan;
#[cfg(test)]
mod tests;
mod text;
mod validate;

use std::borrow::Cow;
use std::hint::black_box;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::entry::{Entry, EntryBody, EntryKind};
use crate::json::{self, DecodeError, Edit};
use crate::message::Message;
use crate::{ByteLen, EntryId, EntryIx, LineNumber};

pub use append::AppendError;
pub use damage::{Damage, DamageKind};
pub(crate) use entry_head::{Apart, EntryHead, Near};
pub use header::{Header, Version};
pub(crate) use scan::lines;
pub use scan::{Trust, records};

use index::IdIndex;

/// A loaded session: the bytes of its lines, an index of their heads, and what is wrong with them.
///
/// Bodies are decoded when someone asks for them. The lines of version 1 and 2 files are migrated in memory by
/// splicing; everything else stays as it was written (DESIGN, rule 4).
#[derive(Debug)]
pub struct SessionLog {
    /// The lines in today's form.
    bytes: Vec<u8>,
    header: Header,
    /// Where the header stands in `bytes`.
    header_at: Range<usize>,
    heads: Vec<EntryHead>,
    apart: Apart,
    ids: IdIndex,
    /// Entries whose message was replaced by a patch record, with the new message.
    patched: FxHashMap<u32, Box<str>>,
    damage: Vec<Damage>,
    disk: DiskForm,
    trust: Trust,
    extent: Extent,
}

/// How much of its file a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Its end, from a line on: what [`TailReader`](crate::tail::TailReader) gives. Line numbers are unknown there,
    /// a parent that is not in the log may still be in the file, and damage is not listed.
    Tail {
        /// Where in the file the log begins.
        from: ByteLen,
    },
}

/// How a file differs from what this crate would write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskForm {
    /// Whether the last line ends in a newline. If not, an append must write one first.
    pub newline: FinalNewline,
    /// Whether the lines on disk are those of this log.
    pub migration: Migration,
}

/// Whether the last line ends in a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalNewline {
    /// It does, or there is no line.
    Present,
    /// It does not, and it is a whole record.
    Missing,
    /// It does not, and it was cut off while it was written.
    Torn,
}

/// Whether a file must be rewritten before the first append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// An append suffices.
    NotNeeded,
    /// The file has an old version, patch records or a title slot: it is rewritten whole, after a backup.
    Needed,
    /// The version is unknown: the file is never written.
    ReadOnly,
}

/// What an entry's `parentId` leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// Nothing: the entry is a root.
    Root,
    /// An entry of this log.
    Entry(EntryIx),
    /// An id that no entry of this log has.
    Missing,
}

/// Why bytes are no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is nothing but blank lines.
    #[error("the file is empty")]
    Empty,
    /// The first record is no session header.
    #[error("line {line}: {cause}")]
    NotASession {
        /// The line that is no header.
        line: LineNumber,
        /// Why not.
        cause: String,
    },
    /// The file is larger than this crate can index.
    #[error("the file has more than 4,294,967,295 records")]
    TooLarge,
}

impl SessionLog {
    /// Loads a session from the bytes of its file. Never fails because of damage, as long as there is a header.
    ///
    /// # Errors
    /// [`LoadError`] if the bytes are no session. The file should then be left alone.
    pub fn load(bytes: impl Into<Vec<u8>>, trust: Trust) -> Result<Self, LoadError> {
        build::load(bytes.into(), trust, build::Pass::InOrder)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Everything that is wrong with the file. Complete only if the log was loaded with [`Trust::Validated`].
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// How the file differs from what this crate would write.
    pub fn disk_form(&self) -> DiskForm {
        self.disk
    }

    /// How much of its file this log holds.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// How much of each line was looked at.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// All entries in file order.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = EntryIx> + ExactSizeIterator + use<> {
        let count = u32::try_from(self.heads.len()).unwrap_or(u32::MAX);
        (0..count as usize).map(|i| EntryIx(u32::try_from(i).unwrap_or(u32::MAX)))
    }

    /// The entry at a position in file order, counted from 0.
    pub fn entry_at(&self, position: usize) -> Option<EntryIx> {
        let ix = u32::try_from(position).ok().map(EntryIx)?;
        (position < self.heads.len()).then_some(ix)
    }

    /// The entry with this id; of several the last in the file.
    pub fn find(&self, id: &str) -> Option<EntryIx> {
        self.ids.find(id, &self.heads, |head| self.id_of(head))
    }

    /// The leaf: the last record of the file that is an entry (spec, 4.1; D15).
    pub fn leaf(&self) -> Option<EntryIx> {
        self.entries().next_back()
    }

    /// The entry's id.
    pub fn id(&self, ix: EntryIx) -> &str {
        self.head(ix).map_or("", |head| self.id_of(head))
    }

    /// The entry's id as a value of its own.
    pub fn entry_id(&self, ix: EntryIx) -> EntryId {
        EntryId::from(self.id(ix))
    }

    /// The id that the entry names as its parent; empty and absent ones are `None`.
    pub fn parent_id(&self, ix: EntryIx) -> Option<&str> {
        let head = self.head(ix)?;
        Some(head.parent(self.line_of(head), &self.apart)).filter(|id| !id.is_empty())
    }

    /// The entry's timestamp, as it stands in the file.
    pub fn timestamp(&self, ix: EntryIx) -> &str {
        self.head(ix)
            .map_or("", |head| head.timestamp(self.line_of(head), &self.apart))
    }

    /// The entry's type.
    pub fn kind(&self, ix: EntryIx) -> EntryKind {
        self.head(ix).map_or(EntryKind::Unknown, |head| head.kind)
    }

    /// The line of the file on which the entry stands; `None` if only the end of the file was read.
    pub fn line_number(&self, ix: EntryIx) -> Option<LineNumber> {
        match self.extent {
            Extent::Whole => Some(self.line_of_file(ix)),
            Extent::Tail { .. } => None,
        }
    }

    pub(crate) fn line_of_file(&self, ix: EntryIx) -> LineNumber {
        LineNumber::from_index(self.head(ix).map_or(0, |head| head.line as usize))
    }

    /// The entry's line as it is kept, without its newline.
    pub fn raw_line(&self, ix: EntryIx) -> &[u8] {
        self.head(ix).map_or(&[], |head| self.line_of(head))
    }

    /// What the entry's parent is.
    pub fn parent(&self, ix: EntryIx) -> Parent {
        // Nearly always the entry before it.
        if !self.ids.has_duplicates()
            && let Some(before) = ix.0.checked_sub(1).map(EntryIx)
            && let (Some(head), Some(head_before)) = (self.head(ix), self.head(before))
            && head.names_as_parent(self.line_of(head), head_before, self.line_of(head_before))
        {
            return Parent::Entry(before);
        }
        match self.parent_id(ix) {
            Some(parent) => self.find(parent).map_or(Parent::Missing, Parent::Entry),
            None => Parent::Root,
        }
    }

    /// Decodes an entry, with patch records applied.
    ///
    /// # Errors
    /// [`DecodeError`] if the line is no JSON object. After [`Trust::Validated`] that cannot happen.
    pub fn entry(&self, ix: EntryIx) -> Result<Entry<'_>, DecodeError> {
        let mut entry = crate::entry::decode::entry(self.raw_line(ix))?;
        if self.trust == Trust::Claimed && crate::head::has_raw_controls(self.raw_line(ix)) {
            return Err(DecodeError::new("a control character inside a string"));
        }
        if self.trust == Trust::Claimed
            && (entry.id != self.id(ix) || entry.parent_id.as_deref() != self.parent_id(ix))
        {
            return Err(DecodeError::new(
                "the line repeats a key of its head with another value",
            ));
        }
        if let Some(message) = self.patched.get(&ix.0) {
            entry.body = EntryBody::Message(crate::message::decode::from_json(message)?);
        }
        Ok(entry)
    }

    /// Decodes the message of a `message` entry; `None` for other entries and for broken lines.
    pub fn message(&self, ix: EntryIx) -> Option<Box<Message<'_>>> {
        match self.entry(ix).ok()?.body {
            EntryBody::Message(message) => Some(message),
            _ => None,
        }
    }

    /// The line of an entry with some of its members changed, patch records applied first; every other byte stays.
    ///
    /// # Errors
    /// [`DecodeError`] if the line is no JSON object.
    pub fn edited_line(&self, ix: EntryIx, edits: &[Edit<'_>]) -> Result<String, DecodeError> {
        json::edit(&self.written_line(ix), edits)
    }

    /// The message of a `message` entry as JSON, patch records applied; `None` for other entries and for broken
    /// lines. Text that is no valid Unicode is repaired.
    pub fn message_json(&self, ix: EntryIx) -> Option<String> {
        if self.kind(ix) != EntryKind::Message {
            return None;
        }
        let line = self.edited_line(ix, &[]).ok()?;
        let raw: &serde_json::value::RawValue = serde_json::from_str(&line).ok()?;
        let members = json::object(raw)?;
        let (_, message) = members.iter().rev().find(|(key, _)| key == "message")?;
        Some(message.get().to_owned())
    }

    /// The type of an entry as it stands in the file, also of a type that this crate does not know.
    pub fn kind_text(&self, ix: EntryIx) -> Cow<'_, str> {
        match self.kind(ix) {
            EntryKind::Unknown => crate::head::careful(self.raw_line(ix))
                .ok()
                .and_then(|head| head.kind)
                .unwrap_or(Cow::Borrowed("unknown")),
            kind => Cow::Borrowed(kind.as_str()),
        }
    }

    /// The message that a patch record put in the place of the entry's own, as JSON.
    pub(crate) fn patched_message(&self, ix: EntryIx) -> Option<&str> {
        self.patched.get(&ix.0).map(|message| &**message)
    }

    /// The heads of all entries, in file order.
    pub(crate) fn heads(&self) -> &[EntryHead] {
        &self.heads
    }

    /// The entries whose message stands in a patch record.
    pub(crate) fn patched_entries(&self) -> impl Iterator<Item = EntryIx> {
        let mut patched: Vec<EntryIx> = self.patched.keys().map(|ix| EntryIx(*ix)).collect();
        patched.sort_unstable();
        patched.into_iter()
    }

    /// Reads the heads of some entries, the last of them `ix`. They stand far apart in a large file: one who walks from
    /// each to its parent would wait for every line, this way the waits overlap.
    pub(crate) fn fetch_heads(&self, ix: EntryIx, entries: usize) {
        let end = ix.index().saturating_add(1).min(self.heads.len());
        let heads = self
            .heads
            .get(end.saturating_sub(entries)..end)
            .unwrap_or_default();
        black_box(
            heads
                .iter()
                .fold(0, |all, head| all ^ head.ends_of_texts(self.line_of(head))),
        );
    }

    fn head(&self, ix: EntryIx) -> Option<&EntryHead> {
        self.heads.get(ix.index())
    }

    fn line_of(&self, head: &EntryHead) -> &[u8] {
        self.bytes.get(head.span()).unwrap_or_default()
    }

    fn id_of(&self, head: &EntryHead) -> &str {
        head.id(self.line_of(head), &self.apart)
    }
}
