use std::collections::BTreeMap;

use foldline_session_model::model_call::{ErrorClass, OtherCause, StopReason, TransientCause, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::encode::REASONING_FIELDS;
use crate::api::lenient::{Count, Text};
use crate::api::{bad_event, stream_ended, stream_error};
use crate::event::{BlockKind, ReplyBuilder};
use crate::sse::SseEvent;
use crate::{LlmError, LlmEvent};

/// Chunks with deltas of one choice, then `[DONE]`.
#[derive(Default)]
pub(in crate::api) struct Decoder {
    pub(in crate::api) reply: ReplyBuilder,
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Calls,
    finish: Option<String>,
}

/// Open calls by the API's index, and by id for servers that give no index.
#[derive(Default)]
struct Calls {
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
    last: Option<usize>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<RawUsage>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    /// Moonshot puts the usage here.
    #[serde(default)]
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_text: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawUsage {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    prompt_cache_hit_tokens: Count,
    #[serde(default)]
    prompt_cache_miss_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl RawUsage {
    /// Reasoning tokens are inside `completion_tokens`: adding them would count them twice.
    fn normalise(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref();
        let cached = details
            .and_then(|details| details.cached_tokens.0)
            .or(self.prompt_cache_hit_tokens.0)
            .or(self.cached_tokens.0)
            .unwrap_or_default();
        let written = details
            .map(|details| details.cache_write_tokens.or_zero())
            .unwrap_or_default();
        let output = self.completion_tokens.or_zero();
        // DeepSeek splits the prompt itself.
        let mut usage = match (self.prompt_cache_miss_tokens.0, self.prompt_cache_hit_tokens.0) {
            (Some(miss), Some(hit)) => Usage::from_parts(miss, output, hit, written),
            _ => Usage::from_inclusive(self.prompt_tokens.or_zero(), output, cached, written),
        };
        usage.reasoning = self
            .completion_tokens_details
            .as_ref()
            .and_then(|details| details.reasoning_tokens.0);
        usage
    }
}

impl Decoder {
    pub(in crate::api) fn event(
        &mut self,
        event: &SseEvent,
        out: &mut Vec<LlmEvent>,
    ) -> Result<(), LlmError> {
        if event.data.trim() == "[DONE]" {
            return self.finish(out);
        }
        let chunk: Chunk<'_> = serde_json::from_str(&event.data).map_err(|error| bad_event(&error))?;
        if event.name == "error" || chunk.error.is_some_and(|error| error.get() != "null") {
            return Err(stream_error(&event.data));
        }
        if self.reply.response_id.is_none() {
            self.reply.response_id = chunk.id.filter(|id| !id.is_empty()).map(|id| id.0.into_owned());
            self.reply.model = chunk
                .model
                .filter(|model| !model.is_empty())
                .map(|model| model.0.into_owned());
        }
        if chunk.choices.is_some() {
            self.reply.start(out);
        }
        let mut usage = chunk.usage;
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            usage = usage.or(choice.usage);
            if let Some(delta) = choice.delta {
                self.delta(&delta, out);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason.0.into_owned());
            }
        }
        if let Some(usage) = usage {
            self.reply.start(out);
            self.reply.set_usage(usage.normalise(), out);
        }
        Ok(())
    }

    /// The body ended. Servers that send no `[DONE]` still send a finish reason.
    pub(in crate::api) fn end_of_body(&mut self, out: &mut Vec<LlmEvent>) -> Result<(), LlmError> {
        self.finish(out)
    }

    fn delta(&mut self, delta: &Delta<'_>, out: &mut Vec<LlmEvent>) {
        let thinking = [&delta.reasoning_content, &delta.reasoning, &delta.reasoning_text];
        // Some servers repeat the same text in two of the fields; the first one counts.
        let shown = thinking
            .into_iter()
            .zip(REASONING_FIELDS)
            .find_map(|(text, field)| {
                text.as_ref()
                    .filter(|text| !text.is_empty())
                    .map(|text| (text, field))
            });
        if let Some((text, field)) = shown {
            let index = if let Some(index) = self.thinking {
                index
            } else {
                self.close_text(out);
                let index = self.reply.open(BlockKind::Thinking, out);
                self.reply.sign(index, field);
                *self.thinking.insert(index)
            };
            self.reply.append(index, text, out);
        }
        for text in [&delta.content, &delta.refusal]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
        {
            let index = if let Some(index) = self.text {
                index
            } else {
                self.close_thinking(out);
                *self.text.insert(self.reply.open(BlockKind::Text, out))
            };
            self.reply.append(index, text, out);
        }
        for call in delta.tool_calls.iter().flatten() {
            self.call(call, out);
        }
    }

    fn call(&mut self, delta: &CallDelta<'_>, out: &mut Vec<LlmEvent>) {
        let id = delta.id.as_deref().filter(|id| !id.is_empty());
        let name = delta
            .function
            .as_ref()
            .and_then(|function| function.name.as_deref());
        let known = match (delta.index, id) {
            (Some(index), _) => self.calls.by_index.get(&index),
            (None, Some(id)) => self.calls.by_id.get(id),
            (None, None) => self.calls.last.as_ref(),
        };
        let block = if let Some(block) = known {
            self.reply.name_call(*block, id, name);
            *block
        } else {
            self.close_text(out);
            self.close_thinking(out);
            let kind = BlockKind::ToolCall {
                id: id.unwrap_or_default().to_owned(),
                name: name.unwrap_or_default().to_owned(),
            };
            let block = self.reply.open(kind, out);
            if let Some(index) = delta.index {
                self.calls.by_index.insert(index, block);
            }
            if let Some(id) = id {
                self.calls.by_id.insert(id.to_owned(), block);
            }
            block
        };
        self.calls.last = Some(block);
        if let Some(arguments) = delta
            .function
            .as_ref()
            .and_then(|function| function.arguments.as_ref())
        {
            self.reply.append(block, arguments, out);
        }
    }

    fn close_text(&mut self, out: &mut Vec<LlmEvent>) {
        if let Some(index) = self.text.take() {
            self.reply.close(index, out);
        }
    }

    fn close_thinking(&mut self, out: &mut Vec<LlmEvent>) {
        if let Some(index) = self.thinking.take() {
            self.reply.close(index, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<LlmEvent>) -> Result<(), LlmError> {
        let Some(reason) = self.finish.take() else {
            return Err(stream_ended("the stream ended without a finish reason"));
        };
        let stop = match reason.as_str() {
            "stop" | "end" | "eos" if self.reply.has_calls() => StopReason::ToolUse,
            "stop" | "end" | "eos" => StopReason::Stop,
            "length" => StopReason::Length,
            "function_call" | "tool_calls" => StopReason::ToolUse,
            _ => {
                let class = match reason.as_str() {
                    "content_filter" => ErrorClass::Other(OtherCause::Refused),
                    "network_error" => ErrorClass::Transient(TransientCause::Network),
                    "model_context_window_exceeded" => ErrorClass::OVERFLOW,
                    _ => ErrorClass::Other(OtherCause::Unknown),
                };
                let message = format!("the provider ended the reply with finish_reason {reason}");
                return Err(LlmError {
                    code: Some(reason.into()),
                    ..LlmError::new(class, message)
                });
            }
        };
        self.reply.finish(stop, Some(reason), out);
        Ok(())
    }
}
