//! Short ways to write session files.

use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::log::{DamageKind, LoadError, SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::tree::Leaf;

pub(crate) const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#;

/// A header of another version; `version` is JSON.
pub(crate) fn header(version: &str) -> String {
    HEADER.replace("\"version\":3", &format!("\"version\":{version}"))
}

/// `rest` is the members after the envelope, without a comma before them. `parent` is an id, or empty for none.
pub(crate) fn entry(kind: &str, id: &str, parent: &str, rest: &str) -> String {
    let parent = if parent.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{parent}\"")
    };
    let comma = if rest.is_empty() { "" } else { "," };
    format!(
        r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z"{comma}{rest}}}"#
    )
}

/// A user message that says its id.
pub(crate) fn user(id: &str, parent: &str) -> String {
    message(id, parent, &format!(r#""role":"user","content":"{id}""#))
}

/// An assistant message that says its id.
pub(crate) fn assistant(id: &str, parent: &str) -> String {
    message(
        id,
        parent,
        &format!(r#""role":"assistant","stopReason":"stop","content":[{{"type":"text","text":"{id}"}}]"#),
    )
}

/// An assistant message with calls.
pub(crate) fn calls(id: &str, parent: &str, stop: &str, ids: &[&str]) -> String {
    let calls: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"type":"toolCall","id":"{id}","name":"read","arguments":{{}}}}"#))
        .collect();
    message(
        id,
        parent,
        &format!(
            r#""role":"assistant","stopReason":"{stop}","content":[{}]"#,
            calls.join(",")
        ),
    )
}

/// A tool result.
pub(crate) fn result(id: &str, parent: &str, call: &str) -> String {
    message(
        id,
        parent,
        &format!(
            r#""role":"toolResult","toolCallId":"{call}","toolName":"read","isError":false,"content":[{{"type":"text","text":"{id}"}}]"#
        ),
    )
}

pub(crate) fn message(id: &str, parent: &str, members: &str) -> String {
    entry("message", id, parent, &format!(r#""message":{{{members}}}"#))
}

/// A prose compaction. `kept` is JSON.
pub(crate) fn prose(id: &str, parent: &str, summary: &str, kept: &str) -> String {
    compaction(id, parent, summary, kept, "")
}

/// A verbatim compaction. `kept` is JSON.
pub(crate) fn verbatim(id: &str, parent: &str, summary: &str, kept: &str) -> String {
    compaction(
        id,
        parent,
        summary,
        kept,
        r#","details":{"strategy":"verbatim-lines"}"#,
    )
}

pub(crate) fn compaction(id: &str, parent: &str, summary: &str, kept: &str, more: &str) -> String {
    entry(
        "compaction",
        id,
        parent,
        &format!(r#""summary":"{summary}","firstKeptEntryId":{kept},"tokensBefore":9{more}"#),
    )
}

/// Lines to a file: a header first.
pub(crate) fn file(lines: &[String]) -> String {
    let mut text = format!("{HEADER}\n");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

pub(crate) fn load(text: impl Into<Vec<u8>>) -> SessionLog {
    SessionLog::load(text, Trust::Validated).unwrap()
}

pub(crate) fn refused(text: impl Into<Vec<u8>>) -> LoadError {
    SessionLog::load(text, Trust::Validated).unwrap_err()
}

/// The ids of all entries.
pub(crate) fn ids(log: &SessionLog) -> String {
    let ids: Vec<&str> = log.entries().map(|ix| log.id(ix)).collect();
    ids.join(" ")
}

/// The damage as `line:name`.
pub(crate) fn damage(log: &SessionLog) -> String {
    let damage: Vec<String> = log
        .damage()
        .iter()
        .map(|d| format!("{}:{}", d.line, DamageKind::name(&d.kind)))
        .collect();
    damage.join(" ")
}

pub(crate) fn context(log: &SessionLog) -> Context<'_> {
    log.context(&Leaf::Last, Profile::Auto).unwrap()
}

/// What the messages of a context say: the text of each, with the role where it is no conversation.
pub(crate) fn said(context: &Context<'_>) -> String {
    let said: Vec<String> = context.messages().map(words).collect();
    said.join(" ")
}

/// The same for a log, at its leaf.
pub(crate) fn says(log: &SessionLog, profile: Profile) -> String {
    said(&log.context(&Leaf::Last, profile).unwrap())
}

fn words(message: &Message<'_>) -> String {
    match message {
        Message::CompactionSummary(m) => format!("[{}]", m.summary),
        Message::VerbatimBoundary(m) => format!("lines({})", m.text),
        Message::BranchSummary(m) => format!("branch({})", m.summary),
        message => message
            .content()
            .map(|content| content.texts().collect::<Vec<_>>().join(""))
            .unwrap_or_default(),
    }
}
