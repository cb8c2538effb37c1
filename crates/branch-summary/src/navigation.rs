//! A move of the leaf to another place of the tree (seeds, "Branch summarization"; spec "Session model", 4.2, and
//! "Agent session", 12).

use foldline_session_model::entry::EntryBody;
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Content, Message};
use foldline_session_model::tree::{Append, Leaf};
use foldline_session_model::{Author, EntryIx};

use crate::abandoned::Abandoned;

#[cfg(test)]
mod tests;

/// Where a move goes, and what it leaves behind. A plan: nothing has changed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan changes nothing until it is committed"]
pub struct Navigation {
    /// The entry that was asked for; of a leaf move, the entry that it moved to.
    pub target: Option<EntryIx>,
    /// Where the session stands now; `None` before the first entry.
    pub old_leaf: Option<EntryIx>,
    /// Where it will stand: the target, or, if that is something that a user typed, the entry before it.
    pub new_leaf: Option<EntryIx>,
    /// What the user typed there, to be edited and sent again.
    pub editor_text: Option<String>,
    /// The entries on the path to the old leaf that are not on the path to the new one.
    pub abandoned: Abandoned,
}

impl Navigation {
    /// Plans the move to an entry.
    pub fn plan(log: &SessionLog, target: EntryIx) -> Self {
        let old_leaf = log.stands_at();
        let target = log.stands_for(target);
        let typed = target
            .filter(|target| Some(*target) != old_leaf)
            .and_then(|target| Some((target, typed_text(log, target)?)));
        let (new_leaf, editor_text) = match typed {
            Some((target, text)) => (before(log, target), Some(text)),
            None => (target, None),
        };
        Self {
            target,
            old_leaf,
            new_leaf,
            editor_text,
            abandoned: Abandoned::between(log, old_leaf, new_leaf),
        }
    }

    /// Whether the session stands at the target already: nothing happens then, and no hook runs.
    pub fn is_at_target(&self) -> bool {
        self.target == self.old_leaf
    }

    /// The new leaf, for the functions of the session model.
    pub fn destination(&self, log: &SessionLog) -> Leaf {
        self.new_leaf
            .map_or(Leaf::BeforeFirst, |leaf| Leaf::Entry(log.entry_id(leaf)))
    }

    /// The move without a summary: the entry to append. `None` if the session stands there already (D15).
    pub fn move_leaf(&self, log: &SessionLog) -> Option<Append> {
        // The destination was found in this log.
        log.move_leaf(&self.destination(log)).ok().flatten()
    }

    /// The move with a summary of what is left: a child of the new leaf that names the old one (R19, FB-093).
    /// `details` is JSON of an object.
    pub fn with_summary(
        &self,
        log: &SessionLog,
        summary: &str,
        details: Option<&str>,
        author: Author,
    ) -> Option<Append> {
        log.branch_with_summary(&self.destination(log), summary, details, author)
            .ok()
    }
}

/// The text of an entry that a user typed, or a program in the user's place; `None` for any other entry.
fn typed_text(log: &SessionLog, ix: EntryIx) -> Option<String> {
    match log.entry(ix).ok()?.body {
        EntryBody::Message(message) => match *message {
            Message::User(user) => Some(joined(&user.content)),
            _ => None,
        },
        EntryBody::CustomMessage(message) => Some(joined(&message.content)),
        _ => None,
    }
}

fn joined(content: &Content<'_>) -> String {
    content.texts().collect()
}

/// Where the session stood before an entry was added.
fn before(log: &SessionLog, ix: EntryIx) -> Option<EntryIx> {
    log.parent_id(ix)
        .and_then(|parent| log.find(parent))
        .and_then(|parent| log.stands_for(parent))
}
