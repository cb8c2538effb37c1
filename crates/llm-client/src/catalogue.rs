//! What is known about models and providers without asking anybody: a data file, and the user's corrections.
//!
//! The file holds what the providers' documentation says. A number that it does not say is missing, never 0
//! and never a guess: without a window nothing is triggered by a threshold. Prices that depend on the length of
//! the prompt are those of the shorter one.

use std::sync::LazyLock;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Api, CacheLifetime, Capabilities, ModelProfile, ModelRef, Prices};
use serde::Deserialize;

/// Models and providers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Catalogue {
    providers: Vec<Provider>,
    models: Vec<ModelEntry>,
}

/// A provider.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provider {
    /// The name, as in `name/model`.
    pub name: String,
    /// The wire format of its models, unless a model says otherwise.
    pub api: Api,
    /// Where it is.
    pub base_url: String,
    /// The environment variable that usually holds the key; `None` when no key is needed.
    #[serde(default)]
    pub key_env: Option<String>,
}

/// A model as far as the file knows it. In a user's file what is left out stays as it was.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ModelEntry {
    provider: String,
    id: String,
    #[serde(default)]
    api: Option<Api>,
    #[serde(default)]
    context_window: Option<Tokens>,
    #[serde(default)]
    max_output: Option<Tokens>,
    #[serde(default)]
    prices: Option<Prices>,
    #[serde(default)]
    cache_lifetime: Option<CacheLifetime>,
    #[serde(default)]
    capabilities: Option<Capabilities>,
}

/// A catalogue file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// It is not of the right form.
    #[error("the model catalogue cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// A window or an output limit of 0.
    #[error("the model catalogue gives {model} a limit of 0: leave it out when it is unknown")]
    ZeroLimit {
        /// The model.
        model: ModelRef,
    },
}

static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(|| {
    // A file that does not parse fails the tests; without it every model is unknown, which is safe.
    Catalogue::from_json(include_str!("../data/catalogue.json")).unwrap_or_default()
});

impl Catalogue {
    /// The catalogue that comes with the program.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads a catalogue, for example the user's.
    ///
    /// # Errors
    /// When the text is not of the form of a catalogue, or holds a limit of 0.
    pub fn from_json(text: &str) -> Result<Self, CatalogueError> {
        let catalogue: Self = serde_json::from_str(text)?;
        for model in &catalogue.models {
            if [model.context_window, model.max_output].contains(&Some(Tokens::ZERO)) {
                return Err(CatalogueError::ZeroLimit { model: model.name() });
            }
        }
        Ok(catalogue)
    }

    /// This catalogue with the entries of another one over it: what the other leaves out stays.
    #[must_use]
    pub fn overridden_by(&self, other: &Self) -> Self {
        let mut merged = self.clone();
        for provider in &other.providers {
            match merged
                .providers
                .iter_mut()
                .find(|known| known.name == provider.name)
            {
                Some(known) => known.clone_from(provider),
                None => merged.providers.push(provider.clone()),
            }
        }
        for model in &other.models {
            let known = merged
                .models
                .iter_mut()
                .find(|known| known.provider == model.provider && known.id == model.id);
            match known {
                Some(known) => known.correct(model),
                None => {
                    // A dated name starts from what is known of the model itself.
                    let mut entry = merged
                        .find(&model.name())
                        .cloned()
                        .unwrap_or_else(|| model.clone());
                    entry.id.clone_from(&model.id);
                    entry.correct(model);
                    merged.models.push(entry);
                }
            }
        }
        merged
    }

    /// A provider by name.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// The models by name, in the order of the file.
    pub fn models(&self) -> impl Iterator<Item = ModelRef> {
        self.models.iter().map(ModelEntry::name)
    }

    /// What is known of a model, spoken to in its usual wire format or in the one that is asked for; `None`
    /// when the wire format is unknown too.
    pub fn profile(&self, model: &ModelRef, api: Option<Api>) -> Option<ModelProfile> {
        let entry = self.find(model);
        let usual = entry
            .and_then(|entry| entry.api)
            .or_else(|| Some(self.provider(&model.provider)?.api));
        let mut profile = ModelProfile::unknown(model.clone(), api.or(usual)?);
        if let Some(entry) = entry {
            profile.context_window = entry.context_window;
            profile.max_output = entry.max_output;
            profile.prices = entry.prices;
            profile.cache_lifetime = entry.cache_lifetime.unwrap_or_default();
            profile.capabilities = entry.capabilities.unwrap_or_default();
        }
        Some(profile)
    }

    /// A model by its name, or by its name with a date behind it.
    fn find(&self, model: &ModelRef) -> Option<&ModelEntry> {
        let of_id = |id: &str| {
            self.models
                .iter()
                .find(|entry| entry.provider == model.provider && entry.id == id)
        };
        of_id(&model.id).or_else(|| of_id(undated(&model.id)?))
    }
}

impl ModelEntry {
    fn name(&self) -> ModelRef {
        ModelRef {
            provider: self.provider.clone(),
            id: self.id.clone(),
        }
    }

