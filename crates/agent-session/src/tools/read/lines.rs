//! Showing lines of a stream: nothing but what is shown is ever in memory, however long a file or a line is.

use std::io::{self, BufRead};

use super::super::cap::Cap;
use super::selector::Range;

/// How much of a file behind the shown lines is counted through to tell how many lines there are.
const COUNTED: u64 = 64 << 20;

/// How much text may be shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) cap: Cap,
    pub(super) line_chars: usize,
}

/// Shown lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    /// The first and the last line that are shown.
    pub(super) span: Option<(u64, u64)>,
    /// Where an answer goes on that had no room for all lines that were asked for.
    pub(super) next: Option<u64>,
    /// How many lines the file has, if that was found out.
    pub(super) total: Option<u64>,
    /// How many of the shown lines were too long.
    pub(super) cut_lines: u64,
    /// Whether bytes were replaced that are no UTF-8.
    pub(super) repaired: bool,
}

/// Shows the ranges, in the order of the file; without any all of it. Ends early if told to stop.
pub(super) fn show(
    mut reader: impl BufRead,
    ranges: &[Range],
    room: Room,
    stop: &dyn Fn() -> bool,
) -> io::Result<Shown> {
    let ranges = in_order(ranges);
    let mut ranges = ranges.iter().peekable();
    let mut shown = Shown::default();
    let mut shown_lines = 0;
    let mut number = 0_u64;
    let mut behind = 0_u64;
    let mut wants_more = true;
    loop {
        if stop() {
            return Ok(shown);
        }
        number += 1;
        while ranges
            .next_if(|range| range.last.is_some_and(|last| last < number))
            .is_some()
        {}
        wants_more &= ranges.peek().is_some();
        let is_shown = wants_more && ranges.peek().is_some_and(|range| range.first <= number);
        if !is_shown {
            match skip_line(&mut reader)? {
                0 => break,
                bytes if !wants_more => behind += bytes,
                _ => {}
            }
            if behind > COUNTED {
                return Ok(shown);
            }
            continue;
        }
        // A character has at most four bytes.
        let Some(line) = read_line(&mut reader, room.line_chars.saturating_mul(4))? else {
            break;
        };
        let (mut text, repaired) = lossy(&line);
        let long = cut(&mut text, &line, room.line_chars);
        let gap = shown.span.is_some_and(|(_, last)| last + 1 < number);
        let has_room = shown_lines < room.cap.lines
            && shown.text.len() + text.len() < room.cap.bytes.max(text.len() + 1);
        if !has_room {
            shown.next = Some(number);
            wants_more = false;
            continue;
        }
        if gap {
            shown.text.push_str("[…]\n");
        }
        shown.text.push_str(&text);
        shown.text.push('\n');
        shown.span = Some((shown.span.map_or(number, |(first, _)| first), number));
        shown.cut_lines += u64::from(long);
        shown.repaired |= repaired;
        shown_lines += 1;
    }
    shown.total = Some(number - 1);
    Ok(shown)
}

