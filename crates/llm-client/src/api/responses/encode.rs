use std::borrow::Cow;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    CacheHint, Image, LlmRequest, ModelProfile, ReasoningEffort, ReasoningStyle, SystemRole, ToolChoice,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::LlmError;
use crate::api::transform::{Block, CallIds, Content, OriginMatch, Part, prepare, sanitise};
use crate::api::{WireRequest, effort, max_output, to_bytes};
use crate::remote::neutralise;

/// The least output limit that the API takes.
const MIN_OUTPUT: Tokens = Tokens(16);

/// The longest id that the API takes.
const ID_LIMIT: usize = 64;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    input: Vec<Item<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<WireChoice<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'r str>,
}

/// An element of `input`.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Item<'r> {
    /// System or user text and pictures.
    Message {
        role: &'static str,
        content: Vec<WirePart<'r>>,
    },
    /// Anything with a type of its own.
    Typed(TypedItem<'r>),
    /// An item of this provider, byte for byte.
    Raw(&'r RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum TypedItem<'r> {
    Message {
        id: String,
        role: &'static str,
        status: &'static str,
        content: Vec<WirePart<'r>>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: String,
        name: &'r str,
        arguments: &'r str,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'r>,
    },
    /// Asks for a compaction of what stands before it.
    CompactionTrigger,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Output<'r> {
    Text(Cow<'r, str>),
    Parts(Vec<WirePart<'r>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum WirePart<'r> {
    InputText {
        text: Cow<'r, str>,
    },
    InputImage {
        detail: &'static str,
        image_url: String,
    },
    OutputText {
        text: Cow<'r, str>,
        annotations: [(); 0],
    },
}

#[derive(Serialize)]
struct WireTool<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'r str,
    description: &'r str,
    parameters: &'r RawValue,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireChoice<'r> {
    Word(&'static str),
    Tool {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'r str,
    },
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
    summary: &'static str,
}

pub(in crate::api) fn encode(
    profile: &ModelProfile,
    request: &LlmRequest<'_>,
) -> Result<WireRequest, LlmError> {
    let (mut input, mut sources) = (Vec::new(), Vec::new());
    let system: Vec<&str> = request
        .system
        .iter()
        .filter(|text| !text.trim().is_empty())
        .map(AsRef::as_ref)
        .collect();
    if !system.is_empty() {
        let role = match profile.capabilities.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        };
        input.push(Item::Message {
            role,
            content: vec![WirePart::InputText {
                text: system.join("\n\n").into(),
            }],
        });
        sources.push(None);
    }
    items(profile, request, &mut input, &mut sources);
    let max_output = max_output(profile, request).map(|limit| limit.max(MIN_OUTPUT).get());
    Ok(WireRequest {
        body: to_bytes(&Body {
            max_output_tokens: max_output,
            ..body(profile, request, input)
        })?,
        sources,
    })
}

/// The body that asks for a native compaction in its streaming form: a live request without its own system
/// item and output limit, with the trigger as its last item (spec "Compaction core", 13).
pub(crate) fn compaction_body<'r>(
    profile: &'r ModelProfile,
    request: &'r LlmRequest<'_>,
    mut input: Vec<Item<'r>>,
) -> Result<Vec<u8>, LlmError> {
    input.push(Item::Typed(TypedItem::CompactionTrigger));
    to_bytes(&Body {
        instructions: Some(neutralise(&request.system.join("\n\n"))),
        ..body(profile, request, input)
    })
}

fn body<'r>(profile: &'r ModelProfile, request: &'r LlmRequest<'_>, input: Vec<Item<'r>>) -> Body<'r> {
    let reasons = profile.capabilities.reasoning == ReasoningStyle::Effort;
    let level = if reasons { effort(request.reasoning) } else { None };
    let summary = if request.reasoning == ReasoningEffort::Off {
        "none"
    } else {
        "auto"
    };
    Body {
        model: &profile.id,
        input,
        instructions: None,
        stream: true,
        store: false,
        max_output_tokens: None,
        tools: request
            .tools
            .iter()
            .map(|tool| WireTool {
                kind: "function",
                name: &tool.name,
                description: &tool.description,
                parameters: tool.parameters.raw(),
                strict: false,
            })
            .collect(),
        tool_choice: tool_choice(request),
        reasoning: level
            .filter(|_| summary == "auto")
            .map(|effort| Reasoning { effort, summary }),
        include: if reasons {
            vec!["reasoning.encrypted_content"]
        } else {
            Vec::new()
        },
        prompt_cache_key: request
            .session_key
            .as_deref()
            .filter(|_| request.cache != CacheHint::Off),
    }
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
            name,
        }),
    }
}

/// The conversation as items.
pub(crate) fn items<'r>(
    profile: &ModelProfile,
    request: &'r LlmRequest<'_>,
    input: &mut Vec<Item<'r>>,
    sources: &mut Vec<Option<usize>>,
) {
    let mut ids = CallIds::new(ID_LIMIT);
    for (position, prepared) in prepare(profile, request).into_iter().enumerate() {
        let source = prepared.source;
        let mut push = |item| {
            input.push(item);
            sources.push(source);
        };
        match prepared.content {
            Content::User(parts) => {
                push(Item::Message {
                    role: "user",
                    content: parts.into_iter().map(part).collect(),
                });
            }
            Content::Assistant { origin, blocks } => {
                for block in blocks {
                    if let Some(item) = assistant_item(block, origin, position, &mut ids) {
                        push(item);
                    }
                }
            }
            Content::Opaque(items) => items.iter().for_each(|item| push(Item::Raw(item.raw()))),
            Content::Result { call_id, parts, .. } => {
                push(Item::Typed(TypedItem::FunctionCallOutput {
                    call_id: ids.wire_id(split_id(call_id).0),
                    output: output(parts),
                }));
            }
        }
    }
}

