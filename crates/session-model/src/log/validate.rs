//! What is wrong with the tree: missing parents, cycles, compactions that keep from nowhere.

use super::damage::DamageKind;
use super::{Parent, SessionLog};
use crate::EntryIx;
use crate::entry::{EntryBody, EntryKind};

impl SessionLog {
    /// Adds every damage of the tree. Linear in the number of entries.
    pub(super) fn validate_tree(&mut self) {
        let mut damage = Vec::new();
        let mut state = vec![State::New; self.heads.len()];
        let mut walk: Vec<EntryIx> = Vec::new();
        for start in self.entries() {
            let mut at = Some(start);
            while let Some(ix) = at {
                match state.get(ix.index()) {
                    Some(State::New) => {}
                    Some(State::OnWalk) => {
                        damage.push(self.damage_of(
                            ix,
                            DamageKind::Cycle {
                                id: self.entry_id(ix),
                            },
                        ));
                        break;
                    }
                    _ => break,
                }
                state[ix.index()] = State::OnWalk;
                walk.push(ix);
                at = match self.parent(ix) {
                    Parent::Entry(parent) => Some(parent),
                    Parent::Root => None,
                    Parent::Missing => {
                        let parent = self.parent_id(ix).unwrap_or_default().into();
                        let kind = DamageKind::MissingParent {
                            id: self.entry_id(ix),
                            parent,
                        };
                        damage.push(self.damage_of(ix, kind));
                        None
                    }
                };
            }
            for ix in walk.drain(..) {
                state[ix.index()] = State::Done;
            }
        }
        for ix in self
            .entries()
            .filter(|ix| self.kind(*ix) == EntryKind::Compaction)
        {
            let Ok(EntryBody::Compaction(compaction)) = self.entry(ix).map(|e| e.body) else {
                continue;
            };
            let Some(first_kept) = compaction.first_kept.as_deref() else {
                continue;
            };
            if self.find(first_kept).is_none() {
                let kind = DamageKind::UnknownFirstKept {
                    id: self.entry_id(ix),
                    first_kept: first_kept.into(),
                };
                damage.push(self.damage_of(ix, kind));
            }
        }
        self.damage.extend(damage);
        self.damage.sort_by_key(|d| (d.line, d.offset));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    OnWalk,
    Done,
}
