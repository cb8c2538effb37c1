//! From the messages of a context to the lines of a region (spec "Verbatim", section 4).
//!
//! Secrets are redacted here, so that the lines that survive are those of the redacted text (D18).
//! Role headers, `name(key=JSON)` for calls, `[image]` for pictures, results cut at 16,000 UTF-16 units.

use std::fmt::Write as _;

use foldline_session_model::fold::{Context, ContextItem};
use foldline_session_model::json::{members, stringify};
use foldline_session_model::llm::{LlmBlock, LlmMessage, LlmRole};
use foldline_session_model::message::{Content, Message, ToolCall};

use crate::redact::{redact, redact_into};
use crate::text::{head, units};

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
    let origin = Some(context.log.entry_id(item.source));
    match &item.message {
        Message::User(m) if !m.synthetic => builder.begin_message(origin, Author::Session),
        Message::Assistant(_) | Message::ToolResult(_) => builder.begin_message(origin, Author::Session),
        Message::BashExecution(_) | Message::PythonExecution(_) | Message::FileMention(_) => {
            builder.begin_output(origin)
        }
        _ => builder.begin_message(origin, Author::Synthetic),
    };
    let form = match item.message.content() {
        Some(Content::Text(_)) => Form::Text,
        _ => Form::Blocks,
    };
    match &seen.role {
        LlmRole::User | LlmRole::Developer => {
            builder.section(SectionKind::User, |out| {
                write_blocks(out, &seen.content, form, usize::MAX);
            });
        }
        LlmRole::ToolResult { .. } => builder.section(SectionKind::ToolResult, |out| {
            write_blocks(out, &seen.content, form, RESULT_UNITS);
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

/// Text blocks one after another, a picture as a line of its own; cut at `limit` UTF-16 units.
fn write_blocks(out: &mut SectionText<'_>, blocks: &[LlmBlock<'_>], form: Form, limit: usize) {
    let mut cut = Cut {
        out,
        room: limit,
        beyond: 0,
        newline: true,
    };
    for block in blocks {
        match block {
            LlmBlock::Text(text) => redact_into(text, |piece| cut.push_str(piece)),
            LlmBlock::Image { .. } => {
                if !cut.newline {
                    cut.push_str("\n");
                }
                cut.push_str("[image]\n");
            }
            _ => {}
        }
    }
    cut.finish(form);
}

/// Text that is written up to a limit and only counted beyond it, so that a cut result costs no more than what is left
/// of it (R17).
struct Cut<'o, 'b> {
    out: &'o mut SectionText<'b>,
    /// UTF-16 units that may still be written.
    room: usize,
    /// Units that were not.
    beyond: usize,
    /// Whether the text ends in a newline, or has not begun.
    newline: bool,
}

impl Cut<'_, '_> {
    fn push_str(&mut self, text: &str) {
        let Some(last) = text.as_bytes().last() else {
            return;
        };
        self.newline = *last == b'\n';
        let kept = head(text, self.room);
        self.out.push_str(kept);
        if kept.len() == text.len() {
            self.room -= units(kept);
        } else {
            // What does not fit ends the text: a shorter piece after it must not slip in.
            self.room = 0;
            self.beyond += units(text.get(kept.len()..).unwrap_or_default());
        }
    }

    fn finish(self, form: Form) {
        let Self { out, beyond, .. } = self;
        let mut beyond = beyond;
        if form == Form::Blocks && self.newline {
            match beyond {
                0 => {
                    let len = out.as_str().len().saturating_sub(1);
                    out.truncate(len);
                }
                _ => beyond -= 1,
            }
        }
        if beyond > 0 {
            // Writing to a region's text cannot fail.
            let _ = write!(out, "\n\n[... {beyond} more characters truncated]");
        }
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

#[cfg(test)]
mod tests;
