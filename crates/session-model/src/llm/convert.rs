//! One message of a context as a message of a model call (spec, 9).

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{LlmBlock, LlmMessage, LlmRole, ResultOrigin, Wrappers};
use crate::fold::ContextItem;
use crate::message::{Block, Content, Execution, FileMention, Message};

/// The message for the model; `None` if the model does not see it.
pub(super) fn message<'c>(item: &'c ContextItem<'_>, wrappers: &'c Wrappers) -> Option<LlmMessage<'c>> {
    if !item.message.is_visible() {
        return None;
    }
    let (role, content) = match &item.message {
        Message::User(m) => (LlmRole::User, visible_blocks(&m.content)),
        Message::Developer(m) => (LlmRole::Developer, visible_blocks(&m.content)),
        Message::Custom(m) | Message::HookMessage(m) => (LlmRole::User, visible_blocks(&m.content)),
        Message::Assistant(m) => (LlmRole::Assistant { message: m }, blocks(&m.content)),
        Message::ToolResult(m) => {
            let content = if m.pruned_at.is_some() {
                pruned(&m.content)
            } else {
                blocks(&m.content)
            };
            let role = LlmRole::ToolResult {
                call_id: Cow::Borrowed(&m.tool_call_id),
                tool_name: Cow::Borrowed(&m.tool_name),
                is_error: m.is_error,
                origin: ResultOrigin::Recorded,
            };
            (role, content)
        }
        Message::BashExecution(m) => (LlmRole::User, text(bash(m))),
        Message::PythonExecution(m) => (LlmRole::User, text(python(m))),
        Message::FileMention(m) => (LlmRole::User, mention(m)),
        Message::BranchSummary(m) => (LlmRole::User, text(wrappers.branch_summary.wrap(&m.summary))),
        Message::CompactionSummary(m) => (LlmRole::User, text(wrappers.compaction_summary.wrap(&m.summary))),
        Message::VerbatimBoundary(m) => (LlmRole::User, text(wrappers.verbatim.wrap(&m.text))),
        Message::Unknown(_) => return None,
    };
    Some(LlmMessage {
        source: item.source,
        role,
        content,
    })
}

fn text(text: String) -> Vec<LlmBlock<'static>> {
    vec![LlmBlock::Text(Cow::Owned(text))]
}

fn blocks<'c>(content: &'c Content<'_>) -> Vec<LlmBlock<'c>> {
    match content {
        Content::Text(text) => vec![LlmBlock::Text(Cow::Borrowed(text))],
        Content::Blocks(blocks) => blocks.iter().map(block).collect(),
    }
}

/// The blocks without blank text: some providers refuse it.
fn visible_blocks<'c>(content: &'c Content<'_>) -> Vec<LlmBlock<'c>> {
    match content {
        Content::Text(text) => vec![LlmBlock::Text(Cow::Borrowed(text))],
        Content::Blocks(blocks) => blocks.iter().filter(|b| b.is_visible()).map(block).collect(),
    }
}

fn block<'c>(block: &'c Block<'_>) -> LlmBlock<'c> {
    match block {
        Block::Text { text, .. } => LlmBlock::Text(Cow::Borrowed(text)),
        // What a reference stands for is not in the session, and no provider can follow it.
        Block::Image { data, mime_type } if data.starts_with("blob:") => LlmBlock::Text(Cow::Owned(format!(
            "[A picture ({mime_type}) stood here. It was stored outside of the session and is not available.]"
        ))),
        Block::Image { data, mime_type } => LlmBlock::Image { data, mime_type },
        Block::Thinking {
            thinking,
            signature,
            redacted,
        } => LlmBlock::Thinking {
            thinking,
            signature: signature.as_deref(),
            redacted: *redacted,
        },
        Block::RedactedThinking { data } => LlmBlock::RedactedThinking { data },
        Block::ToolCall(call) => LlmBlock::ToolCall {
            id: Cow::Borrowed(&call.id),
            call,
        },
        Block::Unknown { kind } => LlmBlock::Unknown { kind },
    }
}

/// A result that a rewriting prune replaced: one block of text, no pictures.
fn pruned<'c>(content: &Content<'c>) -> Vec<LlmBlock<'c>> {
    let all: String = content.texts().collect();
    text(if all.is_empty() {
        "[Output truncated]".to_owned()
    } else {
        all
    })
}

/// A command of the user with its output.
pub(crate) fn bash(m: &Execution<'_>) -> String {
    let mut out = format!("Ran `{}`\n", m.source);
    fenced_or(&mut out, &m.output, "(no output)");
    if m.cancelled {
        out.push_str("\n\n(command cancelled)");
    } else if let Some(code) = m.exit_code.filter(|code| *code != 0.0) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\n\nCommand exited with code {code}");
    }
    if let (true, Some(path)) = (m.truncated, &m.full_output_path) {
        let _ = write!(out, "\n\n[Output truncated. Full output: {path}]");
    }
    out
}

/// Python code of the user with its output.
pub(crate) fn python(m: &Execution<'_>) -> String {
    let mut out = format!("Ran Python:\n```python\n{}\n```\n", m.source);
    if !m.output.is_empty() {
        out.push_str("Output:\n");
    }
    fenced_or(&mut out, &m.output, "(no output)");
    if m.cancelled {
        out.push_str("\n\n(execution cancelled)");
    } else if let Some(code) = m.exit_code.filter(|code| *code != 0.0) {
        let _ = write!(out, "\n\nExecution failed with code {code}");
    }
    out
}

fn fenced_or(out: &mut String, output: &str, nothing: &str) {
    if output.is_empty() {
        out.push_str(nothing);
    } else {
        let _ = write!(out, "```\n{output}\n```");
    }
}

/// Mentioned files. Their paths and contents are escaped: a file must not be able to close its own tag.
fn mention<'c>(m: &'c FileMention<'_>) -> Vec<LlmBlock<'c>> {
    let mut out = String::from("<system-reminder>\n");
    for (i, file) in m.files.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out.push_str("<file path=\"");
        escape(&mut out, &file.path);
        out.push_str("\">\n");
        if !file.content.is_empty() {
            escape(&mut out, &file.content);
            out.push('\n');
        }
        out.push_str("</file>\n");
    }
    out.push_str("</system-reminder>");
    let mut content = text(out);
    content.extend(m.files.iter().filter_map(|file| file.image.as_ref()).map(block));
    content
}

/// Escapes markup, and writes control and bidirectional characters as `\uXXXX`; newline and tab stay.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\u{0}'..='\u{1F}'
            | '\u{7F}'..='\u{9F}'
            | '\u{61C}'
            | '\u{200E}'
            | '\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
}
