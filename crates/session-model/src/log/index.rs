//! From ids to entries.

use std::hash::Hasher as _;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;

use crate::EntryIx;

/// A table of entry positions by id. The ids themselves stay in the log.
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

    /// Adds an entry. Returns the earlier entry with the same id, which is no longer found.
    pub(crate) fn insert<'a>(&mut self, ix: EntryIx, id: impl Fn(EntryIx) -> &'a str) -> Option<EntryIx> {
        let own = id(ix);
        let found = self.table.entry(
            hash(own),
            |&other| id(EntryIx(other)) == own,
            |&other| hash(id(EntryIx(other))),
        );
        match found {
            Entry::Occupied(mut slot) => {
                self.duplicates = true;
                Some(EntryIx(std::mem::replace(slot.get_mut(), ix.0)))
            }
            Entry::Vacant(slot) => {
                slot.insert(ix.0);
                None
            }
        }
    }

    /// Adds an entry unless there is one with its id.
    pub(crate) fn insert_first<'a>(&mut self, ix: EntryIx, id: impl Fn(EntryIx) -> &'a str) {
        let own = id(ix);
        let found = self.table.entry(
            hash(own),
            |&other| id(EntryIx(other)) == own,
            |&other| hash(id(EntryIx(other))),
        );
        if let Entry::Vacant(slot) = found {
            slot.insert(ix.0);
        }
    }

    pub(crate) fn find<'a>(&self, wanted: &str, id: impl Fn(EntryIx) -> &'a str) -> Option<EntryIx> {
        self.table
            .find(hash(wanted), |&ix| id(EntryIx(ix)) == wanted)
            .map(|&ix| EntryIx(ix))
    }

    pub(crate) fn has_duplicates(&self) -> bool {
        self.duplicates
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(id.as_bytes());
    hasher.finish()
}
