//! Search in everything that was ever said: BM25 over the entries of a log, without an index on disk.
//!
//! A [`Query`] scans the raw bytes of a log once for its terms and counts them by entry; nothing is decoded there. The
//! counts bound the score of each entry from above, so that a [`Ranking`] decodes only the entries that can still be
//! among the best. What follows from looking at raw lines first is part of the definition of the score:
//!
//! - A term's document frequency is the number of entries whose line holds its letters in any case, also inside of
//!   longer words. Keys of the format occur in every line, so their names weigh next to nothing as terms.
//! - An entry's length is that of its line in bytes, at most [`LENGTH_CAP`]: a picture is not a long text.
//! - A term counts as often as it stands in the text as a token, and at most as often as its letters stand in the
//!   line. (A line with `\u` escapes of visible characters is decoded in any case.)
//!
//! The score is BM25 with k1 = 1.2 and b = 0.75; of equal scores the newer entry comes first.

mod haystack;
mod rank;
mod snippet;
#[cfg(test)]
mod tests;
mod text;
mod tokens;

use aho_corasick::{AhoCorasick, MatchKind, packed};
use memchr::memmem;

pub use haystack::{LENGTH_CAP, Scan};
pub use rank::{Found, Ranking, Totals};
pub use snippet::Snippet;
pub use text::text_of;
pub use tokens::MAX_TOKEN;

use tokens::{Side, each_token, is_caseless, variants};

/// More terms than this are left out of a query.
const MAX_TERMS: usize = 24;
/// Of a path or name of more words than this, only the last ones are terms beside the whole.
const MAX_WORDS: usize = 3;
/// Words that say nothing beside others.
const COMMON: [&str; 24] = [
    "the", "and", "for", "with", "that", "this", "was", "were", "are", "has", "have", "had", "not", "but",
    "you", "from", "into", "its", "did", "does", "what", "when", "where", "which",
];

/// What is searched for.
#[derive(Debug)]
pub struct Query {
    /// In the order in which they were typed.
    terms: Vec<Box<str>>,
    needles: Needles,
}

/// What the haystack is looked through for: pieces of terms, as few as possible.
#[derive(Debug)]
struct Needles {
    finder: NeedleFinder,
    /// By needle: the terms that a find of it may be a part of, in lines of JSON and in plain text.
    checks: Vec<[Vec<Check>; 2]>,
    /// Bytes of the longest one.
    longest: usize,
    /// Finds the beginning of a `\u` escape.
    escape: memmem::Finder<'static>,
}

/// All needles in one pass.
#[derive(Debug)]
enum NeedleFinder {
    One(memmem::Finder<'static>),
    Few(packed::Searcher),
    /// Where the machine has no fast way for several.
    Any(AhoCorasick),
    None,
}

/// A term around a needle.
#[derive(Debug)]
struct Check {
    term: usize,
    /// Bytes of the term before the needle.
    before: usize,
    /// The term as it stands in the haystack, in any case of its ASCII letters.
    written: Vec<u8>,
    /// Whether other letters have a case too; then they are folded to be compared.
    letters: Letters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letters {
    Ascii,
    Any,
}

impl Check {
    /// Whether the term stands in the haystack around a find of its needle.
    fn holds(&self, haystack: &[u8], needle_at: usize) -> bool {
        let Some(from) = needle_at.checked_sub(self.before) else {
            return false;
        };
        match self.letters {
            Letters::Ascii => haystack
                .get(from..from + self.written.len())
                .is_some_and(|there| there.eq_ignore_ascii_case(&self.written)),
            Letters::Any => {
                let rest = haystack.get(from..).unwrap_or_default();
                // No character takes more than four bytes, and a term has at most one for each of its own.
                let near = rest.get(..4 * self.written.len()).unwrap_or(rest);
                let valid = near.utf8_chunks().next().map_or("", |chunk| chunk.valid());
                let term = String::from_utf8_lossy(&self.written);
                let mut there = valid.chars().map(tokens::fold);
                term.chars().all(|c| there.next() == Some(c))
            }
        }
    }
}

/// How text stands in a haystack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In JSON strings.
    Json = 0,
    /// As it is.
    Plain = 1,
}

impl Form {
    const BOTH: [Self; 2] = [Self::Json, Self::Plain];

    /// How a term is written. Of the characters that terms hold, only a backslash looks different in JSON.
    fn written(self, term: &str) -> Vec<u8> {
        match self {
            Self::Json => term.replace('\\', "\\\\").into_bytes(),
            Self::Plain => term.as_bytes().to_vec(),
        }
    }

