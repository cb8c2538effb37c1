//! The rows of a transcript, as far as they are read.

use std::borrow::Cow;

use crate::json::{Raw, json_object};

json_object! {
    /// One row.
    struct Row {
        "type" => kind: Cow<'a, str>,
        "subtype" => subtype: Cow<'a, str>,
        "uuid" => uuid: Cow<'a, str>,
        "parentUuid" => parent_uuid: Cow<'a, str>,
        "isSidechain" => sidechain: bool,
        "agentId" => agent_id: Cow<'a, str>,
        "isMeta" => is_meta: bool,
        "isCompactSummary" => is_compact_summary: bool,
        "isApiErrorMessage" => is_api_error: bool,
        "sessionId" => session_id: Cow<'a, str>,
        "cwd" => cwd: Cow<'a, str>,
        "version" => version: Cow<'a, str>,
        "timestamp" => timestamp: Cow<'a, str>,
        "message" => message: Raw<'a>,
        "attachment" => attachment: Raw<'a>,
        "compactMetadata" => compact_metadata: CompactMetadata<'a>,
        "toolUseResult" => tool_use_result: Raw<'a>,
        "customTitle" => custom_title: Cow<'a, str>,
    }
}

json_object! {
    /// What a compaction mark says.
    struct CompactMetadata {
        "trigger" => trigger: Cow<'a, str>,
        "preTokens" => tokens_before: f64,
        "preservedSegment" => preserved: Preserved<'a>,
    }
}

json_object! {
    /// The messages that a compaction kept.
    struct Preserved {
        "headUuid" => head: Cow<'a, str>,
    }
}

json_object! {
    /// The `message` of a row.
    struct Reply {
        "id" => id: Cow<'a, str>,
        "model" => model: Cow<'a, str>,
        "content" => content: Raw<'a>,
        "stop_reason" => stop_reason: Cow<'a, str>,
        "usage" => usage: RawUsage<'a>,
    }
}

json_object! {
    struct RawUsage {
        "input_tokens" => input: f64,
        "output_tokens" => output: f64,
        "cache_read_input_tokens" => cache_read: f64,
        "cache_creation_input_tokens" => cache_write: f64,
    }
}

json_object! {
    /// A block of any type.
    struct Block {
        "type" => kind: Cow<'a, str>,
        "text" => text: Cow<'a, str>,
        "thinking" => thinking: Cow<'a, str>,
        "signature" => signature: Cow<'a, str>,
        "data" => data: Cow<'a, str>,
        "id" => id: Cow<'a, str>,
        "name" => name: Cow<'a, str>,
        "input" => input: Raw<'a>,
        "tool_use_id" => tool_use_id: Cow<'a, str>,
        "content" => content: Raw<'a>,
        "is_error" => is_error: bool,
        "source" => source: Source<'a>,
    }
}

json_object! {
    /// Where a picture is.
    struct Source {
        "media_type" => media_type: Cow<'a, str>,
        "data" => data: Cow<'a, str>,
    }
}

json_object! {
    /// The `attachment` of a row.
    struct Attachment {
        "type" => kind: Cow<'a, str>,
        "prompt" => prompt: Raw<'a>,
        "commandMode" => mode: Cow<'a, str>,
    }
}

impl Row<'_> {
    /// Whether the row holds a message.
    pub(super) fn is_message(&self) -> bool {
        matches!(self.kind.as_deref(), Some("user" | "assistant"))
    }

    /// Whether the row belongs to a subagent.
    pub(super) fn is_sidechain(&self) -> bool {
        self.sidechain == Some(true)
    }
}
