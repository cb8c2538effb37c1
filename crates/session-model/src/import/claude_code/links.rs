//! What the `uuid` links of a transcript tell: where the user went back to an earlier point.

use rustc_hash::FxHashMap;

/// The rows of a transcript and the rows that they follow.
pub(super) struct Links<'r> {
    by_uuid: FxHashMap<&'r str, usize>,
    rows: Vec<Link>,
}

#[derive(Clone, Copy, Default)]
struct Link {
    parent: Option<usize>,
    /// The first entry that came from the row.
    entry: Option<usize>,
    /// Where the first prompt below the row stands: the place before it.
    prompt_below: Option<Place>,
}

/// The entry before a prompt; `None` before the first entry.
type Place = Option<usize>;

impl<'r> Links<'r> {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self {
            by_uuid: FxHashMap::default(),
            rows: Vec::with_capacity(rows),
        }
    }

    /// Adds the next row. A parent that did not come yet counts as none.
    pub(super) fn add(&mut self, uuid: Option<&'r str>, parent: Option<&str>) -> usize {
        let at = self.rows.len();
        self.rows.push(Link {
            parent: parent.and_then(|parent| self.by_uuid.get(parent).copied()),
            ..Link::default()
        });
        if let Some(uuid) = uuid {
            self.by_uuid.insert(uuid, at);
        }
        at
    }

    /// Notes the first entry that came from a row.
    pub(super) fn begins_at(&mut self, row: usize, entry: usize) {
        if let Some(link) = self.rows.get_mut(row) {
            link.entry = Some(entry);
        }
    }

    /// The first entry that came from the row with this uuid.
    pub(super) fn entry_of(&self, uuid: &str) -> Option<usize> {
        self.rows.get(*self.by_uuid.get(uuid)?)?.entry
    }

    /// The place that the prompt at `row` goes back to, if it follows a row after which there already was one.
    pub(super) fn rewound_to(&self, row: usize) -> Option<Place> {
        self.rows.get(self.rows.get(row)?.parent?)?.prompt_below
    }

    /// Notes a prompt: all rows that it follows have a prompt below them now. Each row is visited once.
    pub(super) fn prompt(&mut self, row: usize, place: Place) {
        let mut at = self.rows.get(row).and_then(|link| link.parent);
        while let Some(link) = at.and_then(|at| self.rows.get_mut(at)) {
            if link.prompt_below.is_some() {
                break;
            }
            link.prompt_below = Some(place);
            at = link.parent;
        }
    }
}
