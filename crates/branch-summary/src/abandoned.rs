//! The common ancestor of two leaves, and what lies between it and the one that is left (spec "Compaction core", 15.1).

use foldline_session_model::EntryIx;
use foldline_session_model::log::{Parent, SessionLog};
use rustc_hash::FxHashSet;

#[cfg(test)]
mod tests;

/// The entries that a move from one leaf to another leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// The path to the leaf that is left.
    path: Vec<EntryIx>,
    /// Where on it the abandoned entries begin.
    from: usize,
}

impl Abandoned {
    /// What is on the path to `old` and not on the path to `new`. `None` is the place before the first entry.
    ///
    /// Linear in the two paths. Compactions are crossed and included; a missing parent ends a path.
    pub fn between(log: &SessionLog, old: Option<EntryIx>, new: Option<EntryIx>) -> Self {
        let path = old.map(|leaf| log.path(leaf)).unwrap_or_default();
        let other = new.map(|leaf| log.path(leaf)).unwrap_or_default();
        let from = shared(log, &path, &other);
        Self { path, from }
    }

    /// The abandoned entries, oldest first.
    pub fn entries(&self) -> &[EntryIx] {
        self.path.get(self.from..).unwrap_or_default()
    }

    /// The newest entry that both paths share.
    pub fn common_ancestor(&self) -> Option<EntryIx> {
        self.from
            .checked_sub(1)
            .and_then(|before| self.path.get(before))
            .copied()
    }

    /// The path to the leaf that is left, from its root.
    pub fn path(&self) -> &[EntryIx] {
        &self.path
    }

    /// Where on [`path`](Self::path) the abandoned entries begin.
    pub fn start(&self) -> usize {
        self.from
    }
}

/// How many entries at the start of `path` belong to `other` too.
fn shared(log: &SessionLog, path: &[EntryIx], other: &[EntryIx]) -> usize {
    // Every entry has one parent, so two paths are equal up to where they part.
    let same = path.iter().zip(other).take_while(|(a, b)| a == b).count();
    if same > 0 || !runs_in_a_circle(log, path) {
        return same;
    }
    // Parents of a damaged file can form a circle; a path then begins wherever it was entered.
    let other: FxHashSet<EntryIx> = other.iter().copied().collect();
    path.iter()
        .rposition(|ix| other.contains(ix))
        .map_or(0, |at| at + 1)
}

fn runs_in_a_circle(log: &SessionLog, path: &[EntryIx]) -> bool {
    path.first()
        .is_some_and(|first| matches!(log.parent(*first), Parent::Entry(_)))
}
