//! Plans that change where a session stands: leaf moves, summaries of branches, labels (D15; spec, 4.2).

use super::{EntryNotFound, Leaf};
use crate::entry::{EntryBody, EntryKind};
use crate::fold::LEAF_TYPE;
use crate::log::{Parent, SessionLog};
use crate::{Author, EntryDraft, EntryId, EntryIx};

/// An entry to append, and under which one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan changes nothing until it is committed"]
pub struct Append {
    /// The entry before it; `None` makes it a root.
    pub parent: Option<EntryId>,
    /// The entry.
    pub draft: EntryDraft,
}

impl SessionLog {
    /// Moves the leaf without a summary. `None`: it stands there already.
    ///
    /// # Errors
    /// [`EntryNotFound`] for an id that no entry has.
    pub fn move_leaf(&self, to: &Leaf) -> Result<Option<Append>, EntryNotFound> {
        let to = self.resolve(to)?;
        if self.stands_at() == to {
            return Ok(None);
        }
        let from = self.stands_at().map(|ix| self.entry_id(ix));
        Ok(Some(Append {
            parent: to.map(|ix| self.entry_id(ix)),
            draft: EntryDraft::leaf_move(from.as_ref()),
        }))
    }

    /// Moves the leaf and leaves a summary of the branch that is left: a child of `to` whose `fromId` is the old leaf
    /// (R19). `details` is JSON of an object.
    ///
    /// # Errors
    /// [`EntryNotFound`] for an id that no entry has.
    pub fn branch_with_summary(
        &self,
        to: &Leaf,
        summary: &str,
        details: Option<&str>,
        author: Author,
    ) -> Result<Append, EntryNotFound> {
        let to = self.resolve(to)?;
        let from = self
            .stands_at()
            .map_or_else(|| EntryId::from("root"), |ix| self.entry_id(ix));
        Ok(Append {
            parent: to.map(|ix| self.entry_id(ix)),
            draft: EntryDraft::branch_summary(summary, &from, details, author),
        })
    }

    /// Sets or, with `None`, clears the label of an entry.
    ///
    /// # Errors
    /// [`EntryNotFound`] if there is no such entry.
    pub fn set_label(&self, target: &EntryId, label: Option<&str>) -> Result<Append, EntryNotFound> {
        self.resolve(&Leaf::Entry(target.clone()))?;
        Ok(Append {
            parent: self.leaf().map(|ix| self.entry_id(ix)),
            draft: EntryDraft::label(target, label),
        })
    }

    /// Where the session stands: its leaf, or, if that is a leaf move, the entry that it moved to. `None` before the
    /// first entry.
    pub fn stands_at(&self) -> Option<EntryIx> {
        self.leaf().and_then(|leaf| self.stands_for(leaf))
    }

    /// The entry that someone means who names this one: itself, or, of a leaf move, the entry that it moved to.
    /// `None` before the first entry.
    pub fn stands_for(&self, ix: EntryIx) -> Option<EntryIx> {
        let mut at = ix;
        // A move goes to a child of another move only in files of other writers. Each step is one up a path, and a
        // path that runs in a circle has no more steps than there are entries.
        for _ in 0..self.len() {
            if !self.is_leaf_move(at) {
                return Some(at);
            }
            match self.parent(at) {
                Parent::Entry(parent) => at = parent,
                Parent::Root | Parent::Missing => return None,
            }
        }
        Some(ix)
    }

    fn is_leaf_move(&self, ix: EntryIx) -> bool {
        self.kind(ix) == EntryKind::Custom
            && memchr::memmem::find(self.raw_line(ix), LEAF_TYPE.as_bytes()).is_some()
            && matches!(
                self.entry(ix).map(|entry| entry.body),
                Ok(EntryBody::Custom(custom)) if custom.custom_type == LEAF_TYPE
            )
    }
}
