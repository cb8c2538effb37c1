//! Lines that report an error.

use std::sync::LazyLock;

use regex::Regex;

/// Only the beginning of a line is searched: minified code further on is no message.
const SEARCHED_CHARS: usize = 400;

/// `None` cannot happen, the pattern is constant; a test holds it to that.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u:\b)(?:[Ee]rror|ERROR|[Ff]ail(?:ed|ure|ures)|FAIL(?:ED)?|[Ee]xception|panic(?:ked)?|[Cc]annot|",
        r"not found|[Uu]ndefined|exit code [1-9]|[Tt]raceback|assert(?:ion)?)(?-u:\b)"
    ))
    .ok()
});

/// Whether a line, stripped of outer spaces, reports an error.
pub(crate) fn is_error(line: &str) -> bool {
    let end = if line.len() <= SEARCHED_CHARS {
        line.len()
    } else {
        line.char_indices()
            .nth(SEARCHED_CHARS)
            .map_or(line.len(), |(at, _)| at)
    };
    ERROR
        .as_ref()
        .is_some_and(|re| re.is_match(line.get(..end).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_report_an_error() {
        assert!(ERROR.is_some());
        for line in [
            "error: x",
            "3 FAILED",
            "FAIL src/a",
            "thread panicked at",
            "é.Error.é",
            "exit code 1",
            "a not found",
        ] {
            assert!(is_error(line), "{line}");
        }
        for line in [
            "errors",
            "exit code 0",
            "asserted",
            "FAILURES",
            "no_error_here",
            "terror",
        ] {
            assert!(!is_error(line), "{line}");
        }
        assert!(!is_error(&format!("{} error", "é".repeat(400))));
        assert!(is_error(&format!("{} error", "é".repeat(390))));
    }
}
