//! The session that is crashed, and the check of what is left of it.

use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_store::{Expected, OpenOptions, Owner};

pub(super) const HEADER: &str =
    r#"{"type":"session","version":3,"id":"crash","timestamp":"2026-08-01T00:00:00.000Z","cwd":"/w"}"#;

pub(super) fn id(number: u64) -> String {
    format!("{number:08x}")
}

/// Lines from short to longer than a page.
pub(super) fn entry(number: u64) -> String {
    let text = "words of a message, ".repeat(usize::try_from(number % 300).unwrap_or(0));
    let parent = number
        .checked_sub(1)
        .map_or_else(|| "null".to_owned(), |parent| format!("\"{}\"", id(parent)));
    format!(
        r#"{{"type":"message","id":"{}","parentId":{parent},"timestamp":"2026-08-01T00:00:01.000Z","message":{{"role":"user","content":"{text}","timestamp":1}}}}"#,
        id(number)
    )
}

pub(super) fn options() -> OpenOptions {
    OpenOptions {
        owner: Owner::this_process(),
        now: SystemTime::now(),
        expected: Expected::Any,
    }
}

/// Whether a write may have been cut at the end of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    MayBeTorn,
}

/// The ids in a session, after a check that each line is one whole record, that no id is there twice, and that
/// the session loads.
pub(super) fn ids(bytes: &[u8], end: End) -> anyhow::Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Head {
        r#type: String,
        id: String,
    }
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    if !last.is_empty() {
        match end {
            End::Whole => bail!("the last line has no end: {}", String::from_utf8_lossy(last)),
            // A whole record without its line break counts; a part of one does not.
            End::MayBeTorn if serde_json::from_slice::<Head>(last).is_ok() => lines.push(last),
            End::MayBeTorn => {}
        }
    }
    let mut ids = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        let head: Head = serde_json::from_slice(line)
            .with_context(|| format!("line {}: {}", number + 1, String::from_utf8_lossy(line)))?;
        ensure!(
            (head.r#type == "session") == (number == 0),
            "line {} is out of place",
            number + 1
        );
        if number > 0 {
            ids.push(head.id);
        }
    }
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    ensure!(unique.len() == ids.len(), "an entry is there twice");
    let log = SessionLog::load(bytes, Trust::Validated).context("the session does not load")?;
    ensure!(
        log.len() == ids.len(),
        "{} entries load, {} are there",
        log.len(),
        ids.len()
    );
    Ok(ids)
}

/// Checks that the acknowledged ids are there, in their order.
pub(super) fn check_acknowledged(found: &[String], acknowledged: &[String]) -> anyhow::Result<()> {
    let mut rest = found.iter();
    for id in acknowledged {
        ensure!(
            rest.any(|other| other == id),
            "entry {id} was acknowledged and is gone"
        );
    }
    Ok(())
}
