//! The tree that the entries of a log form: paths, children, common ancestors (spec "Session model", 4).

mod fork;
mod labels;
mod name;
mod plan;
#[cfg(test)]
mod tests;

use crate::log::{Parent, SessionLog};
use crate::{EntryId, EntryIx};

pub use fork::ForkError;
pub use labels::{LabelOf, Labels};
pub use name::SessionName;
pub use plan::Append;

/// Heads that are read ahead on the way to the root.
const HEADS_TOGETHER: usize = 32;

/// Which entry a reader stands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Leaf {
    /// The last record of the file that is an entry.
    #[default]
    Last,
    /// Before the first entry: the context is empty.
    BeforeFirst,
    /// This entry.
    Entry(EntryId),
}

/// The log has no entry with this id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {id} not found")]
pub struct EntryNotFound {
    /// The id.
    pub id: EntryId,
}

impl SessionLog {
    /// The entry that a leaf means; `None` before the first entry.
    ///
    /// # Errors
    /// [`EntryNotFound`] for an id that no entry has.
    pub fn resolve(&self, leaf: &Leaf) -> Result<Option<EntryIx>, EntryNotFound> {
        match leaf {
            Leaf::Last => Ok(self.leaf()),
            Leaf::BeforeFirst => Ok(None),
            Leaf::Entry(id) => self
                .find(id.as_str())
                .map(Some)
                .ok_or_else(|| EntryNotFound { id: id.clone() }),
        }
    }

    /// The entries from the root to `leaf`, both included. A missing parent ends the path, and so does an entry
    /// that was already met.
    pub fn path(&self, leaf: EntryIx) -> Vec<EntryIx> {
        let mut path = Vec::new();
        let mut at = Some(leaf);
        // Parents stand before their children in nearly every file, and a walk that only goes to smaller positions
        // meets nothing twice. From the first step back on, every entry is remembered.
        let mut met: Option<rustc_hash::FxHashSet<EntryIx>> = None;
        while let Some(ix) = at {
            if met.is_none() && path.last().is_some_and(|before| ix >= *before) {
                met = Some(path.iter().copied().collect());
            }
            if met.as_mut().is_some_and(|met| !met.insert(ix)) {
                break;
            }
            if path.len() % HEADS_TOGETHER == 0 {
                self.fetch_heads(ix, HEADS_TOGETHER);
            }
            path.push(ix);
            at = match self.parent(ix) {
                Parent::Entry(parent) => Some(parent),
                Parent::Root | Parent::Missing => None,
            };
        }
        path.reverse();
        path
    }

    /// The children of every entry, and the roots, each in file order.
    pub fn children(&self) -> Children {
        let mut first = vec![0_u32; self.len() + 1];
        let mut parents = Vec::with_capacity(self.len());
        let mut roots = Vec::new();
        for ix in self.entries() {
            // A copy of an id that comes again later is no parent, but it is a child.
            let parent = match self.parent(ix) {
                Parent::Entry(parent) if parent != ix => Some(parent),
                _ => None,
            };
            parents.push(parent);
            match parent {
                Some(parent) => first[parent.index() + 1] += 1,
                None => roots.push(ix),
            }
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        let mut next = first.clone();
        let mut list = vec![EntryIx(0); self.len() - roots.len()];
        for (ix, parent) in self.entries().zip(parents) {
            if let Some(parent) = parent {
                let slot = &mut next[parent.index()];
                list[*slot as usize] = ix;
                *slot += 1;
            }
        }
        Children { first, list, roots }
    }

    /// The deepest entry that is on the paths of both, if they share one.
    pub fn common_ancestor(&self, a: EntryIx, b: EntryIx) -> Option<EntryIx> {
        let on_a: rustc_hash::FxHashSet<EntryIx> = self.path(a).into_iter().collect();
        self.path(b).into_iter().rev().find(|ix| on_a.contains(ix))
    }
}

/// Which entries have children, in one allocation for all.
#[derive(Clone, Debug)]
pub struct Children {
    first: Vec<u32>,
    list: Vec<EntryIx>,
    roots: Vec<EntryIx>,
}

impl Children {
    /// The children of an entry, in file order.
    pub fn of(&self, ix: EntryIx) -> &[EntryIx] {
        match (self.first.get(ix.index()), self.first.get(ix.index() + 1)) {
            (Some(&from), Some(&to)) => self.list.get(from as usize..to as usize).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The entries without a parent in the file, in file order.
    pub fn roots(&self) -> &[EntryIx] {
        &self.roots
    }
}
