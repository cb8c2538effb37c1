//! Collects the sections of a region.

use std::borrow::Cow;
use std::fmt;

use foldline_session_model::EntryId;

use super::guess::Guess;
use super::{
    Author, Lead, Message, MessageIndex, Region, RegionTooLarge, Section, SectionKind, bytes_to_lines,
    line_starts, numbered, offset,
};
use crate::verbatim::keep_context;
use crate::verbatim::line_set::{LineRange, LineSet};
use crate::verbatim::provenance::{Provenance, ProvenanceError};

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
    /// The messages in which tags are content, in order.
    outputs: Vec<MessageIndex>,
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

    /// Starts a message that shows what a command put out or what a file holds. It stands under the header of the
    /// user, and no word of it is one of theirs: tags in it protect nothing (DESIGN D7).
    pub fn begin_output(&mut self, origin: Option<EntryId>) -> MessageIndex {
        let index = self.begin_message(origin, Author::Synthetic);
        self.outputs.push(index);
        index
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
            outputs,
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
            let spans = keep_context::protected_lines(&region, first, &outputs);
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
