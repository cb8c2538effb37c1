//! What a model answered.

use serde::{Deserialize, Serialize};

use super::{AssistantBlock, Usage};

/// A whole reply, or what had arrived of one when it broke off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmReply {
    /// The blocks in the order in which they were opened.
    pub blocks: Vec<AssistantBlock<'static>>,
    /// What the provider counted; all zero when it said nothing.
    pub usage: Usage,
    /// Why the reply ended.
    pub stop: StopReason,
    /// The provider's own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop: Option<String>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
}

impl LlmReply {
    /// All text blocks joined by newlines: the answer of a summary or of a plan.
    pub fn text(&self) -> String {
        let mut joined = String::new();
        for block in &self.blocks {
            if let AssistantBlock::Text { text, .. } = block {
                if !joined.is_empty() {
                    joined.push('\n');
                }
                joined.push_str(text);
            }
        }
        joined
    }

    /// Whether nothing of substance arrived: no call, and no text or thinking but blanks.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| match block {
            AssistantBlock::Text { text, .. } | AssistantBlock::Thinking { text, .. } => {
                text.trim().is_empty()
            }
            AssistantBlock::RedactedThinking { .. } => true,
            AssistantBlock::ToolCall(_) => false,
        })
    }
}

/// Why a reply ended; the names are those of session files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model was done.
    #[default]
    Stop,
    /// The output limit was reached.
    Length,
    /// The model waits for tool results.
    ToolUse,
    /// The request failed.
    Error,
    /// The caller cancelled.
    Aborted,
}
