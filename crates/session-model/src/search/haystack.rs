//! The pass over raw bytes: how often each term may stand in each entry.

use super::{Form, Needles, Query};
use crate::log::SessionLog;

/// An entry's length counts up to this many bytes.
pub const LENGTH_CAP: u64 = 64 << 10;
/// Bytes that are folded and searched at a time: they stay in the fastest cache.
const WINDOW: usize = 16 << 10;

/// What a pass over one log, or over one text, found.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub(super) documents: u64,
    pub(super) bytes: u64,
    /// For each term the number of documents with it.
    pub(super) frequencies: Vec<u64>,
    pub(super) candidates: Vec<Candidate>,
    /// For each candidate and term, how often the term's letters were found.
    counts: Vec<u32>,
}

/// A document that may hold terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) document: u32,
    pub(super) len: u64,
    pub(super) counted: Counted,
}

/// What the counts of a candidate say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// No term stands there more often.
    AtMost,
    /// Nothing: text of it stands elsewhere, or in escapes.
    Unknown,
}

impl Scan {
    /// The counts of a candidate, one for each term.
    pub(super) fn counts(&self, candidate: usize) -> &[u32] {
        let terms = self.frequencies.len();
        self.counts
            .get(candidate * terms..(candidate + 1) * terms)
            .unwrap_or_default()
    }

    /// Whether no document can hold a term.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    fn of(query: &Query) -> Self {
        Self {
            frequencies: vec![0; query.terms.len()],
            ..Self::default()
        }
    }

    fn add(&mut self, document: u32, len: u64) -> usize {
        let terms = self.frequencies.len();
        self.counts.resize(self.counts.len() + terms, 0);
        self.candidates.push(Candidate {
            document,
            len: len.min(LENGTH_CAP),
            counted: Counted::AtMost,
        });
        self.candidates.len() - 1
    }

    fn count(&mut self, candidate: usize, term: usize) {
        let at = candidate * self.frequencies.len() + term;
        if let Some(count) = self.counts.get_mut(at) {
            if *count == 0 {
                self.frequencies[term] += 1;
            }
            *count = count.saturating_add(1);
        }
    }
}

/// A byte as it is searched for: letters lose their case, and some other bytes fall together.
pub(super) const fn folded(byte: u8) -> u8 {
    byte | 0x20
}

impl Query {
    /// Looks through a log. The documents of the scan are its entries by their position.
    pub fn scan(&self, log: &SessionLog) -> Scan {
        let mut scan = Scan::of(self);
        if self.is_empty() {
            return scan;
        }
        for head in log.heads().iter().filter(|head| head.kind.may_be_visible()) {
            scan.documents += 1;
            scan.bytes += u64::from(head.len).min(LENGTH_CAP);
        }
        let mut found = Documents {
            log,
            candidate_of: vec![u32::MAX; log.len()],
            scan,
        };
        for ix in log.patched_entries() {
            found.unknown(ix.index());
        }
        let bytes = log.bytes();
        let mut window = Window::new(self);
        let mut first = 0;
        while window.next(bytes) {
            first = found.entry_at(first, window.start);
            let mut entry = first;
            window.find(&self.needles, bytes, Form::Json, |term, at| {
                entry = found.entry_at(entry, at);
                found.count(entry, at, term);
            });
            let mut entry = first;
            window.find_escapes(&self.needles, bytes, |at| {
                entry = found.entry_at(entry, at);
                if found.holds(entry, at) {
                    found.unknown(entry);
                }
            });
        }
        found.scan
    }

    /// Looks through a text that is one document, number 0: an original that is stored beside a session.
    pub fn scan_text(&self, text: &str) -> Scan {
        let mut scan = Scan::of(self);
        if self.is_empty() {
            return scan;
        }
        scan.documents = 1;
        scan.bytes = (text.len() as u64).min(LENGTH_CAP);
        let mut window = Window::new(self);
        let mut candidate = None;
        while window.next(text.as_bytes()) {
            window.find(&self.needles, text.as_bytes(), Form::Plain, |term, _| {
                let candidate = *candidate.get_or_insert_with(|| scan.add(0, text.len() as u64));
                scan.count(candidate, term);
            });
        }
        scan
    }
}

