//! From ids to entries.

use std::hash::Hasher as _;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;

use super::EntryHead;
use crate::EntryIx;

/// A table of entry positions by id. The ids themselves stay in the log, and their hashes in its heads.
#[derive(Debug, Default)]
pub(crate) struct IdIndex {
    table: HashTable<u32>,
    duplicates: bool,
}

impl IdIndex {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            table: HashTable::with_capacity(count),
            duplicates: false,
        }
    }

    /// Adds an entry, whose head is in `heads`. Returns the earlier entry with the same id, which is no longer found.
    #[inline]
    pub(crate) fn insert<'a>(
        &mut self,
        ix: EntryIx,
        heads: &[EntryHead],
        id: impl Fn(&EntryHead) -> &'a str,
    ) -> Option<EntryIx> {
        match self.slot(ix, heads, id) {
            Entry::Occupied(mut slot) => {
                let earlier = std::mem::replace(slot.get_mut(), ix.0);
                self.duplicates = true;
                Some(EntryIx(earlier))
            }
            Entry::Vacant(slot) => {
                slot.insert(ix.0);
                None
            }
        }
    }

    /// Adds an entry unless there is one with its id.
    pub(crate) fn insert_first<'a>(
        &mut self,
        ix: EntryIx,
        heads: &[EntryHead],
        id: impl Fn(&EntryHead) -> &'a str,
    ) {
        if let Entry::Vacant(slot) = self.slot(ix, heads, id) {
            slot.insert(ix.0);
        }
    }

    #[inline]
    fn slot<'a>(
        &mut self,
        ix: EntryIx,
        heads: &[EntryHead],
        id: impl Fn(&EntryHead) -> &'a str,
    ) -> Entry<'_, u32> {
        let own = hash_at(heads, ix.0);
        let id = |ix: u32| heads.get(ix as usize).map_or("", &id);
        self.table.entry(
            spread(own),
            |&other| hash_at(heads, other) == own && id(other) == id(ix.0),
            |&other| spread(hash_at(heads, other)),
        )
    }

    pub(crate) fn find<'a>(
        &self,
        wanted: &str,
        heads: &[EntryHead],
        id: impl Fn(&EntryHead) -> &'a str,
    ) -> Option<EntryIx> {
        let own = hash(wanted.as_bytes());
        let found = self.table.find(spread(own), |&ix| {
            heads
                .get(ix as usize)
                .is_some_and(|head| head.id_hash == own && id(head) == wanted)
        });
        found.map(|&ix| EntryIx(ix))
    }

    pub(crate) fn has_duplicates(&self) -> bool {
        self.duplicates
    }
}

/// The hash of an id. Half of what the hasher gives is enough for as many entries as a log can hold.
#[inline]
pub(super) fn hash(id: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(id);
    (hasher.finish() >> 32) as u32
}

#[inline]
fn hash_at(heads: &[EntryHead], ix: u32) -> u32 {
    heads.get(ix as usize).map_or(0, |head| head.id_hash)
}

/// The table looks at the lowest and the highest bits of a hash of 64 bits.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
