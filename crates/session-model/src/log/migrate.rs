//! Version 1 and 2 become version 3, in memory, by splicing top-level members: every other byte stays (D1).

use super::build::Record;
use super::damage::{Damage, DamageKind};
use super::scan::{FoundHead, Trust};
use super::{Apart, EntryHead, LoadError, SessionLog, scan};
use crate::derived::DerivedIds;
use crate::entry::EntryKind;
use crate::json::splice::{self, Edit};
use crate::json::{Field, json_object, write_string};
use crate::{ByteLen, LineNumber};

use std::borrow::Cow;
use std::ops::Range;

/// Rewrites the log's lines. `records` are the entries of a version 1 file; those of version 2 are in the log.
pub(super) fn migrate(
    log: &mut SessionLog,
    version: u8,
    records: &[Record],
    values: &[Option<usize>],
    header_span: Range<usize>,
) -> Result<(), LoadError> {
    let old = std::mem::take(&mut log.bytes);
    let mut new = Rewriter {
        old: &old,
        out: Vec::with_capacity(old.len() + records.len() * 48),
        copied: 0,
    };

    let header = splice::edit(
        &old[header_span.clone()],
        &[Edit::Set {
            key: "version",
            json: "3".into(),
            after: "type",
        }],
    )
    .unwrap_or_else(|_| String::from_utf8_lossy(&old[header_span.clone()]).into_owned());
    let start = new.replace(header_span, header.as_bytes());
    log.header_at = start..start + header.len();

    if version == 1 {
        let ids = ids_of(&log.header.id, records, values);
        for (i, record) in records.iter().enumerate() {
            let line = &old[record.found.span.clone()];
            let parent = i.checked_sub(1).map(|p| &*ids[p]);
            let (text, damage) = version_1_entry(line, &record.found.head, &ids[i], parent, values, &ids);
            if let Some(kind) = damage {
                let line = LineNumber::from_index(record.line as usize);
                log.damage.push(Damage {
                    line,
                    offset: ByteLen(record.found.span.start as u64),
                    kind,
                });
            }
            let start = new.replace(record.found.span.clone(), text.as_bytes());
            let head = head_of(&mut log.apart, &text, start, record.line)?;
            log.heads.push(head);
        }
    } else {
        for at in 0..log.heads.len() {
            let head = log.heads[at];
            let span = head.span();
            let line = &old[span.clone()];
            let start;
            match version_2_entry(line, head.kind) {
                Some(text) => {
                    start = new.replace(span, text.as_bytes());
                    log.heads[at] = head_of(&mut log.apart, &text, start, head.line)?;
                }
                None => {
                    start = new.replace(span, line);
                    log.heads[at].start = start as u64;
                }
            }
        }
    }
    log.bytes = new.finish();
    Ok(())
}

/// Copies what lies between replaced spans.
struct Rewriter<'o> {
    old: &'o [u8],
    out: Vec<u8>,
    copied: usize,
}

impl Rewriter<'_> {
    /// Puts `text` in the place of `span`, which must lie behind all earlier ones. Returns where it begins.
    fn replace(&mut self, span: Range<usize>, text: &[u8]) -> usize {
        self.out.extend_from_slice(&self.old[self.copied..span.start]);
        let start = self.out.len();
        self.out.extend_from_slice(text);
        self.copied = span.end;
        start
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(&self.old[self.copied..]);
        self.out
    }
}

fn head_of(apart: &mut Apart, text: &str, start: usize, line: u32) -> Result<EntryHead, LoadError> {
    let bytes = text.as_bytes();
    let found = scan::line(bytes, 0..bytes.len(), Trust::Validated, scan::IsLast::No)
        .found
        .into_iter()
        .next();
    let head = found.map_or(
        FoundHead::Careful {
            kind: None,
            id: None,
            parent: None,
            timestamp: None,
        },
        |f| f.head,
    );
    EntryHead::new(apart, bytes, start, line, &head)
}

