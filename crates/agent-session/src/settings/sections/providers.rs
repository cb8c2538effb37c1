//! `providers.*` and `models.*`.

use std::fmt;

use foldline_llm_client::NativeForm;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::Api;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::NativeChoice;

/// A provider. What is left out is as Foldline knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSettings {
    /// Its address, with https or on this machine.
    pub base_url: Option<String>,
    /// How it is spoken to.
    #[schemars(schema_with = "api_schema")]
    pub api: Option<Api>,
    /// The environment variable that holds its key.
    pub key_env: Option<String>,
    /// Its key itself; `keyEnv` wins when that variable is set. Never shown.
    pub key: Option<ApiKey>,
    /// Whether its key and the conversation may travel unencrypted to another machine.
    pub allow_plain_http: bool,
    /// How it compacts a history itself, where `compaction.remoteEnabled` lets it. Not set: as Foldline knows it; at
    /// another address not at all.
    pub native_compaction: Option<NativeChoice>,
}

/// A key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key, to be sent to its provider.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([redacted])")
    }
}

/// What is known about a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelLimits {
    /// The context window in tokens: prompt and output together.
    #[schemars(with = "Option<u64>", extend("minimum" = 1))]
    pub context_window: Option<Tokens>,
    /// The most tokens of one answer.
    #[schemars(with = "Option<u64>", extend("minimum" = 1))]
    pub max_output: Option<Tokens>,
    /// The model that takes over when the window is full: `provider/model`, or an id of the same provider.
    pub context_promotion_target: Option<String>,
}

impl NativeChoice {
    /// The forms to try, in order.
    pub const fn forms(self) -> &'static [NativeForm] {
        match self {
            Self::Off => &[],
            Self::Plain => &[NativeForm::Plain],
            Self::Streaming => &[NativeForm::Streaming, NativeForm::Plain],
        }
    }
}

fn api_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": Api::ALL.map(Api::name)})
}
