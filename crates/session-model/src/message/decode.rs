//! From JSON to messages, and from borrowed to owned ones.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    AssistantMessage, Block, Content, CustomContent, Execution, FileMention, MentionedFile, Message,
    RemoteHistory, Shown, StopReason, SummaryText, ToolCall, ToolResult, UnknownMessage, UserMessage,
    VerbatimBoundary,
};
use crate::entry::decode::tokens;
use crate::json::{DecodeError, Field, Own, Raw, Strictly, json_object, text_of};
use crate::model_call::{Cost, Usage};

json_object! {
    struct RawMessage {
        "role" => role: Cow<'a, str>,
        "content" => content: Content<'a>,
        "timestamp" => timestamp: f64,
        "synthetic" => synthetic: bool,
        "api" => api: Cow<'a, str>,
        "provider" => provider: Cow<'a, str>,
        "model" => model: Cow<'a, str>,
        "usage" => usage: RawUsage<'a>,
        "stopReason" => stop_reason: Cow<'a, str>,
        "errorMessage" => error_message: Cow<'a, str>,
        "toolCallId" => tool_call_id: Cow<'a, str>,
        "toolName" => tool_name: Cow<'a, str>,
        "isError" => is_error: bool,
        "prunedAt" => pruned_at: f64,
        "details" => details: Raw<'a>,
        "command" => command: Cow<'a, str>,
        "code" => code: Cow<'a, str>,
        "output" => output: Cow<'a, str>,
        "exitCode" => exit_code: f64,
        "cancelled" => cancelled: bool,
        "truncated" => truncated: bool,
        "fullOutputPath" => full_output_path: Cow<'a, str>,
        "excludeFromContext" => excluded: bool,
        "customType" => custom_type: Cow<'a, str>,
        "display" => display: bool,
        "attribution" => attribution: Cow<'a, str>,
        "files" => files: Vec<RawFile<'a>>,
        "summary" => summary: Cow<'a, str>,
        "fromId" => from_id: Cow<'a, str>,
        "tokensBefore" => tokens_before: f64,
    }
}

json_object! {
    struct RawUsage {
        "input" => input: f64,
        "output" => output: f64,
        "cacheRead" => cache_read: f64,
        "cacheWrite" => cache_write: f64,
        "totalTokens" => total: f64,
        "cost" => cost: RawCost<'a>,
    }
}

json_object! {
    struct RawCost {
        "total" => total: f64,
    }
}

json_object! {
    struct RawFile {
        "path" => path: Cow<'a, str>,
        "content" => content: Cow<'a, str>,
        "image" => image: Block<'a>,
        "duplicate" => duplicate: bool,
        "pruned" => pruned: bool,
    }
}

json_object! {
    struct RawBlock {
        "type" => kind: Cow<'a, str>,
        "text" => text: Cow<'a, str>,
        "textSignature" => text_signature: Cow<'a, str>,
        "thinking" => thinking: Cow<'a, str>,
        "thinkingSignature" => thinking_signature: Cow<'a, str>,
        "redacted" => redacted: bool,
        "data" => data: Cow<'a, str>,
        "mimeType" => mime_type: Cow<'a, str>,
        "id" => id: Cow<'a, str>,
        "name" => name: Cow<'a, str>,
        "customWireName" => wire_name: Cow<'a, str>,
        "arguments" => arguments: Raw<'a>,
        "thoughtSignature" => thought_signature: Cow<'a, str>,
    }
}

/// Reads a message from the text of its object.
pub(crate) fn from_json(text: &str) -> Result<Box<Message<'_>>, DecodeError> {
    RawMessage::decode(text.as_bytes()).map(|raw| Box::new(message(raw)))
}

impl<'de> Field<'de> for Box<Message<'de>> {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        RawMessage::strict(d).map(|raw| Box::new(message(raw)))
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        RawMessage::lenient(raw).map(|raw| Box::new(message(raw)))
    }
}

impl<'de> Field<'de> for Block<'de> {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        RawBlock::strict(d).map(block)
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        RawBlock::lenient(raw).map(block)
    }
}

impl<'de> Field<'de> for Content<'de> {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_bytes(ContentVisitor)
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        Cow::lenient(raw)
            .map(Content::Text)
            .or_else(|| Vec::lenient(raw).map(Content::Blocks))
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or blocks")
    }

    fn visit_borrowed_bytes<E>(self, v: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Content::Text(match std::str::from_utf8(v) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(text_of(v)),
        }))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text_of(v))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = seq.next_element_seed(Strictly::<Block<'de>>(std::marker::PhantomData))? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }
}

