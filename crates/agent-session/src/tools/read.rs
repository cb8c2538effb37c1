//! `read`: lines of a file or of an artifact, or a picture.

mod lines;
mod selector;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foldline_session_model::ByteLen;
use foldline_session_model::model_call::{Image, InputBlock, ToolSpec};
use serde::Serialize;

use crate::tool::{Tool, ToolOutput, ToolRun};

use super::answer::{Failure, details, output, spec};
use super::arguments::Arguments;
use super::blocking::{Stop, blocking};
use super::kind::{self, Kind};
use super::places::{Place, PlaceError, Places};
use super::{ArtifactSource, Limits, ToolName};

use lines::{Room, Shown};
use selector::Range;

const DESCRIPTION: &str = "Read a text file, a picture (png, jpeg, gif, webp) or an artifact:// address. \
    Text is shown as it stands in the file, without line numbers. Ask for a part with offset and limit, or with lines \
    behind the path: src/a.rs:10-20, src/a.rs:10+5, src/a.rs:10-. A long file is cut; the answer says where to go on.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"The file, relative to the working folder, or artifact://…"},
"offset":{"type":"integer","minimum":1,"description":"The first line, counted from 1"},
"limit":{"type":"integer","minimum":1,"description":"How many lines"}},"required":["path"]}"#;

const ARTIFACT: &str = "artifact://";

pub(super) struct ReadTool {
    places: Arc<Places>,
    limits: Arc<Limits>,
    artifacts: Option<Arc<dyn ArtifactSource>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    resolved_path: String,
    /// Whether lines that were asked for, or parts of them, are missing.
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl ReadTool {
    pub(super) fn new(
        places: Arc<Places>,
        limits: Arc<Limits>,
        artifacts: Option<Arc<dyn ArtifactSource>>,
    ) -> Self {
        Self {
            places,
            limits,
            artifacts,
        }
    }

    async fn answer(&self, run: &ToolRun<'_>) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::of(run.arguments)?;
        let path = arguments.required_path()?.into_owned();
        let offset = arguments.whole("offset", &(1..=u64::MAX))?;
        let limit = arguments.whole("limit", &(1..=u64::MAX))?;
        let window = (offset.is_some() || limit.is_some()).then(|| {
            let first = offset.unwrap_or(1);
            let last = limit.map(|limit| first.saturating_add(limit - 1));
            Range { first, last }
        });
        let (cwd, places, limits) = (
            run.cwd.to_owned(),
            Arc::clone(&self.places),
            Arc::clone(&self.limits),
        );
        let artifacts = self.artifacts.clone();
        blocking(&run.cancel, None, move |stop| {
            if path.starts_with(ARTIFACT) {
                let source = artifacts.as_deref();
                return read_artifact(source, &path, window, &limits, stop);
            }
            let (place, ranges) = find(&places, &cwd, &path, window)?;
            read_file(&place, &ranges, &limits, stop)
        })
        .await
    }
}

#[async_trait]
impl Tool for ReadTool {
    fn spec(&self) -> ToolSpec<'static> {
        spec(ToolName::Read, DESCRIPTION, SCHEMA)
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        output(self.answer(&call).await)
    }
}

/// The file and the lines that a path asks for. A file of that very name goes before a selector.
fn find(
    places: &Places,
    cwd: &Path,
    path: &str,
    window: Option<Range>,
) -> Result<(Place, Vec<Range>), Failure> {
    match (places.existing(cwd, path), selector::split(path)) {
        (Ok(place), _) => Ok((place, window.into_iter().collect())),
        (Err(PlaceError::Missing { .. }), Some((base, lines))) => {
            let place = places.existing(cwd, base)?;
            Ok((place, one_of(window, lines)?))
        }
        (Err(error), _) => Err(error.into()),
    }
}

fn one_of(window: Option<Range>, lines: Vec<Range>) -> Result<Vec<Range>, Failure> {
    match window {
        None => Ok(lines),
        Some(window) if lines.is_empty() => Ok(vec![window]),
        Some(_) => Err(Failure(
            "Ask for lines either behind the path or with offset and limit, not both.".to_owned(),
        )),
    }
}

