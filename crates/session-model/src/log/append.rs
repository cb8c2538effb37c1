//! Adding a line to a log that is in memory, after a commit wrote it.

use super::scan::{self, IsLast, Trust};
use super::{EntryHead, FinalNewline, Migration, SessionLog};
use crate::EntryIx;

/// Why a line could not be added to a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The line is no entry.
    #[error("the line is no entry")]
    NotAnEntry,
    /// The file needs a rewrite first, or is never written.
    #[error("the session is in an old or unknown form and must be migrated before it can grow")]
    OldForm,
    /// The log would have more than 4,294,967,295 lines.
    #[error("the log is full")]
    Full,
}

impl SessionLog {
    /// Adds one line, without its newline, as an append to the file does: after a missing final newline. It is the
    /// new leaf. Costs no more than the line itself.
    ///
    /// # Errors
    /// [`AppendError`]; the log is then unchanged.
    pub fn append(&mut self, line: &str) -> Result<EntryIx, AppendError> {
        if self.disk.migration != Migration::NotNeeded {
            return Err(AppendError::OldForm);
        }
        let bytes = line.as_bytes();
        let looked_at = scan::line(bytes, 0..bytes.len(), Trust::Validated, IsLast::No);
        let mut found = looked_at.found.into_iter();
        let (Some(found), None, None) = (found.next(), found.next(), looked_at.damage) else {
            return Err(AppendError::NotAnEntry);
        };
        if memchr::memchr(b'\n', bytes).is_some() || !found.head.is_entry(bytes) {
            return Err(AppendError::NotAnEntry);
        }
        let ix = u32::try_from(self.heads.len()).map_err(|_| AppendError::Full)?;
        let span = found.span.clone();
        let prefix = self.before_append();
        let number =
            u32::try_from(self.lines_before_append() + prefix.len()).map_err(|_| AppendError::Full)?;
        let start = self.bytes.len() + prefix.len();
        let head = EntryHead::new(
            &mut self.apart,
            &bytes[span.clone()],
            start + span.start,
            number,
            &found.head,
        )
        .map_err(|_| AppendError::Full)?;
        self.bytes.extend_from_slice(prefix);
        self.bytes.extend_from_slice(bytes);
        self.bytes.push(b'\n');
        self.disk.newline = FinalNewline::Present;
        self.heads.push(head);
        let ix = EntryIx(ix);
        let mut ids = std::mem::take(&mut self.ids);
        ids.insert(ix, &self.heads, |head| self.id_of(head));
        self.ids = ids;
        Ok(ix)
    }

    /// How many lines stand before what an append adds, without the newline that it may have to bring.
    fn lines_before_append(&self) -> usize {
        let (number, from) = match self.heads.last() {
            Some(head) => (head.line as usize, head.span().end),
            None => (0, 0),
        };
        let rest = self.bytes.get(from..).unwrap_or_default();
        number + memchr::memchr_iter(b'\n', rest).count()
    }
}
