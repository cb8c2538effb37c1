//! A copy of a line that strict readers accept.

use std::borrow::Cow;

/// The line as valid UTF-8 without lone surrogate escapes: invalid bytes and unpaired escapes become U+FFFD.
///
/// The length of escapes is kept (`\ud83d` becomes `\ufffd`), and nothing else is touched.
pub(crate) fn repaired(line: &[u8]) -> Cow<'_, str> {
    let mut text = String::from_utf8_lossy(line);
    let lone = lone_surrogate_escapes(text.as_bytes());
    if !lone.is_empty() {
        let owned = text.to_mut();
        for at in lone {
            owned.replace_range(at..at + 6, "\\ufffd");
        }
    }
    text
}

/// Offsets of the `\uXXXX` escapes that are half of a pair.
fn lone_surrogate_escapes(text: &[u8]) -> Vec<usize> {
    let mut lone = Vec::new();
    let mut high: Option<usize> = None;
    let mut i = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[i..]) {
        let at = i + found;
        if high.is_some_and(|h| h + 6 != at) {
            lone.extend(high.take());
        }
        let unit = (text.get(at + 1) == Some(&b'u'))
            .then(|| hex4(text.get(at + 2..at + 6)))
            .flatten();
        match unit {
            Some(0xD800..=0xDBFF) => {
                lone.extend(high.take());
                high = Some(at);
            }
            Some(0xDC00..=0xDFFF) => {
                if high.take().is_none() {
                    lone.push(at);
                }
            }
            _ => lone.extend(high.take()),
        }
        i = at + if unit.is_some() { 6 } else { 2 };
        if i >= text.len() {
            break;
        }
    }
    lone.extend(high);
    lone
}

pub(super) fn hex4(digits: Option<&[u8]>) -> Option<u16> {
    let digits = std::str::from_utf8(digits?).ok()?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}
