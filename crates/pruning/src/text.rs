//! Text as the notices' format measures and trims it: in UTF-16 units, by JavaScript's white space.

use std::borrow::Cow;

/// Length in UTF-16 units.
pub(crate) fn units(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    }
}

/// The text if it is at most `max` units long; else what fits with an ellipsis at its end, never half a character.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    // No text has more units than bytes.
    if text.len() <= max || units(text) <= max {
        return Cow::Borrowed(text);
    }
    let mut room = max.saturating_sub(1);
    let end = text
        .char_indices()
        .find(|(_, c)| match room.checked_sub(c.len_utf16()) {
            Some(left) => {
                room = left;
                false
            }
            None => true,
        })
        .map_or(text.len(), |(at, _)| at);
    let mut out = text.get(..end).unwrap_or_default().to_owned();
    out.push('…');
    Cow::Owned(out)
}

/// What JavaScript's `trim` and `\s` take for white space.
pub(crate) fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{FEFF}'
}

pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

#[cfg(test)]
mod tests {
    use super::{cut, trim};

    #[test]
    fn cuts_between_characters() {
        for (text, max, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 3, "日本語"),
            ("日本語字", 3, "日本…"),
            // Two units a face: half of one is none.
            ("a😀😀", 3, "a…"),
            ("a😀😀", 4, "a😀…"),
            ("a😀😀", 5, "a😀😀"),
            ("abc", 1, "…"),
        ] {
            assert_eq!(cut(text, max), expected, "{text} {max}");
        }
    }

    #[test]
    fn trims_as_javascript_does() {
        assert_eq!(trim("\u{FEFF}\u{A0} a\u{3000}\n"), "a");
        assert_eq!(trim("\u{85}a"), "\u{85}a");
    }
}
