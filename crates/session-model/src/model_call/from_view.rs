//! From the LLM view to the messages of a request.

use std::borrow::Cow;

use super::request::{
    ArgumentsState, AssistantBlock, Image, InputBlock, MessageContent, Origin, RawJson, RequestMessage,
    ToolCall, ToolOutcome,
};
use super::{Api, StopReason};
use crate::json;
use crate::llm::{LlmBlock, LlmMessage, LlmRole};
use crate::message::{AssistantMessage, StopReason as RecordedStop, ToolCall as RecordedCall};
use crate::units::{EntryId, EntryIx};

/// The messages of a view as those of a request, without copying their texts.
///
/// `entry_of` names the entry behind a message, so that a refusal can be traced to it. A picture whose data is
/// only a reference must be loaded before; here it becomes a note.
pub fn request_messages<'v>(
    view: &'v [LlmMessage<'v>],
    entry_of: &dyn Fn(EntryIx) -> Option<EntryId>,
) -> Vec<RequestMessage<'v>> {
    view.iter()
        .map(|message| {
            let content = match &message.role {
                // Every API has users; a provider with a role for the program would add nothing.
                LlmRole::User | LlmRole::Developer => MessageContent::User {
                    blocks: input_blocks(&message.content),
                },
                LlmRole::Assistant { message: recorded } => MessageContent::Assistant {
                    origin: origin(recorded),
                    stop: stop(recorded.stop_reason),
                    blocks: message.content.iter().filter_map(assistant_block).collect(),
                },
                LlmRole::ToolResult {
                    call_id,
                    tool_name,
                    is_error,
                    ..
                } => MessageContent::ToolResult {
                    call_id: Cow::Borrowed(call_id),
                    tool_name: Cow::Borrowed(tool_name),
                    blocks: input_blocks(&message.content),
                    outcome: if *is_error {
                        ToolOutcome::Error
                    } else {
                        ToolOutcome::Success
                    },
                },
            };
            RequestMessage {
                entry: entry_of(message.source),
                content,
            }
        })
        .collect()
}

/// `None` when the reply came through an API that is not spoken here: its opaque blocks are then sent nowhere.
fn origin(message: &AssistantMessage<'_>) -> Option<Origin> {
    Some(Origin {
        api: Api::from_name(&message.api)?,
        provider: message.provider.clone().into_owned(),
        model: message.model.clone().into_owned(),
    })
}

const fn stop(recorded: RecordedStop) -> StopReason {
    match recorded {
        RecordedStop::Stop | RecordedStop::Unknown => StopReason::Stop,
        RecordedStop::Length => StopReason::Length,
        RecordedStop::ToolUse => StopReason::ToolUse,
        RecordedStop::Error => StopReason::Error,
        RecordedStop::Aborted => StopReason::Aborted,
    }
}

