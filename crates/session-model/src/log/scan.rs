//! From bytes to records: which line is what, and what is wrong with it.

use std::ops::Range;

use super::damage::DamageKind;
use crate::entry::EntryKind;
use crate::head::{self, FastHead};

/// How much of a line is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// A line that begins like an entry is believed to be one; its body is read when someone needs it.
    Claimed,
    /// Every line is parsed.
    Validated,
}

/// A JSON object on a line, and where it stands in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) span: Range<usize>,
    pub(crate) head: FoundHead,
}

#[derive(Clone, Debug)]
pub(crate) enum FoundHead {
    Fast(FastHead),
    /// `None` where the field is missing or no string.
    Careful {
        kind: Option<String>,
        id: Option<String>,
        parent: Option<String>,
        timestamp: Option<String>,
    },
}

impl FoundHead {
    pub(crate) fn kind<'t>(&'t self, line: &'t [u8]) -> Option<&'t [u8]> {
        match self {
            Self::Fast(_) => line.get(9..).and_then(|rest| rest.split(|b| *b == b'"').next()),
            Self::Careful { kind, .. } => kind.as_deref().map(str::as_bytes),
        }
    }

    /// Whether the record is an entry: it has a type that is none of the other records', and an id.
    pub(crate) fn is_entry(&self, line: &[u8]) -> bool {
        let kind = self.kind(line);
        kind.is_some_and(|kind| !matches!(kind, b"session" | b"header_patch" | b"entry_patch"))
            && self.id(line).is_some()
    }
}

/// The lines of a file with their offsets, without `\n` and without one `\r` before it. A final empty piece
/// is no line.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
        let start = std::mem::replace(&mut at, end + 1);
        let cut = if end > start && bytes[end - 1] == b'\r' {
            end - 1
        } else {
            end
        };
        Some(start..cut)
    })
}

/// Where the objects stand that a reader finds on a line, in order: one on a sound line, several on a line of glued
/// records, also those behind text that is no record. Some may not be UTF-8, or have no place in a session.
pub fn records(line: &[u8]) -> Vec<Range<usize>> {
    let line = self::line(line, 0..line.len(), Trust::Validated, IsLast::No);
    line.found.into_iter().map(|found| found.span).collect()
}

/// What one line holds.
pub(crate) struct Line {
    pub(crate) found: Vec<Found>,
    pub(crate) damage: Option<DamageKind>,
}

/// Looks at one line of `bytes`. Blank lines hold nothing and are no damage.
pub(crate) fn line(bytes: &[u8], span: Range<usize>, trust: Trust, is_last: IsLast) -> Line {
    let text = &bytes[span.clone()];
    if trust == Trust::Claimed
        && let Some(head) = head::fast(text)
    {
        return Line {
            found: vec![Found {
                span,
                head: FoundHead::Fast(head),
            }],
            damage: None,
        };
    }
    let start = text.iter().position(|b| !is_space(*b)).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(|b| !is_space(*b))
        .map_or(start, |at| at + 1);
    if start >= end {
        return Line {
            found: Vec::new(),
            damage: None,
        };
    }
    let span = span.start + start..span.start + end;
    let text = &bytes[span.clone()];
    match object(bytes, span.clone()) {
        Ok(found) => {
            let damage = std::str::from_utf8(text)
                .is_err()
                .then_some(DamageKind::InvalidUtf8);
            Line {
                found: vec![found],
                damage,
            }
        }
        Err(message) => recover(bytes, span, message, is_last),
    }
}

/// Whether a line is the last and has no newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsLast {
    No,
    Unterminated,
}

/// White space around a line, as JavaScript's `trim` sees the ASCII part of it.
fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | 0x0B | 0x0C)
}

fn object(bytes: &[u8], span: Range<usize>) -> Result<Found, String> {
    let text = &bytes[span.clone()];
    if text.first() != Some(&b'{') {
        return Err("not an object".to_owned());
    }
    let head = head::careful(text).map_err(|e| e.to_string())?;
    if head::has_raw_controls(text) {
        return Err("a control character inside a string".to_owned());
    }
    let own = |t: Option<std::borrow::Cow<'_, str>>| t.map(std::borrow::Cow::into_owned);
    let head = FoundHead::Careful {
        kind: own(head.kind),
        id: own(head.id),
        parent: own(head.parent_id),
        timestamp: own(head.timestamp),
    };
    Ok(Found { span, head })
}

