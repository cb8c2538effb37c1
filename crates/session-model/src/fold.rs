//! The context fold: what the model would see now, rebuilt from the log.
//!
//! The newest active compaction on the path stands for everything before its kept tail. Prunes, leaf moves and
//! revocations are entries, and the fold applies them. It needs nothing before the first kept entry (seeds,
//! "Session entry model"; spec "Session model", 7; D2, D4, D8, D15).

mod apply;
mod marks;
mod profile;
mod standing;
mod state;
#[cfg(test)]
mod tests;
mod undo;
mod unfolded;

use std::ops::Range;

use crate::log::SessionLog;
use crate::message::Message;
use crate::tree::{EntryNotFound, Leaf};
use crate::{EntryIx, Tokens};

pub use marks::{LEAF_TYPE, PRUNE_TYPE, REVOKE_TYPE};
pub use profile::Profile;
pub use standing::{Standing, Standings};
pub use state::{Completeness, ModelRef, State};
pub use undo::Undo;

pub(crate) use apply::is_elided;
pub(crate) use marks::{picture_mask, revoked_by};
pub(crate) use profile::Evidence;

/// The context at a leaf: messages with the entries they come from, and the state that holds there.
#[derive(Clone, Debug)]
pub struct Context<'l> {
    /// The log it was folded from.
    pub log: &'l SessionLog,
    /// The leaf; `None` before the first entry.
    pub leaf: Option<EntryIx>,
    /// The entries from the root to the leaf; in a log of a file's end, from where that end begins.
    pub path: Vec<EntryIx>,
    /// The messages in order. Those of the kept tail are there also if the compaction brings a provider's own history.
    pub items: Vec<ContextItem<'l>>,
    /// Which of `items` are the kept tail: what stands before the compaction in the log.
    pub kept_tail: Range<usize>,
    /// The compaction that `items` begins with, if one is active.
    pub compaction: Option<EntryIx>,
    /// Which compactions count.
    pub profile: Profile,
}

/// One message of a context.
#[derive(Clone, Debug)]
pub struct ContextItem<'l> {
    /// The entry that it comes from.
    pub source: EntryIx,
    /// The message, with prune notices in place.
    pub message: Message<'l>,
    /// Whether a mask entry replaced its content, or the pictures in it.
    pub masked: Masked,
}

/// Whether a mask entry replaced the content of a message. The original is still in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masked {
    /// No.
    No,
    /// All of it.
    ByEntry {
        /// The mask.
        mask: EntryIx,
        /// The size of the original.
        original: Tokens,
    },
    /// Its pictures: a notice stands in the place of each.
    Pictures {
        /// The mask.
        mask: EntryIx,
        /// The size of the pictures.
        original: Tokens,
    },
}

/// Why a context could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// The leaf is not in the log.
    #[error(transparent)]
    LeafNotFound(#[from] EntryNotFound),
    /// An entry on the path is no JSON. Only after [`Trust::Claimed`](crate::log::Trust): load the session again
    /// with `Validated`, and the entry is left out.
    #[error("entry {id} cannot be read")]
    Unreadable {
        /// The entry.
        id: crate::EntryId,
    },
}

impl SessionLog {
    /// Folds the log into the context at `leaf`.
    ///
    /// # Errors
    /// [`FoldError`] if the leaf is unknown, or if an entry that was only believed to be one is broken.
    pub fn context(&self, leaf: &Leaf, profile: Profile) -> Result<Context<'_>, FoldError> {
        apply::fold(self, self.resolve(leaf)?, profile)
    }

    /// The message that an entry puts into a context by itself; `None` for entries that put none, and for
    /// compactions, whose text depends on the fold. Masks are not applied.
    pub fn context_message(&self, ix: EntryIx) -> Option<Message<'_>> {
        apply::message_of(self.entry(ix).ok()?)
    }
}

impl<'l> Context<'l> {
    /// The model, thinking level, mode and so on that hold at the leaf.
    pub fn state(&self) -> State<'l> {
        state::state(self.log, &self.path, self.profile)
    }

    /// The messages without their sources.
    pub fn messages(&self) -> impl Iterator<Item = &Message<'l>> {
        self.items.iter().map(|item| &item.message)
    }

    /// The last message in which the user speaks: typed text, a visible custom message, a branch summary or a
    /// command without what it printed; `None` if there is no text in any. Messages that a compaction stands for count
    /// too: what the user wants does not change because it was said before one. Messages that the model is not to
    /// see never count.
    pub fn last_user_text(&self) -> Option<String> {
        let in_view = || self.items.iter().rev().find_map(|item| user_text(&item.message));
        let on_path = || {
            let mut messages = self
                .path
                .iter()
                .rev()
                .filter_map(|ix| self.log.context_message(*ix));
            messages.find_map(|message| user_text(&message))
        };
        in_view().or_else(on_path)
    }
}

/// What the user says in a message, if it is one that begins a turn.
fn user_text(message: &Message<'_>) -> Option<String> {
    if !message.starts_turn() || !message.is_visible() {
        return None;
    }
    let text = match message {
        Message::BranchSummary(m) => m.summary.to_string(),
        Message::BashExecution(m) => m.source.to_string(),
        message => message.content()?.texts().collect::<Vec<_>>().join("\n"),
    };
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
