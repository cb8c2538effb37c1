use std::collections::BTreeMap;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, OtherCause, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::lenient::{Count, Text};
use crate::api::{bad_event, stream_ended, stream_error};
use crate::classify::{TransportFacts, UserPatterns, classify_failure};
use crate::event::{BlockKind, ReplyBuilder};
use crate::sse::SseEvent;
use crate::{LlmError, LlmEvent};

/// `message_start`, blocks, `message_delta`, `message_stop`.
#[derive(Default)]
pub(in crate::api) struct Decoder {
    pub(in crate::api) reply: ReplyBuilder,
    /// The API's index of a block to ours: blocks of unknown kinds are not counted.
    blocks: BTreeMap<u64, usize>,
    stop: Option<String>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    input: Tokens,
    output: Tokens,
    cache_read: Tokens,
    cache_write: Tokens,
}

/// All event types in one: a field that an event lacks is absent.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Text<'a>>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    content_block: Option<ContentBlock<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(default)]
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct ContentBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the API")]
struct RawUsage {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
}

impl Decoder {
    pub(in crate::api) fn event(
        &mut self,
        event: &SseEvent,
        out: &mut Vec<LlmEvent>,
    ) -> Result<(), LlmError> {
        let parsed: Event<'_> = serde_json::from_str(&event.data).map_err(|error| bad_event(&error))?;
        match parsed.kind.as_deref().unwrap_or(&event.name) {
            "message_start" => {
                if let Some(message) = parsed.message {
                    self.reply.response_id = message.id.map(|id| id.0.into_owned());
                    self.reply.model = message.model.map(|model| model.0.into_owned());
                    self.reply.start(out);
                    if let Some(usage) = message.usage {
                        self.count(&usage, out);
                    }
                }
                self.reply.start(out);
            }
            "content_block_start" => {
                if let (Some(index), Some(block)) = (parsed.index, parsed.content_block) {
                    self.open(index, &block, out);
                }
            }
            "content_block_delta" => {
                let index = parsed.index.and_then(|index| self.blocks.get(&index).copied());
                if let (Some(index), Some(delta)) = (index, parsed.delta) {
                    for text in [delta.text, delta.thinking, delta.partial_json]
                        .into_iter()
                        .flatten()
                    {
                        self.reply.append(index, &text, out);
                    }
                    if let Some(signature) = delta.signature {
                        self.reply.sign(index, &signature);
                    }
                }
            }
            "content_block_stop" => {
                if let Some(index) = parsed.index.and_then(|index| self.blocks.get(&index)) {
                    self.reply.close(*index, out);
                }
            }
            "message_delta" => {
                if let Some(reason) = parsed.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(reason.0.into_owned());
                }
                if let Some(usage) = parsed.usage {
                    self.count(&usage, out);
                }
            }
            "message_stop" => return self.finish(out),
            "error" => return Err(stream_error(&event.data)),
            // `ping`, and whatever the API grows.
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, api_index: u64, block: &ContentBlock<'_>, out: &mut Vec<LlmEvent>) {
        let kind = match &*block.kind {
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Thinking,
            "redacted_thinking" => BlockKind::RedactedThinking,
            "tool_use" => BlockKind::ToolCall {
                id: block.id.as_deref().unwrap_or_default().to_owned(),
                name: block.name.as_deref().unwrap_or_default().to_owned(),
            },
            _ => return,
        };
        let index = self.reply.open(kind, out);
        self.blocks.insert(api_index, index);
        for text in [&block.text, &block.thinking].into_iter().flatten() {
            self.reply.append(index, text, out);
        }
        for signature in [&block.signature, &block.data].into_iter().flatten() {
            if !signature.is_empty() {
                self.reply.sign(index, signature);
            }
        }
        // Usually `{}`, and the arguments follow as deltas; some servers send them at once.
        if let Some(input) = block
            .input
            .map(RawValue::get)
            .filter(|input| input.starts_with('{') && input.bytes().any(|byte| byte == b':'))
        {
            self.reply.append(index, input, out);
        }
    }

    /// Later counts replace earlier ones only where they are given: proxies leave the prompt out of the last.
    fn count(&mut self, usage: &RawUsage, out: &mut Vec<LlmEvent>) {
        let counts = &mut self.counts;
        for (count, given) in [
            (&mut counts.input, usage.input_tokens),
            (&mut counts.output, usage.output_tokens),
            (&mut counts.cache_read, usage.cache_read_input_tokens),
            (&mut counts.cache_write, usage.cache_creation_input_tokens),
        ] {
            if let Some(given) = given.0 {
                *count = given;
            }
        }
        let usage = Usage::from_parts(counts.input, counts.output, counts.cache_read, counts.cache_write);
        self.reply.set_usage(usage, out);
    }

    fn finish(&mut self, out: &mut Vec<LlmEvent>) -> Result<(), LlmError> {
        let Some(reason) = self.stop.take() else {
            return Err(stream_ended("the Anthropic stream ended without a stop reason"));
        };
        let stop = match reason.as_str() {
            "end_turn" | "stop_sequence" | "pause_turn" => StopReason::Stop,
            "max_tokens" => StopReason::Length,
            "tool_use" => StopReason::ToolUse,
            "refusal" | "sensitive" => {
                let class = ErrorClass::Other(OtherCause::Refused);
                let message = format!("the provider stopped the reply for safety ({reason})");
                return Err(LlmError {
                    code: Some(reason.into()),
                    ..LlmError::new(class, message)
                });
            }
            _ => {
                let facts = TransportFacts {
                    status: None,
                    codes: &[&reason],
                };
                let class = classify_failure(&facts, None, &UserPatterns::default());
                let message = format!("unhandled stop reason: {reason}");
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
