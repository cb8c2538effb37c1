//! Reading: a whole session, a range of bytes on request, and lines from the end.

use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use crate::aligned::AlignedBuf;
use crate::volume::{FileIdentity, Links, Volume, VolumeFile, read_exact_at};

/// Bytes that one step backward reads at least.
const BLOCK: u64 = 64 * 1024;

/// Which state of a session a reader saw: compared before anything is written, so that a plan made
/// from one state is never committed to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Length of the file in bytes.
    pub len: u64,
    pub(crate) identity: FileIdentity,
}

/// Why a session could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such file.
    #[error("no session at {}", .0.display())]
    NotFound(PathBuf),
    /// The range ends after the end of the file as it was when the reader was opened.
    #[error("bytes {}..{} are not in {}", range.start, range.end, session.display())]
    OutOfRange {
        /// The file.
        session: PathBuf,
        /// What was asked for.
        range: Range<u64>,
    },
    /// The file became shorter while it was read.
    #[error("{} was cut while it was read", .0.display())]
    Shrunk(PathBuf),
    /// The system refused.
    #[error("cannot read {}", session.display())]
    Io {
        /// The file.
        session: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The bytes of a whole session and the state they stand for.
#[derive(Debug)]
pub struct Snapshot {
    bytes: AlignedBuf,
    stamp: Stamp,
}

impl Snapshot {
    /// The state that was read.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }
}

impl Deref for Snapshot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Snapshot> for Vec<u8> {
    fn from(snapshot: Snapshot) -> Self {
        snapshot.bytes.into_vec()
    }
}

/// An open session that answers "give me bytes a..b". Reading never blocks and never locks.
///
/// What a writer appends afterwards is not seen: all answers belong to one [`Stamp`].
#[derive(Debug)]
pub struct SessionReader {
    file: Box<dyn VolumeFile>,
    path: PathBuf,
    stamp: Stamp,
}

impl SessionReader {
    pub(crate) fn open(volume: &dyn Volume, path: &Path) -> Result<Self, ReadError> {
        Self::open_with(volume, path, Links::Follow)
    }

    pub(crate) fn open_with(volume: &dyn Volume, path: &Path, links: Links) -> Result<Self, ReadError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ReadError::NotFound(path.to_path_buf()),
            _ => ReadError::Io {
                session: path.to_path_buf(),
                source,
            },
        };
        let file = volume.open(path, links).map_err(failed)?;
        let stat = file.stat().map_err(failed)?;
        let stamp = Stamp {
            len: stat.len,
            identity: stat.identity,
        };
        Ok(Self {
            file,
            path: path.to_path_buf(),
            stamp,
        })
    }

    /// The state that all answers belong to.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Reads a range into a buffer that is used again and again.
    ///
    /// # Errors
    /// The range must lie in the file as it was when the reader was opened; the system may refuse.
    pub fn read<'b>(&self, range: Range<u64>, buffer: &'b mut AlignedBuf) -> Result<&'b [u8], ReadError> {
        let out_of_range = || ReadError::OutOfRange {
            session: self.path.clone(),
            range: range.clone(),
        };
        if range.end > self.stamp.len {
            return Err(out_of_range());
        }
        let len = range.end.checked_sub(range.start).ok_or_else(out_of_range)?;
        let len = usize::try_from(len).map_err(|_| out_of_range())?;
        read_exact_at(&*self.file, buffer.resize(len), range.start).map_err(|source| {
            match source.kind() {
                io::ErrorKind::UnexpectedEof => ReadError::Shrunk(self.path.clone()),
                _ => ReadError::Io {
                    session: self.path.clone(),
                    source,
                },
            }
        })?;
        Ok(buffer)
    }

    /// Reads everything.
    ///
    /// # Errors
    /// As [`SessionReader::read`].
    pub fn read_all(&self) -> Result<Snapshot, ReadError> {
        let mut bytes = AlignedBuf::new();
        self.read(0..self.stamp.len, &mut bytes)?;
        Ok(Snapshot {
            bytes,
            stamp: self.stamp,
        })
    }

    /// The lines from the last to the first, each with its place in the file.
    pub fn lines_backward(&self) -> LinesBackward<'_> {
        LinesBackward {
            reader: self,
            end: self.stamp.len,
            window: AlignedBuf::new(),
            from: self.stamp.len,
        }
    }
}

/// Lines from the end of a session; memory is bounded by the longest line, not by the file.
///
/// Not an `Iterator`, because each line borrows the window that the next step moves.
#[derive(Debug)]
pub struct LinesBackward<'r> {
    reader: &'r SessionReader,
    /// Everything at and after this offset has been given out.
    end: u64,
    window: AlignedBuf,
    /// Where the window starts in the file; it reaches to `end` at least.
    from: u64,
}

/// A line and its place in the file, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedLine<'b> {
    /// Where it is.
    pub range: Range<u64>,
    /// What it holds.
    pub bytes: &'b [u8],
}

impl LinesBackward<'_> {
    /// The line before the one given out last, without its line break.
    ///
    /// # Errors
    /// The system may refuse to read; the file may have been cut.
    pub fn next_line(&mut self) -> Result<Option<PlacedLine<'_>>, ReadError> {
        if self.end == 0 {
            return Ok(None);
        }
        // The break that ends this line, unless it is the last line of a file that ends without one.
        let mut step = BLOCK;
        loop {
            let len = usize::try_from(self.end - self.from).unwrap_or(usize::MAX);
            let window = self.window.get(..len).unwrap_or_default();
            if let Some(&last) = window.last() {
                let text_len = if last == b'\n' { len - 1 } else { len };
                let text = window.get(..text_len).unwrap_or_default();
                let start = match memchr::memrchr(b'\n', text) {
                    Some(at) => Some(at + 1),
                    None if self.from == 0 => Some(0),
                    None => None,
                };
                if let Some(start) = start {
                    let range = self.from + start as u64..self.from + text_len as u64;
                    self.end = range.start;
                    // Looked up again: the borrow of `window` above would otherwise outlive the loop.
                    let line = self.window.get(start..text_len).unwrap_or_default();
                    return Ok(Some(PlacedLine { range, bytes: line }));
                }
            }
            // A long line is read with doubling steps, so that its cost stays linear.
            self.from = self.end.saturating_sub((len as u64).saturating_add(step));
            step = step.saturating_mul(2);
            self.reader.read(self.from..self.end, &mut self.window)?;
        }
    }
}
