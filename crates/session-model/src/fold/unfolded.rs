//! A path entry by entry, without the cut of a compaction: what a tree view shows and a branch summary reads.

use std::ops::Range;

use super::apply::{boundary_message, is_elided, masked, message_of, newest_compaction};
use super::marks::Marks;
use super::{ContextItem, FoldError, Masked, Profile};
use crate::EntryIx;
use crate::entry::EntryBody;
use crate::json::DecodeError;
use crate::log::SessionLog;
use crate::message::Message;

impl SessionLog {
    /// The messages of a part of a path, one for each entry that can give one. Compactions that count under `profile`
    /// are messages in their places and cut nothing off; prunes and revocations of the whole path apply.
    ///
    /// # Errors
    /// [`FoldError::Unreadable`] if an entry that was only believed to be one is broken.
    pub fn unfolded(
        &self,
        path: &[EntryIx],
        part: Range<usize>,
        profile: Profile,
    ) -> Result<Vec<ContextItem<'_>>, FoldError> {
        let marks = Marks::on_path(self, path);
        let (_, profile) = newest_compaction(self, path, &marks, profile)?;
        let mut items = Vec::new();
        for (at, &source) in path.iter().enumerate().take(part.end).skip(part.start) {
            if marks.is_revoked(source, at) {
                continue;
            }
            let message = self
                .own_message(source, profile)
                .map_err(|_| FoldError::Unreadable {
                    id: self.entry_id(source),
                })?;
            if let Some(message) = message {
                let item = ContextItem {
                    source,
                    message,
                    masked: Masked::No,
                };
                items.push(masked(item, at, &marks));
            }
        }
        Ok(items)
    }

    /// The message that an entry gives by itself; `None` for entries that say nothing to a model.
    ///
    /// # Errors
    /// [`DecodeError`] if the line is no JSON object.
    pub fn own_message(&self, ix: EntryIx, profile: Profile) -> Result<Option<Message<'_>>, DecodeError> {
        if !self.may_be_visible(ix) {
            return Ok(None);
        }
        let mut entry = self.entry(ix)?;
        match std::mem::replace(&mut entry.body, EntryBody::Other) {
            EntryBody::Compaction(compaction) => {
                let counts = profile.accepts(&compaction) && !is_elided(&compaction);
                Ok(counts.then(|| boundary_message(&entry, *compaction, profile)))
            }
            body => {
                entry.body = body;
                Ok(message_of(entry))
            }
        }
    }
}
