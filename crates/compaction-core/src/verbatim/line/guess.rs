//! Roles and markers read out of bare text, where nothing better is known.

use std::ops::Range;

use super::{Author, Lead, Message, MessageIndex, Section, SectionKind, offset};
use crate::verbatim::marker;

/// Roles and markers read out of bare text; positions are byte offsets.
#[derive(Debug)]
pub(super) struct Guess {
    base: usize,
    first_message: usize,
    pub(super) sections: Vec<Section>,
    pub(super) messages: Vec<Message>,
    pub(super) markers: Vec<(u32, u64)>,
}

impl Guess {
    pub(super) fn new(base: usize, first_message: usize) -> Self {
        Self {
            base,
            first_message,
            sections: Vec::new(),
            messages: Vec::new(),
            markers: Vec::new(),
        }
    }

    pub(super) fn line(&mut self, text: &str, line: Range<usize>) {
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
