//! The original of a result: what an artifact holds, and what `artifact://entry/<id>` shows.

use foldline_session_model::EntryIx;
use foldline_session_model::json;
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Block, Content, Message};
use serde_json::value::RawValue;

use crate::digest::joined_text;
use crate::staleness::Members;

/// The content of a result as it stands in the log, whatever masks say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Original {
    /// All of it is text: the blocks joined by newlines.
    Text(String),
    /// There are pictures or blocks of other types: the whole content as JSON, so that nothing of it is lost.
    Content(String),
}

impl Original {
    /// The original of an entry; `None` if it is no tool result or cannot be read.
    pub fn of(log: &SessionLog, entry: EntryIx) -> Option<Self> {
        let message = log.message(entry)?;
        let Message::ToolResult(result) = &*message else {
            return None;
        };
        let is_text = match &result.content {
            Content::Text(_) => true,
            Content::Blocks(blocks) => blocks.iter().all(|block| matches!(block, Block::Text { .. })),
        };
        if is_text {
            return Some(Self::Text(joined_text(&result.content).into_owned()));
        }
        let text = log.message_json(entry)?;
        let raw: &RawValue = serde_json::from_str(&text).ok()?;
        let content = Members::of(Some(raw)).get("content")?;
        Some(Self::Content(json::stringify(content).into_owned()))
    }

    /// What an artifact file holds.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Content(text) => text,
        }
    }
}
