//! Repair: damage goes to a file of its own, what is sound stays, and the original is kept as a backup.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use foldline_session_model::log::{self, Damage, DamageKind, LoadError, SessionLog, Trust, Version};
use serde::de::IgnoredAny;

use crate::append::{Changed, SessionWriter};
use crate::read::Snapshot;
use crate::rewrite::RewriteError;
use crate::torn;
use crate::volume::is_disk_full;

/// What becomes of a piece of a session, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairStep {
    /// These bytes are one line of the repaired file.
    Keep(Range<usize>),
    /// This text is one line of the repaired file.
    Insert(Vec<u8>),
    /// These bytes leave the file, and are kept in the quarantine.
    Quarantine(Range<usize>),
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The original.
    pub backup: PathBuf,
    /// The damaged lines, if there were any.
    pub quarantine: Option<PathBuf>,
    /// Lines of the repaired file.
    pub lines: usize,
    /// Pieces that were quarantined.
    pub quarantined: usize,
}

/// Plans a repair from the bytes alone, so that each line is one JSON object: each object that a reader finds on a
/// line gets a line of its own, one that is not UTF-8 is decoded with replacement characters (its original goes to
/// the quarantine), blank lines and a byte order mark go, the rest is damage.
///
/// What records mean is not looked at; see [`plan_session_repair`].
pub fn plan_repair(bytes: &[u8]) -> Vec<RepairStep> {
    plan(bytes, &Meaning::default())
}

/// Plans a repair of a session: [`plan_repair`], and records go to the quarantine that are whole but have no place
/// in a session: a second header, a patch of nothing, an object that is no entry.
/// Entries stay as they are, those with a missing parent or a used id too: readers have a rule for each. In a file of
/// version 1, where a record is named by how many values stand before it, no whole value leaves its place.
///
/// # Errors
/// The bytes are no session; nothing should be done to them.
pub fn plan_session_repair(bytes: &[u8]) -> Result<Vec<RepairStep>, LoadError> {
    let log = SessionLog::load(bytes, Trust::Validated)?;
    if log.header().version == Version::Known(1) {
        let meaning = Meaning {
            values: Values::Counted,
            ..Meaning::default()
        };
        return Ok(plan(bytes, &meaning));
    }
    let misplaced = |damage: &&Damage| {
        use DamageKind::{IdlePatch, NotAnEntry, SecondHeader};
        matches!(damage.kind, SecondHeader | IdlePatch | NotAnEntry)
    };
    let damage = log.damage().iter().filter(misplaced);
    let meaning = Meaning {
        misplaced: damage
            .filter_map(|damage| usize::try_from(damage.offset.get()).ok())
            .collect(),
        ..Meaning::default()
    };
    Ok(plan(bytes, &meaning))
}

/// What is known of a file beyond its bytes.
#[derive(Debug, Default)]
struct Meaning {
    /// Where the records begin that have no place in the session.
    misplaced: BTreeSet<usize>,
    values: Values,
}

/// Whether a JSON value that is no object may leave the file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Values {
    #[default]
    Idle,
    /// Records are counted, and such a value counts.
    Counted,
}

fn plan(bytes: &[u8], meaning: &Meaning) -> Vec<RepairStep> {
    let mut steps = Vec::new();
    let mut start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    while let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) {
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        plan_line(bytes, start..start + len, meaning, &mut steps);
        start += len + 1;
    }
    steps
}

fn plan_line(bytes: &[u8], line: Range<usize>, meaning: &Meaning, steps: &mut Vec<RepairStep>) {
    let text = bytes.get(line.clone()).unwrap_or_default();
    let mut from = line.start;
    for record in log::records(text) {
        let record = line.start + record.start..line.start + record.end;
        quarantine(bytes, from..record.start, steps);
        from = record.end;
        let text = bytes.get(record.clone()).unwrap_or_default();
        if meaning.misplaced.contains(&record.start) {
            steps.push(RepairStep::Quarantine(record));
        } else if std::str::from_utf8(text).is_ok() {
            steps.push(RepairStep::Keep(record));
        } else {
            steps.push(RepairStep::Quarantine(record));
            let decoded = String::from_utf8_lossy(text).into_owned();
            steps.push(RepairStep::Insert(decoded.into_bytes()));
        }
    }
    let counts = || serde_json::from_slice::<IgnoredAny>(text).is_ok();
    if meaning.values == Values::Counted && from == line.start && counts() {
        steps.push(RepairStep::Keep(line));
    } else {
        quarantine(bytes, from..line.end, steps);
    }
}

