//! The lines of a transcript region, and beside them where each comes from.
//!
//! Origin and role are data that the serialiser writes down; they are never read back out of the text, so a
//! tool result that contains `[User]: ` or `(filtered 9 lines)` stays a tool result (DESIGN D7; spec
//! "Verbatim", sections 4, 5 and 20). A region is one text plus short tables over it: sections, messages,
//! markers and protected lines. [`Region::lines`] brings them together line by line.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use foldline_session_model::{EntryId, LineNumber};
use thiserror::Error;

use super::line_set::{LineRange, LineSet};
use super::provenance::{Provenance, ProvenanceError};
use super::{keep_context, marker};

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
            region.protected = keep_context::protected_lines(&region, 0);
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

/// Collects the sections of a region in transcript order.
///
/// Call [`earlier`](Self::earlier) first if there is earlier text, then for each message
/// [`begin_message`](Self::begin_message) and [`section`](Self::section).
#[derive(Clone, Debug, Default)]
pub struct RegionBuilder {
    text: String,
    /// `first` is a byte offset until [`finish`](Self::finish).
    sections: Vec<Section>,
    messages: Vec<Message>,
    /// Byte offsets of trusted markers, with their counts.
    markers: Vec<(u32, u64)>,
    /// Protected lines of the earlier text.
    protected: LineSet,
    /// Where the first line begins whose protection is not recorded.
    recorded: usize,
    joint: Joint,
}

/// How the next section is joined to the text so far: sections by a blank line, earlier text by a newline
/// (spec "Verbatim", sections 4 and 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Joint {
    #[default]
    Newline,
    BlankLine,
}

/// What is known about the text of an earlier compaction.
#[derive(Clone, Copy, Debug)]
pub enum EarlierOrigin<'p> {
    /// Foldline wrote it and recorded the origin of each line.
    Recorded(&'p Provenance),
    /// The whole text is the stored text of a verbatim compaction by another agent, which records nothing.
    /// That agent put the markers there, so they are trusted, and sections are read from its role headers as
    /// that agent does itself. A look-alike which it let through from a tool result cannot be told apart any
    /// more; no user section found this way counts as words of the person.
    ForeignVerbatim,
    /// A prose summary, a text given by a hook, or a text whose record is damaged: nothing in it is trusted.
    Unknown,
}

impl RegionBuilder {
    /// An empty region.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts the stored text of the previous compaction in front (spec "Verbatim", section 6). Call it before
    /// anything else; empty text adds nothing.
    ///
    /// # Errors
    /// [`ProvenanceError`] when the record does not fit the text. The text has been added nevertheless, as
    /// lines of [`EarlierOrigin::Unknown`]: the error is only to be reported.
    pub fn earlier(&mut self, text: &str, origin: EarlierOrigin<'_>) -> Result<(), ProvenanceError> {
        if text.is_empty() {
            return Ok(());
        }
        let base = self.start_line();
        let mut outcome = Ok(());
        match origin {
            EarlierOrigin::Recorded(record) => match record.apply(text) {
                Ok(tables) => {
                    let first_message = self.messages.len();
                    self.messages.extend(tables.messages);
                    self.sections.extend(tables.sections.into_iter().map(|s| Section {
                        first: offset(s.first as usize + base),
                        message: MessageIndex::from_index(first_message + s.message.index()),
                        ..s
                    }));
                    self.markers.extend(
                        tables
                            .markers
                            .into_iter()
                            .map(|(at, n)| (offset(at as usize + base), n)),
                    );
                    let above = memchr::memchr_iter(b'\n', self.text.as_bytes()).count();
                    let spans = tables.protected.ranges().iter().map(|r| r.indices());
                    let spans = spans.filter_map(|r| LineRange::from_indices(r.start + above, r.end + above));
                    self.recorded = base + text.len() + 1;
                    self.protected = self.protected.ranges().iter().copied().chain(spans).collect();
                }
                Err(error) => {
                    self.unknown_text(base);
                    outcome = Err(error);
                }
            },
            EarlierOrigin::ForeignVerbatim => {
                let mut tables = Guess::new(base, self.messages.len());
                let mut at = 0;
                for line in text.split('\n') {
                    tables.line(text, at..at + line.len());
                    at += line.len() + 1;
                }
                self.messages.append(&mut tables.messages);
                self.sections.append(&mut tables.sections);
                self.markers.append(&mut tables.markers);
            }
            EarlierOrigin::Unknown => self.unknown_text(base),
        }
        self.text.push_str(text);
        self.joint = Joint::Newline;
        outcome
    }

    /// Starts the next message; its sections follow. Call it for messages without text too.
    pub fn begin_message(&mut self, origin: Option<EntryId>, author: Author) -> MessageIndex {
        self.messages.push(Message { origin, author });
        MessageIndex::from_index(self.messages.len() - 1)
    }

