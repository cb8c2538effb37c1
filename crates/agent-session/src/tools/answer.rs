//! What tools answer with: failures as text, data as JSON.

use foldline_session_model::model_call::{RawJson, ToolSpec};
use serde::Serialize;

use crate::tool::ToolOutput;

use super::ToolName;

/// Why a tool failed, in words for the model.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

impl Failure {
    pub(super) fn cancelled() -> Self {
        Self("Cancelled.".to_owned())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A success or a failure, as the model reads it.
pub(super) fn output(result: Result<ToolOutput, Failure>) -> ToolOutput {
    result.unwrap_or_else(|failure| ToolOutput::error(failure.0))
}

/// The tool's own data as JSON.
pub(super) fn details(data: &impl Serialize) -> RawJson<'static> {
    let json = serde_json::to_string(data).ok();
    json.and_then(RawJson::parse)
        .unwrap_or_else(RawJson::empty_object)
}

/// What the model is told of a tool. The schema is the tool's own constant.
pub(super) fn spec(tool: ToolName, description: &'static str, schema: &'static str) -> ToolSpec<'static> {
    ToolSpec {
        name: tool.name().into(),
        description: description.into(),
        parameters: RawJson::parse(schema.to_owned()).unwrap_or_else(RawJson::empty_object),
    }
}
