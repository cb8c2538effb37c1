//! Quarantine of a torn tail, and the question whether a file is a session at all.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use foldline_session_model::log;

use crate::aligned::AlignedBuf;
use crate::line::LineHead;
use crate::volume::{Access, Existing, Volume, VolumeFile, publish, read_exact_at, write_all};

/// Moves a fragment to a `.torn` file of its own beside the session. Only the copy is made here: the
/// caller cuts the log once this has returned.
pub(crate) fn quarantine(volume: &dyn Volume, session: &Path, fragment: &[u8]) -> io::Result<PathBuf> {
    publish_numbered(volume, session, ".torn", fragment)
}

/// Writes `NAME.SUFFIX`, or `NAME.2.SUFFIX` and so on when that is taken; whole, private and durable.
pub(crate) fn publish_numbered(
    volume: &dyn Volume,
    session: &Path,
    suffix: &str,
    bytes: &[u8],
) -> io::Result<PathBuf> {
    let folder = session.parent().unwrap_or(Path::new(""));
    let mut number = 1_u32;
    loop {
        let mut name: OsString = session.file_name().unwrap_or_default().to_os_string();
        if number > 1 {
            name.push(format!(".{number}"));
        }
        name.push(suffix);
        let target = session.with_file_name(name);
        let mut staged = volume.stage(folder, Access::Private)?;
        write_all(staged.file(), bytes)?;
        staged.file().sync()?;
        match publish(volume, staged, &target, Existing::Refuse) {
            Ok(()) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Whether a fragment that is all of a file may be the start of a header: then the file is a session whose
/// very first write was cut.
pub(crate) fn may_be_header(fragment: &[u8]) -> bool {
    const START: &[u8] = br#"{"type":"session""#;
    let len = fragment.len().min(START.len());
    fragment.get(..len) == START.get(..len) || fragment.iter().all(|byte| *byte == 0)
}

/// What the front of a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// Nothing, or blank lines.
    Empty,
    /// A header.
    Found,
    /// Something else.
    Other,
}

/// Looks for the header: the first record that a reader finds, after a title slot and after lines that are not
/// JSON (spec "Session model", 12, cases 6, 14 and 15).
pub(crate) fn find_header(file: &dyn VolumeFile, len: u64) -> io::Result<Header> {
    let mut buffer = AlignedBuf::new();
    let mut take = 4096.min(len);
    loop {
        let window = usize::try_from(take).map_err(|_| io::ErrorKind::FileTooLarge)?;
        read_exact_at(file, buffer.resize(window), 0)?;
        if let Some(header) = judge(&buffer, take == len) {
            return Ok(header);
        }
        take = take.saturating_mul(4).min(len);
    }
}

/// `None` if the header, if any, goes on after these bytes.
fn judge(front: &[u8], whole_file: bool) -> Option<Header> {
    let front = front.strip_prefix(b"\xef\xbb\xbf").unwrap_or(front);
    let mut empty = true;
    let mut rest = front;
    while !rest.is_empty() {
        let line = match memchr::memchr(b'\n', rest) {
            Some(at) => {
                let line = rest.get(..at).unwrap_or_default();
                rest = rest.get(at + 1..).unwrap_or_default();
                line
            }
            None if whole_file => std::mem::take(&mut rest),
            None => return None,
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        empty = false;
        for record in log::records(line) {
            let record = line.get(record).unwrap_or_default();
            let head = serde_json::from_slice::<LineHead<'_>>(record);
            match head.as_ref().map(|head| (head.kind.as_deref(), &head.id)) {
                Ok((Some("session"), Some(_))) => return Some(Header::Found),
                Ok((Some("title"), _)) => {}
                _ => return Some(Header::Other),
            }
        }
    }
    whole_file.then_some(if empty { Header::Empty } else { Header::Other })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_found_where_other_writers_put_it() {
        let cases: [(&str, Option<Header>); 10] = [
            ("", Some(Header::Empty)),
            ("\n \n", Some(Header::Empty)),
            ("{\"type\":\"session\",\"id\":\"s\"}\n", Some(Header::Found)),
            ("\u{feff}{\"type\":\"session\",\"id\":\"s\"}", Some(Header::Found)),
            (
                "{\"type\":\"title\",\"v\":1}\n{\"type\":\"session\",\"id\":\"s\"}\n",
                Some(Header::Found),
            ),
            (
                "garbage\n{\"type\":\"session\",\"id\":\"s\"}\n",
                Some(Header::Found),
            ),
            (
                "{\"type\":\"message\",\"id\":\"m\"}\n{\"type\":\"session\",\"id\":\"s\"}\n",
                Some(Header::Other),
            ),
            (
                "{\"type\":\"session\",\"id\":\"s\"}],\"rest\":1}}\n",
                Some(Header::Found),
            ),
            ("{\"type\":\"session\"}\n", Some(Header::Other)),
            ("only text", Some(Header::Other)),
        ];
        for (text, expected) in cases {
            assert_eq!(judge(text.as_bytes(), true), expected, "{text:?}");
        }
        assert_eq!(judge(br#"{"type":"sess"#, false), None);
    }

    #[test]
    fn a_torn_header_is_told_from_another_file() {
        assert!(may_be_header(b"{"));
        assert!(may_be_header(br#"{"type":"session","id":"x"#));
        assert!(may_be_header(b"\0\0"));
        assert!(!may_be_header(br#"{"type":"message""#));
        assert!(!may_be_header(b"#!/bin/sh"));
    }
}
