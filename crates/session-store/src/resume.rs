//! Resuming a session from its end: the reader of session-model says which bytes it needs, and gets them.

use foldline_session_model::fold::Profile;
use foldline_session_model::log::{LoadError, SessionLog, Trust};
use foldline_session_model::tail::{LoadFully, Need, TailReader};

use crate::aligned::AlignedBuf;
use crate::read::{ReadError, SessionReader, Stamp};

/// A session that is ready to go on.
#[derive(Debug)]
pub struct Resumed {
    /// Its log: the end of the file, or all of it.
    pub log: SessionLog,
    /// The state that was read.
    pub stamp: Stamp,
    /// How much of the file that took.
    pub extent: ResumeExtent,
    /// Bytes that were read.
    pub bytes_read: u64,
}

/// How much of a file a resume needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeExtent {
    /// Its end: what it cost depends on the active context, not on the file.
    Tail,
    /// All of it, for this reason.
    WholeFile(LoadFully),
}

/// Why a session was not resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is no session.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl SessionReader {
    /// Reads as much of the end of the session as the context at its last entry needs; where that could give
    /// another answer than the whole file, reads the whole file and validates it.
    ///
    /// # Errors
    /// The file cannot be read, or is no session.
    pub fn resume(&self, profile: Profile) -> Result<Resumed, ResumeError> {
        let stamp = self.stamp();
        let mut tail = TailReader::new(stamp.len, profile);
        let mut buffer = AlignedBuf::new();
        let mut bytes_read = 0;
        let reason = loop {
            match tail.need() {
                Need::Bytes(range) => {
                    bytes_read += range.end.saturating_sub(range.start);
                    tail.feed(self.read(range, &mut buffer)?);
                }
                Need::WholeFile(reason) => break reason,
                Need::Nothing => match tail.finish() {
                    Ok(log) => {
                        let extent = ResumeExtent::Tail;
                        return Ok(Resumed {
                            log,
                            stamp,
                            extent,
                            bytes_read,
                        });
                    }
                    Err(reason) => break reason,
                },
            }
        };
        drop(buffer);
        let log = SessionLog::load(self.read_all()?, Trust::Validated)?;
        let extent = ResumeExtent::WholeFile(reason);
        Ok(Resumed {
            log,
            stamp,
            extent,
            bytes_read: bytes_read + stamp.len,
        })
    }
}
