//! Messages as JSON and as text.

use std::borrow::Cow;

use foldline_session_model::llm::{LlmBlock, LlmMessage};
use foldline_session_model::message::{Block, Content, Message};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The content of a message: text, or blocks in the form of session files.
pub(crate) struct ContentJson<'m>(pub(crate) &'m Message<'m>);

impl Serialize for ContentJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.content() {
            Some(Content::Text(text)) => serializer.serialize_str(text),
            Some(Content::Blocks(blocks)) => {
                let mut list = serializer.serialize_seq(Some(blocks.len()))?;
                for block in blocks {
                    list.serialize_element(&block_json(block))?;
                }
                list.end()
            }
            None => serializer.serialize_str(&plain(self.0)),
        }
    }
}

/// The text of a message that has no content blocks.
pub(crate) fn plain<'m>(message: &'m Message<'_>) -> Cow<'m, str> {
    match message {
        Message::BashExecution(m) | Message::PythonExecution(m) => {
            Cow::Owned(format!("{}\n{}", m.source, m.output))
        }
        Message::BranchSummary(m) | Message::CompactionSummary(m) => Cow::Borrowed(&m.summary),
        Message::VerbatimBoundary(m) => Cow::Borrowed(&m.text),
        Message::FileMention(m) => Cow::Owned(
            m.files
                .iter()
                .map(|f| format!("{}\n{}", f.path, f.content))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        other => Cow::Owned(
            other
                .content()
                .map(|c| c.texts().collect::<Vec<_>>().join("\n"))
                .unwrap_or_default(),
        ),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BlockJson<'m> {
    #[serde(rename = "type")]
    kind: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_signature: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'m RawValue>,
}

impl<'m> BlockJson<'m> {
    const fn new(kind: &'m str) -> Self {
        Self {
            kind,
            text: None,
            thinking: None,
            thinking_signature: None,
            data: None,
            mime_type: None,
            id: None,
            name: None,
            arguments: None,
        }
    }
}

fn block_json<'m>(block: &'m Block<'_>) -> BlockJson<'m> {
    let base = BlockJson::new(block.kind());
    match block {
        Block::Text { text, .. } => BlockJson {
            text: Some(text),
            ..base
        },
        Block::Thinking {
            thinking, signature, ..
        } => BlockJson {
            thinking: Some(thinking),
            thinking_signature: signature.as_deref(),
            ..base
        },
        Block::RedactedThinking { data } => BlockJson {
            data: Some(data),
            ..base
        },
        Block::Image { data, mime_type } => BlockJson {
            data: Some(data),
            mime_type: Some(mime_type),
            ..base
        },
        Block::ToolCall(call) => BlockJson {
            id: Some(&call.id),
            name: Some(&call.name),
            arguments: call.arguments.as_deref(),
            ..base
        },
        _ => base,
    }
}

/// A block of a model call in the same form.
pub(crate) fn llm_block_json<'m>(block: &'m LlmBlock<'_>) -> BlockJson<'m> {
    match block {
        LlmBlock::Text(text) => BlockJson {
            text: Some(text),
            ..BlockJson::new("text")
        },
        LlmBlock::Image { data, mime_type } => BlockJson {
            data: Some(data),
            mime_type: Some(mime_type),
            ..BlockJson::new("image")
        },
        LlmBlock::Thinking {
            thinking, signature, ..
        } => BlockJson {
            thinking: Some(thinking),
            thinking_signature: *signature,
            ..BlockJson::new("thinking")
        },
        LlmBlock::RedactedThinking { data } => BlockJson {
            data: Some(data),
            ..BlockJson::new("redactedThinking")
        },
        LlmBlock::ToolCall { id, call } => BlockJson {
            id: Some(id),
            name: Some(&call.name),
            arguments: call.arguments.as_deref(),
            ..BlockJson::new("toolCall")
        },
        LlmBlock::Unknown { kind } => BlockJson::new(kind),
        _ => BlockJson::new("unknown"),
    }
}

/// A message of a model call as text for people.
pub(crate) fn llm_text(message: &LlmMessage<'_>) -> String {
    let mut out = String::new();
    for block in &message.content {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            LlmBlock::Text(text) => out.push_str(text),
            LlmBlock::Thinking { thinking, .. } => out.push_str(thinking),
            LlmBlock::Image { mime_type, .. } => out.push_str(&format!("[image {mime_type}]")),
            LlmBlock::RedactedThinking { .. } => out.push_str("[thinking, encrypted]"),
            LlmBlock::ToolCall { call, .. } => {
                let arguments = call.arguments.as_deref().map_or("", RawValue::get);
                out.push_str(&format!("{}({arguments})", call.name));
            }
            _ => {}
        }
    }
    out
}

/// Whether a character of a transcript may reach a terminal: it must not command it, and not reorder what stands around
/// it.
pub(crate) fn is_harmless(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Text of a transcript without what could command the terminal. Line breaks stay, tabs become spaces.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            '\t' => out.push_str("    "),
            c if is_harmless(c) => out.push(c),
            _ => {}
        }
    }
    out
}

/// The first line of a text, at most `width` characters long.
pub(crate) fn first_line(text: &str, width: usize) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut short: String = line.chars().filter(|c| is_harmless(*c)).take(width).collect();
    if line.chars().count() > width {
        short.pop();
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sequence_reaches_the_terminal() {
        for (text, shown) in [
            ("plain\n\ttext", "plain\n    text"),
            ("\u{1b}[31mred\u{1b}[0m", "[31mred[0m"),
            ("\u{1b}]0;title\u{7}", "]0;title"),
            ("\u{9b}2J", "2J"),
            ("a\rb\u{8}c\u{7f}", "abc"),
            ("abc\u{202e}txt.exe", "abctxt.exe"),
        ] {
            assert_eq!(harmless(text), shown, "{text:?}");
        }
        assert_eq!(first_line("\u{1b}[2J one\ntwo", 40), "[2J one");
    }
}
