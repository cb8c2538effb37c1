//! `ls`: what a folder holds.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use foldline_session_model::model_call::ToolSpec;
use rustix::fs::{Dir, FileType};
use serde::Serialize;

use crate::tool::{Tool, ToolOutput, ToolRun};

use super::answer::{Failure, details, output, spec};
use super::arguments::Arguments;
use super::blocking::{Stop, blocking};
use super::cap::{Keep, bounded};
use super::places::{Place, Places, kind, stat_in};
use super::{Limits, ToolName};

const DESCRIPTION: &str = "List a folder, sorted by name: folders end in /, files tell their size in bytes, links their \
    target. Hidden names are listed too.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"path":{"type":"string","description":"The folder; without it the working folder"},
"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"How many names at most (500)"}}}"#;

const DEFAULT_LIMIT: u64 = 500;
const MOST: u64 = 10_000;
/// A folder with more names than this is not read to its end.
const COUNTED: usize = 200_000;

pub(super) struct LsTool {
    places: Arc<Places>,
    limits: Arc<Limits>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    resolved_path: String,
    entries: usize,
    truncated: bool,
}

struct Listing {
    text: String,
    details: Details,
}

impl LsTool {
    pub(super) fn new(places: Arc<Places>, limits: Arc<Limits>) -> Self {
        Self { places, limits }
    }

    async fn answer(&self, run: &ToolRun<'_>) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::of(run.arguments)?;
        let path = arguments.path()?.map_or_else(|| ".".to_owned(), Cow::into_owned);
        let limit = arguments.whole("limit", &(1..=MOST))?.unwrap_or(DEFAULT_LIMIT);
        let (cwd, places) = (run.cwd.to_owned(), Arc::clone(&self.places));
        let Listing {
            text,
            details: mut data,
        } = blocking(&run.cancel, None, move |stop| {
            let place = places.existing(&cwd, &path)?;
            list(&place, usize::try_from(limit).unwrap_or(usize::MAX), stop)
        })
        .await?;
        let text = bounded(text, ToolName::Ls.name(), self.limits.text, Keep::Head, run.spill);
        data.truncated |= text.truncated;
        Ok(ToolOutput::text(text.text).with_details(details(&data)))
    }
}

#[async_trait]
impl Tool for LsTool {
    fn spec(&self) -> ToolSpec<'static> {
        spec(ToolName::Ls, DESCRIPTION, SCHEMA)
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        output(self.answer(&call).await)
    }
}

fn list(place: &Place, limit: usize, stop: &Stop) -> Result<Listing, Failure> {
    let folder = place.open_folder()?;
    let mut names = Vec::new();
    let mut is_whole = true;
    for entry in Dir::read_from(&folder)? {
        if stop.is_set() {
            return Err(Failure::cancelled());
        }
        let name = entry?.file_name().to_owned();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if names.len() == COUNTED {
            is_whole = false;
            break;
        }
        names.push(name);
    }
    names.sort();
    let mut text = String::new();
    for name in names.iter().take(limit) {
        if stop.is_set() {
            return Err(Failure::cancelled());
        }
        let shown = shown_name(&name.to_string_lossy());
        let line = match stat_in(&folder, name.as_c_str()) {
            // It went away since the folder was read.
            Err(_) => shown,
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => format!("{shown}/"),
                FileType::RegularFile => format!("{shown}  {}", stat.st_size),
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&folder, name.as_c_str(), Vec::new());
                    let target = target.map(|target| target.to_string_lossy().into_owned());
                    format!("{shown} -> {}", shown_name(&target.unwrap_or_default()))
                }
                other => format!("{shown}  ({})", kind(other).unwrap_or_default()),
            },
        };
        text.push_str(&line);
        text.push('\n');
    }
    if names.is_empty() {
        text.push_str("(empty)");
    } else if names.len() > limit {
        let more = names.len() - limit;
        let least = if is_whole { "" } else { "at least " };
        text.push_str(&format!("[{least}{more} more; ask with a higher limit]"));
    }
    Ok(Listing {
        text,
        details: Details {
            resolved_path: place.path().display().to_string(),
            entries: names.len(),
            truncated: names.len() > limit,
        },
    })
}

/// A name on one line, whatever it holds.
pub(super) fn shown_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    name.chars().map(plain).collect()
}

/// A path on one line.
pub(super) fn shown_path(path: &Path) -> String {
    shown_name(&path.display().to_string())
}