    fn correct(&mut self, other: &Self) {
        self.api = other.api.or(self.api);
        self.context_window = other.context_window.or(self.context_window);
        self.max_output = other.max_output.or(self.max_output);
        self.prices = other.prices.or(self.prices);
        self.cache_lifetime = other.cache_lifetime.or(self.cache_lifetime);
        self.capabilities = other.capabilities.or(self.capabilities);
    }
}

/// The name without `-20251001` or `-2025-10-01` at its end.
fn undated(id: &str) -> Option<&str> {
    let cut = |digits: &[usize]| -> Option<&str> {
        let mut rest = id;
        for count in digits.iter().rev() {
            let (head, tail) = rest.rsplit_once('-')?;
            if tail.len() != *count || !tail.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            rest = head;
        }
        Some(rest)
    };
    cut(&[8]).or_else(|| cut(&[4, 2, 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> ModelRef {
        ModelRef::parse(name).unwrap()
    }

    #[test]
    fn the_built_in_file_is_sound() {
        let catalogue = Catalogue::from_json(include_str!("../data/catalogue.json")).unwrap();
        assert!(catalogue.models().count() > 15);
        for name in catalogue.models() {
            let profile = catalogue.profile(&name, None).unwrap();
            assert!(
                catalogue.provider(&name.provider).is_some(),
                "{name} has no provider"
            );
            let window = profile.context_window.unwrap();
            assert!(
                profile.max_output.unwrap() < window && window >= Tokens(100_000),
                "{name}"
            );
            if let Some(prices) = profile.prices {
                assert!(
                    prices.input > 0.0 && prices.output > prices.input && prices.cache_read < prices.input,
                    "{name}"
                );
            }
            assert_eq!(
                catalogue.models().filter(|other| *other == name).count(),
                1,
                "{name} is there twice"
            );
        }
    }

    #[test]
    fn dated_names_mean_the_same_model() {
        let catalogue = Catalogue::built_in();
        for (dated, plain) in [
            (
                "anthropic/claude-haiku-4-5-20251001",
                "anthropic/claude-haiku-4-5",
            ),
            ("openai/gpt-5-2025-08-07", "openai/gpt-5"),
        ] {
            let (dated, plain) = (model(dated), model(plain));
            let profile = catalogue.profile(&dated, None).unwrap();
            assert_eq!(profile.id, dated.id, "the dated name is what the provider wants");
            assert_eq!(
                profile.context_window,
                catalogue.profile(&plain, None).unwrap().context_window
            );
            assert!(profile.context_window.is_some());
        }
        assert_eq!(undated("gpt-5"), None);
        assert_eq!(undated("x-1234567"), None);
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        let catalogue = Catalogue::built_in();
        let local = catalogue.profile(&model("ollama/qwen3:8b"), None).unwrap();
        assert_eq!(
            (local.api, local.context_window, local.max_output),
            (Api::OpenAiCompletions, None, None)
        );
        assert_eq!(catalogue.profile(&model("nobody/x"), None), None);
        let asked = catalogue
            .profile(&model("nobody/x"), Some(Api::AnthropicMessages))
            .unwrap();
        assert_eq!((asked.api, asked.prices), (Api::AnthropicMessages, None));
    }

    /// FB-020: the user's window wins over the catalogue's.
    #[test]
    fn the_user_corrects_single_fields() {
        let user = Catalogue::from_json(
            r#"{"models":[{"provider":"openai","id":"gpt-5","contextWindow":32768},
                          {"provider":"openai","id":"gpt-5-2025-08-07","maxOutput":1000},
                          {"provider":"mine","id":"m","api":"openai-completions"}],
                "providers":[{"name":"openai","api":"openai-completions","baseUrl":"https://gateway.example/v1"}]}"#,
        )
        .unwrap();
        let merged = Catalogue::built_in().overridden_by(&user);
        let corrected = merged.profile(&model("openai/gpt-5"), None).unwrap();
        assert_eq!(corrected.context_window, Some(Tokens(32_768)));
        assert_eq!(
            corrected.max_output,
            Some(Tokens(128_000)),
            "what was left out stays"
        );
        let dated = merged.profile(&model("openai/gpt-5-2025-08-07"), None).unwrap();
        assert_eq!(
            (dated.max_output, dated.context_window),
            (Some(Tokens(1000)), Some(Tokens(32_768)))
        );
        assert_eq!(
            merged.provider("openai").unwrap().base_url,
            "https://gateway.example/v1"
        );
        assert!(merged.profile(&model("mine/m"), None).is_some());
    }

    #[test]
    fn a_limit_of_zero_is_refused() {
        for field in ["contextWindow", "maxOutput"] {
            let text = format!(r#"{{"models":[{{"provider":"p","id":"m","{field}":0}}]}}"#);
            assert!(matches!(
                Catalogue::from_json(&text),
                Err(CatalogueError::ZeroLimit { .. })
            ));
        }
        assert!(Catalogue::from_json(r#"{"modles":[]}"#).is_err());
    }
}
