//! What a session is opened with: flags over the environment over settings files, of which a project's may only say
//! what its user lets it say (D12).

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;

use foldline_agent_session::hooks::{HookRunner, command_hooks};
use foldline_agent_session::settings::{
    Environment, Layers, ModelChoice, NamedModel, Overrides, ProviderSettings, Resolved, Settings,
    SettingsFiles, Source, resolve,
};
use foldline_agent_session::{Models, SessionOptions, SessionSettings};
use foldline_compaction_core::settings::Planner;
use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp, key_from_env};
use foldline_llm_client::{
    Catalogue, EndpointPlace, LanguageModel, PromotionRule, ProviderModel, RemoteSummary, RetryPolicy,
    RetryingModel, StreamLimits, WindowSource,
};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Api, ModelProfile, ModelRef, ReasoningEffort};
use foldline_session_store::Layout;
use secrecy::SecretString;

use crate::environment::working_folder;
use crate::error::{CommandError, ErrorKind};
use crate::model::{EXTRACTIVE, ModelArgs};
use crate::output;

/// Holds the key of a server that is named by `--base-url`.
const KEY_VARIABLE: &str = "FOLDLINE_API_KEY";

/// What is asked of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To work.
    Work,
    /// To plan a compaction, for which settings may name a model of its own.
    Compaction,
}

/// What holds for one command.
pub(crate) struct Setup {
    settings: Settings,
    model: ModelChoice,
    chosen: Chosen,
    cwd: PathBuf,
}

/// Who chose the one that summarises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    /// A flag or a setting.
    Somebody,
    /// Nobody.
    ByDefault,
}

impl Setup {
    /// Reads the settings and lays the flags over them. What is wrong in a file is a warning, and what lies below it
    /// holds.
    ///
    /// # Errors
    /// The flags name no model.
    pub(crate) fn new(flags: &ModelArgs, purpose: Purpose) -> Result<Self, CommandError> {
        let cwd = working_folder()?;
        let mut resolved = load(&cwd, &Overrides::default());
        let named = flags
            .model
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let model = match named {
            Some(name) => Some(ModelChoice::from_str(name).map_err(|_| {
                usage(format!("{name:?} is no model"))
                    .hint("name it as provider/model (`foldline models` lists some), or use `extractive`")
            })?),
            None => configured(&resolved, purpose),
        };
        let chosen =
            if named.is_some() || resolved.settings.compaction.model.is_some() || of_environment(&resolved) {
                Chosen::Somebody
            } else {
                Chosen::ByDefault
            };
        let model = model.unwrap_or(ModelChoice::Extractive);
        if resolved.settings.model.as_ref() != Some(&model) {
            // What the environment says of a server and a window is about the model in use.
            let mut overrides = Overrides::default();
            overrides
                .set("model", Some(&model))
                .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
            resolved = load(&cwd, &overrides);
        }
        for problem in &resolved.problems {
            output::warning(&problem.to_string());
        }
        let mut setup = Self {
            settings: resolved.settings,
            model,
            chosen,
            cwd,
        };
        if setup.model.model().is_none() {
            for flag in flags.about_a_model() {
                output::warning(&format!("{flag} has no effect without a model ({EXTRACTIVE})"));
            }
        }
        setup.lay(flags);
        Ok(setup)
    }

    /// For commands that ask no model.
    pub(crate) fn without_model() -> Result<Self, CommandError> {
        let flags = ModelArgs {
            model: Some(EXTRACTIVE.to_owned()),
            ..ModelArgs::default()
        };
        Self::new(&flags, Purpose::Work)
    }

