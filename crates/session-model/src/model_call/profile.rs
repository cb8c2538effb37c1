//! What is known about a model, as data: nothing in the core looks at a model's name.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Tokens;

/// The wire format that a model is spoken to in; the names are those of session files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Api {
    /// Anthropic Messages.
    #[serde(rename = "anthropic-messages")]
    AnthropicMessages,
    /// OpenAI Chat Completions and the many servers that speak it.
    #[serde(rename = "openai-completions")]
    OpenAiCompletions,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::AnthropicMessages,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
    ];

    /// The name in session files and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiCompletions => "openai-completions",
            Self::OpenAiResponses => "openai-responses",
        }
    }

    /// The API of this name, if Foldline speaks it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A model by name: `provider/id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModelRef {
    /// The provider.
    pub provider: String,
    /// The model's id at that provider; may contain slashes.
    pub id: String,
}

impl ModelRef {
    /// Splits `provider/id` at the first slash.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, id) = text.split_once('/')?;
        if provider.is_empty() || id.is_empty() {
            return None;
        }
        Some(Self {
            provider: provider.to_owned(),
            id: id.to_owned(),
        })
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.id)
    }
}

/// Everything that decisions need to know about a model. What is not known is `None`, never 0 or a guess.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelProfile {
    /// The provider.
    pub provider: String,
    /// The model's id as the provider wants it.
    pub id: String,
    /// The wire format.
    pub api: Api,
    /// The context window: prompt and output together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<Tokens>,
    /// The most output of one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Tokens>,
    /// Prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// How long the provider keeps a prompt in its cache.
    #[serde(default)]
    pub cache_lifetime: CacheLifetime,
    /// What the model and its server understand.
    #[serde(default)]
    pub capabilities: Capabilities,
}

impl ModelProfile {
    /// A model of which only the name and the wire format are known.
    pub fn unknown(model: ModelRef, api: Api) -> Self {
        Self {
            provider: model.provider,
            id: model.id,
            api,
            context_window: None,
            max_output: None,
            prices: None,
            cache_lifetime: CacheLifetime::default(),
            capabilities: Capabilities::default(),
        }
    }

    /// The model by name.
    pub fn model_ref(&self) -> ModelRef {
        ModelRef {
            provider: self.provider.clone(),
            id: self.id.clone(),
        }
    }
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// Prompt tokens from no cache.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Prompt tokens read from the cache.
    #[serde(default)]
    pub cache_read: f64,
    /// Prompt tokens written to the cache.
    #[serde(default)]
    pub cache_write: f64,
    /// Prompt tokens written to the long-lived cache, where that costs more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<f64>,
}

/// How long a cached prompt lives without use, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CacheLifetime {
    /// Of the usual cache; `None` when unknown or when there is no cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_seconds: Option<u32>,
    /// Of the cache that [`CacheHint::Long`](super::CacheHint::Long) asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_seconds: Option<u32>,
}

/// What a model and its server understand. The defaults are what most compatible servers accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Capabilities {
    /// Pictures in the prompt.
    pub images: ImageInput,
    /// How reasoning is asked for.
    pub reasoning: ReasoningStyle,
    /// The role of the system text (OpenAI APIs).
    pub system_role: SystemRole,
    /// The name of the output limit (Chat Completions).
    pub max_tokens_field: MaxTokensField,
    /// Who decides what is cached (Chat Completions; Anthropic Messages always marks).
    pub prompt_cache: PromptCache,
}

/// Whether a model sees pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageInput {
    /// Pictures are replaced by a note.
    #[default]
    No,
    /// Pictures are sent.
    Yes,
}

/// How a model is told to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasoningStyle {
    /// It does not think, or cannot be told to.
    #[default]
    None,
    /// By a level: `reasoning_effort`, `reasoning.effort`.
    Effort,
    /// By a budget of tokens (Anthropic).
    Budget,
    /// Adaptive thinking with an effort level (Anthropic).
    Adaptive,
    /// By a switch: `enable_thinking` (Z.ai, Qwen).
    Switch,
}

/// The role that carries system text in the OpenAI APIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemRole {
    /// `system`.
    #[default]
    System,
    /// `developer`.
    Developer,
}

/// The name of the output limit in Chat Completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxTokensField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// Who decides which part of a prompt is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptCache {
    /// The server.
    #[default]
    Automatic,
    /// The request, by `cache_control` marks (Anthropic models behind OpenRouter).
    Marked,
}
