//! The log as text, to be written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::scan::IsLast;
use super::{Extent, FinalNewline, Migration, SessionLog, Trust};
use crate::EntryIx;
use crate::entry::EntryKind;
use crate::json::splice::{self, Edit};
use crate::log::header::WRITTEN_VERSION;

impl SessionLog {
    /// The lines as they are kept in memory: those of the file, except that versions 1 and 2 are migrated.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the first append must write before its own line.
    pub fn before_append(&self) -> &'static [u8] {
        match self.disk.newline {
            FinalNewline::Present => b"",
            FinalNewline::Missing | FinalNewline::Torn => b"\n",
        }
    }

    /// The whole file in the form that this crate writes: version 3, patches applied, one header, no title slot.
    /// Lines that need no change keep their bytes; damaged lines stay where they are. Ends in a newline.
    ///
    /// `None` for a version that is never written, and if only the end of the file was read.
    pub fn to_written_form(&self) -> Option<Vec<u8>> {
        if self.extent != Extent::Whole {
            return None;
        }
        self.to_written_form_with(&BTreeMap::new())
    }

    /// The same with other lines in the place of some entries: whole objects, without a newline.
    ///
    /// `None` for a version that is never written.
    pub fn to_written_form_with(&self, replaced: &BTreeMap<EntryIx, String>) -> Option<Vec<u8>> {
        match self.disk.migration {
            Migration::ReadOnly => return None,
            Migration::NotNeeded if replaced.is_empty() => {
                let mut out = self.bytes.clone();
                if out.last().is_some_and(|b| *b != b'\n') {
                    out.push(b'\n');
                }
                return Some(out);
            }
            Migration::NotNeeded | Migration::Needed => {}
        }
        let mut out = Vec::with_capacity(self.bytes.len());
        let mut header_done = false;
        let mut next = self.entries().peekable();
        let body = if self.bytes.starts_with("\u{FEFF}".as_bytes()) {
            3
        } else {
            0
        };
        for span in super::scan::lines(&self.bytes[body..]) {
            let span = span.start + body..span.end + body;
            let line = &self.bytes[span.clone()];
            if span.end <= self.header_at.start {
                // Before the header only titles are records, and the header takes theirs over.
                let line = super::scan::line(&self.bytes, span.clone(), Trust::Validated, IsLast::No);
                if !line.found.is_empty() {
                    continue;
                }
            }
            let mut plain = true;
            if self.header_at.start >= span.start && self.header_at.end <= span.end && !header_done {
                header_done = true;
                let header = self.bytes.get(self.header_at.clone()).unwrap_or_default();
                push_line(&mut out, &self.written_header(header));
                plain = false;
            }
            while let Some(ix) = next.next_if(|ix| self.head(*ix).is_some_and(|h| h.start < span.end as u64))
            {
                let entry = self.raw_line(ix);
                if let Some(line) = replaced.get(&ix) {
                    push_line(&mut out, line.as_bytes());
                    plain = false;
                } else if self.patched.contains_key(&ix.0) {
                    push_line(&mut out, &self.written_line(ix));
                    plain = false;
                } else if entry.len() != line.len() {
                    // One of several records on a line, or a record beside other text: a line of its own.
                    push_line(&mut out, entry);
                    plain = false;
                }
            }
            if !plain {
                continue;
            }
            match crate::head::careful(line).ok().and_then(|h| h.kind).as_deref() {
                Some("session") if header_done => {}
                Some("header_patch" | "entry_patch") => {}
                _ => push_line(&mut out, line),
            }
        }
        Some(out)
    }

    /// An entry's line with its patches applied.
    pub(crate) fn written_line(&self, ix: EntryIx) -> Cow<'_, [u8]> {
        let line = self.raw_line(ix);
        let Some(message) = self.patched.get(&ix.0) else {
            return Cow::Borrowed(line);
        };
        let edit = [Edit::Set {
            key: "message",
            json: message.to_string(),
            after: "timestamp",
        }];
        Cow::Owned(splice::edit(line, &edit).map_or_else(|_| line.to_vec(), String::into_bytes))
    }

    fn written_header(&self, line: &[u8]) -> Vec<u8> {
        let quoted = |text: &str| {
            let mut json = String::new();
            crate::json::write_string(&mut json, text);
            json
        };
        let mut edits = vec![Edit::Set {
            key: "version",
            json: WRITTEN_VERSION.to_string(),
            after: "type",
        }];
        edits.push(Edit::Set {
            key: "cwd",
            json: quoted(&self.header.cwd),
            after: "timestamp",
        });
        match &self.header.title {
            Some(title) => edits.push(Edit::Set {
                key: "title",
                json: quoted(title),
                after: "cwd",
            }),
            None => edits.push(Edit::Remove { key: "title" }),
        }
        match &self.header.title_source {
            Some(source) => edits.push(Edit::Set {
                key: "titleSource",
                json: quoted(source),
                after: "title",
            }),
            None => edits.push(Edit::Remove { key: "titleSource" }),
        }
        splice::edit(line, &edits).map_or_else(|_| line.to_vec(), String::into_bytes)
    }

    /// Whether an entry is of a kind that a reader could have in its context.
    pub fn may_be_visible(&self, ix: EntryIx) -> bool {
        EntryKind::may_be_visible(self.kind(ix))
    }
}

fn push_line(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(line);
    out.push(b'\n');
}