/// Takes text that belongs to no record out of the file; white space just goes.
fn quarantine(bytes: &[u8], piece: Range<usize>, steps: &mut Vec<RepairStep>) {
    if !bytes
        .get(piece.clone())
        .unwrap_or_default()
        .trim_ascii()
        .is_empty()
    {
        steps.push(RepairStep::Quarantine(piece));
    }
}

impl SessionWriter {
    /// Repairs the session that a snapshot was taken of. Damage is quarantined first, then the file is
    /// rewritten.
    ///
    /// # Errors
    /// The session changed since the snapshot, or cannot be rewritten; it is as it was before.
    pub fn repair(
        &mut self,
        snapshot: &Snapshot,
        steps: &[RepairStep],
        now: SystemTime,
    ) -> Result<Repaired, RewriteError> {
        if snapshot.stamp() != self.stamp {
            let replaced = snapshot.stamp().identity != self.stamp.identity;
            let (expected, found) = (snapshot.stamp().len, self.stamp.len);
            return Err(Changed {
                session: self.path.clone(),
                expected,
                found,
                replaced,
            }
            .into());
        }
        let bytes = |range: &Range<usize>| snapshot.get(range.clone()).unwrap_or_default();
        let mut damage = Vec::new();
        let mut quarantined = 0;
        for step in steps {
            if let RepairStep::Quarantine(range) = step {
                damage.extend_from_slice(bytes(range));
                damage.push(b'\n');
                quarantined += 1;
            }
        }
        let quarantine = if quarantined == 0 {
            None
        } else {
            let session = self.path.clone();
            let written = torn::publish_numbered(&*self.volume, &self.path, ".damaged", &damage);
            Some(written.map_err(|source| {
                if is_disk_full(&source) {
                    RewriteError::DiskFull { session, source }
                } else {
                    RewriteError::Io { session, source }
                }
            })?)
        };
        let kept = || {
            steps.iter().filter_map(|step| match step {
                RepairStep::Keep(range) => Some(bytes(range)),
                RepairStep::Insert(line) => Some(line.as_slice()),
                RepairStep::Quarantine(_) => None,
            })
        };
        let backup = self.rewrite(&mut kept(), "repair", now)?;
        Ok(Repaired {
            backup,
            quarantine,
            lines: kept().count(),
            quarantined,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that stay, and the pieces that go.
    fn plan(bytes: &[u8]) -> (Vec<String>, Vec<Vec<u8>>) {
        let mut kept = Vec::new();
        let mut gone = Vec::new();
        for step in plan_repair(bytes) {
            match step {
                RepairStep::Keep(range) => kept.push(String::from_utf8(bytes[range].to_vec()).unwrap()),
                RepairStep::Insert(line) => kept.push(String::from_utf8(line).unwrap()),
                RepairStep::Quarantine(range) => gone.push(bytes[range].to_vec()),
            }
        }
        (kept, gone)
    }

    #[test]
    fn records_without_a_place_go() {
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/w"}"#;
        let entry = r#"{"type":"custom","id":"a","parentId":null,"timestamp":"","customType":"x"}"#;
        let orphan = r#"{"type":"custom","id":"b","parentId":"gone","timestamp":"","customType":"x"}"#;
        let file = format!("{header}\n{entry}\n{header}\n{{}}\n{orphan}\n\0\0\n");
        let steps = plan_session_repair(file.as_bytes()).unwrap();
        let kept: Vec<&str> = steps
            .iter()
            .filter_map(|step| match step {
                RepairStep::Keep(range) => Some(&file[range.clone()]),
                _ => None,
            })
            .collect();
        assert_eq!(kept, [header, entry, orphan]);
        assert!(plan_session_repair(b"#!/bin/sh\n").is_err());
    }

    /// The bytes of the repaired file.
    fn repaired(bytes: &[u8]) -> Vec<u8> {
        let steps = plan_session_repair(bytes).unwrap();
        let lines = steps.iter().filter_map(|step| match step {
            RepairStep::Keep(range) => Some(&bytes[range.clone()]),
            RepairStep::Insert(line) => Some(line.as_slice()),
            RepairStep::Quarantine(_) => None,
        });
        lines.flat_map(|line| [line, b"\n"].concat()).collect()
    }

    /// What readers find: each entry's id and message, and its parent.
    fn entries(bytes: &[u8]) -> Vec<(String, Option<String>, String)> {
        let log = SessionLog::load(bytes, Trust::Validated).unwrap();
        let entry = |ix| {
            let line = String::from_utf8_lossy(log.raw_line(ix)).into_owned();
            (log.id(ix).to_owned(), log.parent_id(ix).map(str::to_owned), line)
        };
        log.entries().map(entry).collect()
    }

    #[test]
    fn every_entry_of_every_fixture_stays() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sessions");
        let mut sessions = 0;
        for file in fs_err::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let bytes = fs_err::read(&path).unwrap();
            if SessionLog::load(&*bytes, Trust::Validated).is_ok() {
                sessions += 1;
                assert_eq!(entries(&repaired(&bytes)), entries(&bytes), "{}", path.display());
            }
        }
        assert!(sessions > 30, "{sessions}");
    }

    #[test]
    fn a_header_beside_other_text_stays() {
        let entry = r#"{"type":"custom","id":"a","parentId":null,"timestamp":"","customType":"x"}"#;
        let header =
            b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"\",\"cwd\":\"/w\x86\"}";
        let file = [
            header,
            b"],\"timestamp\":1}}\n".as_slice(),
            entry.as_bytes(),
            b"\n",
        ]
        .concat();
        let after = repaired(&file);
        assert_eq!(
            SessionLog::load(&*after, Trust::Validated).unwrap().header().id,
            "s"
        );
        assert_eq!(entries(&after), entries(&file));
        assert!(
            SessionLog::load(&*after, Trust::Validated)
                .unwrap()
                .damage()
                .is_empty()
        );
    }

    #[test]
    fn in_version_1_a_value_that_counts_stays_where_it_is() {
        let header = r#"{"type":"session","version":1,"id":"s","timestamp":"","cwd":"/w"}"#;
        let message = r#"{"type":"message","timestamp":"","message":{"role":"user","content":"a"}}"#;
        let compaction =
            r#"{"type":"compaction","timestamp":"","summary":"s","firstKeptEntryIndex":3,"tokensBefore":1}"#;
        let file = format!("{header}\n{message}\n7\ntorn{{\n{message}{message}\n{compaction}\n");
        let after = repaired(file.as_bytes());
        assert_eq!(entries(&after), entries(file.as_bytes()));
        assert!(!String::from_utf8(after).unwrap().contains("torn"));
    }

    #[test]
    fn each_kind_of_damage() {
        type Case<'a> = (&'a [u8], &'a [&'a str], &'a [&'a [u8]]);
        let none: &[&[u8]] = &[];
        let behind = r#"{"type":"custom","id":"b","parentId":null,"timestamp":""}"#;
        let torn = format!("{{\"b\":{{\"c{behind}{behind}\n");
        let nul = format!("{{\"a\":1}}\0\0{behind}");
        let cases: [Case<'_>; 12] = [
            (torn.as_bytes(), &[behind, behind], &[b"{\"b\":{\"c"]),
            (nul.as_bytes(), &["{\"a\":1}", behind], &[b"\0\0"]),
            (b"", &[], none),
            (b"{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"], none),
            (
                b"{\"a\":1}\r\n\r\n  \n{\"b\":2}",
                &["{\"a\":1}", "{\"b\":2}"],
                none,
            ),
            (b"\xef\xbb\xbf{\"a\":1}\n", &["{\"a\":1}"], none),
            (
                b"{\"a\":1}{\"b\":2} {\"c\":3}\n",
                &["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"],
                none,
            ),
            (
                b"{\"a\":1}{\"b\n{\"c\":3}\n",
                &["{\"a\":1}", "{\"c\":3}"],
                &[b"{\"b"],
            ),
            (b"\0\0\0\n{\"a\":1}\n", &["{\"a\":1}"], &[b"\0\0\0"]),
            (b"null\n1\n[]\n", &[], &[b"null", b"1", b"[]"]),
            (
                b"{\"a\":\"\xff\"}\n",
                &["{\"a\":\"\u{fffd}\"}"],
                &[b"{\"a\":\"\xff\"}"],
            ),
            (b"{\"a\":1}\n{\"torn\":", &["{\"a\":1}"], &[b"{\"torn\":"]),
        ];
        for (bytes, kept, gone) in cases {
            assert_eq!(
                plan(bytes),
                (
                    kept.iter().map(|line| (*line).to_owned()).collect(),
                    gone.iter().map(|piece| piece.to_vec()).collect(),
                ),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}