    /// What flags say about the model's provider.
    fn lay(&mut self, flags: &ModelArgs) {
        let ModelChoice::Model(name) = &self.model else {
            return;
        };
        if let Some(url) = &flags.base_url {
            let provider = self.settings.providers.entry(name.provider.clone()).or_default();
            provider.base_url = Some(url.clone());
            provider.key_env = Some(KEY_VARIABLE.to_owned());
            provider.key = None;
        }
        if let Some(api) = flags.api {
            let provider = self.settings.providers.entry(name.provider.clone()).or_default();
            provider.api = Some(Api::from(api));
        }
        if let Some(window) = flags.context_window {
            let limits = self.settings.models.entry(name.to_string()).or_default();
            limits.context_window = Some(Tokens(window));
        }
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The name of the model, or of the embedded planner.
    pub(crate) fn name(&self) -> String {
        self.model.to_string()
    }

    /// Another model from now on.
    pub(crate) fn use_model(&mut self, name: ModelRef) {
        self.model = ModelChoice::Model(name);
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Who writes: a model, or the embedded planner.
    pub(crate) const fn planner(&self) -> Planner {
        match self.model {
            ModelChoice::Extractive => Planner::Extractive,
            ModelChoice::Model(_) => Planner::Model,
        }
    }

    /// Who summarises a context. A service stands in for a model where nobody asked to do without one.
    pub(crate) fn summariser(&self) -> Planner {
        match self.chosen {
            Chosen::ByDefault if self.service_address().is_some() => Planner::Model,
            _ => self.planner(),
        }
    }

    /// The address of the service that writes summaries, if the settings name one and allow it.
    pub(crate) fn service_address(&self) -> Option<&str> {
        let compaction = &self.settings.compaction.core;
        let address = compaction.remote_endpoint.as_deref().map(str::trim);
        address.filter(|address| compaction.remote_enabled && !address.is_empty())
    }

    /// The service that writes summaries; one that cannot be asked is a warning.
    fn service(&self) -> Option<Arc<RemoteSummary>> {
        let address = self.service_address()?;
        // The transcript goes there: unencrypted only to this machine.
        let made = Endpoint::new(address, Auth::None, PlainHttp::LoopbackOnly).and_then(RemoteSummary::new);
        match made {
            Ok(service) => Some(Arc::new(service)),
            Err(error) => {
                output::warning(&format!(
                    "compaction.remoteEndpoint is left out: {}",
                    error.message
                ));
                None
            }
        }
    }

    /// What is known about the model; `None` for the embedded planner. Needs no key.
    ///
    /// # Errors
    /// Nobody knows its provider.
    pub(crate) fn profile(&self) -> Result<Option<ModelProfile>, CommandError> {
        self.model.model().map(|name| self.profile_of(name)).transpose()
    }

    /// How a session behaves, with its models and its hooks.
    ///
    /// # Errors
    /// The model cannot be asked: nobody knows its provider, or there is no key.
    pub(crate) fn options(&self) -> Result<SessionOptions, CommandError> {
        Ok(SessionOptions {
            models: self.models()?,
            ..self.options_without_models()
        })
    }

    /// The same for work that asks no model.
    pub(crate) fn options_without_models(&self) -> SessionOptions {
        SessionOptions {
            reasoning: self.settings.thinking_level.unwrap_or(ReasoningEffort::Unset),
            settings: SessionSettings::from(&self.settings),
            hooks: HookRunner::new(command_hooks(&self.settings)),
            cwd: self.cwd.clone(),
            ..SessionOptions::default()
        }
    }

    /// The model as something that answers one question at a time, retries included.
    ///
    /// # Errors
    /// As [`options`](Self::options).
    pub(crate) fn answerer(&self) -> Result<Option<Arc<dyn LanguageModel>>, CommandError> {
        let Some(name) = self.model.model() else {
            return Ok(None);
        };
        let (model, _) = self.client(name)?;
        Ok(Some(Arc::new(RetryingModel::new(
            model,
            RetryPolicy::MAINTENANCE,
        ))))
    }

    /// A model that the flags or somebody else names.
    ///
    /// # Errors
    /// As [`options`](Self::options).
    pub(crate) fn client(
        &self,
        name: &ModelRef,
    ) -> Result<(Arc<dyn LanguageModel>, EndpointPlace), CommandError> {
        let profile = self.profile_of(name)?;
        let own = self.settings.providers.get(&name.provider);
        let endpoint = self.endpoint(name, auth(&profile, own)?)?;
        let place = if endpoint.is_loopback() {
            EndpointPlace::Local
        } else {
            EndpointPlace::Remote
        };
        let limits = StreamLimits {
            first_event: self.settings.retry.first_event_timeout(),
            ..StreamLimits::TURN
        };
        let native = match own.and_then(|provider| provider.native_compaction) {
            Some(choice) => choice.forms(),
            // What is at another address may only speak as the provider does.
            None if own.is_some_and(|provider| provider.base_url.is_some()) => &[],
            None => Catalogue::built_in()
                .provider(&name.provider)
                .map_or(&[][..], |known| &known.native_compaction),
        };
        let model = ProviderModel::new(profile, endpoint)
            .map_err(|e| usage(e.message.to_string()))?
            .with_limits(limits)
            .with_native_compaction(native);
        Ok((Arc::new(model), place))
    }

    /// Whether the model is where it can be asked. Needs no key.
    ///
    /// # Errors
    /// Nobody knows its provider, or its address is none.
    pub(crate) fn check_address(&self) -> Result<(), CommandError> {
        match self.model.model() {
            Some(name) => self.endpoint(name, Auth::None).map(drop),
            None => Ok(()),
        }
    }

    /// Where a model is.
    fn endpoint(&self, name: &ModelRef, auth: Auth) -> Result<Endpoint, CommandError> {
        let own = self.settings.providers.get(&name.provider);
        let known = Catalogue::built_in().provider(&name.provider);
        let base = own
            .and_then(|provider| provider.base_url.as_deref())
            .or(known.map(|provider| &*provider.base_url))
            .ok_or_else(|| {
                usage(format!("where is the provider {:?}?", name.provider)).hint("say it with --base-url")
            })?;
        let plain = if own.is_some_and(|provider| provider.allow_plain_http) {
            PlainHttp::Allowed
        } else {
            PlainHttp::LoopbackOnly
        };
        Endpoint::new(base, auth, plain)
            .map_err(|e| usage(e.message.to_string()).hint("--base-url wants https, or http to this machine"))
    }

    fn profile_of(&self, name: &ModelRef) -> Result<ModelProfile, CommandError> {
        let api = self.settings.providers.get(&name.provider).and_then(|p| p.api);
        let known = Catalogue::built_in().profile(name, api);
        let mut profile = known.ok_or_else(|| {
            usage(format!("the provider {:?} is not known", name.provider)).hint(
                "`foldline models` lists providers; say where another one is with --base-url, and how to speak to it \
                 with --api",
            )
        })?;
        if let Some(limits) = self.settings.models.get(&name.to_string()) {
            profile.context_window = limits.context_window.or(profile.context_window);
            profile.max_output = limits.max_output.or(profile.max_output);
        }
        Ok(profile)
    }

    fn models(&self) -> Result<Models, CommandError> {
        let remote = if self.summariser() == Planner::Model {
            self.service()
        } else {
            None
        };
        let Some(name) = self.model.model() else {
            return Ok(Models {
                remote,
                ..Models::default()
            });
        };
        let (current, place) = self.client(name)?;
        let summariser = match &self.settings.compaction.model {
            Some(ModelChoice::Model(other)) if other != name => self.helper(other),
            _ => None,
        };
        let promotion = self
            .promotion(current.profile())
            .and_then(|target| self.helper(&target));
        let others = |named: &[NamedModel]| -> Vec<Arc<dyn LanguageModel>> {
            let named = named.iter().filter(|other| other.model != *name);
            named.filter_map(|other| self.helper(&other.model)).collect()
        };
        let limits = self.settings.models.get(&name.to_string());
        let window_source = if limits.is_some_and(|limits| limits.context_window.is_some()) {
            WindowSource::User
        } else {
            WindowSource::Catalogue
        };
        Ok(Models {
            current: Some(current),
            summariser,
            window_source,
            fallbacks: others(&self.settings.fallback_models),
            summarisers: others(&self.settings.role_models("default")),
            remote,
            place,
            promotion,
        })
    }

    /// A model that stands in for another; one that cannot be asked is a warning.
    fn helper(&self, name: &ModelRef) -> Option<Arc<dyn LanguageModel>> {
        match self.client(name) {
            Ok((model, _)) => Some(model),
            Err(error) => {
                output::warning(&format!("{name} is left out: {error}"));
                None
            }
        }
    }

    /// The model with a larger window, if settings ask for one.
    fn promotion(&self, current: &ModelProfile) -> Option<ModelRef> {
        let wanted = &self.settings.context_promotion;
        if !wanted.enabled {
            return None;
        }
        let named = self
            .settings
            .models
            .get(&current.model_ref().to_string())
            .and_then(|limits| limits.context_promotion_target.as_deref());
        if let Some(target) = named {
            return ModelRef::parse(target).or_else(|| {
                Some(ModelRef {
                    provider: current.provider.clone(),
                    id: target.to_owned(),
                })
            });
        }
        let rule = if wanted.auto_select {
            PromotionRule::OrSmallestLarger
        } else {
            PromotionRule::Configured
        };
        Catalogue::built_in().promotion_target(current, rule)
    }
}

/// The layers below the flags: the environment, the project in this folder, this user.
fn load(cwd: &Path, overrides: &Overrides) -> Resolved {
    let environment = Environment::from_process();
    match Layout::from_environment() {
        Ok(layout) => SettingsFiles::new(&layout, cwd).load(&environment, overrides),
        // Without a home there are no files.
        Err(_) => resolve(&Layers {
            environment: Some(&environment),
            overrides: Some(overrides),
            ..Layers::default()
        }),
    }
}

/// The model that the layers name for a purpose. The environment is above the files, also above what they say of
/// compactions.
fn configured(resolved: &Resolved, purpose: Purpose) -> Option<ModelChoice> {
    let settings = &resolved.settings;
    let own = settings.compaction.model.as_ref();
    own.filter(|_| purpose == Purpose::Compaction && !of_environment(resolved))
        .or(settings.model.as_ref())
        .cloned()
}

/// Whether the environment names the model.
fn of_environment(resolved: &Resolved) -> bool {
    let keys = resolved.under("model").unwrap_or_default();
    keys.iter()
        .any(|key| matches!(key.source, Source::Environment { .. }))
}

/// The key for a model. A server that somebody names gets the key that was named with it, and no other: a provider's
/// key only goes to that provider.
fn auth(profile: &ModelProfile, own: Option<&ProviderSettings>) -> Result<Auth, CommandError> {
    let is_moved = own.is_some_and(|provider| provider.base_url.is_some());
    let known = Catalogue::built_in()
        .provider(&profile.provider)
        .filter(|_| !is_moved);
    let variable = own
        .and_then(|provider| provider.key_env.as_deref())
        .or(known.and_then(|provider| provider.key_env.as_deref()));
    let stored = own.and_then(|provider| provider.key.as_ref());
    let key = variable
        .and_then(key_from_env)
        .or_else(|| stored.map(|key| SecretString::from(key.expose())));
    match (key, variable) {
        (Some(key), _) => Ok(Auth::for_api(profile.api, key)),
        // A server that flags name may need none.
        (None, None | Some(KEY_VARIABLE)) => Ok(Auth::None),
        (None, Some(variable)) => {
            let message = format!("there is no key for {}", profile.provider);
            let hint = format!("set {variable}, or work without a model: --model {EXTRACTIVE}");
            Err(CommandError::new(ErrorKind::Provider, message).hint(hint))
        }
    }
}

fn usage(message: String) -> CommandError {
    CommandError::new(ErrorKind::Usage, message)
}
