//! The model that a command asks: from flags and environment to something that answers.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use foldline_compaction_core::verbatim::{CallFailure, Retries};
use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp, key_from_env};
use foldline_llm_client::{Catalogue, LanguageModel, LlmError, ProviderModel, RetryPolicy, RetryingModel};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, ErrorClass, LlmReply, LlmRequest, ModelProfile, ModelRef, OtherCause, TransientCause,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::error::{CommandError, ErrorKind};
use crate::output::grouped;

/// The name of the embedded planner.
pub(crate) const EXTRACTIVE: &str = "extractive";
/// Holds the key of a server that is named by `--base-url`.
const KEY_VARIABLE: &str = "FOLDLINE_API_KEY";

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Who plans: `extractive`, the embedded planner without a model, or `provider/model`.
    #[arg(long, value_name = "M", default_value = EXTRACTIVE, env = "FOLDLINE_MODEL")]
    pub(crate) model: String,
    /// The server to ask, if it is not the provider's own.
    #[arg(long, value_name = "URL", env = "FOLDLINE_BASE_URL")]
    pub(crate) base_url: Option<String>,
    /// How to speak to it.
    #[arg(long, value_enum, env = "FOLDLINE_API")]
    pub(crate) api: Option<ApiName>,
    /// How many tokens the model can take, if that is not known.
    #[arg(long, value_name = "N", env = "FOLDLINE_CONTEXT_WINDOW")]
    pub(crate) context_window: Option<u64>,
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

/// A model that answers one command.
pub(crate) struct Model {
    client: Arc<dyn LanguageModel>,
    runtime: tokio::runtime::Runtime,
    cancel: CancellationToken,
}

impl ModelArgs {
    /// What is known about the model that the flags name; `None` for the embedded planner. Needs no key.
    pub(crate) fn profile(&self) -> Result<Option<ModelProfile>, CommandError> {
        if self.model == EXTRACTIVE {
            return Ok(None);
        }
        let usage = |message: String| CommandError::new(ErrorKind::Usage, message);
        let name = ModelRef::parse(&self.model).ok_or_else(|| {
            usage(format!("{:?} is no model", self.model))
                .hint("name it as provider/model (`foldline models` lists some), or use `extractive`")
        })?;
        let known = Catalogue::built_in().profile(&name, self.api.map(Api::from));
        let mut profile = known.ok_or_else(|| {
            usage(format!("the provider {:?} is not known", name.provider))
                .hint("`foldline models` lists providers; say where another one is with --base-url, and how to speak to it with --api")
        })?;
        if let Some(window) = self.context_window {
            profile.context_window = Some(Tokens(window));
        }
        Ok(Some(profile))
    }

