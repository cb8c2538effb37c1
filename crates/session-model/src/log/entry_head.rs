//! The head of an entry as a log keeps it: small, because there is one for each line of a file.

use std::ops::Range;

use super::LoadError;
use super::index::hash;
use super::scan::FoundHead;
use crate::entry::EntryKind;
use crate::head::FastHead;

/// Where an entry stands, and its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryHead {
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) line: u32,
    /// Of the id, so that neither a larger table nor a comparison has to fetch the line again.
    pub(super) id_hash: u32,
    texts: Texts,
    pub(crate) kind: EntryKind,
}

/// Where the texts of a head stand.
#[derive(Clone, Copy, Debug)]
enum Texts {
    /// In the beginning of the entry's line.
    InLine { id: Near, parent: Near, timestamp: Near },
    /// Apart, as the head of this number.
    Apart(u32),
}

/// A text in the first bytes of a line. Ids and timestamps that are written elsewhere are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Near {
    at: u8,
    len: u8,
}

impl Near {
    /// An empty text, which says as much as none.
    pub(crate) const NONE: Self = Self { at: 0, len: 0 };

    pub(crate) fn new(range: &Range<usize>) -> Option<Self> {
        Some(Self {
            at: u8::try_from(range.start).ok()?,
            len: u8::try_from(range.len()).ok()?,
        })
    }

    pub(crate) fn range(self) -> Range<usize> {
        let at = usize::from(self.at);
        at..at + usize::from(self.len)
    }

    fn text(self, line: &[u8]) -> &str {
        let text = line.get(self.range()).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

/// The texts of heads that could not be taken from the line as they stand.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    text: String,
    heads: Vec<[Range<u32>; 3]>,
}

impl Apart {
    fn keep(&mut self, texts: [Option<&str>; 3]) -> Result<u32, LoadError> {
        let number = u32::try_from(self.heads.len()).map_err(|_| LoadError::TooLarge)?;
        let mut ranges = [0..0, 0..0, 0..0];
        for (range, text) in ranges.iter_mut().zip(texts) {
            let start = u32::try_from(self.text.len()).map_err(|_| LoadError::TooLarge)?;
            self.text.push_str(text.unwrap_or_default());
            let end = u32::try_from(self.text.len()).map_err(|_| LoadError::TooLarge)?;
            *range = start..end;
        }
        self.heads.push(ranges);
        Ok(number)
    }

    fn text(&self, number: u32, which: usize) -> &str {
        self.heads
            .get(number as usize)
            .and_then(|head| head.get(which))
            .and_then(|range| self.text.get(range.start as usize..range.end as usize))
            .unwrap_or_default()
    }
}

impl EntryHead {
    /// The head of an entry whose line begins at `start` of the buffer.
    #[inline]
    pub(crate) fn in_line(line: &[u8], start: usize, number: u32, head: FastHead) -> Result<Self, LoadError> {
        Ok(Self {
            start: start as u64,
            len: u32::try_from(line.len()).map_err(|_| LoadError::TooLarge)?,
            line: number,
            id_hash: hash(line.get(head.id.range()).unwrap_or_default()),
            texts: Texts::InLine {
                id: head.id,
                parent: head.parent,
                timestamp: head.timestamp,
            },
            kind: head.kind,
        })
    }

    /// The same for a head in any form; texts that do not stand in the line are kept in `apart`.
    pub(crate) fn new(
        apart: &mut Apart,
        line: &[u8],
        start: usize,
        number: u32,
        head: &FoundHead,
    ) -> Result<Self, LoadError> {
        match head {
            FoundHead::Fast(head) => Self::in_line(line, start, number, *head),
            FoundHead::Careful {
                kind,
                id,
                parent,
                timestamp,
            } => Ok(Self {
                start: start as u64,
                len: u32::try_from(line.len()).map_err(|_| LoadError::TooLarge)?,
                line: number,
                id_hash: hash(id.as_deref().unwrap_or_default().as_bytes()),
                texts: Texts::Apart(apart.keep([id.as_deref(), parent.as_deref(), timestamp.as_deref()])?),
                kind: kind
                    .as_deref()
                    .map_or(EntryKind::Unknown, |kind| EntryKind::from_type(kind.as_bytes())),
            }),
        }
    }

    /// The bytes of the entry in the buffer.
    pub(crate) fn span(&self) -> Range<usize> {
        let start = usize::try_from(self.start).unwrap_or(usize::MAX);
        start..start.saturating_add(self.len as usize)
    }

    /// The id; empty if there is none. `line` is the entry's line.
    pub(crate) fn id<'t>(&self, line: &'t [u8], apart: &'t Apart) -> &'t str {
        match self.texts {
            Texts::InLine { id, .. } => id.text(line),
            Texts::Apart(number) => apart.text(number, 0),
        }
    }

    /// The parent's id; empty if there is none.
    pub(crate) fn parent<'t>(&self, line: &'t [u8], apart: &'t Apart) -> &'t str {
        match self.texts {
            Texts::InLine { parent, .. } => parent.text(line),
            Texts::Apart(number) => apart.text(number, 1),
        }
    }

    /// Whether both stand in the beginnings of their lines, and this one names the other as its parent: told by their
    /// bytes, for the walk to the root takes this step for nearly every entry.
    pub(crate) fn names_as_parent(&self, line: &[u8], other: &Self, other_line: &[u8]) -> bool {
        let (Texts::InLine { parent, .. }, Texts::InLine { id, .. }) = (self.texts, other.texts) else {
            return false;
        };
        let parent = line.get(parent.range()).unwrap_or_default();
        !parent.is_empty() && Some(parent) == other_line.get(id.range()) && parent.is_ascii()
    }

    /// Bytes of the line from where the id and the parent's id end, for one who only wants them to be near.
    pub(crate) fn ends_of_texts(&self, line: &[u8]) -> u8 {
        let Texts::InLine { id, parent, .. } = self.texts else {
            return 0;
        };
        let byte = |text: Near| line.get(text.range().end).copied().unwrap_or_default();
        byte(id) ^ byte(parent)
    }

    /// The timestamp; empty if there is none.
    pub(crate) fn timestamp<'t>(&self, line: &'t [u8], apart: &'t Apart) -> &'t str {
        match self.texts {
            Texts::InLine { timestamp, .. } => timestamp.text(line),
            Texts::Apart(number) => apart.text(number, 2),
        }
    }
}
