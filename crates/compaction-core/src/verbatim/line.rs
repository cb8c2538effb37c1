//! The lines of a transcript region, and beside them where each comes from.
//!
//! Origin and role are data that the serialiser writes down; they are never read back out of the text, so a
//! tool result that contains `[User]: ` or `(filtered 9 lines)` stays a tool result (DESIGN D7; spec
//! "Verbatim", sections 4, 5 and 20). A region is one text plus short tables over it: sections, messages,
//! markers and protected lines. [`Region::lines`] brings them together line by line.

mod builder;
mod guess;

use std::borrow::Cow;
use std::ops::Range;

use foldline_session_model::{EntryId, LineNumber};
use thiserror::Error;

use super::keep_context;
use super::line_set::{LineRange, LineSet};

pub use builder::{EarlierOrigin, RegionBuilder, SectionText};
use guess::Guess;

/// What a section of the transcript holds (seed 002, "Serialization").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SectionKind {
    /// What a user, a custom message, a branch summary or a shell command of the user says.
    User,
    /// The thinking of the agent.
    AssistantThinking,
    /// The text of the agent.
    Assistant,
    /// The tool calls of one agent message.
    ToolCalls,
    /// The output of one tool call.
    ToolResult,
    /// Text of an earlier compaction of which nothing more is known.
    Earlier,
}

impl SectionKind {
    /// The role header in front of a section's first line; earlier text has none.
    pub const fn header(self) -> &'static str {
        match self {
            Self::User => "[User]: ",
            Self::AssistantThinking => "[Assistant thinking]: ",
            Self::Assistant => "[Assistant]: ",
            Self::ToolCalls => "[Assistant tool calls]: ",
            Self::ToolResult => "[Tool result]: ",
            Self::Earlier => "",
        }
    }

    /// The section whose header a line begins with. Only for text of which nothing better is known.
    pub(crate) fn guess(line: &str) -> Option<Self> {
        [
            Self::User,
            Self::AssistantThinking,
            Self::Assistant,
            Self::ToolCalls,
            Self::ToolResult,
        ]
        .into_iter()
        .find(|kind| line.starts_with(kind.header()))
    }
}

/// Who wrote a message: decides which user sections are words of the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Author {
    /// A message of the session as it was typed or produced: user, assistant or tool.
    Session,
    /// Made by a program: a summary, an injected notice, the output of a shell command.
    Synthetic,
}

/// One message of the region. Messages without text count too: the age of a line is measured in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The entry it came from, if known.
    pub origin: Option<EntryId>,
    /// Who wrote it.
    pub author: Author,
}

/// The position of a message in its region, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageIndex(u32);

impl MessageIndex {
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The position as a number for slices.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a line is within its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinePart {
    /// The empty line in front of a section.
    Separator,
    /// The first line of a section: it begins with the role header.
    Header,
    /// Any other line.
    Content,
    /// A marker of an earlier compaction that may be trusted, with its count.
    Marker(u64),
}

/// One line with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'r> {
    /// Its number in the region.
    pub number: LineNumber,
    /// The text without its newline.
    pub text: &'r str,
    /// The section it belongs to; a separator belongs to the section after it.
    pub kind: SectionKind,
    /// What it is within the section.
    pub part: LinePart,
    /// The message it belongs to.
    pub message: MessageIndex,
    /// Who wrote that message.
    pub author: Author,
    /// Whether it must stay.
    pub protected: bool,
}

/// A region would need more than 4 GiB of text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the region has {bytes} bytes, more than {max} are not supported", max = u32::MAX)]
pub struct RegionTooLarge {
    /// Its size.
    pub bytes: usize,
}

/// The compactable lines of a session.
#[derive(Clone, Debug)]
pub struct Region<'t> {
    text: Cow<'t, str>,
    /// Where each line begins, and one past the end for a newline that is not there.
    starts: Vec<u32>,
    sections: Vec<Section>,
    messages: Vec<Message>,
    markers: Vec<(LineNumber, u64)>,
    protected: LineSet,
}

/// Lines of one kind and message that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The byte where its first line begins, then the position of that line.
    pub(crate) first: u32,
    pub(crate) kind: SectionKind,
    pub(crate) message: MessageIndex,
    pub(crate) lead: Lead,
}

