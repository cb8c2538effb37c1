//! What a plan looks at: messages in order, and which of them a prune replaced before.

use foldline_session_model::EntryIx;
use foldline_session_model::fold::{Context, Masked};
use foldline_session_model::message::Message;

/// The messages that may be pruned, oldest first, borrowed from where they are.
///
/// A view of a context holds nothing from before the kept tail of the newest active compaction, so nothing there is
/// ever touched.
#[derive(Clone, Debug)]
pub struct View<'v> {
    pub(crate) items: Vec<Item<'v>>,
    /// The working folder of the session: relative paths are paths in it.
    pub(crate) cwd: &'v str,
}

/// One message of a view.
#[derive(Clone, Copy, Debug)]
pub struct Item<'v> {
    /// The id of the entry that it comes from.
    pub id: &'v str,
    /// The entry that it comes from.
    pub source: EntryIx,
    /// The message as the model sees it.
    pub message: &'v Message<'v>,
    /// Whether a mask entry replaced its content.
    pub masking: Masking,
}

/// Whether a mask entry replaced the content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// The message is the entry's own.
    None,
    /// The message is a notice.
    Masked,
}

impl<'v> View<'v> {
    /// The messages of a folded context.
    pub fn of_context(context: &'v Context<'_>) -> Self {
        let items = context.items.iter().map(|item| Item {
            id: context.log.id(item.source),
            source: item.source,
            message: &item.message,
            masking: match item.masked {
                // What is left of a message without its pictures can still be pruned.
                Masked::No | Masked::Pictures { .. } => Masking::None,
                Masked::ByEntry { .. } => Masking::Masked,
            },
        });
        Self::new(&context.log.header().cwd, items)
    }

    /// Messages in order, and the folder that their relative paths count from.
    pub fn new(cwd: &'v str, items: impl IntoIterator<Item = Item<'v>>) -> Self {
        Self {
            items: items.into_iter().collect(),
            cwd,
        }
    }

    /// The messages, oldest first.
    pub fn items(&self) -> &[Item<'v>] {
        &self.items
    }
}