fn read_artifact(
    source: Option<&dyn ArtifactSource>,
    path: &str,
    window: Option<Range>,
    limits: &Limits,
    stop: &Stop,
) -> Result<ToolOutput, Failure> {
    let source = source.ok_or_else(|| Failure("This session keeps no artifacts.".to_owned()))?;
    let (address, lines) = selector::split(path).unwrap_or((path, Vec::new()));
    let text = source
        .read(address)
        .ok_or_else(|| Failure(format!("There is no `{address}`.")))?;
    let ranges = one_of(window, lines)?;
    let shown = lines::show(text.as_bytes(), &ranges, room(limits), &|| stop.is_set())?;
    text_answer(&shown, address.to_owned(), ByteLen(text.len() as u64), stop)
}

fn read_file(place: &Place, ranges: &[Range], limits: &Limits, stop: &Stop) -> Result<ToolOutput, Failure> {
    let mut file = place.open_file()?;
    let bytes = ByteLen(file.metadata()?.len());
    let mut head = Vec::with_capacity(kind::HEAD);
    (&file).take(kind::HEAD as u64).read_to_end(&mut head)?;
    let resolved = place.path().display().to_string();
    match kind::of(&head) {
        Kind::Text => {
            file.rewind()?;
            let reader = BufReader::with_capacity(64 * 1024, stop.reader(file));
            let shown = lines::show(reader, ranges, room(limits), &|| stop.is_set())?;
            text_answer(&shown, resolved, bytes, stop)
        }
        Kind::Image(mime) => image_answer(place, &mut file, mime, bytes, limits),
        Kind::Binary(what) => Err(Failure(format!(
            "`{}` is {what} of {} bytes, not text.",
            place.given(),
            bytes.0
        ))),
    }
}

fn room(limits: &Limits) -> Room {
    Room {
        cap: limits.text,
        line_chars: limits.line_chars,
    }
}

fn text_answer(shown: &Shown, resolved: String, bytes: ByteLen, stop: &Stop) -> Result<ToolOutput, Failure> {
    if stop.is_set() {
        return Err(Failure::cancelled());
    }
    let data = Details {
        resolved_path: resolved,
        truncated: shown.next.is_some() || shown.cut_lines > 0,
        first_line: shown.span.map(|(first, _)| first),
        last_line: shown.span.map(|(_, last)| last),
        total_lines: shown.total,
        bytes: Some(bytes.0),
    };
    let text = match (shown.span, shown.total) {
        (None, Some(0)) => "(empty)".to_owned(),
        (None, total) => {
            let has = total.map_or(String::new(), |total| format!(": it has {total} lines"));
            return Err(Failure(format!("The file ends before the lines asked for{has}.")));
        }
        (Some(span), total) => {
            let mut text = shown.text.clone();
            if let Some(note) = note(shown, span, total) {
                text.push_str(&note);
            }
            text
        }
    };
    Ok(ToolOutput::text(text).with_details(details(&data)))
}

/// What is not to be seen in the text itself.
fn note(shown: &Shown, (first, last): (u64, u64), total: Option<u64>) -> Option<String> {
    let is_all = first == 1 && total == Some(last);
    let mut notes = Vec::new();
    if !is_all {
        let total = total.map_or(Cow::Borrowed("many"), |total| total.to_string().into());
        notes.push(format!("lines {first}-{last} of {total}"));
    }
    if let Some(next) = shown.next {
        notes.push(format!("go on with offset={next}"));
    }
    if shown.repaired {
        notes.push("not all of it is UTF-8: what is not shows as \u{FFFD}".to_owned());
    }
    (!notes.is_empty()).then(|| format!("[{}]", notes.join("; ")))
}

fn image_answer(
    place: &Place,
    file: &mut File,
    mime: &'static str,
    bytes: ByteLen,
    limits: &Limits,
) -> Result<ToolOutput, Failure> {
    let too_large = || {
        Failure(format!(
            "`{}` is a picture ({mime}) of {} bytes; at most {} can be shown.",
            place.given(),
            bytes.0,
            limits.image.0
        ))
    };
    if bytes > limits.image {
        return Err(too_large());
    }
    file.rewind()?;
    let mut data = Vec::new();
    // The file may grow while it is read.
    file.take(limits.image.0 + 1).read_to_end(&mut data)?;
    if data.len() as u64 > limits.image.0 {
        return Err(too_large());
    }
    let told = format!("{mime}, {} bytes", data.len());
    let mut answer = ToolOutput::text(told).with_details(details(&Details {
        resolved_path: place.path().display().to_string(),
        truncated: false,
        first_line: None,
        last_line: None,
        total_lines: None,
        bytes: Some(data.len() as u64),
    }));
    answer.blocks.push(InputBlock::Image(Image {
        mime_type: mime.into(),
        data: STANDARD.encode(&data).into(),
    }));
    Ok(answer)
}