    /// The model that the flags name; `None` for the embedded planner.
    pub(crate) fn open(&self) -> Result<Option<Model>, CommandError> {
        let Some(profile) = self.profile()? else {
            return Ok(None);
        };
        let usage = |message: String| CommandError::new(ErrorKind::Usage, message);
        let provider = Catalogue::built_in().provider(&profile.provider);
        let base = self
            .base_url
            .as_deref()
            .or(provider.map(|p| &*p.base_url))
            .ok_or_else(|| {
                usage(format!("where is the provider {:?}?", profile.provider)).hint("say it with --base-url")
            })?;
        let endpoint = Endpoint::new(base, self.auth(&profile)?, PlainHttp::LoopbackOnly).map_err(|e| {
            usage(e.message.to_string()).hint("--base-url wants https, or http to this machine")
        })?;
        let model = ProviderModel::new(profile, endpoint).map_err(|e| usage(e.message.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
        Ok(Some(Model {
            client: Arc::new(RetryingModel::new(Arc::new(model), RetryPolicy::MAINTENANCE)),
            runtime,
            cancel: CancellationToken::new(),
        }))
    }

    /// The key for the model. A server that the user names gets the key that the user set for it, and no other: a
    /// provider's key only goes to that provider.
    fn auth(&self, profile: &ModelProfile) -> Result<Auth, CommandError> {
        let name = match (&self.base_url, Catalogue::built_in().provider(&profile.provider)) {
            (Some(_), _) => Some(KEY_VARIABLE),
            (None, Some(provider)) => provider.key_env.as_deref(),
            (None, None) => None,
        };
        match (name.and_then(key_from_env), name, &self.base_url) {
            (Some(key), ..) => Ok(Auth::for_api(profile.api, key)),
            // A server that the user names may need none.
            (None, _, Some(_)) | (None, None, None) => Ok(Auth::None),
            (None, Some(variable), None) => {
                let message = format!("there is no key for {}", profile.provider);
                let hint = format!("set {variable}, or work without a model: --model {EXTRACTIVE}");
                Err(CommandError::new(ErrorKind::Provider, message).hint(hint))
            }
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

impl Model {
    /// What is known about it.
    pub(crate) fn profile(&self) -> &ModelProfile {
        self.client.profile()
    }

    /// What answers, for a program that has a runtime of its own.
    pub(crate) fn client(&self) -> Arc<dyn LanguageModel> {
        Arc::clone(&self.client)
    }

    /// Asks, and waits for the whole answer. Ctrl-C cancels.
    pub(crate) fn ask(&self, request: &LlmRequest<'_>) -> Result<LlmReply, CallFailure> {
        self.ask_all(std::slice::from_ref(request))
            .pop()
            .unwrap_or_else(|| Err(failure(LlmError::cancelled())))
    }

    /// Asks, and gives up after a time. Ctrl-C cancels.
    pub(crate) fn ask_within(
        &self,
        request: &LlmRequest<'_>,
        limit: Duration,
    ) -> Result<LlmReply, CallFailure> {
        let cancel = self.cancel.clone();
        let call = self.client.complete(request, cancel.clone());
        let answer = self.runtime.block_on(async {
            tokio::select! {
                answer = tokio::time::timeout(limit, call) => answer.ok(),
                _ = tokio::signal::ctrl_c() => {
                    cancel.cancel();
                    Some(Err(LlmError::cancelled()))
                }
            }
        });
        match answer {
            Some(answer) => answer.map_err(failure),
            None => Err(CallFailure {
                class: ErrorClass::Transient(TransientCause::TotalTimeout),
                message: format!("no answer within {} seconds", limit.as_secs()),
                retries: Retries::None,
            }),
        }
    }

    /// Asks several things side by side; the answers come in the order of the requests. Ctrl-C cancels all.
    pub(crate) fn ask_all(&self, requests: &[LlmRequest<'_>]) -> Vec<Result<LlmReply, CallFailure>> {
        let calls = requests
            .iter()
            .map(|request| self.client.complete(request, self.cancel.clone()));
        self.runtime.block_on(async {
            let mut answers = std::pin::pin!(futures::future::join_all(calls));
            let answers = tokio::select! {
                answers = &mut answers => answers,
                _ = tokio::signal::ctrl_c() => {
                    self.cancel.cancel();
                    answers.await
                }
            };
            answers
                .into_iter()
                .map(|answer| answer.map_err(failure))
                .collect()
        })
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

fn failure(error: LlmError) -> CallFailure {
    // What may be tried again was: the client gave up after its last try.
    let retries = if error.class.may_retry() {
        Retries::Exhausted
    } else {
        Retries::None
    };
    CallFailure {
        class: error.class,
        message: error.message.to_string(),
        retries,
    }
}

/// What a person is told about a call that failed.
pub(crate) fn call_error(failure: &CallFailure) -> CommandError {
    let error = CommandError::new(ErrorKind::Provider, failure.message.clone());
    match failure.class {
        ErrorClass::Cancelled => CommandError::new(ErrorKind::Cancelled, "cancelled; nothing was written"),
        ErrorClass::Auth => error.hint("check the key"),
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
        _ if failure.class.wants_smaller_request() => {
            error.hint("say how much the model can take with --context-window, or use --model extractive")
        }
        _ => error,
    }
}
