//! The walk from the leaf to where the context begins. It follows the rules of the fold (`crate::fold`), so that
//! it stops exactly when the fold has all it needs.

use rustc_hash::FxHashSet;

use super::window::Window;
use super::{LoadFully, Met};
use crate::EntryIx;
use crate::entry::{EntryBody, EntryKind};
use crate::fold::{self, Evidence, Profile};
use crate::log::EntryHead;
use crate::log::Header;

#[derive(Debug)]
pub(super) struct Walk {
    profile: Profile,
    evidence: Evidence,
    /// The entries met on the path.
    on_path: FxHashSet<EntryIx>,
    /// Where the walk goes on.
    next: Next,
    /// Ids that a revocation names.
    revoked: FxHashSet<String>,
    goal: Goal,
}

#[derive(Debug)]
enum Next {
    Leaf,
    Parent(String),
    End,
}

#[derive(Debug)]
enum Goal {
    /// No active compaction was met.
    Compaction,
    /// The first kept entry of the active compaction.
    FirstKept(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Everything that the fold needs was met.
    Reached,
    /// The next entry was not met yet.
    Stuck,
}

impl Walk {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            evidence: Evidence::default(),
            on_path: FxHashSet::default(),
            next: Next::Leaf,
            revoked: FxHashSet::default(),
            goal: Goal::Compaction,
        }
    }

    pub(super) fn header(&mut self, header: &Header) {
        self.evidence.header(header);
    }

    /// Walks on as far as the entries that were met allow.
    pub(super) fn go(&mut self, met: &Met, window: &Window) -> Result<Progress, LoadFully> {
        loop {
            let ix = match &self.next {
                Next::End => return Ok(Progress::Reached),
                Next::Leaf if met.heads.is_empty() => return Ok(Progress::Stuck),
                Next::Leaf => EntryIx(0),
                Next::Parent(id) => match met.find(id, window) {
                    Some(ix) => ix,
                    None => return Ok(Progress::Stuck),
                },
            };
            let Some(head) = met.heads.get(ix.index()) else {
                return Ok(Progress::Stuck);
            };
            if !self.on_path.insert(ix) {
                return Err(LoadFully::Cycle);
            }
            self.look(met, window, ix, head)?;
            if matches!(&self.goal, Goal::FirstKept(id) if *id == met.id(ix, window)) {
                self.next = Next::End;
            }
            if matches!(self.next, Next::End) {
                continue;
            }
            self.next = match met.parent_id(head, window) {
                Some(parent) => Next::Parent(parent.to_owned()),
                None => Next::End,
            };
        }
    }

    /// Takes note of what an entry means for the fold.
    fn look(&mut self, met: &Met, window: &Window, ix: EntryIx, head: &EntryHead) -> Result<(), LoadFully> {
        let line = Met::line(head, window);
        if std::str::from_utf8(line).is_err() {
            // It reads with replacements, and only a full load tells of them.
            return Err(LoadFully::BrokenLine);
        }
        let id = met.id(ix, window);
        let parent = met.parent_id(head, window);
        if matches!(
            head.kind,
            EntryKind::Message | EntryKind::CustomMessage | EntryKind::BranchSummary
        ) {
            // The fold decodes these, and reports what it cannot decode.
            return Ok(());
        }
        let entry = crate::entry::decode::entry(line).map_err(|_| LoadFully::BrokenLine)?;
        if crate::head::has_raw_controls(line) || entry.id != id || entry.parent_id.as_deref() != parent {
            return Err(LoadFully::BrokenLine);
        }
        if self.revoked.contains(id) {
            return Ok(());
        }
        self.evidence.entry(head.kind);
        match entry.body {
            EntryBody::Compaction(compaction) if matches!(self.goal, Goal::Compaction) => {
                if parent.is_some() && fold::is_elided(&compaction) {
                    return Ok(());
                }
                self.evidence.compaction();
                let profile = self.evidence.resolve(self.profile);
                if !profile.accepts(&compaction) {
                    return Ok(());
                }
                let keeps_tail = profile.keeps_tail(compaction.preserve_data.as_ref());
                match compaction.first_kept.filter(|_| keeps_tail) {
                    // A first kept entry that is not before the compaction keeps nothing.
                    Some(kept)
                        if met
                            .find(&kept, window)
                            .is_none_or(|ix| !self.on_path.contains(&ix)) =>
                    {
                        self.goal = Goal::FirstKept(kept.into_owned());
                    }
                    _ => self.next = Next::End,
                }
            }
            EntryBody::Custom(custom) => {
                if let Some(target) = fold::revoked_by(&custom) {
                    self.revoked.insert(target);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
