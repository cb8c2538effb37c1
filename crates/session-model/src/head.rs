//! The head of a line: id, parent, type and timestamp, found without parsing the body.
//!
//! [`fast`] is a byte scanner for the layout that every writer of such files uses; it believes that the rest
//! of the line is what it seems to be. [`careful`] parses the whole line.

use std::borrow::Cow;
use std::ops::Range;

use crate::entry::EntryKind;
use crate::json::{DecodeError, json_object};

/// Where the parts of a head stand in their line. Only for heads without escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FastHead {
    pub(crate) kind: EntryKind,
    pub(crate) id: Range<usize>,
    pub(crate) parent: Option<Range<usize>>,
    pub(crate) timestamp: Range<usize>,
}

/// Reads a line that begins `{"type":…,"id":…,"parentId":…,"timestamp":…` and ends in `}`. Anything else is
/// `None` and goes to [`careful`].
pub(crate) fn fast(line: &[u8]) -> Option<FastHead> {
    if line.last() != Some(&b'}') {
        return None;
    }
    let (kind, at) = plain(line, literal(line, 0, b"{\"type\":\"")?)?;
    let (id, at) = plain(line, literal(line, at, b",\"id\":\"")?)?;
    let at = literal(line, at, b",\"parentId\":")?;
    let (parent, at) = match literal(line, at, b"null") {
        Some(at) => (None, at),
        None => {
            let (parent, at) = plain(line, literal(line, at, b"\"")?)?;
            (Some(parent), at)
        }
    };
    let (timestamp, at) = plain(line, literal(line, at, b",\"timestamp\":\"")?)?;
    if !matches!(line.get(at), Some(b',' | b'}')) {
        return None;
    }
    Some(FastHead {
        kind: EntryKind::from_type(line.get(kind)?),
        id,
        parent,
        timestamp,
    })
}

fn literal(line: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    let end = at + text.len();
    (line.get(at..end)? == text).then_some(end)
}

/// A string without escapes or non-ASCII bytes, and the place after its closing quote.
fn plain(line: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let mut at = start;
    loop {
        match *line.get(at)? {
            b'"' => return Some((start..at, at + 1)),
            b'\\' | 0..=0x1F | 0x80.. => return None,
            _ => at += 1,
        }
    }
}

json_object! {
    /// The head of any record.
    struct CarefulHead {
        "type" => kind: Cow<'a, str>,
        "id" => id: Cow<'a, str>,
        "parentId" => parent_id: Cow<'a, str>,
        "timestamp" => timestamp: Cow<'a, str>,
    }
}

/// Whether a line holds control characters where JSON has none: inside a string. The visitors of this crate read such
/// strings, but no other program does, and editing the line would fail.
pub(crate) fn has_raw_controls(line: &[u8]) -> bool {
    line.iter().any(|b| *b < 0x20) && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
}

/// Parses a whole line, which must be one JSON object, and keeps its head.
pub(crate) fn careful(line: &[u8]) -> Result<CarefulHead<'_>, DecodeError> {
    CarefulHead::decode(line)
}
