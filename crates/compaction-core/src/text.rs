//! Cuts of text: on character borders, counted in UTF-16 units as the formats of session files count.

/// UTF-16 units of a text.
pub(crate) fn units(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

/// The longest prefix of at most `limit` UTF-16 units, cut on a character border.
///
/// Looks at no more of the text than it returns.
pub(crate) fn head(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > limit {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// The longest suffix of at most `limit` UTF-16 units, cut on a character border.
pub(crate) fn tail(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.len_utf16();
        if used > limit {
            return text.get(at + c.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

/// The text on one line: line breaks become spaces, runs of blanks one, and at most `limit` units with an ellipsis.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Enough to know that it is too long.
        if line.len() > limit.saturating_mul(3) {
            break;
        }
    }
    ellipsis(&line, limit)
}

/// At most `limit` units; what was cut shows as `…`.
pub(crate) fn ellipsis(text: &str, limit: usize) -> String {
    if units(text) <= limit {
        return text.to_owned();
    }
    let mut cut = head(text, limit.saturating_sub(1)).trim_end().to_owned();
    if limit > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fb_101_cuts_fall_on_character_borders_and_never_exceed_the_limit() {
        let texts = [
            "é".repeat(1001),
            "→".repeat(900),
            format!("a{}", "漢".repeat(50)),
            "👩‍👩‍👧".repeat(40),
            "plain".repeat(30),
            String::new(),
        ];
        for text in &texts {
            for limit in [0, 1, 2, 3, 97, 100, 2000] {
                let (head, tail) = (head(text, limit), tail(text, limit));
                assert!(units(head) <= limit && text.starts_with(head), "{limit}");
                assert!(units(tail) <= limit && text.ends_with(tail), "{limit}");
                // As much as fits: the next character would be too much.
                let next = text[head.len()..]
                    .chars()
                    .next()
                    .map_or(usize::MAX, char::len_utf16);
                assert!(next == usize::MAX || units(head) + next > limit);
                assert!(units(&ellipsis(text, limit)) <= limit);
            }
        }
    }

    #[test]
    fn lines_are_joined_with_single_blanks() {
        assert_eq!(one_line(" a\n\n b\tc ", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("", 4), "");
    }
}
