//! A document to read. Everything that comes from the session stands in code fences or code spans that it
//! cannot close, so no byte of a transcript becomes markup.

use std::fmt::Write as _;

use super::{Speaker, Turn, turns};
use crate::fold::Context;
use crate::llm::{LlmBlock, LlmRole, Wrappers};

/// Exports the view as Markdown.
pub fn markdown(context: &Context<'_>) -> String {
    let wrappers = Wrappers::default();
    let header = context.log.header();
    let mut out = String::from("# Session ");
    span(&mut out, header.title.as_deref().unwrap_or(&header.id));
    out.push_str("\n\n");
    for (name, value) in [
        ("Id", &header.id),
        ("Started", &header.timestamp),
        ("Folder", &header.cwd),
    ] {
        if !value.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(out, "- {name}: ");
            span(&mut out, value);
            out.push('\n');
        }
    }
    out.push('\n');
    for turn in turns(context, &wrappers) {
        message(&mut out, &turn);
    }
    // One blank line between parts, none at the end.
    out.truncate(out.trim_end_matches('\n').len());
    out.push('\n');
    out
}

fn message(out: &mut String, turn: &Turn<'_>) {
    let title = match turn.speaker {
        Speaker::Summary { .. } => "Compaction",
        Speaker::User => "User",
        Speaker::Program => "Program, in the user's name",
        Speaker::Developer => "Program",
        Speaker::Assistant => "Assistant",
        Speaker::Tool => "Result",
    };
    let _ = write!(out, "## {title}");
    match &turn.message.role {
        LlmRole::Assistant { message } if !message.model.is_empty() => {
            out.push_str(", ");
            span(out, &message.model);
        }
        LlmRole::ToolResult {
            call_id,
            tool_name,
            is_error,
            ..
        } => {
            out.push_str(if *is_error { ", error, of " } else { " of " });
            span(out, tool_name);
            out.push_str(", call ");
            span(out, call_id);
        }
        _ => {}
    }
    out.push_str("\n\n");
    if let Some(timestamp) = turn.timestamp {
        span(out, timestamp);
        out.push_str("\n\n");
    }
    for content in &turn.message.content {
        block(out, content);
    }
}

fn block(out: &mut String, block: &LlmBlock<'_>) {
    match block {
        LlmBlock::Text(text) | LlmBlock::RemoteHistory { fallback: text, .. } => fence(out, "text", text),
        LlmBlock::Image { mime_type, .. } => {
            out.push_str("Picture, ");
            span(out, mime_type);
            out.push_str("\n\n");
        }
        LlmBlock::Thinking {
            thinking,
            redacted: false,
            ..
        } => {
            out.push_str("Thinking:\n\n");
            fence(out, "text", thinking);
        }
        LlmBlock::Thinking { .. } | LlmBlock::RedactedThinking { .. } => {
            out.push_str("Thinking that only its provider can read.\n\n");
        }
        LlmBlock::ToolCall { id, call } => {
            out.push_str("Call of ");
            span(out, &call.name);
            out.push_str(", id ");
            span(out, id);
            out.push_str(":\n\n");
            fence(
                out,
                "json",
                call.arguments.as_deref().map_or("{}", |raw| raw.get()),
            );
        }
        LlmBlock::Unknown { kind } => {
            out.push_str("A block of the unknown type ");
            span(out, kind);
            out.push_str("\n\n");
        }
    }
}

/// A fenced block. The fence is longer than any run of backticks inside, so only its own end closes it.
fn fence(out: &mut String, language: &str, text: &str) {
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    let _ = write!(out, "{fence}{language}\n{text}");
    if !text.is_empty() && !text.ends_with('\n') {
        out.push('\n');
    }
    let _ = write!(out, "{fence}\n\n");
}

/// A code span on one line, delimited by more backticks than any run inside.
fn span(out: &mut String, text: &str) {
    if text.trim().is_empty() {
        out.push_str("(none)");
        return;
    }
    let fence = "`".repeat(longest_run(text) + 1);
    let line: String = text
        .chars()
        .map(|c| {
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                ' '
            } else {
                c
            }
        })
        .collect();
    // A space on both sides keeps backticks at the ends apart from the delimiter; readers strip it.
    let _ = write!(out, "{fence} {line} {fence}");
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for b in text.bytes() {
        run = if b == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