/// Which entry a place belongs to, and what was found in it.
struct Documents<'l> {
    log: &'l SessionLog,
    /// For each entry its candidate, or the largest number.
    candidate_of: Vec<u32>,
    scan: Scan,
}

impl Documents<'_> {
    /// The first entry from `entry` on that does not end before a place.
    fn entry_at(&self, entry: usize, at: usize) -> usize {
        let heads = self.log.heads().get(entry..).unwrap_or_default();
        let ended = heads.iter().take_while(|head| {
            let end = head.start + u64::from(head.len);
            end <= at as u64
        });
        entry + ended.count()
    }

    /// Whether the place is in the entry, and the entry in the search.
    fn holds(&self, entry: usize, at: usize) -> bool {
        let head = self.log.heads().get(entry);
        head.is_some_and(|head| head.start <= at as u64 && head.kind.may_be_visible())
    }

    fn count(&mut self, entry: usize, at: usize, term: usize) {
        if self.holds(entry, at) {
            let candidate = self.candidate(entry);
            self.scan.count(candidate, term);
        }
    }

    fn unknown(&mut self, entry: usize) {
        let candidate = self.candidate(entry);
        if let Some(candidate) = self.scan.candidates.get_mut(candidate) {
            candidate.counted = Counted::Unknown;
        }
    }

    fn candidate(&mut self, entry: usize) -> usize {
        let len = self.log.heads().get(entry).map_or(0, |head| u64::from(head.len));
        let Some(slot) = self.candidate_of.get_mut(entry) else {
            return usize::MAX;
        };
        if *slot == u32::MAX {
            let document = u32::try_from(entry).unwrap_or(u32::MAX);
            *slot = u32::try_from(self.scan.add(document, len)).unwrap_or(u32::MAX);
        }
        *slot as usize
    }
}

/// A part of the haystack, folded.
struct Window {
    start: usize,
    next: usize,
    folded: Vec<u8>,
    len: usize,
    /// How far finds that begin in this window reach into the next one.
    reach: usize,
}

impl Window {
    fn new(query: &Query) -> Self {
        let reach = query.needles.longest;
        Self {
            start: 0,
            next: 0,
            folded: vec![0; WINDOW + reach],
            len: 0,
            reach,
        }
    }

    /// Goes on to the next part; `false` at the end.
    fn next(&mut self, bytes: &[u8]) -> bool {
        self.start = self.next;
        self.next = self.start + WINDOW;
        let Some(rest) = bytes.get(self.start..).filter(|rest| !rest.is_empty()) else {
            return false;
        };
        self.len = rest.len().min(WINDOW + self.reach);
        for (to, from) in self.folded.iter_mut().zip(rest) {
            *to = folded(*from);
        }
        true
    }

    /// Calls `found` with each term that stands somewhere, and the place of its needle.
    fn find(&self, needles: &Needles, bytes: &[u8], form: Form, mut found: impl FnMut(usize, usize)) {
        let folded = self.folded.get(..self.len).unwrap_or_default();
        let mut from = 0;
        while let Some((at, needle)) = needles.finder.find(folded, from) {
            if at >= WINDOW {
                break;
            }
            // Needles may overlap, and so may terms.
            from = at + 1;
            let at = self.start + at;
            let checks = needles.checks.get(needle).map(|checks| &checks[form as usize]);
            for check in checks.into_iter().flatten() {
                if check.holds(bytes, at) {
                    found(check.term, at);
                }
            }
        }
    }

    /// Places of `\u` escapes that are no control characters, which every writer escapes.
    fn find_escapes(&self, needles: &Needles, bytes: &[u8], mut found: impl FnMut(usize)) {
        let end = (self.next + 1).min(bytes.len());
        let window = bytes.get(self.start..end).unwrap_or_default();
        for at in needles.escape.find_iter(window) {
            let digits = bytes
                .get(self.start + at + 2..self.start + at + 6)
                .unwrap_or_default();
            let is_escape = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
            if is_escape && !matches!(digits, [b'0', b'0', b'0' | b'1', _]) {
                found(self.start + at);
            }
        }
    }
}
