//! Whole-file passes on all threads (feature `rayon`). They give what the same passes on one thread give.

#[cfg(test)]
mod tests;

use std::ops::Range;

use rayon::prelude::*;

use super::build::{self, Pass};
use super::{LoadError, SessionLog, Trust};
use crate::EntryIx;
use crate::entry::Entry;
use crate::json::DecodeError;

/// Bytes that one thread looks at in one go: some hundreds of lines.
const PIECE: usize = 1 << 20;

impl SessionLog {
    /// As [`SessionLog::load`], with the lines looked at on all threads of the current pool. It pays where each line is
    /// parsed, which is with [`Trust::Validated`].
    ///
    /// # Errors
    /// [`LoadError`] if the bytes are no session.
    pub fn load_parallel(bytes: impl Into<Vec<u8>>, trust: Trust) -> Result<Self, LoadError> {
        build::load(bytes.into(), trust, Pass::Parallel { piece: PIECE })
    }

    /// All entries in file order, each decoded as [`SessionLog::entry`] does, on all threads of the current pool.
    pub fn par_decoded(
        &self,
    ) -> impl IndexedParallelIterator<Item = (EntryIx, Result<Entry<'_>, DecodeError>)> {
        (0..self.len()).into_par_iter().map(|at| {
            let ix = EntryIx(u32::try_from(at).unwrap_or(u32::MAX));
            (ix, self.entry(ix))
        })
    }
}

/// Pieces of whole lines of about `size` bytes.
pub(super) fn pieces(bytes: &[u8], from: usize, size: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = from;
    while start < bytes.len() {
        let least = start.saturating_add(size).min(bytes.len());
        let rest = bytes.get(least..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map_or(bytes.len(), |at| least + at + 1);
        pieces.push(start..end);
        start = end;
    }
    pieces
}