fn in_order(ranges: &[Range]) -> Vec<Range> {
    if ranges.is_empty() {
        return vec![Range { first: 1, last: None }];
    }
    let mut ranges = ranges.to_vec();
    ranges.sort_by_key(|range| range.first);
    // Of ranges that overlap the later one must not be dropped before the earlier one ends.
    let mut merged: Vec<Range> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(before) if before.last.is_none_or(|last| last >= range.first) => {
                before.last = before.last.zip(range.last).map(|(a, b)| a.max(b));
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Reads past a line; 0 bytes mean the end.
fn skip_line(reader: &mut impl BufRead) -> io::Result<u64> {
    let mut bytes = 0;
    loop {
        let buffer = fill(reader)?;
        if buffer.is_empty() {
            return Ok(bytes);
        }
        let newline = memchr::memchr(b'\n', buffer);
        let used = newline.map_or(buffer.len(), |newline| newline + 1);
        reader.consume(used);
        bytes += used as u64;
        if newline.is_some() {
            return Ok(bytes);
        }
    }
}

struct Line {
    /// The beginning, without the line break.
    bytes: Vec<u8>,
    /// How long the line is.
    length: u64,
}

fn read_line(reader: &mut impl BufRead, most: usize) -> io::Result<Option<Line>> {
    let mut line = Line {
        bytes: Vec::new(),
        length: 0,
    };
    let mut is_end = true;
    loop {
        let buffer = fill(reader)?;
        if buffer.is_empty() {
            break;
        }
        is_end = false;
        let newline = memchr::memchr(b'\n', buffer);
        let part = &buffer[..newline.unwrap_or(buffer.len())];
        let room = most.saturating_sub(line.bytes.len()).min(part.len());
        line.bytes.extend_from_slice(&part[..room]);
        line.length += part.len() as u64;
        let used = part.len() + usize::from(newline.is_some());
        reader.consume(used);
        if newline.is_some() {
            if line.bytes.len() as u64 == line.length && line.bytes.last() == Some(&b'\r') {
                line.bytes.pop();
                line.length -= 1;
            }
            break;
        }
    }
    Ok((!is_end).then_some(line))
}

fn fill(reader: &mut impl BufRead) -> io::Result<&[u8]> {
    // Borrowed twice because a loop that returns the buffer does not pass the borrow checker.
    while let Err(error) = reader.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    reader.fill_buf()
}

/// The text, and whether bytes had to be replaced. A character that the limit cut in two does not count.
fn lossy(line: &Line) -> (String, bool) {
    let is_cut = (line.bytes.len() as u64) < line.length;
    match std::str::from_utf8(&line.bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(error) if is_cut && error.error_len().is_none() => {
            let whole = &line.bytes[..error.valid_up_to()];
            (String::from_utf8_lossy(whole).into_owned(), false)
        }
        Err(_) => (String::from_utf8_lossy(&line.bytes).into_owned(), true),
    }
}

/// Cuts a line that is too long, and says so in it.
fn cut(text: &mut String, line: &Line, most: usize) -> bool {
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    let is_whole = end.is_none() && line.bytes.len() as u64 == line.length;
    if is_whole {
        return false;
    }
    text.truncate(end.unwrap_or(text.len()));
    text.push_str(&format!("… [cut: the line has {} bytes]", line.length));
    true
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    const ROOM: Room = Room {
        cap: Cap {
            bytes: 1_000,
            lines: 100,
        },
        line_chars: 40,
    };

    fn shown(text: &[u8], ranges: &[(u64, Option<u64>)], room: Room) -> Shown {
        let ranges: Vec<Range> = ranges
            .iter()
            .map(|(first, last)| Range {
                first: *first,
                last: *last,
            })
            .collect();
        show(BufReader::with_capacity(3, text), &ranges, room, &|| false).unwrap()
    }

    #[test]
    fn ranges_in_the_order_of_the_file() {
        let text = b"1\n2\n3\r\n4\n5\n6";
        let some = shown(text, &[(5, Some(5)), (2, Some(3)), (3, Some(3))], ROOM);
        assert_eq!(some.text, "2\n3\n[…]\n5\n");
        assert_eq!((some.span, some.next, some.total), (Some((2, 5)), None, Some(6)));
        let open = shown(text, &[(5, None)], ROOM);
        assert_eq!(open.text, "5\n6\n");
        assert_eq!(shown(text, &[(7, None)], ROOM).span, None);
        assert_eq!(shown(b"", &[], ROOM).total, Some(0));
        assert_eq!(shown(b"\n\n", &[], ROOM).total, Some(2));
    }

    #[test]
    fn without_room_it_says_where_to_go_on() {
        let narrow = Room {
            cap: Cap {
                bytes: 1_000,
                lines: 2,
            },
            ..ROOM
        };
        let some = shown(b"1\n2\n3\n4\n", &[(2, None)], narrow);
        assert_eq!(
            (some.text.as_str(), some.next, some.total),
            ("2\n3\n", Some(4), Some(4))
        );
        let thin = Room {
            cap: Cap { bytes: 5, lines: 9 },
            ..ROOM
        };
        let some = shown(b"ab\ncd\nef\n", &[], thin);
        assert_eq!((some.text.as_str(), some.next), ("ab\n", Some(2)));
        // One line always has room, cut as it is.
        assert_eq!(shown(b"abcdefgh\nx\n", &[], thin).text, "abcdefgh\n");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let line = format!("{}\nx\n", "ä".repeat(100));
        let some = shown(line.as_bytes(), &[], ROOM);
        assert_eq!(
            some.text,
            format!("{}… [cut: the line has 200 bytes]\nx\n", "ä".repeat(40))
        );
        assert_eq!((some.cut_lines, some.repaired), (1, false));
        let wide = format!("{}\n", "\u{1F600}".repeat(41));
        assert!(!shown(wide.as_bytes(), &[], ROOM).repaired);
        assert!(shown(b"caf\xe9\n", &[], ROOM).repaired);
    }

    proptest! {
        #[test]
        fn all_lines_are_those_of_the_text(text in "[a-c\n]{0,80}", first in 1u8..20, count in 1u8..20) {
            let last = u64::from(first + count - 1);
            let some = shown(text.as_bytes(), &[(first.into(), Some(last))], ROOM);
            let expected: Vec<&str> = text.lines().skip(usize::from(first) - 1).take(count.into()).collect();
            prop_assert_eq!(some.text.lines().collect::<Vec<_>>(), expected);
            prop_assert_eq!(some.total, Some(text.lines().count() as u64));
        }
    }
}