    /// How many bytes a part of a term takes.
    fn written_len(self, part: &[u8]) -> usize {
        match self {
            Self::Json => part.len() + memchr::memchr_iter(b'\\', part).count(),
            Self::Plain => part.len(),
        }
    }
}

impl Query {
    /// Reads a query: words, identifiers and paths, in any case. It finds entries with any of its terms; those with
    /// more and rarer ones come first.
    pub fn new(text: &str) -> Self {
        let mut tokens: Vec<(Box<str>, usize)> = Vec::new();
        each_token(text, Side::Query, &mut |token, at| {
            tokens.push((token.into(), at));
        });
        let mut terms: Vec<Box<str>> = Vec::new();
        for (token, at) in &tokens {
            // Parts stand in their whole, which comes after them.
            let whole = tokens.iter().filter(|(other, from)| {
                other.contains(tokens::is_joiner) && *from <= *at && at + token.len() <= from + other.len()
            });
            let is_early = |(whole, from): &(Box<str>, usize)| {
                let ends: Vec<usize> = words_of(whole).collect();
                let kept = ends
                    .len()
                    .checked_sub(MAX_WORDS)
                    .and_then(|early| ends.get(early));
                token.len() < whole.len() && kept.is_some_and(|kept| at - from < *kept)
            };
            if !whole.into_iter().any(is_early) && !terms.contains(token) {
                terms.push(token.clone());
            }
        }
        drop_unless_alone(&mut terms, |term| term.len() < 2);
        drop_unless_alone(&mut terms, |term| term.len() < 3);
        drop_unless_alone(&mut terms, |term| COMMON.contains(&term));
        terms.truncate(MAX_TERMS);
        Self {
            needles: Needles::of(&terms),
            terms,
        }
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms, lower case.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = &str> {
        self.terms.iter().map(|term| &**term)
    }

    /// The term with these letters.
    fn term(&self, token: &str) -> Option<usize> {
        self.terms.iter().position(|term| **term == *token)
    }
}

/// Leaves out what says nothing, if anything else is there.
fn drop_unless_alone(terms: &mut Vec<Box<str>>, says_nothing: impl Fn(&str) -> bool) {
    if !terms.iter().all(|term| says_nothing(term)) {
        terms.retain(|term| !says_nothing(term));
    }
}

/// Where the words of a path or name begin.
fn words_of(whole: &str) -> impl Iterator<Item = usize> + '_ {
    let mut before = true;
    whole.char_indices().filter_map(move |(at, c)| {
        let joiner = tokens::is_joiner(c);
        let begins = before && !joiner;
        before = joiner;
        begins.then_some(at)
    })
}

impl Needles {
    /// Whatever contains the needle of something else shares it, so that no two needles begin at one place.
    fn of(terms: &[Box<str>]) -> Self {
        // What has to stand there, and the part of it that would be its own needle.
        let mut wanted: Vec<(usize, String, String, Letters)> = Vec::new();
        for (term, text) in (0..).zip(terms) {
            if text.chars().all(is_caseless) {
                wanted.push((
                    term,
                    text.to_string(),
                    longest_part(text).to_owned(),
                    Letters::Ascii,
                ));
            } else {
                // Letters beyond ASCII differ in their bytes between the cases: the first two in every combination.
                let starts = beginnings(text).into_iter();
                wanted.extend(starts.map(|start| (term, text.to_string(), start, Letters::Any)));
            }
        }
        wanted.sort_by_key(|(_, _, own, _)| own.len());
        let mut needles: Vec<Vec<u8>> = Vec::new();
        let mut checks: Vec<[Vec<Check>; 2]> = Vec::new();
        for (term, text, own, letters) in wanted {
            let folded = fold_bytes(if letters == Letters::Ascii { &text } else { &own });
            let shared = (0..needles.len())
                .filter_map(|at| Some((at, memmem::find(&folded, &needles[at])?)))
                .max_by_key(|(at, _)| needles[*at].len());
            let (at, before) = shared.unwrap_or_else(|| {
                needles.push(fold_bytes(&own));
                checks.push([Vec::new(), Vec::new()]);
                (needles.len() - 1, text.find(&*own).unwrap_or(0))
            });
            for form in Form::BOTH {
                let written = form.written(&text);
                let grown = form.written_len(text.as_bytes().get(..before).unwrap_or_default());
                let checks = &mut checks[at][form as usize];
                // Two combinations of cases may look the same when folded.
                if !checks
                    .iter()
                    .any(|check| check.term == term && check.before == grown)
                {
                    checks.push(Check {
                        term,
                        before: grown,
                        written,
                        letters,
                    });
                }
            }
        }
        Self {
            longest: needles.iter().map(Vec::len).max().unwrap_or(0),
            finder: NeedleFinder::of(&needles),
            checks,
            escape: memmem::Finder::new(b"\\u"),
        }
    }
}

fn fold_bytes(text: &str) -> Vec<u8> {
    text.bytes().map(haystack::folded).collect()
}

impl NeedleFinder {
    fn of(needles: &[Vec<u8>]) -> Self {
        if let [needle] = needles {
            return Self::One(memmem::Finder::new(needle).into_owned());
        }
        if let Some(searcher) = packed::Searcher::new(needles) {
            return Self::Few(searcher);
        }
        // Needles are few and short, so an automaton of them can be built.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(needles);
        automaton.map_or(Self::None, Self::Any)
    }

    /// The first find from a place on: where it begins, and which needle it is.
    fn find(&self, haystack: &[u8], from: usize) -> Option<(usize, usize)> {
        match self {
            Self::One(finder) => finder.find(haystack.get(from..)?).map(|at| (from + at, 0)),
            Self::Few(searcher) => {
                let span = aho_corasick::Span {
                    start: from,
                    end: haystack.len(),
                };
                let found = searcher.find_in(haystack, span)?;
                Some((found.start(), found.pattern().as_usize()))
            }
            Self::Any(automaton) => {
                let found = automaton.find(aho_corasick::Input::new(haystack).range(from..))?;
                Some((found.start(), found.pattern().as_usize()))
            }
            Self::None => None,
        }
    }
}

/// The longest part of a term that is written the same everywhere.
fn longest_part(term: &str) -> &str {
    term.split(tokens::is_joiner)
        .max_by_key(|part| part.len())
        .unwrap_or(term)
}

fn beginnings(term: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for c in term.chars().take_while(|c| !tokens::is_joiner(*c)).take(2) {
        all = all
            .iter()
            .flat_map(|start| variants(c).map(move |c| format!("{start}{c}")))
            .collect();
    }
    all
}
