//! `write`: a whole file.

use std::sync::Arc;

use async_trait::async_trait;
use foldline_session_model::model_call::ToolSpec;
use serde::Serialize;

use crate::tool::{Concurrency, Effect, Tool, ToolOutput, ToolRun};

use super::answer::{Failure, details, output, spec};
use super::arguments::Arguments;
use super::blocking::blocking;
use super::places::Places;
use super::replace_file::{Replaced, replace_file};
use super::{Limits, ToolName};

const DESCRIPTION: &str = "Write a whole file. It is made, with the folders on the way, or replaced at once; a file that \
    is there keeps its mode. To change a part of a file use edit.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"The file, relative to the working folder"},
"content":{"type":"string","description":"All of its text"}},"required":["path","content"]}"#;

pub(super) struct WriteTool {
    places: Arc<Places>,
    limits: Arc<Limits>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    resolved_path: String,
    bytes: usize,
    created: bool,
}

impl WriteTool {
    pub(super) fn new(places: Arc<Places>, limits: Arc<Limits>) -> Self {
        Self { places, limits }
    }

    async fn answer(&self, run: &ToolRun<'_>) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::of(run.arguments)?;
        let path = arguments.required_path()?.into_owned();
        let content = arguments.required_text("content")?.into_owned();
        let (bytes, most) = (content.len(), self.limits.edit.0);
        if bytes as u64 > most {
            return Err(Failure(format!(
                "The text has {bytes} bytes; at most {most} are written."
            )));
        }
        let (cwd, places) = (run.cwd.to_owned(), Arc::clone(&self.places));
        blocking(&run.cancel, None, move |stop| {
            let place = places.perhaps_new(&cwd, &path)?;
            let replaced = replace_file(&place, content.as_bytes(), None, stop)?;
            let verb = match replaced {
                Replaced::Nothing => "Made",
                Replaced::File => "Replaced",
            };
            let text = format!(
                "{verb} `{}`: {bytes} bytes, {} lines.",
                place.given(),
                content.lines().count()
            );
            Ok(ToolOutput::text(text).with_details(details(&Details {
                resolved_path: place.path().display().to_string(),
                bytes,
                created: replaced == Replaced::Nothing,
            })))
        })
        .await
    }
}

#[async_trait]
impl Tool for WriteTool {
    fn spec(&self) -> ToolSpec<'static> {
        spec(ToolName::Write, DESCRIPTION, SCHEMA)
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Exclusive
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        output(self.answer(&call).await)
    }
}
