//! `edit`: parts of a file, by what stands there.

mod replace;

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use foldline_session_model::model_call::ToolSpec;
use serde::Serialize;
use similar::TextDiff;

use crate::tool::{Concurrency, Effect, Tool, ToolOutput, ToolRun};

use super::answer::{Failure, details, output, spec};
use super::arguments::{Arguments, got, missing};
use super::blocking::{Stop, blocking};
use super::cap::{Cap, head};
use super::kind::{self, Kind};
use super::places::{Place, Places};
use super::replace_file::{Version, replace_file};
use super::{Limits, ToolName};

use replace::{Replacement, replace};

const DESCRIPTION: &str = "Change parts of a text file. Each oldText must be in the file exactly once, with its white \
    space; all edits are looked for in the file as it is now, and none is made unless all can be. Line breaks and a byte \
    order mark stay as the file has them. Answers with a diff.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"The file, relative to the working folder"},
"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{
"oldText":{"type":"string","description":"What stands there, exactly"},
"newText":{"type":"string","description":"What shall stand there"}},"required":["oldText","newText"]}}},
"required":["path","edits"]}"#;

const BOM: char = '\u{FEFF}';
/// The most of a diff that is shown.
const DIFF: Cap = Cap {
    bytes: 8_000,
    lines: 150,
};
/// How long a good diff is looked for before a coarse one must do.
const DIFF_TIME: Duration = Duration::from_millis(100);

pub(super) struct EditTool {
    places: Arc<Places>,
    limits: Arc<Limits>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    resolved_path: String,
    edits: usize,
    diff: String,
    bytes: usize,
}

impl EditTool {
    pub(super) fn new(places: Arc<Places>, limits: Arc<Limits>) -> Self {
        Self { places, limits }
    }

    async fn answer(&self, run: &ToolRun<'_>) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::of(run.arguments)?;
        let path = arguments.required_path()?.into_owned();
        let edits = edits(&arguments)?;
        let (cwd, places, limits) = (
            run.cwd.to_owned(),
            Arc::clone(&self.places),
            Arc::clone(&self.limits),
        );
        blocking(&run.cancel, None, move |stop| {
            let place = places.existing(&cwd, &path)?;
            edit(&place, &edits, limits.edit.0, stop)
        })
        .await
    }
}

#[async_trait]
impl Tool for EditTool {
    fn spec(&self) -> ToolSpec<'static> {
        spec(ToolName::Edit, DESCRIPTION, SCHEMA)
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

/// The edits of a call; one alone may stand beside the path.
fn edits(arguments: &Arguments<'_>) -> Result<Vec<Replacement>, Failure> {
    let one = |arguments: &Arguments<'_>| -> Result<Replacement, Failure> {
        Ok(Replacement {
            old: arguments.required_text("oldText")?.into_owned(),
            new: arguments.required_text("newText")?.into_owned(),
        })
    };
    let Some(list) = arguments.list("edits")? else {
        return match arguments.text("oldText")? {
            Some(_) => Ok(vec![one(arguments)?]),
            None => Err(missing("edits")),
        };
    };
    if list.is_empty() {
        return Err(Failure("`edits` is empty.".to_owned()));
    }
    let edits = list.into_iter().enumerate().map(|(index, raw)| {
        let number = index + 1;
        let edit = Arguments::of_value(raw)
            .ok_or_else(|| Failure(format!("edit {number} must be an object, not {}.", got(raw))))?;
        one(&edit).map_err(|failure| Failure(format!("edit {number}: {}", failure.0)))
    });
    edits.collect()
}

fn edit(place: &Place, edits: &[Replacement], most: u64, stop: &Stop) -> Result<ToolOutput, Failure> {
    let given = place.given();
    let file = place.open_file()?;
    let version = Version::of(&file)?;
    let old = text_of(&file, given, most)?;
    let (mark, body) = match old.strip_prefix(BOM) {
        Some(body) => (&old[..BOM.len_utf8()], body),
        None => ("", old.as_str()),
    };
    let new =
        replace(body, edits).map_err(|error| Failure(format!("`{given}`, {error} Nothing was changed.")))?;
    if stop.is_set() {
        return Err(Failure::cancelled());
    }
    let diff = diff(body, &new);
    let content = format!("{mark}{new}");
    replace_file(place, content.as_bytes(), Some(version), stop)?;
    let s = if edits.len() == 1 { "" } else { "s" };
    let text = format!("Made {} edit{s} in `{given}`.\n{diff}", edits.len());
    Ok(ToolOutput::text(text).with_details(details(&Details {
        resolved_path: place.path().display().to_string(),
        edits: edits.len(),
        bytes: content.len(),
        diff,
    })))
}

fn text_of(file: &File, given: &str, most: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Failure(format!(
            "`{given}` has more than {most} bytes, too many to edit."
        )));
    }
    let head = &bytes[..bytes.len().min(kind::HEAD)];
    match kind::of(head) {
        Kind::Text => {}
        Kind::Image(mime) => return Err(Failure(format!("`{given}` is a picture ({mime}), not text."))),
        Kind::Binary(what) => return Err(Failure(format!("`{given}` is {what}, not text."))),
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure(format!(
            "`{given}` is not UTF-8, and an edit would destroy what is not."
        ))
    })
}

/// What changed, without the names of the files.
fn diff(old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let mut text = diff.unified_diff().context_radius(3).to_string();
    text = text.replace("\r\n", "\n");
    let end = head(&text, DIFF);
    if end < text.len() {
        let left_out = text[end..].lines().count();
        text.truncate(end);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{left_out} more lines of the diff]\n"));
    }
    text
}
