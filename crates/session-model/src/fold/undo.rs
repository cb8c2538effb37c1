//! Undoing a compaction or a prune (D15).

use super::{Context, PRUNE_TYPE};
use crate::entry::{EntryBody, EntryKind};
use crate::tree::Append;
use crate::{EntryDraft, EntryId, EntryIx};

/// How the newest compaction or prune of a context is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan changes nothing until it is committed"]
pub struct Undo {
    /// What is undone.
    pub target: EntryId,
    /// A leaf move to the target's parent, if nothing that the model sees came after it; otherwise a revocation, and
    /// the later turns stay.
    pub append: Append,
}

impl Context<'_> {
    /// Undoes the newest of what made this context smaller: its active compaction, or a prune after it that still
    /// holds. `None`: there is nothing to undo.
    pub fn undo(&self) -> Option<Undo> {
        let (at, target) = self
            .path
            .iter()
            .copied()
            .enumerate()
            .rev()
            .find(|(_, ix)| Some(*ix) == self.compaction || self.masks_something(*ix))?;
        // Items stand in the order of the path, so the newest visible one decides.
        let newest = self.items.iter().rev().find(|item| item.message.is_visible());
        let after = self.path.get(at + 1..).unwrap_or_default();
        let seen_after = newest.is_some_and(|item| after.contains(&item.source));
        let target = self.log.entry_id(target);
        let append = if seen_after {
            Append {
                parent: self.leaf.map(|ix| self.log.entry_id(ix)),
                draft: EntryDraft::revocation(&target),
            }
        } else {
            let parent = at.checked_sub(1).and_then(|before| self.path.get(before));
            Append {
                parent: parent.map(|ix| self.log.entry_id(*ix)),
                draft: EntryDraft::leaf_move(self.leaf.map(|ix| self.log.entry_id(ix)).as_ref()),
            }
        };
        Some(Undo { target, append })
    }

    /// Whether an entry is a prune, and a result of this context shows one of its notices.
    fn masks_something(&self, ix: EntryIx) -> bool {
        self.log.kind(ix) == EntryKind::Custom
            && matches!(
                self.log.entry(ix).map(|entry| entry.body),
                Ok(EntryBody::Custom(custom)) if custom.custom_type == PRUNE_TYPE
            )
            && self
                .items
                .iter()
                .any(|item| matches!(item.masked, super::Masked::ByEntry { mask, .. } | super::Masked::Pictures { mask, .. } if mask == ix))
    }
}
