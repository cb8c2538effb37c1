//! Cutting text: always on character boundaries, never with a copy of the text (R17).
//!
//! Lengths are bytes, or UTF-16 units where a rule comes from programs that count those.

/// The length in UTF-16 units.
pub fn utf16_len(text: &str) -> usize {
    // One unit for each first byte, one more for each character of four bytes.
    text.as_bytes()
        .chunks(128)
        .map(|chunk| {
            let mut units = 0_u8;
            for &b in chunk {
                units += u8::from(!(0x80..0xC0).contains(&b)) + u8::from(b >= 0xF0);
            }
            usize::from(units)
        })
        .sum()
}

/// The longest beginning of at most `max` bytes.
pub fn prefix_bytes(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// The longest end of at most `max` bytes.
pub fn suffix_bytes(text: &str, max: usize) -> &str {
    let from = text.len().saturating_sub(max);
    let start = (from..=text.len()).find(|at| text.is_char_boundary(*at));
    start.and_then(|start| text.get(start..)).unwrap_or_default()
}

/// The longest beginning of at most `max` UTF-16 units. A surrogate pair is never split.
pub fn prefix_utf16(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut left = max;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return text.get(..at).unwrap_or_default(),
        }
    }
    text
}

/// The longest end of at most `max` UTF-16 units. A surrogate pair is never split.
pub fn suffix_utf16(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut left = max;
    for (at, c) in text.char_indices().rev() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return text.get(at + c.len_utf8()..).unwrap_or_default(),
        }
    }
    text
}

/// A text without its middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutMiddle<'t> {
    /// The beginning that stays.
    pub head: &'t str,
    /// What was cut out; empty if nothing was.
    pub middle: &'t str,
    /// The end that stays.
    pub tail: &'t str,
}

/// Cuts out the middle, so that at most `head` bytes of the beginning and `tail` bytes of the end stay. A text that
/// fits stays whole, as the head.
pub fn without_middle(text: &str, head: usize, tail: usize) -> WithoutMiddle<'_> {
    if text.len() <= head.saturating_add(tail) {
        return WithoutMiddle {
            head: text,
            middle: "",
            tail: "",
        };
    }
    let head = prefix_bytes(text, head);
    let tail = suffix_bytes(text, tail);
    let middle = text.get(head.len()..text.len() - tail.len()).unwrap_or_default();
    WithoutMiddle { head, middle, tail }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{prefix_bytes, prefix_utf16, suffix_bytes, suffix_utf16, utf16_len, without_middle};

    #[test]
    fn cuts_are_on_boundaries() {
        let table = [
            ("", 3, "", ""),
            ("abc", 2, "ab", "bc"),
            ("aé😀b", 3, "aé", "😀b"),
            ("😀😀", 3, "😀", "😀"),
            ("日本語", 2, "日本", "本語"),
        ];
        for (text, max, prefix, suffix) in table {
            assert_eq!(
                (prefix_utf16(text, max), suffix_utf16(text, max)),
                (prefix, suffix),
                "{text}"
            );
        }
        assert_eq!((prefix_bytes("日本", 4), suffix_bytes("日本", 4)), ("日", "本"));
    }

    proptest! {
        #[test]
        fn any_text_can_be_cut_anywhere(text in "\\PC{0,300}", max in 0_usize..700, other in 0_usize..700) {
            prop_assert_eq!(utf16_len(&text), text.encode_utf16().count());
            for cut in [prefix_utf16(&text, max), suffix_utf16(&text, max)] {
                prop_assert!(utf16_len(cut) <= max);
                prop_assert!(utf16_len(cut) + 2 > max.min(utf16_len(&text)));
            }
            for cut in [prefix_bytes(&text, max), suffix_bytes(&text, max)] {
                prop_assert!(cut.len() <= max && cut.len() + 4 > max.min(text.len()));
            }
            let parts = without_middle(&text, max, other);
            prop_assert_eq!(format!("{}{}{}", parts.head, parts.middle, parts.tail), text);
        }
    }
}
