use std::borrow::Cow;

use foldline_session_model::model_call::{
    CacheHint, Image, LlmRequest, MaxTokensField, ModelProfile, PromptCache, ReasoningEffort, ReasoningStyle,
    SystemRole, ToolChoice,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::LlmError;
use crate::api::transform::{Block, CallIds, Content, Part, prepare};
use crate::api::{WireRequest, effort, max_output, to_bytes};

/// The fields in which servers show reasoning; the signature of a block is the field it came in.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<WireMessage<'r>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<WireTool<'r>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<WireChoice<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Default, Serialize)]
struct WireMessage<'r> {
    role: &'static str,
    content: WireContent<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Default, Serialize)]
#[serde(untagged)]
enum WireContent<'r> {
    #[default]
    Null,
    Text(Cow<'r, str>),
    Parts(Vec<WirePart<'r>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'r> {
    Text {
        text: Cow<'r, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct CacheControl {}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'r> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'r>,
}

#[derive(Serialize)]
struct WireFunction<'r> {
    name: &'r str,
    arguments: &'r str,
}

#[derive(Serialize)]
struct WireTool<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireToolFunction<'r>,
}

#[derive(Serialize)]
struct WireToolFunction<'r> {
    name: &'r str,
    description: &'r str,
    parameters: &'r RawValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireChoice<'r> {
    Word(&'static str),
    Tool {
        #[serde(rename = "type")]
        kind: &'static str,
        function: ChosenTool<'r>,
    },
}

#[derive(Serialize)]
struct ChosenTool<'r> {
    name: &'r str,
}

pub(in crate::api) fn encode(
    profile: &ModelProfile,
    request: &LlmRequest<'_>,
) -> Result<WireRequest, LlmError> {
    let (mut messages, sources) = messages(profile, request);
    if profile.capabilities.prompt_cache == PromptCache::Marked && request.cache != CacheHint::Off {
        mark_last_text(&mut messages);
    }
    let has_calls = messages.iter().any(|message| !message.tool_calls.is_empty());
    let tools: Vec<WireTool<'_>> = request
        .tools
        .iter()
        .map(|tool| WireTool {
            kind: "function",
            function: WireToolFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: tool.parameters.raw(),
            },
        })
        .collect();
    let limit = max_output(profile, request).map(foldline_session_model::Tokens::get);
    let (max_tokens, max_completion_tokens) = match profile.capabilities.max_tokens_field {
        MaxTokensField::MaxTokens => (limit, None),
        MaxTokensField::MaxCompletionTokens => (None, limit),
    };
    let (reasoning_effort, enable_thinking) = match (profile.capabilities.reasoning, request.reasoning) {
        (ReasoningStyle::Effort, level) => (effort(level), None),
        (ReasoningStyle::Switch, ReasoningEffort::Unset) => (None, None),
        (ReasoningStyle::Switch, level) => (None, Some(level != ReasoningEffort::Off)),
        _ => (None, None),
    };
    let body = Body {
        model: &profile.id,
        messages,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens,
        max_completion_tokens,
        tool_choice: tool_choice(request),
        // Proxies in front of Anthropic want the field as soon as the history holds calls.
        tools: (!tools.is_empty() || has_calls).then_some(tools),
        reasoning_effort,
        enable_thinking,
    };
    Ok(WireRequest {
        body: to_bytes(&body)?,
        sources,
    })
}

fn tool_choice<'r>(request: &'r LlmRequest<'_>) -> Option<WireChoice<'r>> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(WireChoice::Word("none")),
        ToolChoice::Required => Some(WireChoice::Word("required")),
        ToolChoice::Tool(name) => Some(WireChoice::Tool {
            kind: "function",
            function: ChosenTool { name },
        }),
    }
}

fn messages<'r>(
    profile: &ModelProfile,
    request: &'r LlmRequest<'_>,
) -> (Vec<WireMessage<'r>>, Vec<Option<usize>>) {
    // OpenAI takes 40 characters. Calls that came through Responses carry an item id behind a bar, which
    // the map of ids keeps apart from other calls.
    let mut ids = CallIds::new(40);
    let mut list = List {
        messages: Vec::new(),
        sources: Vec::new(),
        images: Vec::new(),
    };
    let system = request
        .system
        .iter()
        .filter(|text| !text.trim().is_empty())
        .map(AsRef::as_ref)
        .collect::<Vec<_>>();
    if !system.is_empty() {
        let role = match profile.capabilities.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        };
        list.push(
            None,
            WireMessage {
                role,
                content: WireContent::Text(system.join("\n\n").into()),
                ..Default::default()
            },
        );
    }
    for prepared in prepare(profile, request) {
        match prepared.content {
            Content::User(parts) => {
                list.flush_images();
                list.push(
                    prepared.source,
                    WireMessage {
                        role: "user",
                        content: content(parts),
                        ..Default::default()
                    },
                );
            }
            Content::Assistant { blocks, .. } => {
                list.flush_images();
                list.push(prepared.source, assistant(blocks, &mut ids));
            }
            // Only `OpenAI` Responses has such items.
            Content::Opaque(_) => {}
            Content::Result { call_id, parts, .. } => {
                let mut texts: Vec<Cow<'r, str>> = Vec::new();
                let mut has_images = false;
                for part in parts {
                    match part {
                        Part::Text(text) => texts.push(text),
                        Part::Image(image) => {
                            has_images = true;
                            list.images.push((prepared.source, image));
                        }
                    }
                }
                let text = match (texts.is_empty(), has_images) {
                    (true, true) => Cow::Borrowed("(see attached image)"),
                    _ => join(texts),
                };
                let message = WireMessage {
                    role: "tool",
                    content: WireContent::Text(text),
                    tool_call_id: Some(ids.wire_id(call_part(call_id))),
                    ..Default::default()
                };
                list.push(prepared.source, message);
            }
        }
    }
    list.flush_images();
    (list.messages, list.sources)
}

