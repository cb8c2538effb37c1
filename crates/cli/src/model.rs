//! The model that a command asks, as flags name it; and what people are told of requests and failures.

use clap::{Args, ValueEnum};
use foldline_agent_session::event::FailureKind;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Api, ErrorClass, ModelProfile, OtherCause, TransientCause};
use serde::Serialize;

use crate::commit::with_system_hint;
use crate::error::{CommandError, ErrorKind};
use crate::output::grouped;

/// The name of the embedded planner.
pub(crate) const EXTRACTIVE: &str = "extractive";

#[derive(Clone, Debug, Default, Args)]
#[allow(clippy::doc_markdown, reason = "these comments are the help text")]
pub(crate) struct ModelArgs {
    /// Who works: `extractive`, the embedded planner without a model, or `provider/model` [default: the setting
    /// `model`, or `extractive`] [env: FOLDLINE_MODEL].
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// The server to ask, if it is not the provider's own [env: FOLDLINE_BASE_URL].
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// How to speak to it [env: FOLDLINE_API].
    #[arg(long, value_enum)]
    pub(crate) api: Option<ApiName>,
    /// How many tokens the model can take, if that is not known [env: FOLDLINE_CONTEXT_WINDOW].
    #[arg(long, value_name = "N")]
    pub(crate) context_window: Option<u64>,
}

impl ModelArgs {
    /// The flags given that say something of a model.
    pub(crate) fn about_a_model(&self) -> impl Iterator<Item = &'static str> {
        [
            ("--base-url", self.base_url.is_some()),
            ("--api", self.api.is_some()),
            ("--context-window", self.context_window.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiName {
    /// Anthropic Messages.
    #[value(name = "anthropic-messages", alias = "anthropic")]
    Anthropic,
    /// Chat Completions of `OpenAI`, as most servers speak it.
    #[value(name = "openai-completions", alias = "openai")]
    Completions,
    /// Responses of `OpenAI`.
    #[value(name = "openai-responses")]
    Responses,
}

impl From<ApiName> for Api {
    fn from(name: ApiName) -> Self {
        match name {
            ApiName::Anthropic => Self::AnthropicMessages,
            ApiName::Completions => Self::OpenAiCompletions,
            ApiName::Responses => Self::OpenAiResponses,
        }
    }
}

/// A request as a dry run shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestPreview {
    /// The estimate of its prompt.
    tokens: u64,
    /// What the prompt costs in US dollars, if the price is known.
    cost: Option<f64>,
}

impl RequestPreview {
    /// A request that would be sent to a model.
    pub(crate) fn new(tokens: Tokens, profile: &ModelProfile) -> Self {
        let cost = profile
            .prices
            .map(|prices| tokens.get() as f64 * prices.input / 1_000_000.0);
        Self {
            tokens: tokens.get(),
            cost,
        }
    }

    pub(crate) fn text(&self, profile: &ModelProfile) -> String {
        let cost = self
            .cost
            .map_or_else(|| "price unknown".to_owned(), |cost| format!("about ${cost:.4}"));
        format!(
            "  request to {}: about {} tokens, {cost}\n",
            profile.model_ref(),
            grouped(self.tokens)
        )
    }
}

/// What a person is told about a failure of a model, or of the way to it.
pub(crate) fn failure_error(kind: &FailureKind, message: impl Into<String>) -> CommandError {
    let error = CommandError::new(ErrorKind::Provider, message);
    let class = match kind {
        FailureKind::Provider(class) => class,
        FailureKind::Answer => {
            return error.hint("another model may do better; `--model extractive` needs none");
        }
        FailureKind::Busy => {
            return CommandError {
                kind: ErrorKind::Busy,
                ..error
            }
            .hint("try again when the other one is done");
        }
        other => {
            let system = match other {
                FailureKind::System(system) => Some(*system),
                _ => None,
            };
            let error = CommandError {
                kind: ErrorKind::Failed,
                ..error
            };
            return with_system_hint(error, system);
        }
    };
    match class {
        ErrorClass::Cancelled => CommandError::new(ErrorKind::Cancelled, "cancelled; nothing was written"),
        ErrorClass::Auth => error.hint(
            "check the key: `foldline models` names the variable of each provider; a server that --base-url names gets \
             the key in FOLDLINE_API_KEY",
        ),
        ErrorClass::Other(OtherCause::Configuration) => {
            error.hint("check --base-url (or the setting providers.NAME.baseUrl) and --api")
        }
        ErrorClass::Quota => {
            error.hint("the credit is used up; another model or `--model extractive` still works")
        }
        ErrorClass::Transient(TransientCause::Network) => {
            error.hint("check the network and --base-url, or work without a model: --model extractive")
        }
        ErrorClass::Other(OtherCause::NotFound) => error.hint(
            "`foldline models` lists models that are known; providers name theirs in their documentation",
        ),
        ErrorClass::RateLimit | ErrorClass::Transient(_) => {
            error.hint("try again later, or work without a model: --model extractive")
        }
        _ if class.wants_smaller_request() => {
            error.hint("say how much the model can take with --context-window, or use --model extractive")
        }
        _ => error,
    }
}
