//! `tools.*`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which tools the model may call, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSettings {
    /// Which tools there are for the model.
    pub allowed: ToolsAllowed,
    /// Folders outside of the working folder that tools may use.
    pub folders: Vec<PathBuf>,
}

/// Which tools the model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ToolsAllowedForm", into = "ToolsAllowedForm")]
pub enum ToolsAllowed {
    /// Those that only read.
    #[default]
    ReadOnly,
    /// All.
    All,
    /// None.
    None,
    /// Those of these names.
    Named(Vec<String>),
}

/// How [`ToolsAllowed`] is written.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-expected" = "`read-only`, `all`, `none`, or a list of names"))]
enum ToolsAllowedForm {
    Group(ToolGroup),
    Named(Vec<String>),
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ToolGroup {
    ReadOnly,
    All,
    None,
}

impl From<ToolsAllowedForm> for ToolsAllowed {
    fn from(form: ToolsAllowedForm) -> Self {
        match form {
            ToolsAllowedForm::Group(ToolGroup::ReadOnly) => Self::ReadOnly,
            ToolsAllowedForm::Group(ToolGroup::All) => Self::All,
            ToolsAllowedForm::Group(ToolGroup::None) => Self::None,
            ToolsAllowedForm::Named(names) => Self::Named(names),
        }
    }
}

impl From<ToolsAllowed> for ToolsAllowedForm {
    fn from(allowed: ToolsAllowed) -> Self {
        match allowed {
            ToolsAllowed::ReadOnly => Self::Group(ToolGroup::ReadOnly),
            ToolsAllowed::All => Self::Group(ToolGroup::All),
            ToolsAllowed::None => Self::Group(ToolGroup::None),
            ToolsAllowed::Named(names) => Self::Named(names),
        }
    }
}