/// The part of a call's id that both OpenAI APIs share.
fn call_part(id: &str) -> &str {
    id.split_once('|').map_or(id, |(call, _)| call)
}

struct List<'r> {
    messages: Vec<WireMessage<'r>>,
    sources: Vec<Option<usize>>,
    /// Pictures out of tool results, which only a user message can carry.
    images: Vec<(Option<usize>, &'r Image<'r>)>,
}

impl<'r> List<'r> {
    fn push(&mut self, source: Option<usize>, message: WireMessage<'r>) {
        self.messages.push(message);
        self.sources.push(source);
    }

    fn flush_images(&mut self) {
        let images = std::mem::take(&mut self.images);
        let Some(source) = images.first().map(|(source, _)| *source) else {
            return;
        };
        let note = WirePart::Text {
            text: "Attached image(s) from tool result:".into(),
            cache_control: None,
        };
        let parts = std::iter::once(note)
            .chain(images.into_iter().map(|(_, image)| image_part(image)))
            .collect();
        self.push(
            source,
            WireMessage {
                role: "user",
                content: WireContent::Parts(parts),
                ..Default::default()
            },
        );
    }
}

fn assistant<'r>(blocks: Vec<Block<'r>>, ids: &mut CallIds<'r>) -> WireMessage<'r> {
    let mut message = WireMessage {
        role: "assistant",
        ..Default::default()
    };
    let mut texts = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text, .. } => texts.push(Cow::Borrowed(text)),
            Block::Thinking { text, signature } => {
                let field = match signature {
                    "reasoning_content" => &mut message.reasoning_content,
                    "reasoning" => &mut message.reasoning,
                    "reasoning_text" => &mut message.reasoning_text,
                    _ => continue,
                };
                let field = field.get_or_insert_default();
                if !field.is_empty() {
                    field.push('\n');
                }
                field.push_str(text);
            }
            Block::Redacted { .. } => {}
            Block::Call(call) => message.tool_calls.push(WireCall {
                id: ids.wire_id(call_part(&call.id)),
                kind: "function",
                function: WireFunction {
                    name: &call.name,
                    arguments: call.arguments.get(),
                },
            }),
        }
    }
    if !texts.is_empty() {
        message.content = WireContent::Text(join(texts));
    }
    message
}

/// One string where that says everything: many servers take nothing else.
fn content(parts: Vec<Part<'_>>) -> WireContent<'_> {
    if parts.iter().all(|part| matches!(part, Part::Text(_))) {
        let texts = parts.into_iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Image(_) => None,
        });
        return WireContent::Text(join(texts.collect()));
    }
    let parts = parts.into_iter().map(|part| match part {
        Part::Text(text) => WirePart::Text {
            text,
            cache_control: None,
        },
        Part::Image(image) => image_part(image),
    });
    WireContent::Parts(parts.collect())
}

fn image_part<'r>(image: &Image<'_>) -> WirePart<'r> {
    WirePart::ImageUrl {
        image_url: ImageUrl {
            url: format!("data:{};base64,{}", image.mime_type, image.data),
        },
    }
}

fn join(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    if texts.len() == 1 {
        return texts.remove(0);
    }
    texts.join("\n").into()
}

fn mark_last_text(messages: &mut [WireMessage<'_>]) {
    let last = messages.iter_mut().rev().find(|message| message.role == "user");
    let Some(message) = last else { return };
    if let WireContent::Text(text) = &mut message.content {
        let text = std::mem::take(text);
        message.content = WireContent::Parts(vec![WirePart::Text {
            text,
            cache_control: None,
        }]);
    }
    if let WireContent::Parts(parts) = &mut message.content {
        let text = parts.iter_mut().rev().find_map(|part| match part {
            WirePart::Text { cache_control, .. } => Some(cache_control),
            WirePart::ImageUrl { .. } => None,
        });
        if let Some(mark) = text {
            *mark = Some(CacheControl {});
        }
    }
}
