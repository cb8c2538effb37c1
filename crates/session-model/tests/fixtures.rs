//! The committed sessions: what `expect.json` promises, and lines that stay as they are.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the committed files"
)]

use std::path::PathBuf;

use foldline_session_model::log::{LoadError, Migration, SessionLog, Trust};
use foldline_session_model::{EntryDraft, Envelope};

#[derive(serde::Deserialize)]
struct Expected {
    files: Vec<Session>,
}

#[derive(serde::Deserialize)]
struct Session {
    #[serde(rename = "file")]
    name: String,
    readable: usize,
    damage: Vec<Finding>,
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Finding {
    line: u32,
    kind: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions")
}

fn expected() -> Vec<(Session, Vec<u8>)> {
    let text = std::fs::read_to_string(folder().join("expect.json")).unwrap();
    let expected: Expected = serde_json::from_str(&text).unwrap();
    expected
        .files
        .into_iter()
        .map(|file| {
            let bytes = std::fs::read(folder().join(&file.name)).unwrap();
            (file, bytes)
        })
        .collect()
}

#[test]
fn fixtures_have_the_entries_and_the_damage_that_they_were_made_with() {
    let all = expected();
    assert!(all.len() > 40);
    for (file, bytes) in all {
        match SessionLog::load(bytes, Trust::Validated) {
            Ok(log) => {
                let damage: Vec<Finding> = log
                    .damage()
                    .iter()
                    .map(|d| Finding {
                        line: d.line.get(),
                        kind: d.kind.name().to_owned(),
                    })
                    .collect();
                assert_eq!(damage, file.damage, "{}", file.name);
                assert_eq!(log.len(), file.readable, "{}", file.name);
            }
            Err(LoadError::NotASession { line, .. }) => {
                assert_eq!(file.damage[0].kind, "no_header", "{}", file.name);
                assert_eq!(file.damage[0].line, line.get(), "{}", file.name);
            }
            Err(error) => panic!("{}: {error}", file.name),
        }
    }
}

/// Load, append, read the result: every earlier byte is where it was.
#[test]
fn an_append_leaves_every_earlier_byte() {
    for (file, bytes) in expected() {
        let Ok(mut log) = SessionLog::load(bytes.clone(), Trust::Validated) else {
            continue;
        };
        let line = EntryDraft::session_info("a name").line(&Envelope {
            id: "appended".into(),
            parent: log.leaf().map(|ix| log.entry_id(ix)),
            timestamp: "2026-01-01T00:00:00.000Z".into(),
        });
        let base = match log.disk_form().migration {
            Migration::NotNeeded => bytes,
            _ => {
                // The form that a migration writes is stable, and keeps every line that needs no change.
                let written = log.to_written_form().unwrap();
                log = SessionLog::load(written.clone(), Trust::Validated).unwrap();
                assert_eq!(log.to_written_form().unwrap(), written, "{}", file.name);
                assert_eq!(log.disk_form().migration, Migration::NotNeeded, "{}", file.name);
                written
            }
        };
        let before = log.before_append();
        let ix = log.append(&line).unwrap();
        assert_eq!(
            log.bytes(),
            [&base, before, line.as_bytes(), b"\n"].concat(),
            "{}",
            file.name
        );
        let again = SessionLog::load(log.bytes(), Trust::Validated).unwrap();
        assert_eq!(
            again.leaf().map(|ix| again.id(ix)),
            Some("appended"),
            "{}",
            file.name
        );
        assert_eq!(
            again.line_number(again.leaf().unwrap()),
            log.line_number(ix),
            "{}",
            file.name
        );
        assert_eq!(again.len(), log.len(), "{}", file.name);
    }
}