/// What the first lines of a section are; an earlier compaction may have deleted either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lead {
    pub(crate) separator: bool,
    pub(crate) header: bool,
}

impl Lead {
    pub(crate) const NONE: Self = Self {
        separator: false,
        header: false,
    };

    /// What the line at a distance from the section's first line is.
    pub(crate) const fn part(self, offset: usize) -> LinePart {
        match offset {
            0 if self.separator => LinePart::Separator,
            _ if self.header && offset == self.separator as usize => LinePart::Header,
            _ => LinePart::Content,
        }
    }
}

impl<'t> Region<'t> {
    /// Builds a region from bare text by reading roles and markers out of the text itself.
    ///
    /// Text cannot say who wrote a line, so this is open to spoofing (spec "Verbatim", section 20, 4 and 5).
    /// It exists for parity with systems that know nothing but the text. Sessions go through
    /// [`RegionBuilder`].
    ///
    /// # Errors
    /// [`RegionTooLarge`] above 4 GiB.
    pub fn guessed_from_text(text: &'t str) -> Result<Self, RegionTooLarge> {
        let mut tables = Guess::new(0, 0);
        let mut tags = false;
        let starts = line_starts(text, |line| {
            tables.line(text, line.clone());
            tags |= keep_context::may_be_tag(text, line);
        })?;
        let mut sections = tables.sections;
        let mut markers = tables.markers;
        bytes_to_lines(&starts, &mut sections, &mut markers);
        let mut region = Self {
            text: Cow::Borrowed(text),
            starts,
            sections,
            messages: tables.messages,
            markers: numbered(&markers),
            protected: LineSet::EMPTY,
        };
        if tags {
            region.protected = keep_context::protected_lines(&region, 0, &[]);
        }
        Ok(region)
    }

    /// The whole text: the lines joined by newlines.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many lines there are; 0 only for a region without any section.
    pub fn line_count(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The text of one line; empty outside of the region.
    pub fn line_text(&self, line: LineNumber) -> &str {
        self.text_at(line.index())
    }

    /// The lines in order, with their data.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        Lines {
            region: self,
            at: 0,
            section: 0,
            marker: 0,
            span: 0,
        }
    }

    /// The messages in order, those without text included.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The trusted markers with their counts, in order.
    pub fn markers(&self) -> &[(LineNumber, u64)] {
        &self.markers
    }

    /// The lines that no plan may delete.
    pub fn protected(&self) -> &LineSet {
        &self.protected
    }

    /// The numbers of the role header lines, in order.
    pub fn header_lines(&self) -> impl Iterator<Item = LineNumber> {
        self.sections
            .iter()
            .filter(|s| s.lead.header)
            .map(|s| LineNumber::from_index(s.first as usize + usize::from(s.lead.separator)))
    }

    /// Protects more lines, for example on behalf of a caller of the API; lines outside are ignored.
    #[must_use]
    pub fn protect(mut self, lines: impl IntoIterator<Item = LineRange>) -> Self {
        let all = self.protected.ranges().iter().copied().chain(lines);
        self.protected = all.collect::<LineSet>().up_to(self.line_count());
        self
    }

    /// The line, counted from 0, that holds a byte of the text.
    pub(crate) fn line_at(&self, byte: usize) -> usize {
        self.starts
            .partition_point(|&s| s as usize <= byte)
            .saturating_sub(1)
    }

    /// The message of the line at a position.
    pub(crate) fn message_of(&self, index: usize) -> Option<MessageIndex> {
        let after = self.sections.partition_point(|s| s.first as usize <= index);
        after
            .checked_sub(1)
            .and_then(|at| self.sections.get(at))
            .map(|s| s.message)
    }

    pub(crate) fn text_at(&self, index: usize) -> &str {
        let (Some(&start), Some(&next)) = (self.starts.get(index), self.starts.get(index + 1)) else {
            return "";
        };
        self.text
            .get(start as usize..next as usize - 1)
            .unwrap_or_default()
    }

    /// The byte that a line begins with, its newline included; 0 behind the text.
    pub(crate) fn first_byte_at(&self, index: usize) -> u8 {
        let start = self.starts.get(index).map(|&start| start as usize);
        let byte = start.and_then(|start| self.text.as_bytes().get(start));
        byte.copied().unwrap_or_default()
    }

    /// How long the lines at these positions are, each with a newline. The text itself is not looked at.
    pub(crate) fn byte_len(&self, lines: Range<usize>) -> usize {
        match (self.starts.get(lines.start), self.starts.get(lines.end)) {
            (Some(&start), Some(&next)) => (next as usize).saturating_sub(start as usize),
            _ => 0,
        }
    }

    /// The text of the lines at these positions without the last newline.
    pub(crate) fn text_between(&self, lines: Range<usize>) -> &str {
        let (Some(&start), Some(&next)) = (self.starts.get(lines.start), self.starts.get(lines.end)) else {
            return "";
        };
        self.text
            .get(start as usize..(next as usize).saturating_sub(1))
            .unwrap_or_default()
    }
}

