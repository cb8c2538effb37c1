//! A transcript that Claude Code resumes: rows in one line of `parentUuid` links; a compaction is a mark and the
//! row with the summary.

use super::{
    Exported, IMAGE_ELSEWHERE, Omissions, OmittedPart, Speaker, Target, Turn, argument_object, is_inline,
    joined_text, only_text, turns,
};
use crate::derived;
use crate::fold::Context;
use crate::json::Object;
use crate::llm::{LlmBlock, LlmRole, Wrappers};
use crate::message::{AssistantMessage, StopReason};

/// The version of the program whose row layout this is.
const VERSION: &str = "2.1.38";

/// Exports the view as a Claude Code transcript.
pub fn claude_code(context: &Context<'_>, target: &Target<'_>) -> Exported {
    let wrappers = Wrappers::default();
    let mut writer = Writer {
        target,
        out: String::new(),
        rows: 0,
        last: None,
        omissions: Omissions::default(),
    };
    for turn in turns(context, &wrappers) {
        writer.turn(&turn);
    }
    Exported {
        text: writer.out,
        omitted: writer.omissions.finish(),
    }
}

struct Writer<'t> {
    target: &'t Target<'t>,
    out: String,
    rows: usize,
    last: Option<String>,
    omissions: Omissions,
}

