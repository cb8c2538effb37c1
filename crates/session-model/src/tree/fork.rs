//! New sessions from old ones: a fork keeps the whole tree, a branch keeps one path (spec, 4.4 and 4.5; R19).
//!
//! Entries keep their ids and, where nothing has to change, their bytes: so masks, revocations and what a summary
//! refers to keep their meaning. What a branch drops (label entries, which it writes anew) is taken out of the
//! chain: its children get the entry before it as their parent, a `firstKeptEntryId` that names it moves on to the
//! next entry, and a `fromId` that is not on the path moves back to the nearest entry that is.

#[cfg(test)]
mod tests;

use rustc_hash::FxHashSet;

use super::{EntryNotFound, Leaf};
use crate::entry::{EntryBody, EntryKind};
use crate::json::splice::{self, Edit};
use crate::json::write_string;
use crate::log::{Extent, Migration, Parent, SessionLog};
use crate::{EntryDraft, EntryId, EntryIx, Envelope, HeaderDraft};

/// Why a session could not be forked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The leaf is not in the log.
    #[error(transparent)]
    LeafNotFound(#[from] EntryNotFound),
    /// Only the end of the file was read.
    #[error("the session was read from its end; load all of it first")]
    NotWhole,
    /// The version is unknown, so its meaning cannot be kept.
    #[error("the session has an unknown version")]
    ForeignVersion,
}

impl SessionLog {
    /// A new session with all entries of this one, standing at `leaf`. `mint` gives new ids.
    ///
    /// # Errors
    /// [`ForkError`].
    pub fn fork(
        &self,
        leaf: &Leaf,
        header: &HeaderDraft,
        mint: &mut dyn FnMut() -> EntryId,
    ) -> Result<Vec<u8>, ForkError> {
        let leaf = self.ready_to_fork(leaf)?;
        let mut out = Lines::new(header);
        for ix in self.entries() {
            out.push(&self.written_line(ix));
        }
        if leaf != self.leaf() {
            let envelope = Envelope {
                id: fresh(mint, &|id| self.find(id).is_some()),
                parent: leaf.map(|ix| self.entry_id(ix)),
                timestamp: header.timestamp.clone(),
            };
            let from = self.leaf().map(|ix| self.entry_id(ix));
            out.push(EntryDraft::leaf_move(from.as_ref()).line(&envelope).as_bytes());
        }
        Ok(out.0)
    }

    /// A new session with the path to `leaf`, and the labels of its entries. `mint` gives new ids.
    ///
    /// # Errors
    /// [`ForkError`].
    pub fn branch(
        &self,
        leaf: &Leaf,
        header: &HeaderDraft,
        mint: &mut dyn FnMut() -> EntryId,
    ) -> Result<Vec<u8>, ForkError> {
        let leaf = self.ready_to_fork(leaf)?;
        let path = leaf.map(|leaf| self.path(leaf)).unwrap_or_default();
        let (kept, dropped): (Vec<EntryIx>, Vec<EntryIx>) =
            path.iter().partition(|ix| self.kind(**ix) != EntryKind::Label);
        let on_path: FxHashSet<EntryIx> = kept.iter().copied().collect();
        let mut out = Lines::new(header);
        let mut parent: Option<EntryIx> = None;
        for &ix in &kept {
            let mut edits = Vec::new();
            if self.parent_id(ix) != parent.map(|p| self.id(p)) {
                edits.push(set("parentId", "id", parent.map(|p| self.id(p))));
            }
            if !dropped.is_empty() {
                edits.extend(self.moved_boundary(ix, &path));
            }
            if let Some(from) = self.moved_origin(ix, &on_path) {
                edits.push(set("fromId", "timestamp", Some(from)));
            }
            let line = self.written_line(ix);
            match splice::edit(&line, &edits) {
                Ok(edited) if !edits.is_empty() => out.push(edited.as_bytes()),
                _ => out.push(&line),
            }
            parent = Some(ix);
        }
        let mut used: FxHashSet<String> = kept.iter().map(|ix| self.id(*ix).to_owned()).collect();
        let mut parent = parent.map(|ix| self.entry_id(ix));
        for label in self.labels().labels {
            if !on_path.contains(&label.target) {
                continue;
            }
            let id = fresh(mint, &|id| used.contains(id));
            used.insert(id.as_str().to_owned());
            let envelope = Envelope {
                id: id.clone(),
                parent: parent.replace(id),
                timestamp: self.timestamp(label.set_by).to_owned(),
            };
            let draft = EntryDraft::label(&self.entry_id(label.target), Some(&label.label));
            out.push(draft.line(&envelope).as_bytes());
        }
        Ok(out.0)
    }

