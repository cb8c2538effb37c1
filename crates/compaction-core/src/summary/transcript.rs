//! Messages as the text that a summariser reads (spec "Compaction core", 6).
//!
//! Secrets are redacted first, so that a cut never leaves half of one; then our own tags and labels are made inert, then
//! tool results are cut. Pictures show as `[image]`; their bytes go nowhere (R16).

use std::borrow::Cow;
use std::fmt::Write as _;

use foldline_session_model::EntryIx;
use foldline_session_model::llm::{LlmBlock, LlmMessage, LlmRole};

use crate::inert::{Wrapper, inert};
use crate::redact::redact;
use crate::text::{head, units};
use crate::verbatim::serialize::write_call;

/// How long the parts of a transcript may be, in UTF-16 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// A tool result.
    pub result: usize,
    /// All calls of one message; `None` for any length.
    pub calls: Option<usize>,
}

impl Caps {
    /// Results of 2,000 units, calls whole (seed 000).
    pub const USUAL: Self = Self {
        result: 2_000,
        calls: None,
    };
    /// The first step down when a request does not fit.
    pub const TIGHT: Self = Self {
        result: 500,
        calls: Some(1_000),
    };
}

/// One message as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The entry that it comes from.
    pub source: EntryIx,
    /// The text; sections are apart by a blank line.
    pub text: String,
}

/// A transcript, message by message. A message without any text has an empty part: it is accounted for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The parts in order.
    pub parts: Vec<Part>,
}

impl Transcript {
    /// The whole text.
    pub fn text(&self) -> String {
        join(&self.parts)
    }
}

/// The text of parts, apart by blank lines.
pub(super) fn join(parts: &[Part]) -> String {
    let mut text = String::with_capacity(parts.iter().map(|p| p.text.len() + 2).sum());
    for part in parts.iter().filter(|part| !part.text.is_empty()) {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&part.text);
    }
    text
}

/// Messages as one text.
pub fn serialize_conversation(messages: &[LlmMessage<'_>]) -> String {
    transcript(messages.iter(), Caps::USUAL).text()
}

/// Messages as a transcript.
pub fn transcript<'m, 'c: 'm>(messages: impl Iterator<Item = &'m LlmMessage<'c>>, caps: Caps) -> Transcript {
    let parts = messages
        .map(|message| Part {
            source: message.source,
            text: message_text(message, caps),
        })
        .collect();
    Transcript { parts }
}

fn message_text(message: &LlmMessage<'_>, caps: Caps) -> String {
    let mut out = String::new();
    match &message.role {
        LlmRole::User => section(&mut out, "User", &content(message, usize::MAX).read),
        LlmRole::Developer => section(&mut out, "Developer", &content(message, usize::MAX).read),
        LlmRole::ToolResult { .. } => {
            let text = content(message, caps.result.saturating_add(LOOKAHEAD));
            if !text.read.is_empty() {
                let _ = write!(
                    out,
                    "[Tool result]: {}",
                    cut_result(&text.read, text.unread, caps.result)
                );
            }
        }
        LlmRole::Assistant { .. } => {
            let thinking = message.content.iter().filter_map(|block| match block {
                LlmBlock::Thinking {
                    thinking,
                    redacted: false,
                    ..
                } => Some(*thinking),
                _ => None,
            });
            blocks(&mut out, "Assistant thinking", thinking);
            blocks(&mut out, "Assistant", message.texts());
            let mut calls = String::new();
            for block in &message.content {
                if let LlmBlock::ToolCall { call, .. } = block {
                    if !calls.is_empty() {
                        calls.push_str("; ");
                    }
                    write_call(&mut calls, call);
                }
            }
            if !calls.is_empty() {
                let calls = match caps.calls {
                    Some(cap) => {
                        let read = head(&calls, cap.saturating_add(LOOKAHEAD));
                        cut_result(read, units(calls.get(read.len()..).unwrap_or_default()), cap)
                    }
                    None => safe(&calls).into_owned(),
                };
                label(&mut out, "Assistant tool calls");
                out.push_str(&calls);
            }
        }
    }
    out
}

/// The beginning of a content, and how long the rest is.
struct Read<'m> {
    read: Cow<'m, str>,
    /// UTF-16 units.
    unread: usize,
}

/// Text blocks one after another, a line for each picture: the first `limit` UTF-16 units. A long result is not copied.
fn content<'m>(message: &'m LlmMessage<'_>, limit: usize) -> Read<'m> {
    let mut content = Read {
        read: Cow::Borrowed(""),
        unread: 0,
    };
    let mut room = limit;
    let mut newline = true;
    for block in &message.content {
        match block {
            LlmBlock::Text(text) => {
                newline = if text.is_empty() {
                    newline
                } else {
                    text.ends_with('\n')
                };
                content.add(text, &mut room);
            }
            LlmBlock::Image { .. } => {
                content.add(if newline { "[image]" } else { "\n[image]" }, &mut room);
                newline = false;
            }
            _ => {}
        }
    }
    content
}

impl<'m> Read<'m> {
    fn add(&mut self, text: &'m str, room: &mut usize) {
        let part = head(text, *room);
        if self.read.is_empty() {
            self.read = Cow::Borrowed(part);
        } else {
            self.read.to_mut().push_str(part);
        }
        if part.len() == text.len() {
            *room -= units(part);
        } else {
            *room = 0;
            self.unread += units(text.get(part.len()..).unwrap_or_default());
        }
    }
}

fn section(out: &mut String, name: &str, text: &str) {
    if !text.is_empty() {
        label(out, name);
        out.push_str(&safe(text));
    }
}

/// A section if there is any block, even an empty one.
fn blocks<'t>(out: &mut String, name: &str, texts: impl Iterator<Item = &'t str>) {
    let texts: Vec<&str> = texts.collect();
    if !texts.is_empty() {
        label(out, name);
        out.push_str(&safe(&texts.join("\n")));
    }
}

fn label(out: &mut String, name: &str) {
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    let _ = write!(out, "[{name}]: ");
}

/// Text of a session, fit to stand in a request: no secrets, no control characters, nothing that looks like ours.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    let redacted = redact(text);
    match redacted {
        Cow::Borrowed(text) => match printable(text) {
            Cow::Borrowed(text) => inert(text, Wrapper::Request),
            Cow::Owned(text) => Cow::Owned(inert(&text, Wrapper::Request).into_owned()),
        },
        Cow::Owned(text) => Cow::Owned(inert(&printable(&text), Wrapper::Request).into_owned()),
    }
}

/// Control characters other than line breaks and tabs as U+FFFD (FB-102).
fn printable(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_ascii_control() && !matches!(c, '\n' | '\t' | '\r');
    if text.bytes().any(|b| is_control(char::from(b))) {
        Cow::Owned(
            text.chars()
                .map(|c| if is_control(c) { '\u{FFFD}' } else { c })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

/// How much behind the cut is read, so that a secret that the cut would split is still recognised.
const LOOKAHEAD: usize = 8_192;

/// A result without secrets, at most `cap` units, and how many more there were. `read` is a little more than is kept,
/// `unread` the length of what comes after it.
fn cut_result(read: &str, unread: usize, cap: usize) -> String {
    let text = safe(read);
    let kept = head(&text, cap);
    let more = units(text.get(kept.len()..).unwrap_or_default()) + unread;
    if more == 0 {
        return text.into_owned();
    }
    format!("{kept}\n\n[... {more} more characters truncated]")
}
