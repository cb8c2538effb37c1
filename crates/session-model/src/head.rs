//! The head of a line: id, parent, type and timestamp, found without parsing the body.
//!
//! [`fast`] is a byte scanner for the layout that every writer of such files uses; it believes that the rest
//! of the line is what it seems to be. [`careful`] parses the whole line.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use crate::entry::EntryKind;
use crate::json::{DecodeError, json_object};
use crate::log::Near;

/// Where the parts of a head stand in their line. Only for heads without escapes whose parts stand near the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FastHead {
    pub(crate) kind: EntryKind,
    pub(crate) id: Near,
    /// Empty for null.
    pub(crate) parent: Near,
    pub(crate) timestamp: Near,
}

/// Reads a line that begins `{"type":…,"id":…,"parentId":…,"timestamp":…` and ends in `}`. Anything else is
/// `None` and goes to [`careful`].
#[inline]
pub(crate) fn fast(line: &[u8]) -> Option<FastHead> {
    if line.last() != Some(&b'}') {
        return None;
    }
    let (kind, at) = plain(line, literal(line, 0, b"{\"type\":\"")?)?;
    let (id, at) = plain(line, literal(line, at, b",\"id\":\"")?)?;
    let at = literal(line, at, b",\"parentId\":")?;
    let (parent, at) = match literal(line, at, b"\"") {
        Some(at) => {
            let (parent, at) = plain(line, at)?;
            (Near::new(&parent)?, at)
        }
        None => (Near::NONE, literal(line, at, b"null")?),
    };
    let (timestamp, at) = plain(line, literal(line, at, b",\"timestamp\":\"")?)?;
    if !matches!(line.get(at), Some(b',' | b'}')) {
        return None;
    }
    Some(FastHead {
        kind: EntryKind::from_type(line.get(kind)?),
        id: Near::new(&id)?,
        parent,
        timestamp: Near::new(&timestamp)?,
    })
}

#[inline]
fn literal<const N: usize>(line: &[u8], at: usize, text: &[u8; N]) -> Option<usize> {
    (line.get(at..)?.first_chunk()? == text).then_some(at + N)
}

/// A string without escapes or non-ASCII bytes, and the place after its closing quote.
#[inline]
fn plain(line: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let mut at = start;
    while let Some(eight) = line.get(at..)?.first_chunk() {
        let stops = stops(u64::from_le_bytes(*eight));
        if stops != 0 {
            at += stops.trailing_zeros() as usize / 8;
            return (line.get(at) == Some(&b'"')).then_some((start..at, at + 1));
        }
        at += 8;
    }
    loop {
        match *line.get(at)? {
            b'"' => return Some((start..at, at + 1)),
            b'\\' | 0..=0x1F | 0x80.. => return None,
            _ => at += 1,
        }
    }
}

/// Marks, by their highest bits, the bytes that end a plain string or may not be in it: quotes, backslashes, control
/// characters and what is not ASCII. Marks are exact up to the first one, in memory order.
#[inline]
fn stops(eight: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let zeros = |x: u64| x.wrapping_sub(EACH) & !x;
    let quotes = zeros(eight ^ (EACH * 0x22));
    let backslashes = zeros(eight ^ (EACH * 0x5C));
    let controls = eight.wrapping_sub(EACH * 0x20) & !eight;
    (quotes | backslashes | controls | eight) & (EACH * 0x80)
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