/// Where each line of a text begins, and one past its end for the newline that is not there. `each` gets the
/// bytes of a line; whether it is worth a closer look shows at one of its ends.
fn line_starts(text: &str, mut each: impl FnMut(Range<usize>)) -> Result<Vec<u32>, RegionTooLarge> {
    // One byte is left for the newline that the last line does not have.
    if u32::try_from(text.len()).map_or(true, |n| n == u32::MAX) {
        return Err(RegionTooLarge { bytes: text.len() });
    }
    // Transcript lines are about 50 bytes long.
    let mut starts = Vec::with_capacity(text.len() / 32 + 2);
    let mut start = 0;
    starts.push(0);
    for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
        each(start..end);
        start = end + 1;
        starts.push(offset(start));
    }
    each(start..text.len());
    starts.push(offset(text.len() + 1));
    Ok(starts)
}

/// Turns the byte offsets of sections and markers into positions of lines.
fn bytes_to_lines(starts: &[u32], sections: &mut [Section], markers: &mut [(u32, u64)]) {
    let mut line = 0;
    for section in sections {
        line = line_from(starts, line, section.first);
        section.first = offset(line);
    }
    let mut line = 0;
    for (at, _) in markers {
        line = line_from(starts, line, *at);
        *at = offset(line);
    }
}

/// The first line, at or after `from`, that begins at a byte or behind it. The steps grow: the line is usually near, and
/// to halve all the rest would read all over a long list.
fn line_from(starts: &[u32], from: usize, byte: u32) -> usize {
    let mut low = from;
    let mut step = 1;
    while starts.get(low + step).is_some_and(|&start| start < byte) {
        low += step;
        step *= 2;
    }
    let high = (low + step + 1).min(starts.len());
    low + starts
        .get(low..high)
        .unwrap_or_default()
        .partition_point(|&start| start < byte)
}

fn numbered(markers: &[(u32, u64)]) -> Vec<(LineNumber, u64)> {
    markers
        .iter()
        .map(|&(at, n)| (LineNumber::from_index(at as usize), n))
        .collect()
}

/// Offsets fit, or the region is refused as too large in the end.
pub(super) fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

struct Lines<'r> {
    region: &'r Region<'r>,
    at: usize,
    section: usize,
    marker: usize,
    span: usize,
}

impl<'r> Iterator for Lines<'r> {
    type Item = Line<'r>;

    fn next(&mut self) -> Option<Line<'r>> {
        let region = self.region;
        if self.at >= region.line_count() {
            return None;
        }
        let index = self.at;
        self.at += 1;
        let number = LineNumber::from_index(index);
        while region
            .sections
            .get(self.section + 1)
            .is_some_and(|s| s.first as usize <= index)
        {
            self.section += 1;
        }
        let section = region.sections.get(self.section)?;
        let mut part = section.lead.part(index - section.first as usize);
        if let Some(&(_, count)) = region.markers.get(self.marker).filter(|(at, _)| *at == number) {
            self.marker += 1;
            part = LinePart::Marker(count);
        }
        let spans = region.protected.ranges();
        while spans.get(self.span).is_some_and(|r| r.end() < number) {
            self.span += 1;
        }
        Some(Line {
            number,
            text: region.text_at(index),
            kind: section.kind,
            part,
            message: section.message,
            author: region
                .messages
                .get(section.message.index())
                .map_or(Author::Synthetic, |m| m.author),
            protected: spans.get(self.span).is_some_and(|r| r.start() <= number),
        })
    }
}

#[cfg(test)]
mod tests;
