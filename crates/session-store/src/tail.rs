//! The end of a log: is the last line whole, and where does a torn one begin?

use std::io;

use foldline_session_model::log;

use crate::aligned::AlignedBuf;
use crate::volume::{VolumeFile, read_exact_at};

/// What stands at the end of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The file is empty or ends with a line break.
    Clean,
    /// The last line is whole but for its line break, which the next write has to bring.
    Unended,
    /// The last write was cut. What follows `keep` is not a record.
    Torn {
        keep: u64,
        fragment: Vec<u8>,
        starts_line: StartsLine,
    },
}

/// Whether a fragment begins a line, or follows a whole object on the same line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartsLine {
    Yes,
    No,
}

/// Looks at the last line of a log of `len` bytes.
pub(crate) fn inspect(file: &dyn VolumeFile, len: u64) -> io::Result<Tail> {
    const BLOCK: u64 = 64 * 1024;
    let mut buffer = AlignedBuf::new();
    let mut take = BLOCK;
    loop {
        let from = len.saturating_sub(take);
        let window = usize::try_from(len - from).map_err(|_| io::ErrorKind::FileTooLarge)?;
        read_exact_at(file, buffer.resize(window), from)?;
        match buffer.last() {
            None | Some(b'\n') => return Ok(Tail::Clean),
            Some(_) => {}
        }
        let start = match memchr::memrchr(b'\n', &buffer) {
            Some(at) => at + 1,
            None if from == 0 => 0,
            None => {
                take = take.saturating_mul(4);
                continue;
            }
        };
        let last = buffer.get(start..).unwrap_or_default();
        return Ok(judge(last, from + start as u64));
    }
}

fn judge(last: &[u8], offset: u64) -> Tail {
    let keep = log::records(last).last().map_or(0, |record| record.end);
    let fragment = last.get(keep..).unwrap_or_default();
    if keep > 0 && fragment.trim_ascii().is_empty() {
        return Tail::Unended;
    }
    Tail::Torn {
        keep: offset + keep as u64,
        fragment: fragment.to_vec(),
        starts_line: if keep == 0 {
            StartsLine::Yes
        } else {
            StartsLine::No
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judged_by_the_last_line() {
        let torn = |keep, fragment: &[u8], starts_line| Tail::Torn {
            keep,
            fragment: fragment.into(),
            starts_line,
        };
        assert_eq!(judge(br#"{"a":1}"#, 9), Tail::Unended);
        assert_eq!(judge(b"{\"a\":1}\r", 9), Tail::Unended);
        assert_eq!(judge(br#"{"a":"#, 9), torn(9, br#"{"a":"#, StartsLine::Yes));
        assert_eq!(judge(b"\0\0", 9), torn(9, b"\0\0", StartsLine::Yes));
        assert_eq!(judge(b"   ", 9), torn(9, b"   ", StartsLine::Yes));
        assert_eq!(judge(br#"{"a":1}{"b"#, 9), torn(16, br#"{"b"#, StartsLine::No));
        // What a reader finds behind other text is no less a record.
        let entry = br#"{"type":"message","id":"a","parentId":null,"timestamp":""}"#;
        for before in [&b"\0\0"[..], b"{\"type\":\"mess", b"garbage"] {
            assert_eq!(judge(&[before, entry].concat(), 9), Tail::Unended);
        }
        assert_eq!(judge(b"{\"a\":\"\xff\"}", 9), Tail::Unended);
    }
}
