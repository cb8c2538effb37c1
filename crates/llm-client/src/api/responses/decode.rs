use std::collections::BTreeMap;

use foldline_session_model::model_call::{ErrorClass, OtherCause, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::lenient::{Count, Text};
use crate::api::{bad_event, stream_error};
use crate::event::{BlockKind, ReplyBuilder};
use crate::sse::SseEvent;
use crate::{LlmError, LlmEvent};

/// `response.created`, output items with their deltas, `response.completed` or another end.
#[derive(Default)]
pub(in crate::api) struct Decoder {
    pub(in crate::api) reply: ReplyBuilder,
    /// Open items by `output_index`, and by item id for servers that give no index.
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
    last: Option<usize>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Text<'a>>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow, default)]
    item_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<Vec<ItemPart<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<ItemPart<'a>>>,
}

#[derive(Deserialize)]
struct ItemPart<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct RawUsage {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl RawUsage {
    pub(crate) fn normalise(&self) -> Usage {
        let input = self.input_tokens.or_zero();
        let details = self.input_tokens_details.as_ref();
        let cached = details
            .map(|details| details.cached_tokens.or_zero())
            .unwrap_or_default();
        // Written tokens count only where they can be a part of the prompt.
        let written = details
            .and_then(|details| details.cache_write_tokens.0)
            .filter(|written| cached + *written <= input)
            .unwrap_or_default();
        let mut usage = Usage::from_inclusive(input, self.output_tokens.or_zero(), cached, written);
        if let Some(total) = self.total_tokens.0 {
            usage.total_tokens = total;
        }
        usage.reasoning = self
            .output_tokens_details
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
            return Ok(());
        }
        let parsed: Event<'_> = serde_json::from_str(&event.data).map_err(|error| bad_event(&error))?;
        match parsed.kind.as_deref().unwrap_or(&event.name) {
            "response.created" => {
                if let Some(response) = parsed.response {
                    self.identify(&read(response)?);
                }
                self.reply.start(out);
            }
            "response.output_item.added" => {
                if let Some(item) = parsed.item {
                    self.open(parsed.output_index, &read(item)?, out);
                }
            }
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta" => {
                if let (Some(block), Some(delta)) = (self.block(&parsed), &parsed.delta) {
                    self.reply.append(block, delta, out);
                }
            }
            // Parts of a summary are paragraphs.
            "response.reasoning_summary_part.added" => {
                if let Some(block) = self
                    .block(&parsed)
                    .filter(|block| !self.reply.text_of(*block).is_empty())
                {
                    self.reply.append(block, "\n\n", out);
                }
            }
            "response.function_call_arguments.done" => {
                if let (Some(block), Some(arguments)) = (self.block(&parsed), &parsed.arguments) {
                    self.reply.finish_text(block, arguments, out);
                }
            }
            "response.output_item.done" => {
                if let Some(raw) = parsed.item {
                    self.close(parsed.output_index, raw, out)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let response = match parsed.response {
                    Some(response) => read::<Response<'_>>(response)?,
                    None => {
                        return Err(LlmError::protocol(
                            "the final event of the stream has no response",
                        ));
                    }
                };
                let kind = parsed.kind.as_deref().unwrap_or(&event.name);
                return self.finish(kind, &response, out);
            }
            "error" => return Err(stream_error(&event.data)),
            _ => {}
        }
        Ok(())
    }

    fn identify(&mut self, response: &Response<'_>) {
        if let Some(id) = &response.id {
            self.reply.response_id = Some(id.0.clone().into_owned());
        }
        if let Some(model) = &response.model {
            self.reply.model = Some(model.0.clone().into_owned());
        }
    }

    fn block(&self, event: &Event<'_>) -> Option<usize> {
        match (event.output_index, event.item_id.as_deref()) {
            (Some(index), _) => self.by_index.get(&index).copied(),
            (None, Some(id)) => self.by_id.get(id).copied(),
            (None, None) => self.last,
        }
    }

    fn open(&mut self, output_index: Option<u64>, item: &Item<'_>, out: &mut Vec<LlmEvent>) -> Option<usize> {
        let id = item.id.as_deref().unwrap_or_default();
        let kind = match &*item.kind {
            "message" => BlockKind::Text,
            "reasoning" => BlockKind::Thinking,
            "function_call" => {
                let call_id = item.call_id.as_deref().unwrap_or_default();
                let id = if id.is_empty() {
                    call_id.to_owned()
                } else {
                    format!("{call_id}|{id}")
                };
                BlockKind::ToolCall {
                    id,
                    name: item.name.as_deref().unwrap_or_default().to_owned(),
                }
            }
            _ => return None,
        };
        let block = self.reply.open(kind, out);
        if let Some(index) = output_index {
            self.by_index.insert(index, block);
        }
        if !id.is_empty() {
            self.by_id.insert(id.to_owned(), block);
        }
        self.last = Some(block);
        if let Some(arguments) = &item.arguments {
            self.reply.append(block, arguments, out);
        }
        Some(block)
    }

    /// The whole item is the truth; deltas were a preview.
    fn close(
        &mut self,
        output_index: Option<u64>,
        raw: &RawValue,
        out: &mut Vec<LlmEvent>,
    ) -> Result<(), LlmError> {
        let item: Item<'_> = read(raw)?;
        let known = match output_index {
            Some(index) => self.by_index.get(&index).copied(),
            None => item.id.as_deref().and_then(|id| self.by_id.get(id).copied()),
        };
        let Some(block) = known.or_else(|| self.open(output_index, &item, out)) else {
            return Ok(());
        };
        match &*item.kind {
            "message" => {
                let text: String = item
                    .content
                    .iter()
                    .flatten()
                    .filter_map(|part| part.text.as_deref().or(part.refusal.as_deref()))
                    .collect();
                if !text.is_empty() {
                    self.reply.finish_text(block, &text, out);
                }
                if let Some(id) = item.id.as_deref().filter(|id| !id.is_empty()) {
                    self.reply.sign(block, id);
                }
            }
            "reasoning" => {
                let parts = item
                    .summary
                    .as_ref()
                    .filter(|parts| !parts.is_empty())
                    .or(item.content.as_ref());
                let paragraphs: Vec<&str> = parts
                    .into_iter()
                    .flatten()
                    .filter_map(|part| part.text.as_deref())
                    .collect();
                if !paragraphs.is_empty() {
                    self.reply.finish_text(block, &paragraphs.join("\n\n"), out);
                }
                // Byte for byte: the encrypted content is only valid in the item it came in.
                self.reply.sign(block, raw.get());
            }
            _ => {
                if let Some(arguments) = &item.arguments {
                    self.reply.finish_text(block, arguments, out);
                }
            }
        }
        self.reply.close(block, out);
        Ok(())
    }

    fn finish(
        &mut self,
        event: &str,
        response: &Response<'_>,
        out: &mut Vec<LlmEvent>,
    ) -> Result<(), LlmError> {
        self.identify(response);
        self.reply.start(out);
        if let Some(usage) = &response.usage {
            self.reply.set_usage(usage.normalise(), out);
        }
        let stop = match response.end(event)? {
            StopReason::Stop if self.reply.has_calls() => StopReason::ToolUse,
            stop => stop,
        };
        let raw = response.reason().unwrap_or(response.status(event)).to_owned();
        self.reply.finish(stop, Some(raw), out);
        Ok(())
    }
}

impl Response<'_> {
    /// The status; where the response gives none, what its event is called says it.
    fn status(&self, event: &str) -> &str {
        let named = match event {
            "response.failed" => "failed",
            "response.incomplete" => "incomplete",
            _ => "completed",
        };
        self.status.as_deref().unwrap_or(named)
    }

    fn reason(&self) -> Option<&str> {
        self.incomplete_details.as_ref()?.reason.as_deref()
    }

    /// How a response ended; one that failed is the error.
    fn end(&self, event: &str) -> Result<StopReason, LlmError> {
        match (self.status(event), self.reason()) {
            ("completed" | "in_progress" | "queued", _) => Ok(StopReason::Stop),
            ("incomplete", Some("max_output_tokens")) => Ok(StopReason::Length),
            ("incomplete", reason) => {
                let class = match reason {
                    Some("content_filter") => OtherCause::Refused,
                    _ => OtherCause::Unknown,
                };
                let message = match reason {
                    Some(reason) => format!("the response is incomplete: {reason}"),
                    None => "the response is incomplete, and the provider gave no reason".to_owned(),
                };
                Err(LlmError {
                    code: reason.map(Into::into),
                    ..LlmError::new(ErrorClass::Other(class), message)
                })
            }
            (status, _) => Err(
                match self.error.map(RawValue::get).filter(|error| *error != "null") {
                    Some(error) => stream_error(error),
                    None => LlmError::new(
                        ErrorClass::Other(OtherCause::Unknown),
                        format!("the response {status}, and the provider gave no details"),
                    ),
                },
            ),
        }
    }
}

/// What the final event of a stream says of a response that must be whole: what it used.
pub(crate) fn whole_response(event: &str, raw: &RawValue) -> Result<Usage, LlmError> {
    let response: Response<'_> = read(raw)?;
    match response.end(event)? {
        StopReason::Length => Err(LlmError::protocol("the response was cut by its output limit")),
        _ => Ok(response.usage.map(|usage| usage.normalise()).unwrap_or_default()),
    }
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, LlmError> {
    serde_json::from_str(raw.get())
        .map_err(|error| LlmError::protocol(format!("an item of the stream cannot be read: {error}")))
}
