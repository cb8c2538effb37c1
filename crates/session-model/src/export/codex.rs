//! A rollout that Codex resumes: `response_item` rows for the model, and the `event_msg` rows that repeat them
//! for its user interface.

use serde_json::value::RawValue;

use super::{
    Exported, IMAGE_ELSEWHERE, Omissions, OmittedPart, Speaker, Target, Turn, argument_object, is_inline,
    joined_text, only_text, turns,
};
use crate::fold::Context;
use crate::json::{Field, Object, json_object, write_string};
use crate::llm::{LlmBlock, LlmRole, Wrappers};
use crate::message::{Message, ToolCall};

use std::borrow::Cow;

/// The tool that takes free text instead of an object.
const FREEFORM_TOOL: &str = "apply_patch";

json_object! {
    struct Freeform {
        "input" => input: Cow<'a, str>,
    }
}

json_object! {
    struct Reasoning {
        "type" => kind: Cow<'a, str>,
    }
}

/// Exports the view as a Codex rollout.
pub fn codex(context: &Context<'_>, target: &Target<'_>) -> Exported {
    let wrappers = Wrappers::default();
    let state = context.state();
    let mut writer = Writer {
        target,
        model: state
            .model()
            .map_or_else(|| "unknown".to_owned(), |model| model.model.to_string()),
        effort: state
            .thinking_level
            .as_deref()
            .filter(|level| *level != "off")
            .map(ToOwned::to_owned),
        replacement: replacement(context),
        out: String::new(),
        after_assistant: false,
        free_text: rustc_hash::FxHashSet::default(),
        omissions: Omissions::default(),
    };
    writer.row("session_meta", target.timestamp, |meta| {
        meta.text("id", target.session_id)
            .text("timestamp", target.timestamp);
        meta.text("cwd", target.cwd).text("originator", "foldline");
        meta.text("cli_version", env!("CARGO_PKG_VERSION"))
            .text("source", "cli");
        meta.text("model_provider", "openai");
    });
    writer.turn_context(target.timestamp);
    for turn in turns(context, &wrappers) {
        writer.turn(&turn);
    }
    Exported {
        text: writer.out,
        omitted: writer.omissions.finish(),
    }
}

/// The provider's own replacement history, if the view begins with one that this provider can read.
fn replacement(context: &Context<'_>) -> Option<String> {
    match &context.items.first()?.message {
        Message::CompactionSummary(summary) => {
            let remote = summary
                .remote_history
                .as_ref()
                .filter(|remote| remote.provider == "openai")?;
            Some(remote.items.get().replace(['\n', '\r'], " "))
        }
        _ => None,
    }
}

struct Writer<'t> {
    target: &'t Target<'t>,
    model: String,
    effort: Option<String>,
    replacement: Option<String>,
    out: String,
    /// Whether the last item belongs to a response that more items would join.
    after_assistant: bool,
    /// The calls that were written with free text.
    free_text: rustc_hash::FxHashSet<String>,
    omissions: Omissions,
}

