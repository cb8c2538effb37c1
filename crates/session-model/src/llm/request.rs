//! The LLM view as the messages of a request.

use std::borrow::Cow;

use super::{LlmBlock, LlmMessage, LlmRole};
use crate::log::SessionLog;
use crate::message::{AssistantMessage, StopReason, ToolCall};
use crate::model_call::{
    self, Api, ArgumentsState, AssistantBlock, Image, InputBlock, MessageContent, Origin, RawJson,
    RequestMessage, ToolOutcome,
};

impl<'c> LlmMessage<'c> {
    /// The message as a request carries it. `log` is the log that the view was made from.
    ///
    /// Blocks that this crate does not know are left out: no provider takes what it cannot name.
    pub fn to_request(&self, log: &SessionLog) -> RequestMessage<'c> {
        let content = match &self.role {
            LlmRole::User | LlmRole::Developer => self.opaque().unwrap_or_else(|| MessageContent::User {
                blocks: self.input_blocks(),
            }),
            LlmRole::Assistant { message } => MessageContent::Assistant {
                origin: origin(message),
                stop: stop(message.stop_reason),
                blocks: self.content.iter().filter_map(assistant_block).collect(),
            },
            LlmRole::ToolResult {
                call_id,
                tool_name,
                is_error,
                ..
            } => MessageContent::ToolResult {
                call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                blocks: self.input_blocks(),
                outcome: if *is_error {
                    ToolOutcome::Error
                } else {
                    ToolOutcome::Success
                },
            },
        };
        RequestMessage {
            entry: Some(log.entry_id(self.source)),
            content,
        }
    }

    fn input_blocks(&self) -> Vec<InputBlock<'c>> {
        self.content
            .iter()
            .filter_map(|block| match block {
                LlmBlock::Text(text) => Some(InputBlock::Text(text.clone())),
                LlmBlock::Image { data, mime_type } => Some(InputBlock::Image(Image {
                    mime_type: Cow::Borrowed(*mime_type),
                    data: Cow::Borrowed(*data),
                })),
                _ => None,
            })
            .collect()
    }

    fn opaque(&self) -> Option<MessageContent<'c>> {
        let [
            LlmBlock::RemoteHistory {
                history,
                target,
                fallback,
            },
        ] = &self.content[..]
        else {
            return None;
        };
        let items: Vec<&serde_json::value::RawValue> = serde_json::from_str(history.items.get()).ok()?;
        Some(MessageContent::Opaque {
            origin: target.clone(),
            items: items.into_iter().map(RawJson::borrowed).collect(),
            fallback: fallback.clone(),
        })
    }
}

fn origin(message: &AssistantMessage<'_>) -> Option<Origin> {
    Some(Origin {
        api: Api::from_name(&message.api)?,
        provider: message.provider.clone().into_owned(),
        model: message.model.clone().into_owned(),
    })
}

fn stop(reason: StopReason) -> model_call::StopReason {
    match reason {
        StopReason::Stop | StopReason::Unknown => model_call::StopReason::Stop,
        StopReason::Length => model_call::StopReason::Length,
        StopReason::ToolUse => model_call::StopReason::ToolUse,
        StopReason::Error => model_call::StopReason::Error,
        StopReason::Aborted => model_call::StopReason::Aborted,
    }
}

fn assistant_block<'c>(block: &LlmBlock<'c>) -> Option<AssistantBlock<'c>> {
    Some(match block {
        LlmBlock::Text(text) => AssistantBlock::Text {
            text: text.clone(),
            signature: None,
        },
        LlmBlock::Thinking {
            signature: Some(data),
            redacted: true,
            ..
        } => AssistantBlock::RedactedThinking {
            data: Cow::Borrowed(*data),
        },
        LlmBlock::Thinking {
            thinking, signature, ..
        } => AssistantBlock::Thinking {
            text: Cow::Borrowed(*thinking),
            signature: signature.map(Cow::Borrowed),
        },
        LlmBlock::RedactedThinking { data } => AssistantBlock::RedactedThinking {
            data: Cow::Borrowed(*data),
        },
        LlmBlock::ToolCall { id, call } => AssistantBlock::ToolCall(tool_call(id, call)),
        LlmBlock::Image { .. } | LlmBlock::RemoteHistory { .. } | LlmBlock::Unknown { .. } => return None,
    })
}

fn tool_call<'c>(id: &Cow<'c, str>, call: &'c ToolCall<'c>) -> model_call::ToolCall<'c> {
    let written = call.arguments.as_deref().map(RawJson::borrowed);
    let (arguments, state) = match written.filter(RawJson::is_object) {
        Some(arguments) => (arguments, ArgumentsState::Whole),
        None => (RawJson::empty_object(), ArgumentsState::Unusable),
    };
    model_call::ToolCall {
        id: id.clone(),
        name: Cow::Borrowed(&*call.name),
        arguments,
        state,
    }
}
