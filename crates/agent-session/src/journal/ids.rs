//! Ids that no entry has.

use std::hash::BuildHasher as _;

use foldline_session_model::EntryId;
use foldline_session_model::log::{Extent, SessionLog};
use rustc_hash::{FxBuildHasher, FxHashSet};

/// Which ids are taken.
#[derive(Debug)]
pub(super) enum Taken {
    /// Those with these hashes.
    Hashes(FxHashSet<u64>),
    /// Nobody knows: the beginning of the file was not read.
    Unknown,
}

impl Taken {
    pub(super) fn of(log: &SessionLog) -> Self {
        match log.extent() {
            Extent::Whole => Self::Hashes(log.entries().map(|ix| hash(log.id(ix))).collect()),
            Extent::Tail { .. } => Self::Unknown,
        }
    }

    pub(super) fn add(&mut self, ids: &[EntryId]) {
        if let Self::Hashes(hashes) = self {
            hashes.extend(ids.iter().map(|id| hash(id.as_str())));
        }
    }

    /// An id that no entry has. Where that cannot be known, longer ones make sure.
    pub(super) fn fresh(&self, group: &[EntryId]) -> EntryId {
        match self {
            Self::Hashes(hashes) => {
                fresh_id(|id| hashes.contains(&hash(id)) || group.iter().any(|own| own.as_str() == id))
            }
            Self::Unknown => EntryId::from(uuid::Uuid::now_v7().simple().to_string()),
        }
    }
}

fn hash(id: &str) -> u64 {
    FxBuildHasher.hash_one(id)
}

/// A new id of 8 hexadecimal digits that is not taken, as pi makes them.
pub(super) fn fresh_id(taken: impl Fn(&str) -> bool) -> EntryId {
    for _ in 0..100 {
        let id = uuid::Uuid::new_v4().simple().to_string();
        if let Some(id) = id.get(..8).filter(|id| !taken(id)) {
            return id.into();
        }
    }
    EntryId::from(uuid::Uuid::new_v4().simple().to_string())
}