impl Writer<'_> {
    fn turn(&mut self, turn: &Turn<'_>) {
        let timestamp = turn.timestamp.unwrap_or(self.target.timestamp);
        match (&turn.speaker, &turn.message.role) {
            (Speaker::Summary { .. }, _) => {
                let summary = joined_text(&turn.message);
                let replacement = self.replacement.take();
                self.row("compacted", timestamp, |compacted| {
                    compacted.text("message", &summary);
                    if let Some(items) = replacement {
                        compacted.raw("replacement_history", items);
                    }
                });
                self.after_assistant = false;
            }
            (_, LlmRole::Assistant { .. }) => self.assistant(&turn.message.content, timestamp),
            (
                _,
                LlmRole::ToolResult {
                    call_id, is_error, ..
                },
            ) => {
                self.after_assistant = false;
                let output = match only_text(&turn.message.content) {
                    Some(text) => {
                        let mut json = String::with_capacity(text.len() + 2);
                        write_string(&mut json, text);
                        json
                    }
                    None => self.parts(&turn.message.content, "input_text"),
                };
                let kind = if self.free_text.contains(&**call_id) {
                    "custom_tool_call_output"
                } else {
                    "function_call_output"
                };
                self.row("response_item", timestamp, |item| {
                    item.text("type", kind).text("call_id", call_id);
                    item.raw("output", output).raw("success", !is_error);
                });
            }
            (speaker, _) => {
                self.after_assistant = false;
                let role = if *speaker == Speaker::Developer {
                    "developer"
                } else {
                    "user"
                };
                let content = self.parts(&turn.message.content, "input_text");
                self.row("response_item", timestamp, |item| {
                    item.text("type", "message")
                        .text("role", role)
                        .raw("content", content);
                });
                if *speaker == Speaker::User {
                    let text = joined_text(&turn.message);
                    self.row("event_msg", timestamp, |event| {
                        event
                            .text("type", "user_message")
                            .text("message", &text)
                            .text("kind", "plain");
                    });
                }
            }
        }
    }

    fn assistant(&mut self, content: &[LlmBlock<'_>], timestamp: &str) {
        if std::mem::take(&mut self.after_assistant) {
            self.turn_context(timestamp);
        }
        let before = self.out.len();
        let mut rest = content;
        while let Some((block, after)) = rest.split_first() {
            rest = after;
            match block {
                LlmBlock::Text(text) if text.is_empty() => {}
                LlmBlock::Text(_) | LlmBlock::Image { .. } => {
                    let more = after
                        .iter()
                        .take_while(|b| matches!(b, LlmBlock::Text(_) | LlmBlock::Image { .. }));
                    let (run, after) = content_run(content, after.len(), more.count());
                    rest = after;
                    let parts = self.parts(run, "output_text");
                    self.row("response_item", timestamp, |item| {
                        item.text("type", "message")
                            .text("role", "assistant")
                            .raw("content", parts);
                    });
                    let texts: Vec<&str> = run
                        .iter()
                        .filter_map(|block| match block {
                            LlmBlock::Text(text) => Some(&**text),
                            _ => None,
                        })
                        .collect();
                    self.row("event_msg", timestamp, |event| {
                        event
                            .text("type", "agent_message")
                            .text("message", &texts.join("\n"));
                    });
                }
                LlmBlock::Thinking {
                    signature: Some(item),
                    ..
                } if is_reasoning(item) => self.raw_row("response_item", timestamp, item),
                LlmBlock::Thinking { .. } | LlmBlock::RedactedThinking { .. } => {
                    self.omissions.add(OmittedPart::Thinking);
                }
                LlmBlock::ToolCall { id, call } => self.call(id, call, timestamp),
                // A provider's history stands in the user's place, never in a message of the model.
                LlmBlock::RemoteHistory { .. } | LlmBlock::Unknown { .. } => {
                    self.omissions.add(OmittedPart::UnknownBlock);
                }
            }
        }
        if self.out.len() == before {
            self.omissions.add(OmittedPart::EmptyMessage);
        } else {
            self.after_assistant = true;
        }
    }

    fn call(&mut self, id: &str, call: &ToolCall<'_>, timestamp: &str) {
        let free_text = call
            .arguments
            .as_deref()
            .filter(|_| call.name == FREEFORM_TOOL)
            .and_then(only_input);
        self.row("response_item", timestamp, |item| match &free_text {
            Some(input) => {
                item.text("type", "custom_tool_call").text("status", "completed");
                item.text("call_id", id)
                    .text("name", &call.name)
                    .text("input", input);
            }
            None => {
                item.text("type", "function_call").text("name", &call.name);
                item.text("arguments", &argument_object(call)).text("call_id", id);
            }
        });
        if free_text.is_some() {
            self.free_text.insert(id.to_owned());
        }
    }

    /// A row that says under which settings the next request runs. It also parts two responses.
    fn turn_context(&mut self, timestamp: &str) {
        let (cwd, model, effort) = (self.target.cwd, self.model.clone(), self.effort.clone());
        self.row("turn_context", timestamp, |turn| {
            turn.text("cwd", cwd).text("approval_policy", "on-request");
            turn.object("sandbox_policy", |policy| {
                policy.text("type", "read-only");
            });
            turn.text("model", &model);
            if let Some(effort) = &effort {
                turn.text("effort", effort);
            }
            turn.text("summary", "auto");
        });
    }

    fn row(&mut self, kind: &str, timestamp: &str, payload: impl FnOnce(&mut Object<'_>)) {
        let mut row = Object::begin(&mut self.out);
        row.text("timestamp", timestamp)
            .text("type", kind)
            .object("payload", payload);
        row.end();
        self.out.push('\n');
    }

    fn raw_row(&mut self, kind: &str, timestamp: &str, payload: &str) {
        let mut row = Object::begin(&mut self.out);
        row.text("timestamp", timestamp).text("type", kind);
        row.raw("payload", payload.replace(['\n', '\r'], " "));
        row.end();
        self.out.push('\n');
    }

    /// Text and pictures as JSON.
    fn parts(&mut self, content: &[LlmBlock<'_>], text_kind: &str) -> String {
        let mut out = String::from("[");
        for block in content {
            let (kind, key, value) = match block {
                LlmBlock::Text(text) if text.is_empty() => continue,
                LlmBlock::Text(text) | LlmBlock::RemoteHistory { fallback: text, .. } => {
                    (text_kind, "text", Cow::Borrowed(&**text))
                }
                LlmBlock::Image { data, mime_type } if is_inline(data) => (
                    "input_image",
                    "image_url",
                    Cow::Owned(format!("data:{mime_type};base64,{data}")),
                ),
                LlmBlock::Image { .. } => {
                    self.omissions.add(OmittedPart::Image);
                    (text_kind, "text", Cow::Borrowed(IMAGE_ELSEWHERE))
                }
                LlmBlock::Thinking { .. } | LlmBlock::RedactedThinking { .. } => {
                    self.omissions.add(OmittedPart::Thinking);
                    continue;
                }
                LlmBlock::ToolCall { .. } | LlmBlock::Unknown { .. } => {
                    self.omissions.add(OmittedPart::UnknownBlock);
                    continue;
                }
            };
            if out.len() > 1 {
                out.push(',');
            }
            let mut part = Object::begin(&mut out);
            part.text("type", kind).text(key, &value);
            part.end();
        }
        out.push(']');
        out
    }
}

/// The run of `more + 1` blocks that begins right before the last `left` ones, and what follows it.
fn content_run<'b, 'c>(
    content: &'b [LlmBlock<'c>],
    left: usize,
    more: usize,
) -> (&'b [LlmBlock<'c>], &'b [LlmBlock<'c>]) {
    let start = content.len().saturating_sub(left + 1);
    content
        .get(start..)
        .and_then(|rest| rest.split_at_checked(more + 1))
        .unwrap_or((&[], &[]))
}

/// Whether a signature is a reasoning item as Codex keeps it.
fn is_reasoning(signature: &str) -> bool {
    signature.starts_with('{')
        && serde_json::from_str::<&RawValue>(signature)
            .ok()
            .and_then(|raw| Reasoning::lenient(raw)?.kind)
            .is_some_and(|kind| kind == "reasoning")
}

/// The text of arguments that are `{"input": "…"}` and nothing else.
fn only_input(raw: &RawValue) -> Option<Cow<'_, str>> {
    let members = crate::json::members(raw)?;
    (members.len() == 1)
        .then(|| Freeform::lenient(raw)?.input)
        .flatten()
}
