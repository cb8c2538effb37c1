//! Labels: names that users give to entries. The last write in the file wins, wherever it stands in the tree
//! (spec, 4.2).

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::EntryIx;
use crate::entry::{EntryBody, EntryKind};
use crate::log::{Extent, SessionLog};

/// The labels of a session.
#[derive(Clone, Debug)]
pub struct Labels<'l> {
    /// In the order of the labelled entries.
    pub labels: Vec<LabelOf<'l>>,
    /// [`Extent::Tail`] if labels before the log's beginning are missing.
    pub extent: Extent,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelOf<'l> {
    /// The labelled entry.
    pub target: EntryIx,
    /// The label; never empty.
    pub label: Cow<'l, str>,
    /// The entry that set it.
    pub set_by: EntryIx,
}

impl<'l> Labels<'l> {
    /// The label of an entry.
    pub fn of(&self, target: EntryIx) -> Option<&str> {
        self.set_at(target).map(|label| &*label.label)
    }

    /// The label of an entry, and what set it.
    pub fn set_at(&self, target: EntryIx) -> Option<&LabelOf<'l>> {
        let at = self.labels.binary_search_by_key(&target, |l| l.target).ok()?;
        self.labels.get(at)
    }
}

impl SessionLog {
    /// The labels that hold. One pass over the heads; only label entries are decoded.
    pub fn labels(&self) -> Labels<'_> {
        let mut by_target: FxHashMap<EntryIx, Option<LabelOf<'_>>> = FxHashMap::default();
        for set_by in self.entries().filter(|ix| self.kind(*ix) == EntryKind::Label) {
            let Ok(EntryBody::Label(entry)) = self.entry(set_by).map(|entry| entry.body) else {
                continue;
            };
            let Some(target) = self.find(&entry.target_id) else {
                continue;
            };
            let label = entry.label.filter(|label| !label.is_empty());
            by_target.insert(
                target,
                label.map(|label| LabelOf {
                    target,
                    label,
                    set_by,
                }),
            );
        }
        let mut labels: Vec<LabelOf<'_>> = by_target.into_values().flatten().collect();
        labels.sort_by_key(|label| label.target);
        Labels {
            labels,
            extent: self.extent(),
        }
    }
}