/// A line that is not one object: finds the objects in it that are whole.
fn recover(bytes: &[u8], span: Range<usize>, message: String, is_last: IsLast) -> Line {
    let text = &bytes[span.clone()];
    if let Some(first) = memchr::memchr(0, text) {
        let last = memchr::memrchr(0, text).map_or(first, |at| at + 1);
        let mut found = leading_objects(bytes, span.start..span.start + first);
        found.extend(closing_objects(bytes, span.start + last..span.end));
        return Line {
            found,
            damage: Some(DamageKind::NulBytes),
        };
    }
    if text.first() != Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok() {
        return Line {
            found: Vec::new(),
            damage: Some(DamageKind::NotAnObject),
        };
    }
    let mut found = leading_objects(bytes, span.clone());
    let read_to = found.last().map_or(span.start, |f| f.span.end);
    let rest = trimmed(bytes, read_to..span.end);
    if rest.is_empty() {
        let records = u32::try_from(found.len()).unwrap_or(u32::MAX);
        return Line {
            found,
            damage: Some(DamageKind::Glued { records }),
        };
    }
    found.extend(entries_after_tear(bytes, rest));
    let damage = match (found.is_empty(), is_last) {
        (false, _) => DamageKind::ExtraText,
        (true, IsLast::Unterminated) => DamageKind::TornTail,
        (true, IsLast::No) => DamageKind::Malformed { message },
    };
    Line {
        found,
        damage: Some(damage),
    }
}

/// What can be read at the end of a line behind NUL bytes.
fn closing_objects(bytes: &[u8], span: Range<usize>) -> Vec<Found> {
    let span = trimmed(bytes, span);
    objects_to_the_end(bytes, span.clone()).unwrap_or_else(|| entries_after_tear(bytes, span))
}

/// The objects that a text consists of; `None` if it holds anything else.
fn objects_to_the_end(bytes: &[u8], span: Range<usize>) -> Option<Vec<Found>> {
    let found = leading_objects(bytes, span.clone());
    let read_to = found.last()?.span.end;
    trimmed(bytes, read_to..span.end).is_empty().then_some(found)
}

/// The whole objects that a line begins with.
fn leading_objects(bytes: &[u8], span: Range<usize>) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = span.start;
    loop {
        let rest = trimmed(bytes, at..span.end);
        if bytes.get(rest.start) != Some(&b'{') || rest.is_empty() {
            return found;
        }
        let mut stream =
            serde_json::Deserializer::from_slice(&bytes[rest.clone()]).into_iter::<serde::de::IgnoredAny>();
        match stream.next() {
            Some(Ok(_)) => {
                let end = rest.start + stream.byte_offset();
                match object(bytes, rest.start..end) {
                    Ok(object) => found.push(object),
                    Err(_) => return found,
                }
                at = end;
            }
            _ => return found,
        }
    }
}

fn trimmed(bytes: &[u8], mut span: Range<usize>) -> Range<usize> {
    while span.start < span.end && is_space(bytes[span.start]) {
        span.start += 1;
    }
    span
}

/// The entries at the end of a line whose beginning is a torn record.
///
/// Text inside a string cannot look like this, because its quotes are escaped; an object nested in the torn
/// record can, so one that stands where a nested value may stand (after a colon, a comma or a bracket) is not
/// taken. What is taken must begin with an entry: a type, an id, and a parent that is a string or null.
fn entries_after_tear(bytes: &[u8], span: Range<usize>) -> Vec<Found> {
    let text = &bytes[span.clone()];
    memchr::memmem::find_iter(text, b"{\"type\":\"")
        .filter(|&at| at > 0)
        .find_map(|at| {
            let before = text[..at].iter().rev().find(|b| !is_space(**b))?;
            if matches!(before, b':' | b',' | b'[') {
                return None;
            }
            let tail = &text[at..];
            let fast = head::fast(tail)?;
            if fast.kind == EntryKind::Unknown {
                return None;
            }
            objects_to_the_end(bytes, span.start + at..span.end)
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::records;

    #[test]
    fn records_are_found_behind_what_is_none() {
        let one = r#"{"type":"custom","id":"a","parentId":null,"timestamp":""}"#;
        let two = r#"{"type":"custom","id":"b","parentId":"a","timestamp":""}"#;
        let torn = r#"{"type":"message","message":{"content":"x"#;
        let nested = r#"{"type":"message","message":{"content":["#;
        let cases: [(String, &[&str]); 13] = [
            (one.to_owned(), &[one]),
            (format!(" {one}\r"), &[one]),
            (format!("{one}{two}"), &[one, two]),
            (format!("{one} rest"), &[one]),
            (format!("garbage{one}"), &[one]),
            (format!("{torn}{one}"), &[one]),
            (format!("{torn}{one}{two}"), &[one, two]),
            (format!("{two}{torn}{one}"), &[two, one]),
            (format!("\0\0{one} {two}"), &[one, two]),
            (format!("{one}\0\0"), &[one]),
            (format!("{one}\0\0{torn}{two}"), &[one, two]),
            // What may be a value within the torn record is none.
            (format!("{nested}{one}"), &[]),
            ("7".to_owned(), &[]),
        ];
        for (line, expected) in cases {
            let found = records(line.as_bytes());
            let found: Vec<&str> = found.into_iter().map(|span| &line[span]).collect();
            assert_eq!(found, expected, "{line:?}");
        }
    }
}
