//! Names of models in settings.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use foldline_session_model::model_call::{ModelRef, ReasoningEffort};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const EXTRACTIVE: &str = "extractive";

/// A model, or the embedded planner in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChoice {
    /// No model: the embedded planner.
    Extractive,
    /// A model.
    Model(ModelRef),
}

/// A model, and how hard it thinks if that is said: `provider/model` or `provider/model:high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedModel {
    /// The model.
    pub model: ModelRef,
    /// How hard it thinks, if that is said.
    pub thinking: Option<ReasoningEffort>,
}

/// The models of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-expected" = "`provider/model`, or a list of such names"))]
pub enum ModelRole {
    /// One.
    One(NamedModel),
    /// Several, tried in order.
    Several(Vec<NamedModel>),
}

/// Text that names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no model: name it as provider/model")]
pub struct BadModelName(String);

impl ModelRole {
    /// The models in order.
    pub fn models(&self) -> &[NamedModel] {
        match self {
            Self::One(model) => std::slice::from_ref(model),
            Self::Several(models) => models,
        }
    }
}

impl ModelChoice {
    /// The model, if it is one.
    pub const fn model(&self) -> Option<&ModelRef> {
        match self {
            Self::Extractive => None,
            Self::Model(model) => Some(model),
        }
    }
}

impl FromStr for ModelChoice {
    type Err = BadModelName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == EXTRACTIVE {
            return Ok(Self::Extractive);
        }
        let model = ModelRef::parse(text).ok_or_else(|| BadModelName(text.to_owned()))?;
        Ok(Self::Model(model))
    }
}

impl fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Extractive => f.write_str(EXTRACTIVE),
            Self::Model(model) => model.fmt(f),
        }
    }
}

/// The names of thinking levels. An id may hold colons of its own (`qwen3:8b`), so only these end one.
pub(super) const THINKING: [(&str, ReasoningEffort); 6] = [
    ("off", ReasoningEffort::Off),
    ("minimal", ReasoningEffort::Minimal),
    ("low", ReasoningEffort::Low),
    ("medium", ReasoningEffort::Medium),
    ("high", ReasoningEffort::High),
    ("max", ReasoningEffort::Max),
];

impl FromStr for NamedModel {
    type Err = BadModelName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let suffix = text.rsplit_once(':').and_then(|(name, level)| {
            let (_, thinking) = THINKING.iter().find(|(known, _)| *known == level)?;
            Some((name, *thinking))
        });
        let (name, thinking) = match suffix {
            Some((name, thinking)) => (name, Some(thinking)),
            None => (text, None),
        };
        let model = ModelRef::parse(name).ok_or_else(|| BadModelName(text.to_owned()))?;
        Ok(Self { model, thinking })
    }
}

impl fmt::Display for NamedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model.fmt(f)?;
        let level = THINKING.iter().find(|(_, level)| Some(*level) == self.thinking);
        match level {
            Some((name, _)) => write!(f, ":{name}"),
            None => Ok(()),
        }
    }
}

/// Written as text, read from text.
macro_rules! as_text {
    ($type:ident, $name:literal, $expected:literal, $pattern:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'_, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": $pattern, "x-expected": $expected})
            }
        }
    };
}

as_text!(
    ModelChoice,
    "ModelChoice",
    "`provider/model` or `extractive`",
    "^(extractive|[^/]+/.+)$"
);
as_text!(NamedModel, "NamedModel", "`provider/model`", "^[^/]+/.+$");
