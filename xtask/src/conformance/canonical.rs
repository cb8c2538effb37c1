//! The canonical text of a message, by which vectors compare contexts; lengths and hashes.

use std::fmt::Write as _;

use foldline_session_model::fold::ContextItem;
use foldline_session_model::json::stringify;
use foldline_session_model::llm::{Around, Wrappers};
use foldline_session_model::message::{Block, Content, Message};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::session::Session;

/// The neutral wrapper strings of the vectors.
pub(super) fn neutral_wrappers() -> Wrappers {
    Wrappers {
        compaction_summary: Around::new("<<compaction-summary>>\n", "\n<</compaction-summary>>"),
        branch_summary: Around::new("<<branch-summary>>\n", "\n<</branch-summary>>"),
        verbatim: Around::new("<<verbatim-compaction>>\n\n", ""),
        missing_result: "<<tool-result-unavailable>>".into(),
    }
}

/// A message of a context as `[role, source, length, hash]`.
pub(super) fn row(session: &Session, item: &ContextItem<'_>) -> Value {
    let text = message_text(&item.message);
    json!([
        item.message.role(),
        session.reference(item.source),
        utf16_len(&text),
        sha16(&text)
    ])
}

/// The canonical text of a message.
pub(super) fn message_text(message: &Message<'_>) -> String {
    match message {
        Message::BashExecution(m) | Message::PythonExecution(m) => format!("{}\n{}", m.source, m.output),
        Message::BranchSummary(m) | Message::CompactionSummary(m) => m.summary.to_string(),
        Message::VerbatimBoundary(m) => neutral_wrappers().verbatim.wrap(&m.text),
        Message::FileMention(m) => {
            let files = m.files.iter().map(|f| format!("{}\n{}", f.path, f.content));
            files.collect::<Vec<_>>().join("\n")
        }
        message => message.content().map(content_text).unwrap_or_default(),
    }
}

fn content_text(content: &Content<'_>) -> String {
    match content {
        Content::Text(text) => text.to_string(),
        Content::Blocks(blocks) => blocks.iter().map(block_text).collect::<Vec<_>>().join("\n"),
    }
}

fn block_text(block: &Block<'_>) -> String {
    match block {
        Block::Text { text, .. } => text.to_string(),
        Block::Thinking { thinking, .. } => thinking.to_string(),
        Block::ToolCall(call) => {
            let arguments = call.arguments.as_deref().map(stringify).unwrap_or_default();
            format!("{}{arguments}", call.name)
        }
        block => format!("[{}]", block.kind()),
    }
}

/// The length as JavaScript counts it.
pub(super) fn utf16_len(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The SHA-256 in lower-case hexadecimal digits.
pub(super) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hash, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

/// The first 16 digits of the SHA-256.
pub(super) fn sha16(text: &str) -> String {
    let mut hash = sha256(text);
    hash.truncate(16);
    hash
}
