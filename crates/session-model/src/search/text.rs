//! What an entry says, as text to search in.

use serde_json::value::RawValue;

use crate::message::{Block, Content, Message, ToolCall};

/// What a message says: text, thinking, the names and text arguments of calls, commands and their output, mentioned
/// files, summaries; one part below the other. The text of a verbatim compaction is left out: it repeats lines of the
/// log word for word.
pub fn text_of(message: &Message<'_>) -> String {
    let mut text = String::new();
    match message {
        Message::BashExecution(m) | Message::PythonExecution(m) => {
            push(&mut text, &m.source);
            push(&mut text, &m.output);
        }
        Message::FileMention(m) => {
            for file in &m.files {
                push(&mut text, &file.path);
                push(&mut text, &file.content);
            }
        }
        Message::BranchSummary(m) | Message::CompactionSummary(m) => push(&mut text, &m.summary),
        Message::VerbatimBoundary(_) => {}
        message => {
            if let Some(content) = message.content() {
                push_content(&mut text, content);
            }
        }
    }
    text
}

fn push(text: &mut String, part: &str) {
    if part.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(part);
}

fn push_content(text: &mut String, content: &Content<'_>) {
    if let Content::Text(plain) = content {
        push(text, plain);
    }
    for block in content.blocks() {
        match block {
            Block::Text { text: part, .. } => push(text, part),
            Block::Thinking {
                thinking,
                redacted: false,
                ..
            } => push(text, thinking),
            Block::ToolCall(call) => push_call(text, call),
            _ => {}
        }
    }
}

/// A call: its name, and every string of its arguments that is no key.
fn push_call(text: &mut String, call: &ToolCall<'_>) {
    push(text, &call.name);
    let json = call.arguments.as_deref().map_or("", RawValue::get);
    let mut at = 0;
    while let Some(start) = json.get(at..).and_then(|rest| rest.find('"')).map(|n| at + n) {
        let end = string_end(json, start);
        at = end;
        let is_key = json
            .get(end..)
            .is_some_and(|rest| rest.trim_start().starts_with(':'));
        let string = json
            .get(start..end)
            .filter(|_| !is_key)
            .and_then(|literal| serde_json::from_str::<&RawValue>(literal).ok());
        if let Some(string) = string.and_then(crate::json::text) {
            push(text, &string);
        }
    }
}

/// Where a string literal that begins at `start` ends.
fn string_end(json: &str, start: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}
