//! Messages as the session records them (D1: the field names of pi).

use foldline_session_model::EntryDraft;
use foldline_session_model::model_call::{
    AssistantBlock, Image, InputBlock, LlmReply, ModelProfile, RawJson, StopReason, ToolOutcome, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::tool::ToolOutput;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Block<'b> {
    Text {
        text: &'b str,
        #[serde(skip_serializing_if = "Option::is_none")]
        text_signature: Option<&'b str>,
    },
    Thinking {
        thinking: &'b str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thinking_signature: Option<&'b str>,
    },
    RedactedThinking {
        data: &'b str,
    },
    Image {
        data: &'b str,
        mime_type: &'b str,
    },
    ToolCall {
        id: &'b str,
        name: &'b str,
        arguments: &'b RawValue,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct User<'m> {
    role: &'static str,
    content: Vec<Block<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribution: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_id: Option<&'m str>,
    timestamp: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Assistant<'m> {
    role: &'static str,
    content: Vec<Block<'m>>,
    api: &'static str,
    provider: &'m str,
    model: &'m str,
    usage: Usage,
    stop_reason: StopReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_id: Option<&'m str>,
    timestamp: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'m> {
    role: &'static str,
    tool_call_id: &'m str,
    tool_name: &'m str,
    content: Vec<Block<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'m RawValue>,
    is_error: bool,
    timestamp: i64,
}

/// Who speaks in an input message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The user.
    User,
    /// The program, on its own behalf: never taken for the user's words.
    Developer,
}

impl Speaker {
    pub(crate) const fn role(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Developer => "developer",
        }
    }
}

/// What someone says to the model. `queued_id` names the queued message that it delivers.
pub(crate) fn input(
    speaker: Speaker,
    blocks: &[InputBlock<'_>],
    queued_id: Option<&str>,
    now_ms: i64,
) -> EntryDraft {
    draft(&User {
        role: speaker.role(),
        content: blocks.iter().map(input_block).collect(),
        attribution: (speaker == Speaker::Developer).then_some("agent"),
        queued_id,
        timestamp: now_ms,
    })
}

/// What the model answered, whole or broken off.
pub(crate) fn assistant(
    reply: &LlmReply,
    profile: &ModelProfile,
    error: Option<&str>,
    now_ms: i64,
) -> EntryDraft {
    draft(&Assistant {
        role: "assistant",
        content: reply.blocks.iter().map(assistant_block).collect(),
        api: profile.api.name(),
        provider: &profile.provider,
        model: &profile.id,
        usage: reply.usage,
        stop_reason: reply.stop,
        error_message: error,
        response_id: reply.response_id.as_deref(),
        timestamp: now_ms,
    })
}

/// What a tool answered.
pub(crate) fn tool_result(call_id: &str, tool: &str, output: &ToolOutput, now_ms: i64) -> EntryDraft {
    draft(&ToolResult {
        role: "toolResult",
        tool_call_id: call_id,
        tool_name: tool,
        content: output.blocks.iter().map(input_block).collect(),
        details: output.details.as_ref().map(RawJson::raw),
        is_error: output.outcome == ToolOutcome::Error,
        timestamp: now_ms,
    })
}

/// The texts of an input message, joined.
pub(crate) fn text_of(blocks: &[InputBlock<'_>]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        InputBlock::Text(text) => Some(&**text),
        InputBlock::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn draft(message: &impl Serialize) -> EntryDraft {
    // Strings, numbers and raw JSON always serialise.
    EntryDraft::message(&serde_json::to_string(message).unwrap_or_else(|_| "{}".to_owned()))
}

fn input_block<'b>(block: &'b InputBlock<'_>) -> Block<'b> {
    match block {
        InputBlock::Text(text) => Block::Text {
            text,
            text_signature: None,
        },
        InputBlock::Image(image) => Block::Image {
            data: &image.data,
            mime_type: &image.mime_type,
        },
    }
}

fn assistant_block<'b>(block: &'b AssistantBlock<'_>) -> Block<'b> {
    match block {
        AssistantBlock::Text { text, signature } => Block::Text {
            text,
            text_signature: signature.as_deref(),
        },
        AssistantBlock::Thinking { text, signature } => Block::Thinking {
            thinking: text,
            thinking_signature: signature.as_deref(),
        },
        AssistantBlock::RedactedThinking { data } => Block::RedactedThinking { data },
        AssistantBlock::ToolCall(call) => Block::ToolCall {
            id: &call.id,
            name: &call.name,
            arguments: call.arguments.raw(),
        },
    }
}

/// The blocks of a message as a session holds them: a list.
pub(crate) fn blocks_json(blocks: &[InputBlock<'_>]) -> RawJson<'static> {
    let blocks: Vec<Block<'_>> = blocks.iter().map(input_block).collect();
    serde_json::to_string(&blocks)
        .ok()
        .and_then(RawJson::parse)
        .unwrap_or_else(RawJson::empty_object)
}

/// The blocks of such a list, or of a plain text; `None` if it is neither.
pub(crate) fn blocks_of_json(json: &RawJson<'_>) -> Option<Vec<InputBlock<'static>>> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
    enum Written {
        Text { text: String },
        Image { data: String, mime_type: String },
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Blocks(Vec<Written>),
    }
    let blocks = match serde_json::from_str(json.get()).ok()? {
        Content::Text(text) => vec![InputBlock::Text(text.into())],
        Content::Blocks(blocks) => blocks
            .into_iter()
            .map(|block| match block {
                Written::Text { text } => InputBlock::Text(text.into()),
                Written::Image { data, mime_type } => InputBlock::Image(Image {
                    mime_type: mime_type.into(),
                    data: data.into(),
                }),
            })
            .collect(),
    };
    Some(blocks)
}
