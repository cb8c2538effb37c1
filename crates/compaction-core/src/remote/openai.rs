//! The provider-native form of the OpenAI APIs: `POST …/responses/compact` takes the whole history as items and returns
//! items that stand for it, one of them opaque (spec "Compaction core", 12.3 and 12.4).
//!
//! Opaque items go back to their own provider and model, byte for byte, or not at all (R15, FB-112).

use foldline_session_model::Tokens;
use foldline_session_model::llm::{LlmBlock, LlmMessage, LlmRole, ResultOrigin};
use foldline_session_model::message::StopReason;
use foldline_session_model::model_call::{ImageInput, Origin};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{RemoteError, without_control_tokens};
use crate::text::units;

/// The key below `preserveData`.
pub const PRESERVE_KEY: &str = "openaiRemoteCompaction";

/// The body of a request.
#[derive(Clone, Debug, Serialize)]
pub struct CompactRequest {
    /// The model.
    pub model: String,
    /// The history.
    pub input: Vec<Box<RawValue>>,
    /// The system text.
    pub instructions: String,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "openaiRemoteCompaction")]
    remote: Option<RemoteHistory>,
}

/// What the provider returned, and who it is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteHistory {
    /// The provider, the only one that can read it.
    pub provider: String,
    /// The API that it came through; older entries do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The model; older entries do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The items that stand for the history.
    pub replacement_history: Vec<Box<RawValue>>,
    /// The opaque one among them.
    pub compaction_item: Box<RawValue>,
}

impl RemoteHistory {
    /// Reads `preserveData` of an entry; `None` if it holds no such history in a usable form.
    pub fn read(preserve_data: &str) -> Option<Self> {
        let remote = serde_json::from_str::<Data>(preserve_data).ok()?.remote?;
        (!remote.provider.is_empty() && is_compaction(&remote.compaction_item)).then_some(remote)
    }

    /// As `preserveData` of an entry.
    pub fn to_preserve_data(&self) -> String {
        let value = serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned());
        format!("{{\"{PRESERVE_KEY}\":{value}}}")
    }

    /// Whether a model may get these items: the same provider, and the same API and model where they are recorded.
    pub fn is_for(&self, target: &Origin) -> bool {
        self.provider == target.provider
            && self.api.as_deref().is_none_or(|api| api == target.api.name())
            && self.model.as_deref().is_none_or(|model| model == target.model)
    }
}

