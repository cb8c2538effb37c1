//! The end of the log: brought into a state that a line can follow, written in whole lines, made durable.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{AppendError, HeaderProblem, LogEnd, Name, SessionWriter};
use crate::tail::{self, StartsLine, Tail};
use crate::torn;
use crate::volume::{is_disk_full, write_all};

impl SessionWriter {
    /// Brings the end of the log into a state that a line can follow.
    pub(super) fn settle_end(&mut self) -> Result<Option<PathBuf>, AppendError> {
        match &self.end {
            LogEnd::Clean { .. } | LogEnd::Unended { .. } => return Ok(None),
            LogEnd::Residue(_) => {
                // Ours, and never acknowledged: cut it off.
                self.log
                    .set_len(self.stamp.len)
                    .map_err(|source| self.failed(source))?;
                self.end = LogEnd::Unknown;
            }
            LogEnd::Unknown => {}
        }
        let mut quarantined = None;
        let tail = tail::inspect(&*self.log, self.stamp.len).map_err(|source| self.failed(source))?;
        let mut len = self.stamp.len;
        if let Tail::Torn { keep, fragment, .. } = &tail {
            if *keep == 0 && !torn::may_be_header(fragment) {
                let problem = HeaderProblem::NotASession;
                return Err(AppendError::Header {
                    session: self.path.clone(),
                    problem,
                });
            }
            len = *keep;
        }
        let has_header = match torn::find_header(&*self.log, len).map_err(|source| self.failed(source))? {
            torn::Header::Found => true,
            torn::Header::Empty => false,
            torn::Header::Other => {
                let problem = HeaderProblem::NotASession;
                return Err(AppendError::Header {
                    session: self.path.clone(),
                    problem,
                });
            }
        };
        self.end = match tail {
            Tail::Clean => LogEnd::Clean { has_header },
            Tail::Unended => LogEnd::Unended { has_header },
            Tail::Torn {
                keep,
                fragment,
                starts_line,
            } => {
                let moved = torn::quarantine(&*self.volume, &self.path, &fragment)
                    .and_then(|moved| {
                        self.log.set_len(keep)?;
                        Ok(moved)
                    })
                    .map_err(|source| self.failed(source))?;
                self.stamp.len = keep;
                self.synced = self.synced.min(keep);
                // Before anything takes the fragment's place, its removal is on the disk.
                self.log.sync().map_err(|source| self.failed(source))?;
                quarantined = Some(moved);
                match starts_line {
                    StartsLine::Yes => LogEnd::Clean { has_header },
                    StartsLine::No => LogEnd::Unended { has_header },
                }
            }
        };
        Ok(quarantined)
    }

    /// One write of the whole line. A short one is taken back and tried once more; after the second, writing
    /// the rest tells why: mostly that the disk is full.
    pub(super) fn write_whole(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        const TRIES: u32 = 2;
        let mut tried = 0;
        loop {
            tried += 1;
            let error = match self.log.write(bytes) {
                Ok(written) if written == bytes.len() => return Ok(()),
                Ok(written) if tried == TRIES => {
                    match write_all(&mut *self.log, bytes.get(written..).unwrap_or_default()) {
                        Ok(()) => return Ok(()),
                        Err(error) => error,
                    }
                }
                Ok(_) => io::ErrorKind::WriteZero.into(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    tried -= 1;
                    continue;
                }
                Err(error) => error,
            };
            self.take_back(bytes);
            if tried == TRIES || matches!(self.end, LogEnd::Residue(_)) {
                return Err(self.failed(error));
            }
            if !is_disk_full(&error) {
                self.volume.pause(Duration::from_millis(1));
            }
        }
    }

    /// Removes what a failed write left after the stamp; remembers it if that fails too.
    pub(super) fn take_back(&mut self, bytes: &[u8]) {
        let most = self.stamp.len + bytes.len() as u64;
        let cut = match self.log.stat() {
            Ok(stat) if stat.len == self.stamp.len => Ok(()),
            // More than we wrote: somebody else's lines are among it. They are refused, not cut.
            Ok(stat) if stat.len > most || stat.len < self.stamp.len => return,
            Ok(_) => self.log.set_len(self.stamp.len),
            Err(error) => Err(error),
        };
        if cut.is_err() {
            self.end = LogEnd::Residue(bytes.to_vec());
        }
        self.synced = self.synced.min(self.stamp.len);
    }

    pub(super) fn make_durable(&mut self) -> io::Result<()> {
        const TRIES: u32 = 2;
        if self.name == Name::Unknown {
            self.volume
                .sync_folder(self.path.parent().unwrap_or(Path::new("")))?;
            self.name = Name::Durable;
        }
        let mut tried = 0;
        loop {
            tried += 1;
            let synced = if self.sync_failed {
                self.volume.rewrite_range(&self.path, self.synced, self.stamp.len)
            } else {
                self.log.sync()
            };
            match synced {
                Ok(()) => {
                    self.sync_failed = false;
                    self.synced = self.stamp.len;
                    return Ok(());
                }
                Err(error) => {
                    self.sync_failed = true;
                    if tried == TRIES {
                        return Err(error);
                    }
                }
            }
        }
    }
}