/// The ids of a version 1 file: the first 8 hexadecimal digits of a hash of the session's id and the record's
/// position among the parsed values (the header is 0), more digits on a collision (D1).
fn ids_of(session: &str, records: &[Record], values: &[Option<usize>]) -> Vec<String> {
    let mut derived = DerivedIds::new(session);
    let mut ids = vec![String::new(); records.len()];
    for (position, record) in values.iter().enumerate() {
        if let Some(slot) = record.and_then(|record| ids.get_mut(record)) {
            *slot = derived.id(&position.to_string());
        }
    }
    ids
}

fn version_1_entry(
    line: &[u8],
    head: &FoundHead,
    id: &str,
    parent: Option<&str>,
    values: &[Option<usize>],
    ids: &[String],
) -> (String, Option<DamageKind>) {
    let kind = head.kind(line).map_or(EntryKind::Unknown, EntryKind::from_type);
    let mut edits = vec![
        Edit::Set {
            key: "id",
            json: quoted(id),
            after: "type",
        },
        Edit::Set {
            key: "parentId",
            json: parent.map_or_else(|| "null".into(), quoted),
            after: "id",
        },
    ];
    let mut damage = None;
    if kind == EntryKind::Compaction {
        let raw = FirstKept::decode(line).unwrap_or_default();
        if let Some(index) = raw.first_kept_index {
            // The index counts parsed values. The header and what follows the compaction itself name nothing.
            let own = ids.iter().position(|i| i == id).unwrap_or(0);
            let number = crate::entry::decode::integer(index);
            let first_kept = usize::try_from(number)
                .ok()
                .filter(|_| index.fract() == 0.0)
                .and_then(|at| *values.get(at)?)
                .filter(|record| *record < own)
                .and_then(|record| ids.get(record));
            match first_kept {
                Some(first) => edits.push(Edit::Set {
                    key: "firstKeptEntryId",
                    json: quoted(first),
                    after: "summary",
                }),
                None if index != 0.0 => {
                    damage = Some(DamageKind::IndexOutOfRange {
                        index: crate::entry::decode::integer(index),
                    });
                }
                None => {}
            }
            edits.push(Edit::Remove {
                key: "firstKeptEntryIndex",
            });
        }
    }
    let base = version_2_entry(line, kind);
    let line = base.as_deref().map_or(line, str::as_bytes);
    let text = splice::edit(line, &edits).unwrap_or_else(|_| String::from_utf8_lossy(line).into_owned());
    (text, damage)
}

json_object! {
    struct FirstKept {
        "firstKeptEntryIndex" => first_kept_index: f64,
    }
}

json_object! {
    struct RoleOnly {
        "role" => role: Cow<'a, str>,
    }
}

/// Version 2 named custom messages `hookMessage`. `None`: nothing to change.
fn version_2_entry(line: &[u8], kind: EntryKind) -> Option<String> {
    if kind != EntryKind::Message || memchr::memmem::find(line, b"hookMessage").is_none() {
        return None;
    }
    let text = std::str::from_utf8(line).map_or_else(|_| crate::json::repaired(line), Cow::Borrowed);
    let members = splice::members_of(&text).ok()?;
    let message = &text[members.iter().rev().find(|m| m.key == "message")?.value.clone()];
    let raw: &serde_json::value::RawValue = serde_json::from_str(message).ok()?;
    if RoleOnly::lenient(raw)?.role.as_deref() != Some("hookMessage") {
        return None;
    }
    let message = splice::edit(
        message.as_bytes(),
        &[Edit::Set {
            key: "role",
            json: quoted("custom"),
            after: "role",
        }],
    )
    .ok()?;
    splice::edit(
        text.as_bytes(),
        &[Edit::Set {
            key: "message",
            json: message,
            after: "timestamp",
        }],
    )
    .ok()
}

fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    write_string(&mut json, text);
    json
}
