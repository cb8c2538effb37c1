//! Reading a session from its end, so that a resume costs what the active context costs and not what the file
//! costs (DESIGN, 5).
//!
//! [`TailReader`] does no I/O. It says which bytes it needs, is fed them, and ends with a [`SessionLog`] of the
//! file's end that folds to the context that the whole file folds to. It reads backward in growing blocks, indexes
//! every id it meets (the first one met is the last copy, which is the one that counts), and stops when the path
//! from the leaf has reached the first kept entry of the newest active compaction, or the root.
//!
//! Whatever could make the answer differ from that of a full load ends the attempt: the caller then loads the
//! whole file with [`Trust::Validated`](crate::log::Trust). The reasons are those of [`LoadFully`].

#[cfg(test)]
mod tests;
mod walk;
mod window;

use std::ops::Range;

use crate::EntryIx;
use crate::fold::Profile;
use crate::log::build::of_tail;
use crate::log::header::{self, Header};
use crate::log::index::IdIndex;
use crate::log::scan::{self, IsLast, Trust};
use crate::log::{Apart, EntryHead, FinalNewline, SessionLog, Version};

use walk::{Progress, Walk};
use window::Window;

/// How many bytes the first two requests ask for. Later ones double what is there.
const FIRST_BLOCK: u64 = 64 * 1024;

/// Reads the end of a session file. See the [module](self).
#[derive(Debug)]
pub struct TailReader {
    len: u64,
    block: u64,
    last_line_checked: bool,
    stage: Stage,
    header: Header,
    /// The end of the header's line.
    header_end: u64,
    window: Window,
    /// Lines from here on have been looked at.
    scanned_from: u64,
    /// What was found so far, from the last entry of the file to the first one met.
    met: Met,
    walk: Walk,
    newline: FinalNewline,
}

/// The entries that were met, newest first. Their `start` counts in the file.
#[derive(Debug, Default)]
struct Met {
    heads: Vec<EntryHead>,
    apart: Apart,
    ids: IdIndex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Header { end: u64 },
    Backward,
    Done,
    Failed(LoadFully),
}

/// What a reader needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// These bytes of the file, given to [`TailReader::feed`].
    Bytes(Range<u64>),
    /// Nothing: [`TailReader::finish`] gives the log.
    Nothing,
    /// The whole file, read by [`SessionLog::load`] with [`Trust::Validated`](crate::log::Trust).
    WholeFile(LoadFully),
}

/// Why a file has to be loaded whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadFully {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// The first line is no header.
    #[error("the first line is no session header")]
    NoHeader,
    /// Version 1 has no ids; versions 4 and 5 have patch records that count wherever they stand; a title slot or a
    /// byte order mark has to be taken off; an unknown version may be anything.
    #[error("the file has an old or foreign form")]
    OldForm,
    /// The last line is no whole record.
    #[error("the last line is damaged")]
    LastLine,
    /// A line on the path is not what its beginning promised.
    #[error("a line on the path is damaged")]
    BrokenLine,
    /// An entry on the path names a parent that is nowhere in the file.
    #[error("a parent on the path is missing")]
    MissingParent,
    /// The path leads back to itself.
    #[error("the path leads back to itself")]
    Cycle,
    /// The reader was fed other bytes than it had asked for.
    #[error("the bytes are not those that were asked for")]
    WrongBytes,
    /// There are too many records for a log.
    #[error("the file has too many records")]
    TooLarge,
}

impl TailReader {
    /// A reader of a file of `len` bytes, for contexts at its last entry under this profile.
    pub fn new(len: u64, profile: Profile) -> Self {
        Self::with_block(len, profile, FIRST_BLOCK)
    }

    fn with_block(len: u64, profile: Profile, block: u64) -> Self {
        Self {
            len,
            block,
            last_line_checked: false,
            stage: if len == 0 {
                Stage::Failed(LoadFully::Empty)
            } else {
                Stage::Header { end: len.min(block) }
            },
            header: Header::default(),
            header_end: 0,
            window: Window::new(len),
            scanned_from: len,
            met: Met::default(),
            walk: Walk::new(profile),
            newline: FinalNewline::Present,
        }
    }

