//! Calls by their ids.

use std::hash::BuildHasher;

use foldline_session_model::message::{Message, ToolCall};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;

use crate::view::View;

/// The calls of a view by id. The last definition of an id wins. The ids stay where they are: the table of a long
/// session is to be small.
pub(crate) struct Calls<'v>(HashTable<&'v ToolCall<'v>>);

impl<'v> Calls<'v> {
    pub(crate) fn of(view: &View<'v>) -> Self {
        let mut calls = Self::with_capacity(view.items.len() / 2);
        for item in &view.items {
            if let Message::Assistant(message) = item.message {
                for call in message.content.tool_calls() {
                    calls.insert(call);
                }
            }
        }
        calls
    }

    pub(crate) fn with_capacity(calls: usize) -> Self {
        Self(HashTable::with_capacity(calls))
    }

    /// Adds a call in place of one with the same id. Whether there was none.
    pub(crate) fn insert(&mut self, call: &'v ToolCall<'v>) -> bool {
        match self.0.entry(
            hash(&call.id),
            |known| known.id == call.id,
            |known| hash(&known.id),
        ) {
            Entry::Occupied(mut known) => {
                *known.get_mut() = call;
                false
            }
            Entry::Vacant(place) => {
                place.insert(call);
                true
            }
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&'v ToolCall<'v>> {
        self.0.find(hash(id), |call| call.id == id).copied()
    }
}

fn hash(id: &str) -> u64 {
    FxBuildHasher.hash_one(id)
}
