//! Protected spans: lines between `<keepContext>` and `</keepContext>` in what users and agents write
//! (spec "Verbatim", section 5.3).
//!
//! A tag counts only when it is the whole line. Spans end with their section, and tags in tool results, in the output of
//! commands and in files that were mentioned are plain content. Which section a line belongs to is data of the region, so a tool result cannot open a span
//! by containing a role header.

use std::ops::Range;

use foldline_session_model::LineNumber;

use super::line::{LinePart, MessageIndex, Region, RegionTooLarge, SectionKind};
use super::line_set::{LineRange, LineSet};

/// The protected spans of a region from a line on, counted from 0, found by the origin of its lines. `outputs` are the
/// messages whose tags are content, in order.
pub(crate) fn protected_lines(region: &Region<'_>, first: usize, outputs: &[MessageIndex]) -> LineSet {
    let mut spans = Vec::new();
    let mut open: Option<LineNumber> = None;
    let mut section = None;
    let mut above = LineNumber::FIRST;
    for line in region.lines().skip(first) {
        // The blank line in front of a section still belongs to the span above it.
        let begins = line.part == LinePart::Header || section != Some((line.kind, line.message));
        if begins && line.part != LinePart::Separator {
            section = Some((line.kind, line.message));
            spans.extend(open.take().and_then(|start| LineRange::new(start, above)));
        }
        let header = if line.part == LinePart::Header {
            line.kind.header()
        } else {
            ""
        };
        match tag(line.text.strip_prefix(header).unwrap_or(line.text)) {
            Some(Tag::Open)
                if line.kind != SectionKind::ToolResult && outputs.binary_search(&line.message).is_err() =>
            {
                open = open.or(Some(line.number));
            }
            Some(Tag::Close) => {
                spans.extend(open.take().and_then(|start| LineRange::new(start, line.number)));
            }
            _ => {}
        }
        above = line.number;
    }
    spans.extend(open.and_then(|start| LineRange::new(start, above)));
    spans.into_iter().collect()
}

/// The protected spans of bare text whose roles are guessed from its headers; only for parity with systems
/// that know nothing but the text.
///
/// # Errors
/// [`RegionTooLarge`] above 4 GiB.
pub fn protected_lines_guessed_from_text(text: &str) -> Result<LineSet, RegionTooLarge> {
    Ok(Region::guessed_from_text(text)?.protected().clone())
}

enum Tag {
    Open,
    Close,
}

fn tag(line: &str) -> Option<Tag> {
    let line = line.trim_matches(is_script_space);
    if line.eq_ignore_ascii_case("<keepContext>") {
        Some(Tag::Open)
    } else if line.eq_ignore_ascii_case("</keepContext>") {
        Some(Tag::Close)
    } else {
        None
    }
}

/// What JavaScript trims: the tag rule comes from a program in that language.
fn is_script_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Whether a line of a text can be a tag at all; for nearly all of them a glance at the last bytes tells.
#[inline]
pub(super) fn may_be_tag(text: &str, line: Range<usize>) -> bool {
    let byte = |back: usize| text.as_bytes().get(line.end.checked_sub(back)?);
    if let (Some(&last), Some(&before)) = (byte(1), byte(2)) {
        // The last one that is no blank; of an empty line one above it, which is no harm: then no tag is missed.
        let seen = if last <= b' ' { before } else { last };
        if seen > b' ' && seen.is_ascii() && seen != b'>' {
            return false;
        }
    }
    ends_as_tag(text, line)
}

fn ends_as_tag(text: &str, line: Range<usize>) -> bool {
    let mut bytes = text.as_bytes().get(line.clone()).unwrap_or_default();
    // Many lines end with a blank. Only where another script's blanks may stand have characters to be looked at.
    while let [rest @ .., b'\0'..=b' '] = bytes {
        bytes = rest;
    }
    match bytes {
        [.., b't' | b'T', b'>'] => {}
        [.., last] if !last.is_ascii() => {}
        _ => return false,
    }
    let line = text
        .get(line)
        .unwrap_or_default()
        .trim_end_matches(is_script_space)
        .as_bytes();
    let name = line.len().checked_sub(12).and_then(|at| line.get(at..));
    name.is_some_and(|n| n.eq_ignore_ascii_case(b"keepContext>"))
}

#[cfg(test)]
mod tests;