/// Builds a request: the earlier history if it is the target's own, then all messages, trimmed to what fits.
///
/// # Errors
/// [`RemoteError::Empty`] and [`RemoteError::TooLarge`]: the caller then makes the text summary alone.
pub fn request(
    target: &Origin,
    messages: &[LlmMessage<'_>],
    earlier: Option<&RemoteHistory>,
    images: ImageInput,
    instructions: &str,
    window: Option<Tokens>,
) -> Result<CompactRequest, RemoteError> {
    let mut input: Vec<Item> = earlier
        .filter(|earlier| earlier.is_for(target))
        .map(|earlier| {
            earlier
                .replacement_history
                .iter()
                .cloned()
                .map(Item::fixed)
                .collect()
        })
        .unwrap_or_default();
    let mut writer = Writer {
        target,
        images,
        known_calls: FxHashSet::default(),
        items: &mut input,
    };
    for (index, message) in messages.iter().enumerate() {
        writer.message(index, message);
    }
    if input.is_empty() {
        return Err(RemoteError::Empty);
    }
    let instructions = without_control_tokens(instructions).into_owned();
    if let Some(window) = window {
        trim(
            &mut input,
            &instructions,
            input_budget(window, Tokens::ZERO).get(),
        )?;
    }
    Ok(CompactRequest {
        model: target.model.clone(),
        input: input.into_iter().map(|item| item.json).collect(),
        instructions,
    })
}

/// What a request may have of a window: all but 15 %, or but the output if that is more; at least 1.
pub fn input_budget(window: Tokens, output: Tokens) -> Tokens {
    if window == Tokens::ZERO {
        return Tokens::ZERO;
    }
    let share = Tokens(window.get() / 100 * 15 + window.get() % 100 * 15 / 100);
    window
        .saturating_sub(share.max(output).max(Tokens(1)))
        .max(Tokens(1))
}

/// An item of a request, and how it may be left out.
#[derive(Clone, Debug)]
struct Item {
    json: Box<RawValue>,
    part: ItemPart,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ItemPart {
    /// Stays.
    Fixed,
    /// A message of the program.
    Developer,
    /// A call.
    Call(String),
    /// Its result.
    Output(String),
}

impl Item {
    fn fixed(json: Box<RawValue>) -> Self {
        Self {
            json,
            part: ItemPart::Fixed,
        }
    }
}

/// Leaves out newest results with their calls, and messages of the program, until the rest fits.
fn trim(input: &mut Vec<Item>, instructions: &str, budget: u64) -> Result<(), RemoteError> {
    let mut size = units(instructions) + input.iter().map(|item| units(item.json.get())).sum::<usize>();
    let tokens = |units: usize| units.div_ceil(4) as u64;
    while tokens(size) > budget {
        match input.last().map(|item| item.part.clone()) {
            Some(ItemPart::Developer) => size -= input.pop().map_or(0, |item| units(item.json.get())),
            Some(ItemPart::Output(call_id)) => {
                size -= input.pop().map_or(0, |item| units(item.json.get()));
                let call = input
                    .iter()
                    .rposition(|item| item.part == ItemPart::Call(call_id.clone()));
                if let Some(call) = call {
                    size -= units(input.remove(call).json.get());
                }
            }
            _ => {
                return Err(RemoteError::TooLarge {
                    tokens: tokens(size),
                    budget,
                });
            }
        }
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Out<'o> {
    Message {
        role: &'o str,
        content: Vec<Content>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'o str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    FunctionCall {
        call_id: String,
        name: &'o str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: String,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content {
    InputText { text: String },
    InputImage { detail: &'static str, image_url: String },
    OutputText { text: String, annotations: [(); 0] },
}

struct Writer<'w> {
    target: &'w Origin,
    images: ImageInput,
    known_calls: FxHashSet<String>,
    items: &'w mut Vec<Item>,
}

impl Writer<'_> {
    fn message(&mut self, index: usize, message: &LlmMessage<'_>) {
        match &message.role {
            LlmRole::User => self.input("user", message, ItemPart::Fixed),
            LlmRole::Developer => self.input("developer", message, ItemPart::Developer),
            LlmRole::Assistant { message: recorded } => {
                let own = recorded.provider == self.target.provider
                    && recorded.api == self.target.api.name()
                    && recorded.model == self.target.model;
                for block in &message.content {
                    match block {
                        LlmBlock::Thinking {
                            signature: Some(item),
                            ..
                        } if own && recorded.stop_reason != StopReason::Error => {
                            // The signature is the whole item; it goes back as it came, or not at all.
                            if let Ok(json) = RawValue::from_string((*item).to_owned())
                                && json.get().starts_with('{')
                            {
                                self.items.push(Item::fixed(json));
                            }
                        }
                        LlmBlock::Text(text) if !text.trim().is_empty() => {
                            let content = vec![Content::OutputText {
                                text: without_control_tokens(text).into_owned(),
                                annotations: [],
                            }];
                            let out = Out::Message {
                                role: "assistant",
                                content,
                                status: Some("completed"),
                                id: Some(format!("msg_{index}")),
                            };
                            self.push(&out, ItemPart::Fixed);
                        }
                        LlmBlock::ToolCall { id, call } => {
                            let call_id = wire_id(id);
                            self.known_calls.insert(call_id.clone());
                            let arguments = call.arguments.as_deref().map_or("{}", RawValue::get);
                            let out = Out::FunctionCall {
                                call_id: call_id.clone(),
                                name: &call.name,
                                arguments: without_control_tokens(arguments).into_owned(),
                            };
                            self.push(&out, ItemPart::Call(call_id));
                        }
                        _ => {}
                    }
                }
            }
            LlmRole::ToolResult { call_id, origin, .. } => {
                let call_id = wire_id(call_id);
                // An output without its call is refused.
                if !self.known_calls.contains(&call_id) {
                    return;
                }
                let texts: Vec<&str> = message.texts().collect();
                let pictures = pictures(message);
                let output = match (texts.is_empty(), pictures.is_empty(), origin) {
                    (true, false, _) => "(see attached image)".to_owned(),
                    (_, _, ResultOrigin::Recorded | ResultOrigin::Repair) => texts.join("\n"),
                };
                let out = Out::FunctionCallOutput {
                    call_id: call_id.clone(),
                    output: without_control_tokens(&output).into_owned(),
                };
                self.push(&out, ItemPart::Output(call_id));
                if self.images == ImageInput::Yes && !pictures.is_empty() {
                    let text = "Attached image(s) from tool result:".to_owned();
                    let mut content = vec![Content::InputText { text }];
                    content.extend(pictures);
                    self.push(&user(content), ItemPart::Fixed);
                }
            }
        }
    }

    fn input(&mut self, role: &str, message: &LlmMessage<'_>, part: ItemPart) {
        let mut content: Vec<Content> = message
            .texts()
            .filter(|text| !text.trim().is_empty())
            .map(|text| Content::InputText {
                text: without_control_tokens(text).into_owned(),
            })
            .collect();
        if self.images == ImageInput::Yes {
            content.extend(pictures(message));
        }
        if !content.is_empty() {
            let out = Out::Message {
                role,
                content,
                status: None,
                id: None,
            };
            self.push(&out, part);
        }
    }

    fn push(&mut self, out: &Out<'_>, part: ItemPart) {
        if let Ok(json) = serde_json::value::to_raw_value(out) {
            self.items.push(Item { json, part });
        }
    }
}

fn user(content: Vec<Content>) -> Out<'static> {
    Out::Message {
        role: "user",
        content,
        status: None,
        id: None,
    }
}

fn pictures(message: &LlmMessage<'_>) -> Vec<Content> {
    message
        .content
        .iter()
        .filter_map(|block| match block {
            LlmBlock::Image { data, mime_type } => Some(Content::InputImage {
                detail: "auto",
                image_url: format!("data:{mime_type};base64,{data}"),
            }),
            _ => None,
        })
        .collect()
}

/// The call id that both sides of a pair get: what stands before a `|`, hashed when it is too long for the API.
fn wire_id(id: &str) -> String {
    let call = id.split('|').next().unwrap_or_default();
    if call.len() <= 64 && !call.is_empty() {
        return call.to_owned();
    }
    let mut hash = String::from("call_");
    for byte in Sha256::digest(id.as_bytes()).iter().take(12) {
        hash.push_str(&format!("{byte:02x}"));
    }
    hash
}

/// Reads a response.
///
/// # Errors
/// [`RemoteError`] if it is no list of items, or has none that stands for the history.
pub fn response(target: &Origin, body: &str) -> Result<RemoteHistory, RemoteError> {
    let malformed = |e: serde_json::Error| RemoteError::Malformed(e.to_string());
    let body: Body<'_> = serde_json::from_str(body).map_err(malformed)?;
    let output = body.output.map_or("null", RawValue::get);
    let items: Vec<Box<RawValue>> = serde_json::from_str(output).map_err(malformed)?;
    let outputs = items.len();
    let types: Vec<String> = items.iter().map(|item| Shape::of(item).kind).collect();
    let kept: Vec<Box<RawValue>> = items.into_iter().filter(|item| is_kept(item)).collect();
    let Some(compaction_item) = kept.iter().rfind(|item| is_compaction(item)).cloned() else {
        return Err(RemoteError::MissingItem {
            outputs,
            kept: kept.len(),
            types,
        });
    };
    Ok(RemoteHistory {
        provider: target.provider.clone(),
        api: Some(target.api.name().to_owned()),
        model: Some(target.model.clone()),
        replacement_history: kept,
        compaction_item,
    })
}

#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    output: Option<&'b RawValue>,
}

/// The fields of an item that decide about it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shape {
    #[serde(rename = "type")]
    kind: String,
    role: String,
    encrypted_content: Option<String>,
    content: Vec<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PartShape {
    #[serde(rename = "type")]
    kind: String,
    text: String,
}

impl Shape {
    fn of(item: &RawValue) -> Self {
        serde_json::from_str(item.get()).unwrap_or_default()
    }
}

fn is_compaction(item: &RawValue) -> bool {
    let item = Shape::of(item);
    item.kind == "compaction" && item.encrypted_content.is_some() || item.kind == "compaction_summary"
}

/// Compaction items, answers, and what the user really said; not what programs put in the user's place.
fn is_kept(item: &RawValue) -> bool {
    let item = Shape::of(item);
    match (item.kind.as_str(), item.role.as_str()) {
        ("compaction" | "compaction_summary", _) | ("message", "assistant") => true,
        ("message", "user") => item.content.iter().all(|part| {
            let part: PartShape = serde_json::from_str(part.get()).unwrap_or_default();
            match part.kind.as_str() {
                "input_image" => true,
                "input_text" => !part.text.trim().is_empty() && !is_contextual(&part.text),
                _ => false,
            }
        }),
        _ => false,
    }
}

/// Text that agents add to messages of the user.
fn is_contextual(text: &str) -> bool {
    const MARKS: [&str; 6] = [
        "<system-reminder>",
        "<environment-context>",
        "<skill>",
        "<user-shell-command>",
        "<turn-aborted>",
        "<subagent-notification>",
    ];
    let lower = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark))
        || text.contains("# AGENTS.md instructions")
        || lower.starts_with("# agents.md instructions") && text.trim_end().ends_with("</INSTRUCTIONS>")
}

#[cfg(test)]
mod tests;
