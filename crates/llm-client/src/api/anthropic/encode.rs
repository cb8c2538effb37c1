use std::borrow::Cow;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    CacheHint, LlmRequest, ModelProfile, ReasoningEffort, ReasoningStyle, ToolChoice, ToolOutcome,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::LlmError;
use crate::api::transform::{Block, CallIds, Content, Part, prepare};
use crate::api::{UNKNOWN_MAX_OUTPUT, WireRequest, max_output, to_bytes};

/// The least budget that the API takes for thinking.
const MIN_THINKING: u64 = 1024;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<WireBlock<'r>>,
    messages: Vec<WireMessage<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<WireChoice<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
struct WireMessage<'r> {
    role: &'static str,
    content: Vec<WireBlock<'r>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireBlock<'r> {
    Text {
        text: Cow<'r, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'r str,
        signature: &'r str,
    },
    RedactedThinking {
        data: &'r str,
    },
    ToolUse {
        id: String,
        name: &'r str,
        input: &'r RawValue,
    },
    ToolResult {
        tool_use_id: String,
        content: Vec<WireBlock<'r>>,
        #[serde(skip_serializing_if = "is_success")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
struct Source<'r> {
    media_type: &'r str,
    data: &'r str,
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct CacheControl {
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

#[derive(Serialize)]
struct WireTool<'r> {
    name: &'r str,
    description: &'r str,
    input_schema: &'r RawValue,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireChoice<'r> {
    None,
    Any,
    Tool { name: &'r str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled { budget_tokens: u64 },
    Adaptive,
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_success(is_error: &bool) -> bool {
    !*is_error
}

pub(in crate::api) fn encode(
    profile: &ModelProfile,
    request: &LlmRequest<'_>,
) -> Result<WireRequest, LlmError> {
    let mark = cache_control(profile, request.cache);
    let limit = max_output(profile, request)
        .or(profile.max_output)
        .unwrap_or(UNKNOWN_MAX_OUTPUT);
    let (thinking, output_config, max_tokens) = thinking(profile, request, limit);
    let (mut messages, sources) = messages(profile, request);
    mark_last_user_block(&mut messages, mark);
    let body = Body {
        model: &profile.id,
        max_tokens,
        stream: true,
        system: system(request, mark),
        messages,
        tools: request
            .tools
            .iter()
            .map(|tool| WireTool {
                name: &tool.name,
                description: &tool.description,
                input_schema: tool.parameters.raw(),
            })
            .collect(),
        tool_choice: tool_choice(request),
        thinking,
        output_config,
    };
    Ok(WireRequest {
        body: to_bytes(&body)?,
        sources,
    })
}

fn cache_control(profile: &ModelProfile, hint: CacheHint) -> Option<CacheControl> {
    match hint {
        CacheHint::Off => None,
        CacheHint::Short => Some(CacheControl { ttl: None }),
        CacheHint::Long => Some(CacheControl {
            ttl: profile.cache_lifetime.long_seconds.is_some().then_some("1h"),
        }),
    }
}

fn system<'r>(request: &'r LlmRequest<'_>, mark: Option<CacheControl>) -> Vec<WireBlock<'r>> {
    let mut blocks: Vec<WireBlock<'r>> = request
        .system
        .iter()
        .filter(|text| !text.trim().is_empty())
        .map(|text| WireBlock::Text {
            text: Cow::Borrowed(text),
            cache_control: None,
        })
        .collect();
    if let Some(WireBlock::Text { cache_control, .. }) = blocks.last_mut() {
        *cache_control = mark;
    }
    blocks
}

fn tool_choice<'r>(request: &'r LlmRequest<'_>) -> Option<WireChoice<'r>> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(WireChoice::None),
        ToolChoice::Required => Some(WireChoice::Any),
        ToolChoice::Tool(name) => Some(WireChoice::Tool { name }),
    }
}

fn messages<'r>(
    profile: &ModelProfile,
    request: &'r LlmRequest<'_>,
) -> (Vec<WireMessage<'r>>, Vec<Option<usize>>) {
    let mut ids = CallIds::new(64);
    let mut messages: Vec<WireMessage<'r>> = Vec::new();
    let mut sources = Vec::new();
    // Results that follow each other go into one message: the API wants all of a reply's results there.
    let mut joins_results = false;
    for prepared in prepare(profile, request) {
        let is_result = matches!(prepared.content, Content::Result { .. });
        let (role, content) = match prepared.content {
            Content::User(parts) => ("user", parts.into_iter().map(part).collect()),
            Content::Assistant { blocks, .. } => (
                "assistant",
                blocks
                    .into_iter()
                    .map(|block| assistant_block(block, &mut ids))
                    .collect(),
            ),
            // Only `OpenAI` Responses has such items.
            Content::Opaque(_) => continue,
            Content::Result {
                call_id,
                parts,
                outcome,
            } => {
                let result = WireBlock::ToolResult {
                    tool_use_id: ids.wire_id(call_id),
                    content: parts.into_iter().map(part).collect(),
                    is_error: outcome == ToolOutcome::Error,
                    cache_control: None,
                };
                ("user", vec![result])
            }
        };
        match messages.last_mut() {
            Some(last) if is_result && joins_results => last.content.extend(content),
            _ => {
                messages.push(WireMessage { role, content });
                sources.push(prepared.source);
            }
        }
        joins_results = is_result;
    }
    (messages, sources)
}

fn part(part: Part<'_>) -> WireBlock<'_> {
    match part {
        Part::Text(text) => WireBlock::Text {
            text,
            cache_control: None,
        },
        Part::Image(image) => WireBlock::Image {
            source: Source {
                media_type: &image.mime_type,
                data: &image.data,
            },
            cache_control: None,
        },
    }
}

fn assistant_block<'r>(block: Block<'r>, ids: &mut CallIds<'r>) -> WireBlock<'r> {
    match block {
        Block::Text { text, .. } => WireBlock::Text {
            text: Cow::Borrowed(text),
            cache_control: None,
        },
        Block::Thinking { text, signature } => WireBlock::Thinking {
            thinking: text,
            signature,
        },
        Block::Redacted { data } => WireBlock::RedactedThinking { data },
        Block::Call(call) => WireBlock::ToolUse {
            id: ids.wire_id(&call.id),
            name: &call.name,
            input: call.arguments.raw(),
        },
    }
}

fn mark_last_user_block(messages: &mut [WireMessage<'_>], mark: Option<CacheControl>) {
    let last = messages.iter_mut().rev().find(|message| message.role == "user");
    if let Some(
        WireBlock::Text { cache_control, .. }
        | WireBlock::Image { cache_control, .. }
        | WireBlock::ToolResult { cache_control, .. },
    ) = last.and_then(|message| message.content.last_mut())
    {
        *cache_control = mark;
    }
}

/// How the request asks for thinking, and the output limit that leaves room for it.
fn thinking(
    profile: &ModelProfile,
    request: &LlmRequest<'_>,
    limit: Tokens,
) -> (Option<Thinking>, Option<OutputConfig>, u64) {
    let limit = limit.get();
    // A forced call and thinking exclude each other.
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_))
        && !request.tools.is_empty();
    match (profile.capabilities.reasoning, request.reasoning) {
        (ReasoningStyle::Budget, ReasoningEffort::Off) => (Some(Thinking::Disabled), None, limit),
        // Some of these models think always; all of them take a low effort.
        (ReasoningStyle::Adaptive, ReasoningEffort::Off) => {
            (None, Some(OutputConfig { effort: "low" }), limit)
        }
        (ReasoningStyle::None | ReasoningStyle::Effort | ReasoningStyle::Switch, _)
        | (_, ReasoningEffort::Unset) => (None, None, limit),
        _ if forced => (None, None, limit),
        (ReasoningStyle::Budget, level) => {
            let wanted = match level {
                ReasoningEffort::Unset | ReasoningEffort::Off | ReasoningEffort::Minimal => 1024,
                ReasoningEffort::Low => 2048,
                ReasoningEffort::Medium => 8192,
                ReasoningEffort::High | ReasoningEffort::Max => 16_384,
            };
            let cap = limit
                .saturating_add(wanted)
                .min(profile.max_output.map_or(u64::MAX, Tokens::get));
            let budget = if cap <= wanted {
                cap.saturating_sub(1024)
            } else {
                wanted
            };
            if budget < MIN_THINKING {
                (None, None, limit)
            } else {
                (
                    Some(Thinking::Enabled {
                        budget_tokens: budget,
                    }),
                    None,
                    cap,
                )
            }
        }
        (ReasoningStyle::Adaptive, level) => {
            let effort = match level {
                ReasoningEffort::Unset
                | ReasoningEffort::Off
                | ReasoningEffort::Minimal
                | ReasoningEffort::Low => "low",
                ReasoningEffort::Medium => "medium",
                ReasoningEffort::High => "high",
                ReasoningEffort::Max => "max",
            };
            (Some(Thinking::Adaptive), Some(OutputConfig { effort }), limit)
        }
    }
}
