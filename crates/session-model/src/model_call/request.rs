//! What a model is asked.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Api, StopReason};
use crate::units::{EntryId, Tokens};

/// One request to a model, before any provider's wire format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LlmRequest<'a> {
    /// System text, in order; providers join or keep the parts as their API wants.
    pub system: Vec<Cow<'a, str>>,
    /// The conversation, oldest first.
    pub messages: Vec<RequestMessage<'a>>,
    /// Tools that the model may call.
    pub tools: Vec<ToolSpec<'a>>,
    /// Whether it may, must or must not call one.
    pub tool_choice: ToolChoice,
    /// The most tokens of output; `None` leaves it to the model's own limit.
    pub max_output: Option<Tokens>,
    /// How hard the model should think before it answers.
    pub reasoning: ReasoningEffort,
    /// Whether the prompt is worth keeping in the provider's cache.
    pub cache: CacheHint,
    /// The same for all requests of one session; keys the provider's prompt cache.
    pub session_key: Option<Cow<'a, str>>,
}

impl<'a> LlmRequest<'a> {
    /// A request of one user text, as summaries and plans use it.
    pub fn from_prompt(system: impl Into<Cow<'a, str>>, prompt: impl Into<Cow<'a, str>>) -> Self {
        Self {
            system: vec![system.into()],
            messages: vec![RequestMessage::user(prompt)],
            ..Self::default()
        }
    }
}

/// One message of a request and the entry that it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestMessage<'a> {
    /// The entry behind the message, so that a refusal of one message can be traced to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Who says what.
    pub content: MessageContent<'a>,
}

impl<'a> RequestMessage<'a> {
    /// A user message of one text, without an entry behind it.
    pub fn user(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            entry: None,
            content: MessageContent::User {
                blocks: vec![InputBlock::Text(text.into())],
            },
        }
    }
}

/// Who says what in a message.
///
/// The variants are tagged from outside (`{"user": …}`): an inner tag would make serde buffer the
/// message, and raw JSON does not survive that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MessageContent<'a> {
    /// The user, or text that stands in the user's place.
    User {
        /// Texts and images in order.
        blocks: Vec<InputBlock<'a>>,
    },
    /// A reply of a model.
    #[serde(rename_all = "camelCase")]
    Assistant {
        /// Which model wrote it; `None` when unknown, and then no opaque block of it is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// How it ended; failed and aborted replies are left out of requests.
        stop: StopReason,
        /// Its blocks in order.
        blocks: Vec<AssistantBlock<'a>>,
    },
    /// What a tool answered.
    #[serde(rename_all = "camelCase")]
    ToolResult {
        /// The id of the call.
        call_id: Cow<'a, str>,
        /// The tool's name.
        tool_name: Cow<'a, str>,
        /// Texts and images in order.
        blocks: Vec<InputBlock<'a>>,
        /// Whether the tool succeeded.
        outcome: ToolOutcome,
    },
    /// History that a provider compacted into items of its own. Only the model that made them gets them;
    /// every other one reads the text (requirement R15).
    #[serde(rename_all = "camelCase")]
    Opaque {
        /// The model that made the items.
        origin: Origin,
        /// The items, byte for byte.
        items: Vec<RawJson<'a>>,
        /// What stands for them elsewhere.
        fallback: Cow<'a, str>,
    },
}

/// Content that a model reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputBlock<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A picture.
    Image(Image<'a>),
}

/// A picture, encoded as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image<'a> {
    /// For example `image/png`.
    pub mime_type: Cow<'a, str>,
    /// The bytes in base64.
    pub data: Cow<'a, str>,
}

/// Content that a model wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AssistantBlock<'a> {
    /// Text for the user.
    #[serde(rename_all = "camelCase")]
    Text {
        /// The text.
        text: Cow<'a, str>,
        /// What the provider wants back with it (OpenAI Responses: the id of the message item).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Cow<'a, str>>,
    },
    /// Reasoning that the provider shows.
    #[serde(rename_all = "camelCase")]
    Thinking {
        /// The reasoning, or a summary of it; may be empty.
        text: Cow<'a, str>,
        /// What proves it to its own provider: a signature (Anthropic), the whole reasoning item as
        /// JSON (OpenAI Responses), the name of the field it came in (Chat Completions).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Cow<'a, str>>,
    },
    /// Reasoning that only its own provider can read.
    #[serde(rename_all = "camelCase")]
    RedactedThinking {
        /// The encrypted data, byte for byte.
        data: Cow<'a, str>,
    },
    /// A call of a tool.
    ToolCall(ToolCall<'a>),
}

/// A call of a tool as the model wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall<'a> {
    /// The id that its result names.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// The arguments: one JSON object.
    pub arguments: RawJson<'a>,
    /// Whether the arguments are whole.
    #[serde(default)]
    pub state: ArgumentsState,
}

/// Whether the arguments of a call can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ArgumentsState {
    /// A whole JSON object.
    #[default]
    Whole,
    /// The text was cut off or was no JSON object; `arguments` is `{}` and the call must not run.
    Unusable,
}

/// The model that wrote a reply. Signed and encrypted blocks are only valid for the same three.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The wire format it came through.
    pub api: Api,
    /// The provider.
    pub provider: String,
    /// The model's id.
    pub model: String,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// What it does.
    pub description: Cow<'a, str>,
    /// The JSON schema of its arguments.
    pub parameters: RawJson<'a>,
}

/// Whether the model may call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No call.
    None,
    /// At least one call.
    Required,
    /// A call of this tool.
    Tool(String),
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolOutcome {
    /// The tool answered.
    #[default]
    Success,
    /// The tool failed; the content says why.
    Error,
}

/// How hard a model should think. A model that does not reason ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Send nothing: the provider's default.
    #[default]
    Unset,
    /// No thinking where that can be said.
    Off,
    /// As little as possible.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as the model can.
    Max,
}

/// Whether the prompt is worth caching at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CacheHint {
    /// A one-off request.
    #[default]
    Off,
    /// Used again within minutes.
    Short,
    /// Used again within an hour; honoured where the model has such a cache.
    Long,
}

/// A JSON text kept as the bytes it was written with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson<'a>(Cow<'a, RawValue>);

impl RawJson<'static> {
    /// Takes over JSON text; `None` when it is not exactly one JSON value.
    pub fn parse(text: String) -> Option<Self> {
        RawValue::from_string(text).ok().map(|raw| Self(Cow::Owned(raw)))
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        let empty: &'static RawValue = serde_json::from_str("{}").unwrap_or(RawValue::NULL);
        Self(Cow::Borrowed(empty))
    }
}

impl<'a> RawJson<'a> {
    /// Wraps a borrowed value.
    pub const fn borrowed(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw))
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value, to serialise it as it is.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The same text, owned.
    pub fn into_owned(self) -> RawJson<'static> {
        RawJson(Cow::Owned(self.0.into_owned()))
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.get().trim_start().starts_with('{')
    }
}

impl<'a> From<Cow<'a, RawValue>> for RawJson<'a> {
    fn from(raw: Cow<'a, RawValue>) -> Self {
        Self(raw)
    }
}

impl From<Box<RawValue>> for RawJson<'_> {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Cow::Owned(raw))
    }
}

impl PartialEq for RawJson<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson<'_> {}
