//! What environment variables say of settings: the same ones that stand in for options of the command line.
#![expect(clippy::disallowed_types, reason = "a layer of settings is a small value")]

use foldline_session_model::model_call::ModelRef;
use serde_json::{Value, json};

/// The variables that stand for settings. Blank counts as not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    model: Option<String>,
    base_url: Option<String>,
    api: Option<String>,
    context_window: Option<String>,
}

const MODEL: &str = "FOLDLINE_MODEL";
const BASE_URL: &str = "FOLDLINE_BASE_URL";
const API: &str = "FOLDLINE_API";
const CONTEXT_WINDOW: &str = "FOLDLINE_CONTEXT_WINDOW";
/// Holds the key of a server that [`BASE_URL`] names: a provider's own key goes to that provider only.
const API_KEY: &str = "FOLDLINE_API_KEY";

impl Environment {
    /// The variables of this process.
    pub fn from_process() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the place that reads the environment"
        )]
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Variables from somewhere else.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| {
            let value = variable(name)?;
            let value = value.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        Self {
            model: set(MODEL),
            base_url: set(BASE_URL),
            api: set(API),
            context_window: set(CONTEXT_WINDOW),
        }
    }

    /// The variable and the value that it gives to the model.
    pub(super) fn model(&self) -> Option<(&'static str, Value)> {
        self.model
            .as_deref()
            .map(|model| (MODEL, json!({"model": model})))
    }

    /// The others are about the model in use: each variable, and the layer that it makes.
    pub(super) fn about(&self, model: &ModelRef) -> Vec<(&'static str, Value)> {
        let provider = |members: Value| json!({"providers": {model.provider.as_str(): members}});
        let mut layers = Vec::new();
        if let Some(url) = &self.base_url {
            layers.push((
                BASE_URL,
                provider(json!({"baseUrl": url, "keyEnv": API_KEY, "key": null})),
            ));
        }
        if let Some(api) = &self.api {
            layers.push((API, provider(json!({"api": long_name(api)}))));
        }
        if let Some(window) = &self.context_window {
            let window = window
                .parse::<u64>()
                .map_or_else(|_| json!(window), |window| json!(window));
            layers.push((
                CONTEXT_WINDOW,
                json!({"models": {model.to_string(): {"contextWindow": window}}}),
            ));
        }
        layers
    }
}

/// The command line takes short names too.
fn long_name(api: &str) -> &str {
    match api {
        "anthropic" => "anthropic-messages",
        "openai" => "openai-completions",
        other => other,
    }
}
