//! From the messages of a context to the lines of a region (spec "Verbatim", section 4).
//!
//! Secrets are redacted here, so that the lines that survive are those of the redacted text (D18).
//! Role headers, `name(key=JSON)` for calls, `[image]` for pictures, results cut at 16,000 UTF-16 units.

use std::fmt::Write as _;

use foldline_session_model::fold::{Context, ContextItem};
use foldline_session_model::json::{members, stringify};
use foldline_session_model::llm::{LlmBlock, LlmMessage, LlmRole};
use foldline_session_model::message::{Content, Message, ToolCall};

use crate::redact::redact;

use super::line::{Author, RegionBuilder, SectionKind, SectionText};

/// The longest tool result of a region, in UTF-16 units.
pub const RESULT_UNITS: usize = 16_000;

/// Adds one message to a region. The message is the item as the model sees it.
pub(crate) fn add_message(
    builder: &mut RegionBuilder,
    context: &Context<'_>,
    item: &ContextItem<'_>,
    seen: &LlmMessage<'_>,
) {
    let author = match &item.message {
        Message::User(m) if !m.synthetic => Author::Session,
        Message::Assistant(_) | Message::ToolResult(_) => Author::Session,
        _ => Author::Synthetic,
    };
    builder.begin_message(Some(context.log.entry_id(item.source)), author);
    let form = match item.message.content() {
        Some(Content::Text(_)) => Form::Text,
        _ => Form::Blocks,
    };
    match &seen.role {
        LlmRole::User | LlmRole::Developer => {
            builder.section(SectionKind::User, |out| write_blocks(out, &seen.content, form));
        }
        LlmRole::ToolResult { .. } => builder.section(SectionKind::ToolResult, |out| {
            write_blocks(out, &seen.content, form);
            cut(out, RESULT_UNITS);
        }),
        LlmRole::Assistant { .. } => {
            builder.section(SectionKind::AssistantThinking, |out| {
                join(
                    out,
                    "\n",
                    seen.content.iter().filter_map(|block| match block {
                        LlmBlock::Thinking {
                            thinking,
                            redacted: false,
                            ..
                        } => Some(*thinking),
                        _ => None,
                    }),
                );
            });
            builder.section(SectionKind::Assistant, |out| join(out, "\n", seen.texts()));
            builder.section(SectionKind::ToolCalls, |out| {
                let calls = seen.content.iter().filter_map(|block| match block {
                    LlmBlock::ToolCall { call, .. } => Some(*call),
                    _ => None,
                });
                let mut text = String::new();
                for (i, call) in calls.enumerate() {
                    if i > 0 {
                        text.push_str("; ");
                    }
                    write_call(&mut text, call);
                }
                out.push_str(&redact(&text));
            });
        }
    }
}

fn join<'t>(out: &mut SectionText<'_>, between: &str, texts: impl Iterator<Item = &'t str>) {
    for (i, text) in texts.enumerate() {
        if i > 0 {
            out.push_str(between);
        }
        out.push_str(&redact(text));
    }
}

/// How the content of a message is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As one text, which is taken as it is.
    Text,
    /// As blocks, which lose one newline at their end: tools end their output with one.
    Blocks,
}

/// Text blocks one after another; a picture is a line of its own.
fn write_blocks(out: &mut SectionText<'_>, blocks: &[LlmBlock<'_>], form: Form) {
    for block in blocks {
        match block {
            LlmBlock::Text(text) => out.push_str(&redact(text)),
            LlmBlock::Image { .. } => {
                if !out.as_str().is_empty() && !out.as_str().ends_with('\n') {
                    out.push_str("\n");
                }
                out.push_str("[image]\n");
            }
            _ => {}
        }
    }
    if form == Form::Blocks && out.as_str().ends_with('\n') {
        let len = out.as_str().len() - 1;
        out.truncate(len);
    }
}

/// `name(key=JSON, key=JSON)`, one physical line: newlines in strings stay escapes.
pub(crate) fn write_call(out: &mut impl std::fmt::Write, call: &ToolCall<'_>) {
    // Writing to a region's text cannot fail.
    let _ = write!(out, "{}(", call.name);
    if let Some(arguments) = call.arguments.as_deref() {
        match members(arguments) {
            Some(members) => {
                for (i, (key, value)) in members.iter().enumerate() {
                    let between = if i > 0 { ", " } else { "" };
                    let _ = write!(out, "{between}{key}={value}");
                }
            }
            None => {
                let _ = write!(out, "{}", stringify(arguments));
            }
        }
    }
    let _ = write!(out, ")");
}

/// Cuts at the last character border at or below `units` UTF-16 units and says how many were cut.
fn cut(out: &mut SectionText<'_>, units: usize) {
    let text = out.as_str();
    if text.len() <= units {
        return;
    }
    let mut kept = 0;
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        if kept + c.len_utf16() > units {
            end = at;
            break;
        }
        kept += c.len_utf16();
    }
    let cut: usize = text
        .get(end..)
        .unwrap_or_default()
        .chars()
        .map(char::len_utf16)
        .sum();
    if cut > 0 {
        out.truncate(end);
        let _ = write!(out, "\n\n[... {cut} more characters truncated]");
    }
}

#[cfg(test)]
mod tests;
