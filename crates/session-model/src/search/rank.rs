//! BM25, and the best documents without looking at all of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Query;
use super::haystack::{Candidate, Counted, Scan};
use super::tokens::{Side, each_token};

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// What all documents have in common: sums over the scans of every log and text that is searched.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    documents: u64,
    bytes: u64,
    frequencies: Vec<u64>,
}

/// A document that holds terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The log or text, as the caller numbers them; a higher number is newer.
    pub source: u32,
    /// The document in it; a higher number is newer.
    pub document: u32,
    /// Its score, above 0.
    pub score: f64,
}

/// The best documents so far.
#[derive(Debug)]
pub struct Ranking<'q> {
    pub(super) query: &'q Query,
    /// What one more term of each kind is worth, for rare ones more.
    weights: Vec<f64>,
    mean_len: f64,
    limit: usize,
    /// The best first.
    best: Vec<Found>,
}

impl Totals {
    /// Adds what a scan found.
    pub fn add(&mut self, scan: &Scan) {
        self.documents += scan.documents;
        self.bytes += scan.bytes;
        self.frequencies
            .resize(self.frequencies.len().max(scan.frequencies.len()), 0);
        for (sum, frequency) in self.frequencies.iter_mut().zip(&scan.frequencies) {
            *sum += frequency;
        }
    }
}

impl Found {
    /// The better one first: the higher score, then the newer document.
    fn order(&self, other: &Self) -> Ordering {
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| other.source.cmp(&self.source))
            .then_with(|| other.document.cmp(&self.document))
    }
}

impl<'q> Ranking<'q> {
    /// A ranking of at most `limit` documents. `totals` holds every scan that will be ranked.
    pub fn new(query: &'q Query, totals: &Totals, limit: usize) -> Self {
        let documents = totals.documents as f64;
        let weight = |frequency: &u64| {
            let with = *frequency as f64;
            (1.0 + (documents - with + 0.5) / (with + 0.5)).ln()
        };
        Self {
            query,
            weights: totals.frequencies.iter().map(weight).collect(),
            mean_len: (totals.bytes as f64 / documents.max(1.0)).max(1.0),
            limit,
            best: Vec::new(),
        }
    }

    /// The most that a document of a scan can score; 0 if none can score. Scans with more are worth ranking first.
    pub fn bound(&self, scan: &Scan) -> f64 {
        (0..scan.candidates.len())
            .map(|at| self.bound_of(scan, at))
            .fold(0.0, f64::max)
    }

    /// Whether a document with at most this score could still be among the best.
    pub fn is_open_to(&self, bound: f64) -> bool {
        match self.best.last() {
            Some(worst) if self.best.len() >= self.limit => bound >= worst.score,
            _ => self.limit > 0 && bound > 0.0,
        }
    }

    /// Ranks the documents of a scan. `text` gives what a document says; `None` leaves it out.
    pub fn look_into(&mut self, source: u32, scan: &Scan, text: &mut dyn FnMut(u32) -> Option<String>) {
        let mut queue: BinaryHeap<Bounded> = (0..scan.candidates.len())
            .map(|at| Bounded {
                bound: self.bound_of(scan, at),
                at,
            })
            .collect();
        while let Some(Bounded { bound, at }) = queue.pop() {
            if !self.is_open_to(bound) {
                break;
            }
            let Some(candidate) = scan.candidates.get(at) else {
                break;
            };
            let at_best = Found {
                source,
                document: candidate.document,
                score: bound,
            };
            // Of equal bounds the newest comes first, so what follows cannot do better either.
            if self.is_full()
                && self
                    .best
                    .last()
                    .is_some_and(|worst| worst.order(&at_best).is_lt())
            {
                break;
            }
            let Some(text) = text(candidate.document) else {
                continue;
            };
            let counts = self.exact(&text, scan.counts(at), *candidate);
            let score = self.score(&counts, candidate.len);
            if score > 0.0 {
                self.insert(Found {
                    source,
                    document: candidate.document,
                    score,
                });
            }
        }
    }

    fn is_full(&self) -> bool {
        self.best.len() >= self.limit
    }

    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The best documents, the best first.
    pub fn found(&self) -> &[Found] {
        &self.best
    }

    fn insert(&mut self, found: Found) {
        let at = self.best.partition_point(|other| other.order(&found).is_lt());
        self.best.insert(at, found);
        self.best.truncate(self.limit);
    }

    fn bound_of(&self, scan: &Scan, at: usize) -> f64 {
        match scan.candidates.get(at) {
            None => 0.0,
            Some(candidate) if candidate.counted == Counted::Unknown => f64::INFINITY,
            // The same arithmetic as the score, so equal counts give equal numbers and fewer give a lower one.
            Some(candidate) => self.score(scan.counts(at), candidate.len),
        }
    }

    fn exact(&self, text: &str, at_most: &[u32], candidate: Candidate) -> Vec<u32> {
        let mut counts = vec![0_u32; self.weights.len()];
        each_token(text, Side::Text, &mut |token, _| {
            if let Some(count) = self.query.term(token).and_then(|term| counts.get_mut(term)) {
                *count = count.saturating_add(1);
            }
        });
        if candidate.counted == Counted::AtMost {
            for (count, most) in counts.iter_mut().zip(at_most) {
                *count = (*count).min(*most);
            }
        }
        counts
    }

    fn score(&self, counts: &[u32], len: u64) -> f64 {
        let norm = K1 * (1.0 - B + B * len as f64 / self.mean_len);
        let terms = self.weights.iter().zip(counts);
        terms
            .map(|(weight, count)| {
                let count = f64::from(*count);
                weight * count * (K1 + 1.0) / (count + norm)
            })
            .sum()
    }
}

/// A candidate in the queue: the highest bound first, of equal ones the newest.
struct Bounded {
    bound: f64,
    at: usize,
}

impl Ord for Bounded {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound
            .total_cmp(&other.bound)
            .then_with(|| self.at.cmp(&other.at))
    }
}

impl PartialOrd for Bounded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bounded {}
