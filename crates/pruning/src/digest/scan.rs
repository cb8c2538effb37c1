//! Finding the error line and the counts of a text, in linear time.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::{is_space, trim};

/// What a line with an error says, in any case of its letters: each word with a piece of it that other words seldom
/// hold, and where the piece is in the word. Pieces that are short and few are found at twice the speed of the words.
const ERROR_WORDS: [(&str, usize, &str); 4] = [
    ("rro", 1, "error"),
    ("fai", 0, "failed"),
    ("xce", 1, "exception"),
    ("ani", 1, "panic"),
];
static ERROR_PIECES: LazyLock<Regex> =
    LazyLock::new(|| pattern(&ERROR_WORDS.map(|(piece, ..)| piece).join("|")));
/// What is counted: `matches` and `files`, alone and in `totalMatches` and `filesWithMatches`.
static COUNTED: LazyLock<Regex> = LazyLock::new(|| pattern("matche|file"));

#[allow(clippy::expect_used, reason = "constant patterns, used by every test below")]
fn pattern(words: &str) -> Regex {
    Regex::new(&format!("(?i-u:{words})")).expect("a constant pattern")
}

/// The first line that tells of an error, trimmed.
pub(super) fn error_line(text: &str) -> Option<&str> {
    ERROR_PIECES
        .find_iter(text)
        .filter_map(|piece| error_word(text, piece.as_str(), piece.start()))
        .find(|word| !counts_none(text, word.start, word.end))
        .map(|word| line_around(text, word.start))
}

/// The word that has this piece at this place.
fn error_word(text: &str, piece: &str, at: usize) -> Option<Range<usize>> {
    let (_, before, word) = ERROR_WORDS
        .iter()
        .find(|(known, ..)| known.eq_ignore_ascii_case(piece))?;
    let start = at.checked_sub(*before)?;
    let end = start + word.len();
    let written = text.as_bytes().get(start..end)?;
    written
        .eq_ignore_ascii_case(word.as_bytes())
        .then_some(start..end)
}

/// What the digest of a search tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SearchFacts<'t> {
    pub(super) error_line: Option<&'t str>,
    /// As text: it may have more digits than a number holds.
    pub(super) matches: Option<&'t str>,
    pub(super) files: Option<&'t str>,
}

/// The first line that tells of an error, and the first counts: `12 matches`, or else `totalMatches: 12`; files
/// alike.
pub(super) fn search(text: &str) -> SearchFacts<'_> {
    let mut facts = SearchFacts {
        error_line: error_line(text),
        ..SearchFacts::default()
    };
    let mut total_matches = None;
    let mut files_with_matches = None;
    for found in COUNTED.find_iter(text) {
        let (before, word) = (&text[..found.start()], found.as_str());
        if word.eq_ignore_ascii_case("file") {
            facts.files = facts.files.or_else(|| number_before(text, found.start()));
            continue;
        }
        facts.matches = facts.matches.or_else(|| number_before(text, found.start()));
        let after_word = found.end() + 1;
        if !text[found.end()..].starts_with(['s', 'S']) {
            continue;
        }
        if ends_with_word(before, "total") {
            total_matches = total_matches.or_else(|| number_after_key(text, after_word));
        } else if ends_with_word(before, "filesWith") {
            files_with_matches = files_with_matches.or_else(|| number_after_key(text, after_word));
        }
    }
    facts.matches = facts.matches.or(total_matches);
    facts.files = facts.files.or(files_with_matches);
    facts
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let at = text.len().saturating_sub(word.len());
    text.as_bytes()[at..].eq_ignore_ascii_case(word.as_bytes())
}

/// Whether the word at this place only counts nothing: `0 errors`, `0 failed`, `errors: 0`, `failed=0`.
fn counts_none(text: &str, start: usize, end: usize) -> bool {
    if number_before(text, start) == Some("0") && !text[..start].trim_end_matches(is_space).ends_with(".0") {
        return true;
    }
    let rest = text.get(end..).unwrap_or_default();
    let rest = rest.strip_prefix(['s', 'S']).unwrap_or(rest);
    let Some(value) = rest.strip_prefix([':', '=']) else {
        return false;
    };
    let value = value.trim_start_matches([' ', '\t']);
    value
        .strip_prefix('0')
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_'))
}

/// The digits before some white space before `at`.
fn number_before(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?;
    let number = before.trim_end_matches(is_space);
    if number.len() == before.len() {
        return None;
    }
    let digits = number.bytes().rev().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &number[number.len() - digits..])
}

/// The digits of `": 12`, with or without quote and blanks.
fn number_after_key(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?;
    let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
    let rest = rest.strip_prefix(':')?.trim_start_matches(is_space);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &rest[..digits])
}

fn line_around(text: &str, at: usize) -> &str {
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(text.len(), |newline| at + newline);
    trim(&text[start..end])
}

#[cfg(test)]
mod tests {
    use super::{SearchFacts, error_line, search};

    #[test]
    fn the_first_line_that_tells_of_an_error() {
        let table = [
            ("a\n  boom: PANIC at x \nerror", Some("boom: PANIC at x")),
            ("all good", None),
            ("", None),
            ("unfailed", Some("unfailed")),
            (
                "a mirror, it fails; ExcepTioN",
                Some("a mirror, it fails; ExcepTioN"),
            ),
            // Pieces of the words are not the words.
            ("arrow failure excel manic", None),
            ("rror", None),
            ("fai", None),
            ("pani", None),
            ("\u{e9}rror", None),
            ("f\u{e4}iled erro\u{159}", None),
            // A count of nothing is no error.
            ("0 errors found", None),
            ("test result: ok. 5 passed; 0 failed; 0 ignored", None),
            ("Errors: 0, Failed=0", None),
            ("errors: 0 but\none exception", Some("one exception")),
            ("0 errors, 2 failed", Some("0 errors, 2 failed")),
            ("10 errors found", Some("10 errors found")),
            ("errors: 01", Some("errors: 01")),
            ("error 0x80", Some("error 0x80")),
            ("error:0x80", Some("error:0x80")),
            ("took 1.0 failed", Some("took 1.0 failed")),
        ];
        for (text, expected) in table {
            assert_eq!(error_line(text), expected, "{text}");
            assert_eq!(search(text).error_line, expected, "{text}");
        }
    }

    #[test]
    fn the_first_counts() {
        let table = [
            ("12 matches in 3 files", Some("12"), Some("3")),
            ("1 match", None, None),
            ("12 3\tMATCHES\n4 matches", Some("3"), None),
            (
                r#"{"totalMatches": 7, "filesWithMatches":2}"#,
                Some("7"),
                Some("2"),
            ),
            ("totalMatches: 7\n9 matches", Some("9"), None),
            ("totalMatches=7", None, None),
            ("matches files", None, None),
            ("x1 file y", None, Some("1")),
        ];
        for (text, matches, files) in table {
            let expected = SearchFacts {
                error_line: None,
                matches,
                files,
            };
            assert_eq!(search(text), expected, "{text}");
        }
    }
}