fn input_blocks<'v>(blocks: &'v [LlmBlock<'v>]) -> Vec<InputBlock<'v>> {
    blocks
        .iter()
        .map(|block| match block {
            LlmBlock::Text(text) => InputBlock::Text(Cow::Borrowed(text)),
            // Base64 has no colon; references to blobs and addresses do.
            LlmBlock::Image { data, .. } if data.contains(':') => {
                InputBlock::Text(Cow::Borrowed("[image that is stored elsewhere]"))
            }
            LlmBlock::Image { data, mime_type } => InputBlock::Image(Image {
                mime_type: Cow::Borrowed(mime_type),
                data: Cow::Borrowed(data),
            }),
            LlmBlock::Thinking { thinking, .. } => InputBlock::Text(Cow::Borrowed(thinking)),
            LlmBlock::RedactedThinking { .. } => InputBlock::Text(Cow::Borrowed("")),
            LlmBlock::ToolCall { call, .. } => {
                InputBlock::Text(Cow::Owned(format!("[call of {}]", call.name)))
            }
            LlmBlock::Unknown { kind } => InputBlock::Text(Cow::Owned(format!("[{kind}]"))),
        })
        .collect()
}

fn assistant_block<'v>(block: &'v LlmBlock<'v>) -> Option<AssistantBlock<'v>> {
    Some(match block {
        LlmBlock::Text(text) => AssistantBlock::Text {
            text: Cow::Borrowed(text),
            signature: None,
        },
        LlmBlock::Thinking {
            signature: Some(data),
            redacted: true,
            ..
        } => AssistantBlock::RedactedThinking {
            data: Cow::Borrowed(data),
        },
        LlmBlock::Thinking { redacted: true, .. } => return None,
        LlmBlock::Thinking {
            thinking, signature, ..
        } => AssistantBlock::Thinking {
            text: Cow::Borrowed(thinking),
            signature: signature.map(Cow::Borrowed),
        },
        LlmBlock::RedactedThinking { data } => AssistantBlock::RedactedThinking {
            data: Cow::Borrowed(data),
        },
        LlmBlock::ToolCall { id, call } => {
            let (arguments, state) = arguments(call);
            AssistantBlock::ToolCall(ToolCall {
                id: Cow::Borrowed(id),
                name: Cow::Borrowed(&call.name),
                arguments,
                state,
            })
        }
        // No API takes pictures or unknown blocks from an assistant.
        LlmBlock::Image { .. } | LlmBlock::Unknown { .. } => return None,
    })
}

/// The arguments as written. Lone surrogate escapes become U+FFFD, because providers refuse them; what is no
/// object becomes `{}`.
fn arguments<'v>(call: &'v RecordedCall<'v>) -> (RawJson<'v>, ArgumentsState) {
    let Some(raw) = &call.arguments else {
        return (RawJson::empty_object(), ArgumentsState::Whole);
    };
    let written = match json::repaired(raw.get().as_bytes()) {
        Cow::Borrowed(_) => Some(RawJson::borrowed(raw)),
        Cow::Owned(text) => RawJson::parse(text),
    };
    match written {
        Some(raw) if raw.is_object() => (raw, ArgumentsState::Whole),
        _ => (RawJson::empty_object(), ArgumentsState::Unusable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::ResultOrigin;
    use crate::message::Content;
    use serde_json::value::RawValue;

    fn recorded(api: &'static str) -> AssistantMessage<'static> {
        AssistantMessage {
            content: Content::default(),
            api: api.into(),
            provider: "acme".into(),
            model: "m".into(),
            usage: None,
            stop_reason: RecordedStop::ToolUse,
            error_message: None,
            timestamp: None,
        }
    }

    fn call(arguments: Option<&str>) -> RecordedCall<'static> {
        RecordedCall {
            id: "c1".into(),
            name: "read".into(),
            arguments: arguments.map(|text| Cow::Owned(RawValue::from_string(text.to_owned()).unwrap())),
            thought_signature: None,
        }
    }

    #[test]
    fn a_view_becomes_a_request() {
        let message = recorded("anthropic-messages");
        let whole = call(Some(r#"{"p": 1.0}"#));
        let view = vec![
            LlmMessage {
                source: EntryIx(0),
                role: LlmRole::Developer,
                content: vec![
                    LlmBlock::Text("go".into()),
                    LlmBlock::Image {
                        data: "aW1n",
                        mime_type: "image/png",
                    },
                    LlmBlock::Image {
                        data: "blob:sha256:00",
                        mime_type: "image/png",
                    },
                ],
            },
            LlmMessage {
                source: EntryIx(1),
                role: LlmRole::Assistant { message: &message },
                content: vec![
                    LlmBlock::Thinking {
                        thinking: "hm",
                        signature: Some("s"),
                        redacted: false,
                    },
                    LlmBlock::Thinking {
                        thinking: "[hidden]",
                        signature: Some("data"),
                        redacted: true,
                    },
                    LlmBlock::ToolCall {
                        id: "c1".into(),
                        call: &whole,
                    },
                    LlmBlock::Unknown { kind: "video" },
                ],
            },
            LlmMessage {
                source: EntryIx(2),
                role: LlmRole::ToolResult {
                    call_id: "c1".into(),
                    tool_name: "read".into(),
                    is_error: true,
                    origin: ResultOrigin::Recorded,
                },
                content: vec![LlmBlock::Text("no".into())],
            },
        ];
        let messages = request_messages(&view, &|ix| Some(format!("e{}", ix.index()).into()));
        let shown = serde_json::to_string(&messages).unwrap();
        assert_eq!(
            shown,
            concat!(
                r#"[{"entry":"e0","content":{"user":{"blocks":[{"text":"go"},{"image":{"mimeType":"image/png","data":"aW1n"}},{"text":"[image that is stored elsewhere]"}]}}},"#,
                r#"{"entry":"e1","content":{"assistant":{"origin":{"api":"anthropic-messages","provider":"acme","model":"m"},"stop":"toolUse","blocks":["#,
                r#"{"thinking":{"text":"hm","signature":"s"}},{"redactedThinking":{"data":"data"}},"#,
                r#"{"toolCall":{"id":"c1","name":"read","arguments":{"p": 1.0},"state":"whole"}}]}}},"#,
                r#"{"entry":"e2","content":{"toolResult":{"callId":"c1","toolName":"read","blocks":[{"text":"no"}],"outcome":"error"}}}]"#,
            )
        );
    }

    #[test]
    fn an_unknown_api_has_no_origin() {
        assert_eq!(origin(&recorded("google-generative-ai")), None);
        assert!(origin(&recorded("openai-responses")).is_some());
    }

    #[test]
    fn arguments_are_objects_that_providers_accept() {
        for (written, expected, state) in [
            (None, "{}", ArgumentsState::Whole),
            (Some(r#"{"a":1}"#), r#"{"a":1}"#, ArgumentsState::Whole),
            (
                Some(r#"{"a":"\ud83d"}"#),
                r#"{"a":"\ufffd"}"#,
                ArgumentsState::Whole,
            ),
            (Some("[1]"), "{}", ArgumentsState::Unusable),
            (Some("\"x\""), "{}", ArgumentsState::Unusable),
        ] {
            let call = call(written);
            let (arguments, got) = arguments(&call);
            assert_eq!((arguments.get(), got), (expected, state), "{written:?}");
        }
    }
}