    /// What is needed next. Asking does not change anything.
    pub fn need(&self) -> Need {
        match self.stage {
            Stage::Header { end } => Need::Bytes(0..end),
            Stage::Backward => Need::Bytes(self.next_block()),
            Stage::Done => Need::Nothing,
            Stage::Failed(reason) => Need::WholeFile(reason),
        }
    }

    /// Takes the bytes that [`TailReader::need`] named.
    pub fn feed(&mut self, bytes: &[u8]) {
        let result = match self.stage {
            Stage::Header { end } => self.feed_header(bytes, end),
            Stage::Backward => self.feed_block(bytes),
            Stage::Done | Stage::Failed(_) => Ok(self.stage),
        };
        self.stage = result.unwrap_or_else(Stage::Failed);
    }

    /// The log of the file's end. Its [`extent`](SessionLog::extent) says where it begins.
    ///
    /// # Errors
    /// [`LoadFully`] if the whole file is needed, also when bytes are still missing.
    pub fn finish(self) -> Result<SessionLog, LoadFully> {
        match self.stage {
            Stage::Done => {}
            Stage::Failed(reason) => return Err(reason),
            Stage::Header { .. } | Stage::Backward => return Err(LoadFully::WrongBytes),
        }
        let from = self.scanned_from;
        let bytes = self.window.into_bytes(from);
        let mut heads = self.met.heads;
        heads.reverse();
        for head in &mut heads {
            head.start -= from;
        }
        Ok(of_tail(
            self.header,
            bytes,
            from,
            heads,
            self.met.apart,
            self.newline,
        ))
    }

    fn next_block(&self) -> Range<u64> {
        let have = self.len - self.window.from();
        let step = have.max(self.block);
        self.window.from().saturating_sub(step)..self.window.from()
    }

    fn feed_header(&mut self, bytes: &[u8], end: u64) -> Result<Stage, LoadFully> {
        if bytes.len() as u64 != end {
            return Err(LoadFully::WrongBytes);
        }
        let line = match memchr::memchr(b'\n', bytes) {
            Some(at) => &bytes[..at],
            None if end == self.len => bytes,
            None => {
                return Ok(Stage::Header {
                    end: self.len.min(end.saturating_mul(2)),
                });
            }
        };
        self.header_end = line.len() as u64;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if crate::head::has_raw_controls(line) {
            return Err(LoadFully::NoHeader);
        }
        self.header = match header::parse(line) {
            Ok(Some(header))
                if crate::head::careful(line).is_ok_and(|h| h.kind.as_deref() == Some("session")) =>
            {
                header
            }
            _ => return Err(LoadFully::NoHeader),
        };
        if self.header.version != Version::Known(3) {
            return Err(LoadFully::OldForm);
        }
        self.walk.header(&self.header);
        if end == self.len {
            // The whole file came with the header.
            return self.feed_block(bytes);
        }
        Ok(Stage::Backward)
    }

    fn feed_block(&mut self, bytes: &[u8]) -> Result<Stage, LoadFully> {
        if bytes.len() as u64 != self.window.from() - self.next_start(bytes) {
            return Err(LoadFully::WrongBytes);
        }
        let is_first = self.window.is_empty();
        self.window.prepend(bytes);
        if is_first {
            self.newline = match bytes.last() {
                Some(b'\n') => FinalNewline::Present,
                _ => FinalNewline::Missing,
            };
        }
        self.scan_new_lines()?;
        match self.walk.go(&self.met, &self.window)? {
            Progress::Reached => Ok(Stage::Done),
            // An empty session: there is no leaf to walk from.
            Progress::Stuck if self.scanned_from == 0 && self.met.heads.is_empty() => Ok(Stage::Done),
            Progress::Stuck if self.scanned_from == 0 => Err(LoadFully::MissingParent),
            Progress::Stuck => Ok(Stage::Backward),
        }
    }