    /// Adds a section of the message begun last: blank line, role header, and what `write` adds. Nothing is
    /// added when `write` writes nothing. Kind [`SectionKind::Earlier`] has no header.
    pub fn section(&mut self, kind: SectionKind, write: impl FnOnce(&mut SectionText<'_>)) {
        if self.messages.is_empty() {
            self.begin_message(None, Author::Synthetic);
        }
        let before = self.text.len();
        let separator = self.joint == Joint::BlankLine;
        let first = self.start_line();
        if separator {
            self.text.push('\n');
        }
        self.text.push_str(kind.header());
        let content = self.text.len();
        write(&mut SectionText {
            text: &mut self.text,
            start: content,
        });
        if self.text.len() <= content {
            self.text.truncate(before);
            return;
        }
        let lead = Lead {
            separator,
            header: kind != SectionKind::Earlier,
        };
        let message = MessageIndex::from_index(self.messages.len() - 1);
        self.sections.push(Section {
            first: offset(first),
            kind,
            message,
            lead,
        });
        self.joint = Joint::BlankLine;
    }

    /// Splits the text into lines and finds the protected spans.
    ///
    /// # Errors
    /// [`RegionTooLarge`] above 4 GiB.
    pub fn finish(self) -> Result<Region<'static>, RegionTooLarge> {
        let Self {
            text,
            mut sections,
            messages,
            mut markers,
            protected,
            recorded,
            joint: _,
        } = self;
        let mut tags = false;
        let starts = if sections.is_empty() {
            Vec::new()
        } else {
            line_starts(&text, |line| tags |= keep_context::may_be_tag(&text, line))?
        };
        bytes_to_lines(&starts, &mut sections, &mut markers);
        let mut region = Region {
            text: Cow::Owned(text),
            starts,
            sections,
            messages,
            markers: numbered(&markers),
            protected,
        };
        if tags {
            // The record of earlier text names its spans: found again they would grow over markers in it.
            let first = region.starts.partition_point(|&s| s < offset(recorded));
            let spans = keep_context::protected_lines(&region, first);
            region = region.protect(spans.ranges().iter().copied());
        }
        Ok(region)
    }
}

/// The text of a section while it is written.
#[derive(Debug)]
pub struct SectionText<'b> {
    text: &'b mut String,
    start: usize,
}

impl SectionText<'_> {
    /// Appends text.
    pub fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// What was written so far, without the role header.
    pub fn as_str(&self) -> &str {
        self.text.get(self.start..).unwrap_or_default()
    }

    /// Shortens the text to `len` bytes, or to the last character border before.
    pub fn truncate(&mut self, len: usize) {
        let mut end = self.start.saturating_add(len).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.truncate(end);
    }
}

impl fmt::Write for SectionText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

impl RegionBuilder {
    /// Ends the last line, if there is one, and says where the next begins.
    fn start_line(&mut self) -> usize {
        if !self.sections.is_empty() {
            self.text.push('\n');
        }
        self.text.len()
    }

    fn unknown_text(&mut self, base: usize) {
        let message = self.begin_message(None, Author::Synthetic);
        let kind = SectionKind::Earlier;
        self.sections.push(Section {
            first: offset(base),
            kind,
            message,
            lead: Lead::NONE,
        });
    }
}

/// Roles and markers read out of bare text; positions are byte offsets.
#[derive(Debug)]
struct Guess {
    base: usize,
    first_message: usize,
    sections: Vec<Section>,
    messages: Vec<Message>,
    markers: Vec<(u32, u64)>,
}

impl Guess {
    fn new(base: usize, first_message: usize) -> Self {
        Self {
            base,
            first_message,
            sections: Vec::new(),
            messages: Vec::new(),
            markers: Vec::new(),
        }
    }

    fn line(&mut self, text: &str, line: Range<usize>) {
        let first_byte = text.as_bytes().get(line.start);
        if !matches!(first_byte, Some(b'[' | b'(')) && !self.sections.is_empty() {
            return;
        }
        let first = offset(self.base + line.start);
        let line = text.get(line).unwrap_or_default();
        let header = SectionKind::guess(line);
        if header.is_some() || self.sections.is_empty() {
            self.sections.push(Section {
                first,
                kind: header.unwrap_or(SectionKind::Earlier),
                message: MessageIndex::from_index(self.first_message + self.messages.len()),
                lead: Lead {
                    separator: false,
                    header: header.is_some(),
                },
            });
            self.messages.push(Message {
                origin: None,
                author: Author::Synthetic,
            });
        }
        if let Some(count) = marker::parse(line) {
            self.markers.push((first, count));
        }
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
        line += starts
            .get(line..)
            .unwrap_or_default()
            .partition_point(|&s| s < section.first);
        section.first = offset(line);
    }
    let mut line = 0;
    for (at, _) in markers {
        line += starts
            .get(line..)
            .unwrap_or_default()
            .partition_point(|&s| s < *at);
        *at = offset(line);
    }
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
