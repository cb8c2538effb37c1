//! Repair: damage goes to a file of its own, what is sound stays, and the original is kept as a backup.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use foldline_session_model::log::{Damage, DamageKind, LoadError, SessionLog, Trust};

use crate::append::{Changed, SessionWriter};
use crate::line;
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

/// Plans a repair from the bytes alone, so that each line is one JSON object: glued objects get a line each,
/// text that is not UTF-8 is decoded with replacement characters (its original goes to the quarantine), blank
/// lines and a byte order mark go, the rest is damage.
///
/// What records mean is not looked at; see [`plan_session_repair`].
pub fn plan_repair(bytes: &[u8]) -> Vec<RepairStep> {
    let mut steps = Vec::new();
    let mut start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    while let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) {
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        plan_line(rest.get(..len).unwrap_or_default(), start, &mut steps);
        start += len + 1;
    }
    steps
}

/// Plans a repair of a session: [`plan_repair`], and records go to the quarantine that are whole but have no place
/// in a session: a second header, a patch of nothing, an object that is no entry, what stands before the header.
/// Entries stay as they are, those with a missing parent or a used id too: readers have a rule for each.
///
/// # Errors
/// The bytes are no session; nothing should be done to them.
pub fn plan_session_repair(bytes: &[u8]) -> Result<Vec<RepairStep>, LoadError> {
    let log = SessionLog::load(bytes, Trust::Validated)?;
    let misplaced = |damage: &&Damage| {
        use DamageKind::{BeforeHeader, IdlePatch, NotAnEntry, SecondHeader};
        matches!(damage.kind, SecondHeader | IdlePatch | NotAnEntry | BeforeHeader)
    };
    let lines: BTreeSet<usize> = log
        .damage()
        .iter()
        .filter(misplaced)
        .filter_map(|damage| usize::try_from(damage.offset.get()).ok())
        .collect();
    let mut steps = plan_repair(bytes);
    for step in &mut steps {
        let RepairStep::Keep(range) = step else { continue };
        let line = bytes
            .get(..range.start)
            .and_then(|before| memchr::memrchr(b'\n', before))
            .map_or(0, |at| at + 1);
        let end = bytes
            .get(range.end..)
            .and_then(|after| memchr::memchr(b'\n', after));
        let end = end.map_or(bytes.len(), |len| range.end + len);
        // Of records that share a line, the report does not say which one it means.
        let alone = |outside: Range<usize>| !bytes.get(outside).unwrap_or_default().contains(&b'{');
        if lines.contains(&line) && alone(line..range.start) && alone(range.end..end) {
            *step = RepairStep::Quarantine(range.clone());
        }
    }
    Ok(steps)
}

fn plan_line(text: &[u8], start: usize, steps: &mut Vec<RepairStep>) {
    let blank = |bytes: &[u8]| bytes.trim_ascii().is_empty();
    if blank(text) {
        return;
    }
    let mut from = 0;
    for end in line::object_ends(text) {
        let skipped = text
            .get(from..end)
            .map_or(0, |object| object.len() - object.trim_ascii_start().len());
        steps.push(RepairStep::Keep(start + from + skipped..start + end));
        from = end;
    }
    let rest = text.get(from..).unwrap_or_default();
    if blank(rest) {
        return;
    }
    steps.push(RepairStep::Quarantine(start + from..start + text.len()));
    if std::str::from_utf8(rest).is_err() {
        let decoded = String::from_utf8_lossy(rest.trim_ascii())
            .into_owned()
            .into_bytes();
        if line::object_ends(&decoded) == [decoded.len()] {
            steps.push(RepairStep::Insert(decoded));
        }
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

    #[test]
    fn each_kind_of_damage() {
        type Case<'a> = (&'a [u8], &'a [&'a str], &'a [&'a [u8]]);
        let none: &[&[u8]] = &[];
        let cases: [Case<'_>; 10] = [
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
