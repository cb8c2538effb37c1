//! Sessions for tests.

use std::fmt::Write as _;

use foldline_session_model::log::{SessionLog, Trust};

pub(crate) const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n";

/// A tree of `custom` entries, from `id` for a root and `id<parent`.
pub(crate) fn tree(nodes: &[&str]) -> SessionLog {
    let mut text = HEADER.to_owned();
    for node in nodes {
        let (id, parent) = match node.split_once('<') {
            Some((id, parent)) => (id, format!("\"{parent}\"")),
            None => (*node, "null".to_owned()),
        };
        writeln!(
            text,
            "{{\"type\":\"custom\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",\"customType\":\"t\"}}"
        )
        .unwrap();
    }
    SessionLog::load(text, Trust::Validated).unwrap()
}

/// A file of entries: id, parent (`-` for none), and the members of the body with its type.
pub(crate) fn rows(rows: &[(&str, &str, &str)]) -> SessionLog {
    let mut text = HEADER.to_owned();
    for (id, parent, body) in rows {
        let parent = match *parent {
            "-" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        };
        writeln!(
            text,
            "{{\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",{body}}}"
        )
        .unwrap();
    }
    SessionLog::load(text, Trust::Validated).unwrap()
}

pub(crate) fn user(text: &str) -> String {
    format!(
        "\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"
    )
}

pub(crate) fn assistant(text: &str) -> String {
    format!(
        "\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"stopReason\":\"stop\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"
    )
}
