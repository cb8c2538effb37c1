//! Finding the error line and the counts of a text in one pass.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::text::{is_space, trim};

/// What a line with an error says, in any case of its letters.
const ERROR_WORDS: [&str; 4] = ["error", "failed", "exception", "panic"];
const SEARCH_WORDS: [&str; 8] = [
    "error",
    "failed",
    "exception",
    "panic",
    "matche",
    "totalmatches",
    "file",
    "fileswithmatches",
];

static ERRORS: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(&ERROR_WORDS, MatchKind::LeftmostFirst));
static SEARCH: LazyLock<AhoCorasick> = LazyLock::new(|| automaton(&SEARCH_WORDS, MatchKind::Standard));

#[allow(
    clippy::expect_used,
    reason = "a few short constant words: building fails only for gigabytes of them"
)]
fn automaton(words: &[&str], kind: MatchKind) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(kind)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .expect("constant words")
}

/// The first line that tells of an error, trimmed.
pub(super) fn error_line(text: &str) -> Option<&str> {
    ERRORS
        .find_iter(text)
        .find(|found| !counts_none(text, found.start(), found.end()))
        .map(|found| line_around(text, found.start()))
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
    let mut facts = SearchFacts::default();
    let mut total_matches = None;
    let mut files_with_matches = None;
    for found in SEARCH.find_overlapping_iter(text) {
        let (start, end) = (found.start(), found.end());
        match SEARCH_WORDS.get(found.pattern().as_usize()) {
            Some(&"matche") => facts.matches = facts.matches.or_else(|| number_before(text, start)),
            Some(&"file") => facts.files = facts.files.or_else(|| number_before(text, start)),
            Some(&"totalmatches") => total_matches = total_matches.or_else(|| number_after_key(text, end)),
            Some(&"fileswithmatches") => {
                files_with_matches = files_with_matches.or_else(|| number_after_key(text, end));
            }
            _ if facts.error_line.is_none() && !counts_none(text, start, end) => {
                facts.error_line = Some(line_around(text, start));
            }
            _ => {}
        }
    }
    facts.matches = facts.matches.or(total_matches);
    facts.files = facts.files.or(files_with_matches);
    facts
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
