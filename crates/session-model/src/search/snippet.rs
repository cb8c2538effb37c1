//! The lines of a document that show best why it was found.

use super::tokens::{Side, each_token};
use super::{Query, Ranking};
use crate::LineNumber;

/// Lines of a snippet at most.
const LINES: usize = 3;
/// Characters of a line at most, and how many of them stand before the first find.
const WIDTH: usize = 240;
const BEFORE: usize = 60;

/// A few lines of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The line of the text at which it begins.
    pub line: LineNumber,
    /// The lines; long ones are cut around the first find.
    pub text: String,
}

/// The terms in a line, and where the first one begins.
#[derive(Clone, Copy, Default)]
struct Line {
    /// One bit for each term.
    terms: u32,
    first: usize,
}

impl Ranking<'_> {
    /// The lines of a text whose terms are worth most: as few as possible, of equal ones the first. Of a text without
    /// any term it is the first line that is not blank.
    pub fn snippet(&self, text: &str) -> Snippet {
        let lines: Vec<&str> = text.lines().collect();
        let found: Vec<Line> = lines.iter().map(|line| self.query.line(line)).collect();
        let mut best = (
            0.0,
            lines.iter().position(|l| !l.trim().is_empty()).unwrap_or(0),
            1,
        );
        for len in 1..=LINES {
            for (at, window) in found.windows(len).enumerate() {
                let terms = window.iter().fold(0, |sum, line| sum | line.terms);
                let value = self.value(terms);
                if value > best.0 * (1.0 + 1e-9) {
                    best = (value, at, len);
                }
            }
        }
        let (_, at, len) = best;
        let shown: Vec<String> = lines
            .iter()
            .zip(&found)
            .skip(at)
            .take(len)
            .map(|(line, found)| cut(line, found.first))
            .collect();
        Snippet {
            line: LineNumber::from_index(at),
            text: shown.join("\n"),
        }
    }

    fn value(&self, terms: u32) -> f64 {
        let weights = self.weights().iter().enumerate();
        weights
            .filter(|(term, _)| terms & (1 << term) != 0)
            .map(|(_, weight)| weight)
            .sum()
    }
}

impl Query {
    fn line(&self, line: &str) -> Line {
        let mut found = Line::default();
        each_token(line, Side::Text, &mut |token, at| {
            if let Some(term) = self.term(token) {
                if found.terms == 0 || at < found.first {
                    found.first = at;
                }
                found.terms |= 1 << term;
            }
        });
        found
    }
}

/// At most [`WIDTH`] characters around a place, without spaces at the ends.
fn cut(line: &str, around: usize) -> String {
    if line.chars().count() <= WIDTH {
        return line.trim_end().to_owned();
    }
    let before = line.get(..around).unwrap_or_default().chars().count();
    let skipped = before.saturating_sub(BEFORE);
    let mut shown: String = line.chars().skip(skipped).take(WIDTH).collect();
    if line.chars().count() > skipped + WIDTH {
        shown.push('…');
    }
    if skipped > 0 {
        shown.insert(0, '…');
    }
    shown
}
