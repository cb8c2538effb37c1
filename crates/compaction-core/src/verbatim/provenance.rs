//! Where the lines of a compacted text come from, in a form that is stored beside the text.
//!
//! The next compaction takes the text as its first lines and must know for each who wrote it: which lines are
//! markers of ours, which begin with a role header of ours, which may hold a protected span (DESIGN D7; spec
//! "Verbatim", section 20, 4 and 5). A record is accepted only as a whole and only if it fits the text; from
//! one that does not, nothing is believed.

use foldline_session_model::{EntryId, LineNumber};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::line::{Author, Lead, Line, LinePart, Message, MessageIndex, Section, SectionKind, offset};
use super::line_set::{LineRange, LineSet};
use super::marker;
use super::reconstruct::Reconstruction;

/// The origin of each line of a compacted text, as runs.
///
/// JSON: `{"sections":[[lines, kind, origin, lead], …], "markers":[…], "protected":[…]}`. `kind` is a letter
/// (`U` user, `u` synthetic user message, `T`, `A`, `C`, `R`, `E` earlier), `origin` an entry id or null,
/// `lead` 1 for a role header, plus 2 for the blank line before it. `markers` are line numbers, each as the
/// distance from the one before; `protected` alternates distance from the end of the last span and length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    sections: Vec<Run>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    markers: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    protected: Vec<u32>,
}

/// Lines of one origin: how many, kind, entry, lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run(u32, char, Option<EntryId>, u8);

/// Why a record does not describe a text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProvenanceError {
    /// The runs have more or fewer lines than the text, or a run has none.
    #[error("the origin record counts {recorded} lines, the text has {actual}")]
    LineCount {
        /// Lines by the record.
        recorded: u64,
        /// Lines of the text.
        actual: u64,
    },
    /// A kind letter or lead of no meaning.
    #[error("the origin record has an unknown section kind or lead at line {line}")]
    UnknownSection {
        /// The first line of the run.
        line: LineNumber,
    },
    /// A line is not the role header, blank line or marker which the record says it is.
    #[error("line {line} is not what the origin record says it is")]
    Content {
        /// The line.
        line: LineNumber,
    },
    /// Marker or span positions that are not in order or lie outside of the text.
    #[error("the origin record has marker or span positions outside of the text")]
    Position,
}

/// The tables of a region for a text that fits its record; `first` and marker positions are byte offsets.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) sections: Vec<Section>,
    pub(crate) messages: Vec<Message>,
    pub(crate) markers: Vec<(u32, u64)>,
    pub(crate) protected: LineSet,
}

impl Reconstruction<'_> {
    /// The origins of the lines of [`text`](Self::text), to be stored with it.
    pub fn provenance(&self) -> Provenance {
        let mut writer = Writer::default();
        let mut runs = self.runs().iter().peekable();
        for line in self.region.lines() {
            if let Some(run) = runs.peek().filter(|run| run.range.start() <= line.number) {
                if run.range.start() == line.number {
                    writer.marker();
                }
                runs.next_if(|run| run.range.end() == line.number);
                continue;
            }
            let origin = self
                .region
                .messages()
                .get(line.message.index())
                .and_then(|m| m.origin.clone());
            writer.line(&line, origin);
        }
        writer.record
    }
}

impl Provenance {
    /// Checks the record against a text and gives the tables for it.
    pub(crate) fn apply(&self, text: &str) -> Result<Applied, ProvenanceError> {
        let lines: Vec<(usize, &str)> = lines_of(text).collect();
        let recorded: u64 = self.sections.iter().map(|r| u64::from(r.0)).sum();
        let actual = lines.len() as u64;
        if recorded != actual || self.sections.iter().any(|r| r.0 == 0) {
            return Err(ProvenanceError::LineCount { recorded, actual });
        }
        let markers = self.marker_lines(&lines)?;
        let (sections, messages) = self.section_table(&lines)?;
        Ok(Applied {
            sections,
            messages,
            markers,
            protected: self.protected_lines(lines.len())?,
        })
    }

    fn marker_lines(&self, lines: &[(usize, &str)]) -> Result<Vec<(u32, u64)>, ProvenanceError> {
        let mut number = 0u32;
        let read = |&step: &u32| {
            number = number
                .checked_add(step)
                .filter(|_| step > 0)
                .ok_or(ProvenanceError::Position)?;
            let line = LineNumber::new(number).ok_or(ProvenanceError::Position)?;
            let &(at, text) = lines.get(line.index()).ok_or(ProvenanceError::Position)?;
            let count = marker::parse(text).ok_or(ProvenanceError::Content { line })?;
            Ok((offset(at), count))
        };
        self.markers.iter().map(read).collect()
    }

