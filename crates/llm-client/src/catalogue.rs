//! What is known about models and providers without asking anybody: a data file, and the user's corrections.
//!
//! The file holds what the providers' documentation says. A number that it does not say is missing, never 0
//! and never a guess: without a window nothing is triggered by a threshold. Prices that depend on the length of
//! the prompt are those of the shorter one. Each model names pages that give its
//! numbers, read in November 2026; where the provider's own page was not at hand it is another one's.
//!
//! Lifetimes of caches: Anthropic's are the two that a request can ask for, five minutes and an hour
//! (platform.claude.com, "Prompt caching"). OpenAI keeps a prompt of the models before GPT-5.6 for five to ten
//! minutes without use, of which the file holds the shorter, and from GPT-5.6 on for at least half an hour
//! (developers.openai.com, "Prompt caching").

use std::sync::LazyLock;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Api, CacheLifetime, Capabilities, ModelProfile, ModelRef, Prices};
use serde::Deserialize;

use crate::NativeForm;

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
    /// The forms in which it compacts a history itself, in the order in which they are tried.
    #[serde(default)]
    pub native_compaction: Vec<NativeForm>,
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
    /// The model that takes over when this one's window is full: `provider/id`, or an id of the same provider.
    #[serde(default)]
    context_promotion_target: Option<String>,
    /// Where the numbers are written.
    #[serde(default)]
    source: Vec<String>,
}

/// Where the target of a promotion comes from (setting `contextPromotion.autoSelect`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromotionRule {
    /// Only what the model's record names.
    #[default]
    Configured,
    /// Where it names none: the smallest model of the same provider and API whose window is larger.
    OrSmallestLarger,
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

    /// The providers, in the order of the file.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter()
    }

    /// The models by name, in the order of the file.
    pub fn models(&self) -> impl Iterator<Item = ModelRef> {
        self.models.iter().map(ModelEntry::name)
    }

    /// What is known of a model, spoken to in its usual wire format or in the one that is asked for; `None`
    /// when the wire format is unknown too.
    pub fn profile(&self, model: &ModelRef, api: Option<Api>) -> Option<ModelProfile> {
        let entry = self.find(model);
        let mut profile = ModelProfile::unknown(model.clone(), api.or_else(|| self.api_of(model))?);
        if let Some(entry) = entry {
            profile.context_window = entry.context_window;
            profile.max_output = entry.max_output;
            profile.prices = entry.prices;
            profile.cache_lifetime = entry.cache_lifetime.unwrap_or_default();
            profile.capabilities = entry.capabilities.unwrap_or_default();
        }
        Some(profile)
    }

    /// The model with a larger window that takes over from this one when its context is full (spec "Orchestrator
    /// and clients", 5). `current` holds the window that counts for the session. `None` when there is none, when
    /// one of the two windows is unknown, or when it would be no gain.
    ///
    /// Whether it is wanted (off by default) and has credentials is the caller's to ask.
    pub fn promotion_target(&self, current: &ModelProfile, rule: PromotionRule) -> Option<ModelRef> {
        let window = current.context_window.filter(|window| *window > Tokens::ZERO)?;
        let name = current.model_ref();
        let is_larger = |model: &ModelRef| {
            let larger = self.find(model)?.context_window.filter(|other| *other > window)?;
            (*model != name).then_some(larger)
        };
        let configured = self
            .find(&name)
            .and_then(|entry| entry.context_promotion_target.as_deref());
        match (configured, rule) {
            (Some(target), _) => {
                // An id of this provider first: ids may hold slashes.
                let own = ModelRef {
                    provider: name.provider.clone(),
                    id: target.to_owned(),
                };
                let target = if self.find(&own).is_some() {
                    own
                } else {
                    ModelRef::parse(target)?
                };
                is_larger(&target).map(|_| target)
            }
            (None, PromotionRule::Configured) => None,
            (None, PromotionRule::OrSmallestLarger) => self
                .models()
                .filter(|model| model.provider == name.provider)
                .filter(|model| self.api_of(model) == Some(current.api))
                .filter_map(|model| Some((is_larger(&model)?, model)))
                .min_by_key(|(window, _)| *window)
                .map(|(_, model)| model),
        }
    }

    /// The usual wire format of a model.
    fn api_of(&self, model: &ModelRef) -> Option<Api> {
        self.find(model)
            .and_then(|entry| entry.api)
            .or_else(|| Some(self.provider(&model.provider)?.api))
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
        if other.context_promotion_target.is_some() {
            self.context_promotion_target
                .clone_from(&other.context_promotion_target);
        }
        if !other.source.is_empty() {
            self.source.clone_from(&other.source);
        }
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
mod tests;
