//! Which entries a context would show, without building it: for those who only ask about some.

use super::apply::{newest_compaction, tail_start};
use super::marks::Marks;
use super::{FoldError, Profile};
use crate::EntryIx;
use crate::log::SessionLog;
use crate::tree::Leaf;

/// What became of an entry in the context at a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is there as it was written, or would be if it said something to a model.
    Kept,
    /// It is there, but a prune put a notice in the place of its content.
    Masked,
    /// A compaction stands for it.
    Folded,
    /// It is on another branch, or was revoked.
    Elsewhere,
}

/// The standing of every entry of a log.
#[derive(Clone, Debug)]
pub struct Standings(Vec<Standing>);

impl Standings {
    /// The standing of one entry.
    pub fn of(&self, ix: EntryIx) -> Standing {
        self.0.get(ix.index()).copied().unwrap_or(Standing::Elsewhere)
    }
}

impl SessionLog {
    /// What became of each entry in the context at `leaf`. Decodes compactions and marks only.
    ///
    /// # Errors
    /// As [`SessionLog::context`].
    pub fn standings(&self, leaf: &Leaf, profile: Profile) -> Result<Standings, FoldError> {
        let leaf = self.resolve(leaf)?;
        let path = leaf.map(|leaf| self.path(leaf)).unwrap_or_default();
        let marks = Marks::on_path(self, &path);
        let (boundary, profile) = newest_compaction(self, &path, &marks, profile)?;
        let boundary = boundary.map(|(at, _, found)| (at, tail_start(self, &path, at, &found, profile)));
        let mut standings = vec![Standing::Elsewhere; self.len()];
        for (at, ix) in path.iter().enumerate() {
            let Some(standing) = standings.get_mut(ix.index()) else {
                continue;
            };
            let older_compaction =
                |own: usize| at < own && self.kind(*ix) == crate::entry::EntryKind::Compaction;
            *standing = match boundary {
                _ if marks.is_revoked(*ix, at) => Standing::Elsewhere,
                Some((own, tail)) if at != own && (at < tail || older_compaction(own)) => Standing::Folded,
                _ if marks.masks.get(ix).is_some_and(|mask| mask.at > at) => Standing::Masked,
                _ => Standing::Kept,
            };
        }
        Ok(Standings(standings))
    }
}