    fn ready_to_fork(&self, leaf: &Leaf) -> Result<Option<EntryIx>, ForkError> {
        if self.extent() != Extent::Whole {
            return Err(ForkError::NotWhole);
        }
        if self.disk_form().migration == Migration::ReadOnly {
            return Err(ForkError::ForeignVersion);
        }
        Ok(self.resolve(leaf)?)
    }

    /// For a compaction that keeps from a dropped label: the entry after it that stays.
    fn moved_boundary(&self, ix: EntryIx, path: &[EntryIx]) -> Option<Edit<'static>> {
        if self.kind(ix) != EntryKind::Compaction {
            return None;
        }
        let Ok(EntryBody::Compaction(compaction)) = self.entry(ix).map(|entry| entry.body) else {
            return None;
        };
        let kept = self.find(&compaction.first_kept?)?;
        if self.kind(kept) != EntryKind::Label {
            return None;
        }
        let at = path.iter().position(|on_path| *on_path == kept)?;
        let mut rest = path.get(at..)?.iter().take_while(|on_path| **on_path != ix);
        let next = rest
            .find(|on_path| self.kind(**on_path) != EntryKind::Label)
            .map(|next| self.id(*next));
        Some(set("firstKeptEntryId", "summary", next))
    }

    /// For a branch summary that comes from an entry that is left out: the nearest entry before that one that stays.
    fn moved_origin(&self, ix: EntryIx, on_path: &FxHashSet<EntryIx>) -> Option<&str> {
        if self.kind(ix) != EntryKind::BranchSummary {
            return None;
        }
        let Ok(EntryBody::BranchSummary(summary)) = self.entry(ix).map(|entry| entry.body) else {
            return None;
        };
        let mut at = self.find(&summary.from_id)?;
        if on_path.contains(&at) {
            return None;
        }
        let mut met = FxHashSet::default();
        while met.insert(at) {
            match self.parent(at) {
                Parent::Entry(parent) if on_path.contains(&parent) => return Some(self.id(parent)),
                Parent::Entry(parent) => at = parent,
                Parent::Root | Parent::Missing => break,
            }
        }
        Some("root")
    }
}

/// The lines of a new file.
struct Lines(Vec<u8>);

impl Lines {
    fn new(header: &HeaderDraft) -> Self {
        let mut lines = Self(Vec::new());
        lines.push(header.line().as_bytes());
        lines
    }

    fn push(&mut self, line: &[u8]) {
        self.0.extend_from_slice(line);
        self.0.push(b'\n');
    }
}

fn set<'e>(key: &'e str, after: &'e str, value: Option<&str>) -> Edit<'e> {
    let mut json = String::new();
    match value {
        Some(value) => write_string(&mut json, value),
        None => json.push_str("null"),
    }
    Edit::Set { key, json, after }
}

/// A minted id that is not taken. A generator that repeats itself gets a suffix.
fn fresh(mint: &mut dyn FnMut() -> EntryId, taken: &dyn Fn(&str) -> bool) -> EntryId {
    let mut id = mint();
    for n in 1_u64.. {
        if !taken(id.as_str()) {
            break;
        }
        id = if n <= 100 {
            mint()
        } else {
            EntryId::from(format!("{id}-{n}"))
        };
    }
    id
}
