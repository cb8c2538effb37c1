//! In which order entries are drawn, and what hangs where.
//!
//! From every entry one child goes straight on: the one on the active path, or else the one with the most entries below
//! it. The others are branches beside it. So the active path never moves to the right, and a branch lies at most as deep
//! as the logarithm of the number of entries. A move of the leaf is no place of its own: what follows it hangs where it
//! moved to.

use foldline_session_model::EntryIx;
use foldline_session_model::log::{Parent, SessionLog};

/// A tree as lines of entries that go straight on.
pub(in crate::commands) struct Outline {
    /// Parent and child, sorted.
    links: Vec<(EntryIx, EntryIx)>,
    /// By entry: the child that goes straight on.
    onward: Vec<Option<EntryIx>>,
    /// The first entries, in file order.
    roots: Vec<EntryIx>,
    tips: usize,
}

impl Outline {
    pub(in crate::commands) fn of(log: &SessionLog, active: &[bool]) -> Self {
        let places: Vec<EntryIx> = log
            .entries()
            .filter(|ix| log.stands_for(*ix) == Some(*ix))
            .collect();
        let mut outline = Self {
            links: Vec::with_capacity(places.len()),
            onward: vec![None; log.len()],
            roots: Vec::new(),
            tips: 0,
        };
        for &ix in &places {
            let parent = match log.parent(ix) {
                Parent::Entry(parent) if parent != ix => log.stands_for(parent),
                _ => None,
            };
            match parent {
                Some(parent) => outline.links.push((parent, ix)),
                None => outline.roots.push(ix),
            }
        }
        outline.links.sort_unstable();
        let order = outline.order(&places, log.len());
        outline.choose(&order, active);
        outline.tips = places.iter().filter(|ix| outline.onward(**ix).is_none()).count();
        outline
    }

    pub(in crate::commands) fn roots(&self) -> &[EntryIx] {
        &self.roots
    }

    /// The child that goes straight on.
    pub(in crate::commands) fn onward(&self, ix: EntryIx) -> Option<EntryIx> {
        self.onward.get(ix.index()).copied().flatten()
    }

    /// The children that do not, in file order.
    pub(in crate::commands) fn beside(&self, ix: EntryIx) -> impl DoubleEndedIterator<Item = EntryIx> {
        let onward = self.onward(ix);
        self.children(ix).filter(move |child| Some(*child) != onward)
    }

    /// How many lines there are: entries without a child.
    pub(in crate::commands) fn tips(&self) -> usize {
        self.tips
    }

    /// Children that were not made roots.
    fn children(&self, ix: EntryIx) -> impl DoubleEndedIterator<Item = EntryIx> {
        let from = self.links.partition_point(|(parent, _)| *parent < ix);
        let rest = self.links.get(from..).unwrap_or_default();
        let count = rest.partition_point(|(parent, _)| *parent == ix);
        let children = rest
            .get(..count)
            .unwrap_or_default()
            .iter()
            .map(|(_, child)| *child);
        children.filter(|child| self.roots.binary_search(child).is_err())
    }

    /// Every entry after its parent. Parents in a circle are reached from no root: the circle is cut at its first entry
    /// in the file, which becomes a root.
    fn order(&mut self, places: &[EntryIx], count: usize) -> Vec<EntryIx> {
        let (mut order, mut met) = (Vec::with_capacity(places.len()), vec![false; count]);
        for root in self.roots.clone() {
            self.walk(root, &mut met, &mut order);
        }
        if order.len() < places.len() {
            for &ix in places {
                if met.get(ix.index()) == Some(&false) {
                    self.walk(ix, &mut met, &mut order);
                    let at = self.roots.partition_point(|root| *root < ix);
                    self.roots.insert(at, ix);
                }
            }
        }
        order
    }

    fn walk(&self, from: EntryIx, met: &mut [bool], order: &mut Vec<EntryIx>) {
        let mut open = vec![from];
        while let Some(ix) = open.pop() {
            match met.get_mut(ix.index()) {
                Some(met) if !*met => *met = true,
                _ => continue,
            }
            order.push(ix);
            open.extend(self.children(ix));
        }
    }

    /// Chooses the child that goes straight on. Backward in `order`, so that every size is complete when it is used.
    fn choose(&mut self, order: &[EntryIx], active: &[bool]) {
        let mut size = vec![1_u32; self.onward.len()];
        for &ix in order.iter().rev() {
            let rank = |child: &EntryIx| {
                let on_path = active.get(child.index()).copied().unwrap_or_default();
                (on_path, size.get(child.index()).copied().unwrap_or_default())
            };
            let best = self.children(ix).max_by_key(rank);
            let below: u32 = self
                .children(ix)
                .map(|child| size.get(child.index()).copied().unwrap_or_default())
                .fold(1, u32::saturating_add);
            if let (Some(own), Some(onward)) = (size.get_mut(ix.index()), self.onward.get_mut(ix.index())) {
                *own = below;
                *onward = best;
            }
        }
    }
}