impl Writer<'_> {
    fn turn(&mut self, turn: &Turn<'_>) {
        let timestamp = turn.timestamp.unwrap_or(self.target.timestamp);
        match (&turn.speaker, &turn.message.role) {
            (Speaker::Summary { tokens_before }, _) => {
                let before = self.last.take();
                self.row("system", timestamp, |row| {
                    row.nullable("logicalParentUuid", before.as_deref());
                    row.text("subtype", "compact_boundary")
                        .text("content", "Conversation compacted");
                    row.text("level", "info").raw("isMeta", false);
                    row.object("compactMetadata", |metadata| {
                        metadata.text("trigger", "manual").raw("preTokens", tokens_before);
                    });
                });
                let summary = joined_text(&turn.message);
                self.row("user", timestamp, |row| {
                    row.raw("isVisibleInTranscriptOnly", true)
                        .raw("isCompactSummary", true);
                    row.object("message", |message| {
                        message.text("role", "user").text("content", &summary);
                    });
                });
            }
            (_, LlmRole::Assistant { message }) => self.assistant(&turn.message.content, message, timestamp),
            (
                _,
                LlmRole::ToolResult {
                    call_id, is_error, ..
                },
            ) => {
                let content = match only_text(&turn.message.content) {
                    Some(text) => quoted(text),
                    None => self.blocks(&turn.message.content, None),
                };
                self.row("user", timestamp, |row| {
                    row.object("message", |message| {
                        message.text("role", "user");
                        message.with("content", |out| {
                            out.push('[');
                            let mut result = Object::begin(out);
                            result.text("type", "tool_result").text("tool_use_id", call_id);
                            result.raw("content", content).raw("is_error", is_error);
                            result.end();
                            out.push(']');
                        });
                    });
                });
            }
            (speaker, _) => {
                let content = match only_text(&turn.message.content) {
                    Some(text) => quoted(text),
                    None => self.blocks(&turn.message.content, None),
                };
                let typed = *speaker == Speaker::User;
                self.row("user", timestamp, |row| {
                    if !typed {
                        row.raw("isMeta", true);
                    }
                    row.object("message", |message| {
                        message.text("role", "user").raw("content", content);
                    });
                });
            }
        }
    }

    fn assistant(&mut self, content: &[LlmBlock<'_>], recorded: &AssistantMessage<'_>, timestamp: &str) {
        let content = self.blocks(content, Some(recorded));
        if content == "[]" {
            self.omissions.add(OmittedPart::EmptyMessage);
            return;
        }
        let digest = derived::hex_digest(self.target.session_id, &format!("message {}", self.rows));
        let id = digest.get(..24).unwrap_or(&digest);
        let model = if recorded.model.is_empty() {
            "unknown"
        } else {
            &*recorded.model
        };
        let usage = recorded.usage.unwrap_or_default();
        self.row("assistant", timestamp, |row| {
            row.object("message", |message| {
                message.text("model", model).text("id", &format!("msg_{id}"));
                message.text("type", "message").text("role", "assistant");
                message.raw("content", content);
                message.nullable("stop_reason", stop_reason(recorded.stop_reason));
                message.raw("stop_sequence", "null");
                message.object("usage", |counted| {
                    counted.raw("input_tokens", usage.input);
                    counted.raw("cache_creation_input_tokens", usage.cache_write);
                    counted.raw("cache_read_input_tokens", usage.cache_read);
                    counted.raw("output_tokens", usage.output);
                });
            });
        });
    }

    fn row(&mut self, kind: &str, timestamp: &str, members: impl FnOnce(&mut Object<'_>)) {
        let uuid = derived::uuid(self.target.session_id, &self.rows.to_string());
        self.rows += 1;
        let mut row = Object::begin(&mut self.out);
        row.nullable("parentUuid", self.last.as_deref());
        row.raw("isSidechain", false).text("userType", "external");
        row.text("cwd", self.target.cwd)
            .text("sessionId", self.target.session_id);
        row.text("version", VERSION).text("gitBranch", "");
        row.text("type", kind);
        members(&mut row);
        row.text("uuid", &uuid).text("timestamp", timestamp);
        row.end();
        self.out.push('\n');
        self.last = Some(uuid);
    }

    /// Blocks as JSON. `author` is the message that thinking belongs to.
    fn blocks(&mut self, content: &[LlmBlock<'_>], author: Option<&AssistantMessage<'_>>) -> String {
        let own = author.is_some_and(|m| m.provider == "anthropic" || m.api == "anthropic-messages");
        let mut out = String::from("[");
        for block in content {
            let before = out.len();
            if before > 1 {
                out.push(',');
            }
            let start = out.len();
            self.block(&mut out, block, own);
            if out.len() == start {
                out.truncate(before);
            }
        }
        out.push(']');
        out
    }

    /// Writes a block, or nothing.
    fn block(&mut self, out: &mut String, block: &LlmBlock<'_>, own_thinking: bool) {
        match block {
            // The provider refuses empty text.
            LlmBlock::Text(text) if text.is_empty() => {}
            LlmBlock::Text(text) => text_block(out, text),
            LlmBlock::Image { data, mime_type } if is_inline(data) => typed(out, "image", |o| {
                o.object("source", |source| {
                    source
                        .text("type", "base64")
                        .text("media_type", mime_type)
                        .text("data", data);
                });
            }),
            LlmBlock::Image { .. } => {
                self.omissions.add(OmittedPart::Image);
                text_block(out, IMAGE_ELSEWHERE);
            }
            LlmBlock::Thinking {
                signature: Some(payload),
                redacted: true,
                ..
            }
            | LlmBlock::RedactedThinking { data: payload }
                if own_thinking =>
            {
                typed(out, "redacted_thinking", |o| {
                    o.text("data", payload);
                });
            }
            LlmBlock::Thinking {
                thinking,
                signature: Some(signature),
                redacted: false,
            } if own_thinking => typed(out, "thinking", |o| {
                o.text("thinking", thinking).text("signature", signature);
            }),
            LlmBlock::Thinking { .. } | LlmBlock::RedactedThinking { .. } => {
                self.omissions.add(OmittedPart::Thinking);
            }
            LlmBlock::ToolCall { id, call } => typed(out, "tool_use", |o| {
                o.text("id", id).text("name", &call.name);
                o.raw("input", argument_object(call));
            }),
            LlmBlock::RemoteHistory { fallback, .. } => text_block(out, fallback),
            LlmBlock::Unknown { .. } => self.omissions.add(OmittedPart::UnknownBlock),
        }
    }
}

fn typed(out: &mut String, kind: &str, members: impl FnOnce(&mut Object<'_>)) {
    let mut object = Object::begin(out);
    object.text("type", kind);
    members(&mut object);
    object.end();
}

fn text_block(out: &mut String, text: &str) {
    typed(out, "text", |o| {
        o.text("text", text);
    });
}

fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    crate::json::write_string(&mut json, text);
    json
}

fn stop_reason(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::Stop => Some("end_turn"),
        StopReason::Length => Some("max_tokens"),
        StopReason::ToolUse => Some("tool_use"),
        StopReason::Error | StopReason::Aborted | StopReason::Unknown => None,
    }
}