    fn section_table(
        &self,
        lines: &[(usize, &str)],
    ) -> Result<(Vec<Section>, Vec<Message>), ProvenanceError> {
        let mut sections = Vec::with_capacity(self.sections.len());
        let mut messages: Vec<Message> = Vec::new();
        let mut index = 0;
        for Run(count, letter, origin, lead) in &self.sections {
            let unknown = ProvenanceError::UnknownSection {
                line: LineNumber::from_index(index),
            };
            let (kind, author) = kind_of(*letter).ok_or_else(|| unknown.clone())?;
            let lead = match lead {
                0..=3 => Lead {
                    separator: lead & 2 != 0,
                    header: lead & 1 != 0,
                },
                _ => return Err(unknown),
            };
            if lead.header && kind == SectionKind::Earlier {
                return Err(unknown);
            }
            let leading = usize::from(lead.separator) + usize::from(lead.header);
            for step in 0..leading {
                let line = LineNumber::from_index(index + step);
                let text = lines
                    .get(index + step)
                    .map(|l| l.1)
                    .filter(|_| step < *count as usize);
                let fits = text.is_some_and(|text| match lead.part(step) {
                    LinePart::Separator => text.is_empty(),
                    _ => text.starts_with(kind.header()),
                });
                if !fits {
                    return Err(ProvenanceError::Content { line });
                }
            }
            let message = Message {
                origin: origin.clone(),
                author,
            };
            // Sections of one entry follow one another: thinking, text, calls.
            let same = messages.last().is_some_and(|m| {
                m.origin.is_some()
                    && m.origin == message.origin
                    && (m.author == author || kind != SectionKind::User)
            });
            if !same {
                messages.push(message);
            }
            sections.push(Section {
                first: offset(lines.get(index).map_or(0, |l| l.0)),
                kind,
                message: MessageIndex::from_index(messages.len() - 1),
                lead,
            });
            index += *count as usize;
        }
        Ok((sections, messages))
    }

    fn protected_lines(&self, line_count: usize) -> Result<LineSet, ProvenanceError> {
        let mut at = 0usize;
        let span = |pair: &[u32]| {
            let &[gap, len] = pair else {
                return Err(ProvenanceError::Position);
            };
            let from = at.saturating_add(gap as usize);
            let to = from.saturating_add(len as usize);
            at = to;
            let inside = to <= line_count;
            LineRange::from_indices(from, to)
                .filter(|_| inside)
                .ok_or(ProvenanceError::Position)
        };
        self.protected.chunks(2).map(span).collect()
    }
}

/// Collects runs line by line.
#[derive(Default)]
struct Writer {
    record: Provenance,
    lines: u32,
    last_marker: u32,
    protected_end: u32,
    last: Option<(SectionKind, MessageIndex)>,
}

impl Writer {
    /// A new marker: it says nothing of its own and extends the run above it.
    fn marker(&mut self) {
        match self.record.sections.last_mut() {
            Some(run) => run.0 = run.0.saturating_add(1),
            None => self.record.sections.push(Run(1, 'E', None, 0)),
        }
        self.lines = self.lines.saturating_add(1);
        self.record.markers.push(self.lines - self.last_marker);
        self.last_marker = self.lines;
    }

    fn line(&mut self, line: &Line<'_>, origin: Option<EntryId>) {
        if let LinePart::Marker(_) = line.part {
            self.marker();
        } else {
            let run = self
                .record
                .sections
                .last_mut()
                .filter(|_| self.last == Some((line.kind, line.message)));
            let lead = match line.part {
                LinePart::Separator => 2,
                LinePart::Header => 1,
                _ => 0,
            };
            match run {
                // A header goes on with the run of its blank line; any other lead begins a run.
                Some(run) if lead == 0 || (lead == 1 && run.3 == 2 && run.0 == 1) => {
                    run.0 = run.0.saturating_add(1);
                    run.3 |= lead;
                }
                _ => self.record.sections.push(Run(1, letter_of(line), origin, lead)),
            }
            self.lines = self.lines.saturating_add(1);
            self.last = Some((line.kind, line.message));
        }
        if line.protected {
            self.protect();
        }
    }

    fn protect(&mut self) {
        let at = self.lines - 1;
        let gap = at - self.protected_end;
        match self.record.protected.last_mut() {
            Some(len) if gap == 0 => *len = len.saturating_add(1),
            _ => self.record.protected.extend([gap, 1]),
        }
        self.protected_end = self.lines;
    }
}

fn letter_of(line: &Line<'_>) -> char {
    match (line.kind, line.author) {
        (SectionKind::User, Author::Session) => 'U',
        (SectionKind::User, Author::Synthetic) => 'u',
        (SectionKind::AssistantThinking, _) => 'T',
        (SectionKind::Assistant, _) => 'A',
        (SectionKind::ToolCalls, _) => 'C',
        (SectionKind::ToolResult, _) => 'R',
        (SectionKind::Earlier, _) => 'E',
    }
}

fn kind_of(letter: char) -> Option<(SectionKind, Author)> {
    Some(match letter {
        'U' => (SectionKind::User, Author::Session),
        'u' => (SectionKind::User, Author::Synthetic),
        'T' => (SectionKind::AssistantThinking, Author::Session),
        'A' => (SectionKind::Assistant, Author::Session),
        'C' => (SectionKind::ToolCalls, Author::Session),
        'R' => (SectionKind::ToolResult, Author::Session),
        'E' => (SectionKind::Earlier, Author::Synthetic),
        _ => return None,
    })
}

/// The lines with the byte where each begins.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split('\n').map(move |line| {
        let start = at;
        at += line.len() + 1;
        (start, line)
    })
}

#[cfg(test)]
mod tests;