    fn next_start(&self, bytes: &[u8]) -> u64 {
        match self.stage {
            Stage::Header { .. } => 0,
            _ if bytes.is_empty() => self.window.from(),
            _ => self.next_block().start,
        }
    }

    /// Looks at the lines that became whole with the newest block.
    fn scan_new_lines(&mut self) -> Result<(), LoadFully> {
        let from = if self.window.from() == 0 {
            0
        } else {
            // The first line of the window may have begun before it.
            match memchr::memchr(b'\n', self.window.slice(self.window.from()..self.scanned_from)) {
                Some(at) => self.window.from() + at as u64 + 1,
                None => return Ok(()),
            }
        };
        let is_end = self.scanned_from == self.len;
        let region = self.window.slice(from..self.scanned_from);
        let last_line = if self.last_line_checked {
            None
        } else {
            last_line_of(region)
        };
        self.last_line_checked |= last_line.is_some();
        let first_new = self.met.heads.len();
        for span in scan::lines(region) {
            let at = from + span.start as u64;
            if at == 0 {
                continue;
            }
            let is_last = last_line.as_ref() == Some(&span);
            let trust = if is_last { Trust::Validated } else { Trust::Claimed };
            let unended = if is_last && is_end && span.end == region.len() {
                IsLast::Unterminated
            } else {
                IsLast::No
            };
            let line = scan::line(region, span, trust, unended);
            if is_last && (line.damage.is_some() || line.found.len() != 1) {
                return Err(LoadFully::LastLine);
            }
            for found in line.found {
                let text = &region[found.span.clone()];
                if !found.head.is_entry(text) {
                    continue;
                }
                let start = usize::try_from(from)
                    .unwrap_or(usize::MAX)
                    .saturating_add(found.span.start);
                let head = EntryHead::new(&mut self.met.apart, text, start, 0, &found.head)
                    .map_err(|_| LoadFully::TooLarge)?;
                self.met.heads.push(head);
            }
        }
        self.met.heads[first_new..].reverse();
        let mut ids = std::mem::take(&mut self.met.ids);
        for position in first_new..self.met.heads.len() {
            let position = u32::try_from(position).map_err(|_| LoadFully::TooLarge)?;
            ids.insert_first(EntryIx(position), &self.met.heads, |head| {
                self.met.id_of(head, &self.window)
            });
        }
        self.met.ids = ids;
        self.scanned_from = from;
        Ok(())
    }
}

impl Met {
    fn line<'w>(head: &EntryHead, window: &'w Window) -> &'w [u8] {
        window.slice(head.start..head.start + u64::from(head.len))
    }

    fn id<'s>(&'s self, ix: EntryIx, window: &'s Window) -> &'s str {
        self.heads
            .get(ix.index())
            .map_or("", |head| self.id_of(head, window))
    }

    fn id_of<'s>(&'s self, head: &EntryHead, window: &'s Window) -> &'s str {
        head.id(Self::line(head, window), &self.apart)
    }

    fn parent_id<'s>(&'s self, head: &EntryHead, window: &'s Window) -> Option<&'s str> {
        Some(head.parent(Self::line(head, window), &self.apart)).filter(|id| !id.is_empty())
    }

    fn find(&self, id: &str, window: &Window) -> Option<EntryIx> {
        self.ids.find(id, &self.heads, |head| self.id_of(head, window))
    }
}

/// The last line that is not blank.
fn last_line_of(region: &[u8]) -> Option<Range<usize>> {
    let end = region.iter().rposition(|b| !b.is_ascii_whitespace())?;
    let start = memchr::memrchr(b'\n', &region[..end]).map_or(0, |at| at + 1);
    let stop = memchr::memchr(b'\n', &region[end..]).map_or(region.len(), |at| end + at);
    let stop = if stop > start && region[stop - 1] == b'\r' {
        stop - 1
    } else {
        stop
    };
    Some(start..stop)
}