fn block(raw: RawBlock<'_>) -> Block<'_> {
    match raw.kind.as_deref() {
        Some("text") => Block::Text {
            text: raw.text.unwrap_or_default(),
            signature: raw.text_signature,
        },
        Some("thinking") => Block::Thinking {
            thinking: raw.thinking.unwrap_or_default(),
            signature: raw.thinking_signature,
            redacted: raw.redacted == Some(true),
        },
        Some("redactedThinking" | "redacted_thinking") => Block::RedactedThinking {
            data: raw.data.unwrap_or_default(),
        },
        Some("image") => Block::Image {
            data: raw.data.unwrap_or_default(),
            mime_type: raw.mime_type.unwrap_or_default(),
        },
        Some("toolCall") => Block::ToolCall(ToolCall {
            id: raw.id.unwrap_or_default(),
            name: raw.name.unwrap_or_default(),
            wire_name: raw.wire_name,
            arguments: raw.arguments,
            thought_signature: raw.thought_signature,
        }),
        _ => Block::Unknown {
            kind: raw.kind.unwrap_or_default(),
        },
    }
}

fn message(raw: RawMessage<'_>) -> Message<'_> {
    let content = raw.content.unwrap_or_default();
    let timestamp = raw.timestamp;
    match raw.role.as_deref() {
        Some(role @ ("user" | "developer")) => {
            let developer = role == "developer";
            let message = UserMessage {
                content,
                timestamp,
                synthetic: raw.synthetic == Some(true),
            };
            if developer {
                Message::Developer(message)
            } else {
                Message::User(message)
            }
        }
        Some("assistant") => Message::Assistant(Box::new(AssistantMessage {
            content: match content {
                // Plain text has no place in the model's own messages: it reads as one text block.
                Content::Text(text) => Content::Blocks(vec![Block::Text {
                    text,
                    signature: None,
                }]),
                blocks => blocks,
            },
            api: raw.api.unwrap_or_default(),
            provider: raw.provider.unwrap_or_default(),
            model: raw.model.unwrap_or_default(),
            usage: raw.usage.map(|usage| recorded(&usage)),
            stop_reason: match raw.stop_reason.as_deref() {
                Some("stop") => StopReason::Stop,
                Some("length") => StopReason::Length,
                Some("toolUse") => StopReason::ToolUse,
                Some("error") => StopReason::Error,
                Some("aborted") => StopReason::Aborted,
                _ => StopReason::Unknown,
            },
            error_message: raw.error_message,
            timestamp,
        })),
        Some("toolResult") => Message::ToolResult(ToolResult {
            tool_call_id: raw.tool_call_id.unwrap_or_default(),
            tool_name: raw.tool_name.unwrap_or_default(),
            content,
            is_error: raw.is_error == Some(true),
            pruned_at: raw.pruned_at,
            details: raw.details,
            timestamp,
        }),
        Some(role @ ("bashExecution" | "pythonExecution")) => {
            let python = role == "pythonExecution";
            let source = if python { raw.code } else { raw.command };
            let execution = Execution {
                source: source.unwrap_or_default(),
                output: raw.output.unwrap_or_default(),
                exit_code: raw.exit_code,
                cancelled: raw.cancelled == Some(true),
                truncated: raw.truncated == Some(true),
                full_output_path: raw.full_output_path,
                excluded: raw.excluded == Some(true),
                timestamp,
            };
            if python {
                Message::PythonExecution(execution)
            } else {
                Message::BashExecution(execution)
            }
        }
        Some(role @ ("custom" | "hookMessage")) => {
            let hook = role == "hookMessage";
            let custom = CustomContent {
                custom_type: raw.custom_type.unwrap_or_default(),
                content,
                display: raw.display.unwrap_or(true),
                details: raw.details,
                attribution: raw.attribution,
                excluded: raw.excluded == Some(true),
                timestamp,
            };
            if hook {
                Message::HookMessage(custom)
            } else {
                Message::Custom(custom)
            }
        }
        Some("fileMention") => Message::FileMention(FileMention {
            files: raw.files.unwrap_or_default().into_iter().map(file).collect(),
            timestamp,
        }),
        Some(role @ ("branchSummary" | "compactionSummary")) => {
            let branch = role == "branchSummary";
            let summary = SummaryText {
                summary: raw.summary.unwrap_or_default(),
                from_id: raw.from_id,
                tokens_before: tokens(raw.tokens_before),
                remote_history: None,
                timestamp,
            };
            if branch {
                Message::BranchSummary(summary)
            } else {
                Message::CompactionSummary(summary)
            }
        }
        _ => Message::Unknown(UnknownMessage {
            role: raw.role.unwrap_or_default(),
            content,
        }),
    }
}

/// The usage of a message: broken and negative numbers count as 0. Of the cost only the sum is read.
fn recorded(usage: &RawUsage<'_>) -> Usage {
    let cost = usage.cost.as_ref().and_then(|cost| cost.total);
    Usage {
        input: tokens(usage.input),
        output: tokens(usage.output),
        cache_read: tokens(usage.cache_read),
        cache_write: tokens(usage.cache_write),
        total_tokens: tokens(usage.total),
        reasoning: None,
        cost: Cost {
            total: cost.filter(|cost| cost.is_finite() && *cost > 0.0).unwrap_or(0.0),
            ..Cost::default()
        },
    }
}

fn file(raw: RawFile<'_>) -> MentionedFile<'_> {
    MentionedFile {
        path: raw.path.unwrap_or_default(),
        content: raw.content.unwrap_or_default(),
        image: raw.image.filter(|image| matches!(image, Block::Image { .. })),
        shown: match (raw.pruned, raw.duplicate) {
            (Some(true), _) => Shown::Pruned,
            (_, Some(true)) => Shown::Duplicate,
            _ => Shown::Whole,
        },
    }
}

macro_rules! own {
    ($( $name:ident { $( $field:ident ),* $(; copy $( $copied:ident ),* )? } )*) => { $(
        impl Own for $name<'_> {
            type Static = $name<'static>;
            fn own(self) -> Self::Static {
                $name { $( $field: self.$field.own(), )* $( $( $copied: self.$copied, )* )? }
            }
        }
    )* };
}

own! {
    UserMessage { content; copy timestamp, synthetic }
    AssistantMessage { content, api, provider, model, error_message; copy usage, stop_reason, timestamp }
    ToolResult { tool_call_id, tool_name, content, details; copy is_error, pruned_at, timestamp }
    Execution { source, output, full_output_path; copy exit_code, cancelled, truncated, excluded, timestamp }
    CustomContent { custom_type, content, details, attribution; copy display, excluded, timestamp }
    FileMention { files; copy timestamp }
    MentionedFile { path, content, image; copy shown }
    SummaryText { summary, from_id, remote_history; copy tokens_before, timestamp }
    RemoteHistory { provider, api, model, items }
    VerbatimBoundary { text, details; copy timestamp }
    UnknownMessage { role, content }
    ToolCall { id, name, wire_name, arguments, thought_signature }
}

impl Own for Content<'_> {
    type Static = Content<'static>;
    fn own(self) -> Self::Static {
        match self {
            Self::Text(text) => Content::Text(text.own()),
            Self::Blocks(blocks) => Content::Blocks(blocks.own()),
        }
    }
}

impl Own for Block<'_> {
    type Static = Block<'static>;
    fn own(self) -> Self::Static {
        match self {
            Self::Text { text, signature } => Block::Text {
                text: text.own(),
                signature: signature.own(),
            },
            Self::Thinking {
                thinking,
                signature,
                redacted,
            } => Block::Thinking {
                thinking: thinking.own(),
                signature: signature.own(),
                redacted,
            },
            Self::RedactedThinking { data } => Block::RedactedThinking { data: data.own() },
            Self::Image { data, mime_type } => Block::Image {
                data: data.own(),
                mime_type: mime_type.own(),
            },
            Self::ToolCall(call) => Block::ToolCall(call.own()),
            Self::Unknown { kind } => Block::Unknown { kind: kind.own() },
        }
    }
}

impl Own for Message<'_> {
    type Static = Message<'static>;
    fn own(self) -> Self::Static {
        match self {
            Self::User(m) => Message::User(m.own()),
            Self::Developer(m) => Message::Developer(m.own()),
            Self::Assistant(m) => Message::Assistant(m.own()),
            Self::ToolResult(m) => Message::ToolResult(m.own()),
            Self::BashExecution(m) => Message::BashExecution(m.own()),
            Self::PythonExecution(m) => Message::PythonExecution(m.own()),
            Self::Custom(m) => Message::Custom(m.own()),
            Self::HookMessage(m) => Message::HookMessage(m.own()),
            Self::FileMention(m) => Message::FileMention(m.own()),
            Self::BranchSummary(m) => Message::BranchSummary(m.own()),
            Self::CompactionSummary(m) => Message::CompactionSummary(m.own()),
            Self::VerbatimBoundary(m) => Message::VerbatimBoundary(m.own()),
            Self::Unknown(m) => Message::Unknown(m.own()),
        }
    }
}