fn assistant_item<'r>(
    block: Block<'r>,
    origin: OriginMatch,
    position: usize,
    ids: &mut CallIds<'r>,
) -> Option<Item<'r>> {
    match block {
        Block::Text { text, signature } => Some(Item::Typed(TypedItem::Message {
            id: signature.map_or_else(|| format!("msg_{position}"), |id| sanitise(id, ID_LIMIT)),
            role: "assistant",
            status: "completed",
            content: vec![WirePart::OutputText {
                text: Cow::Borrowed(text),
                annotations: [],
            }],
        })),
        // The signature is the whole reasoning item. One that is no JSON object is left out as a whole.
        Block::Thinking { signature, .. } => serde_json::from_str::<&RawValue>(signature)
            .ok()
            .filter(|raw| raw.get().starts_with('{'))
            .map(Item::Raw),
        Block::Redacted { .. } => None,
        Block::Call(call) => {
            let (call_id, item_id) = split_id(&call.id);
            // The item's id ties the call to the reasoning of the same model; to another it means nothing.
            let id = item_id.filter(|_| origin == OriginMatch::Same).map(item_id_of);
            Some(Item::Typed(TypedItem::FunctionCall {
                id,
                call_id: ids.wire_id(call_id),
                name: &call.name,
                arguments: call.arguments.get(),
            }))
        }
    }
}

/// A call's id is `call|item` when it came through this API.
fn split_id(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) if !item.is_empty() => (call, Some(item)),
        _ => (id, None),
    }
}

/// An id of a call item: begins with `fc`, allowed characters only, no `_` at the end.
fn item_id_of(id: &str) -> String {
    let clean = sanitise(id, ID_LIMIT);
    let clean = if clean.starts_with("fc") {
        clean
    } else {
        sanitise(&format!("fc_{clean}"), ID_LIMIT)
    };
    clean.trim_end_matches('_').to_owned()
}

fn output(parts: Vec<Part<'_>>) -> Output<'_> {
    if parts.iter().any(|part| matches!(part, Part::Image(_))) {
        return Output::Parts(parts.into_iter().map(part).collect());
    }
    let mut texts: Vec<Cow<'_, str>> = parts
        .into_iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Image(_) => None,
        })
        .collect();
    Output::Text(if texts.len() == 1 {
        texts.remove(0)
    } else {
        texts.join("\n").into()
    })
}

fn part(part: Part<'_>) -> WirePart<'_> {
    match part {
        Part::Text(text) => WirePart::InputText { text },
        Part::Image(image) => WirePart::InputImage {
            detail: "auto",
            image_url: data_url(image),
        },
    }
}

fn data_url(image: &Image<'_>) -> String {
    format!("data:{};base64,{}", image.mime_type, image.data)
}
