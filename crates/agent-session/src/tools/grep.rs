//! `grep`: lines that match. Files are found and searched by the libraries of ripgrep.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use foldline_session_model::model_call::ToolSpec;
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use serde::Serialize;

use crate::tool::{Tool, ToolOutput, ToolRun};

use super::answer::{Failure, details, output, spec};
use super::arguments::Arguments;
use super::blocking::{Stop, blocking};
use super::cap::{Keep, bounded};
use super::ls::shown_path;
use super::places::{Place, Places};
use super::{Limits, ToolName};

const DESCRIPTION: &str = "Search files for lines that match a regular expression (Rust syntax) or a literal text. \
    Files that .gitignore names, .git and binary files are left out; hidden files are searched. Answers with path:line:text, \
    lines of context with path-line-text, paths as they begin from the searched folder's name.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"pattern":{"type":"string","description":"What to look for"},
"path":{"type":"string","description":"A folder or a file; without it the working folder"},
"glob":{"type":"string","description":"Only files like this, for example *.rs or src/**/*.ts; a leading ! leaves them out"},
"literal":{"type":"boolean","description":"The pattern is plain text"},
"ignoreCase":{"type":"boolean"},
"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines around each match"},
"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"How many matches at most (100)"}},
"required":["pattern"]}"#;

const DEFAULT_LIMIT: u64 = 100;
const MOST: u64 = 2_000;
const MOST_CONTEXT: u64 = 20;
/// The longest shown line, in bytes.
const LINE: usize = 500;
/// What of a long line is shown before the match.
const BEFORE_MATCH: usize = 100;
/// The longest line that is searched; a file with longer ones is left out.
const LONGEST: usize = 8 << 20;

pub(super) struct GrepTool {
    places: Arc<Places>,
    limits: Arc<Limits>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    resolved_path: String,
    total_matches: u64,
    files_with_matches: u64,
    searched_files: u64,
    truncated: bool,
}

struct Query {
    matcher: RegexMatcher,
    glob: Option<String>,
    context: usize,
    limit: u64,
}

impl GrepTool {
    pub(super) fn new(places: Arc<Places>, limits: Arc<Limits>) -> Self {
        Self { places, limits }
    }

    async fn answer(&self, run: &ToolRun<'_>) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::of(run.arguments)?;
        let query = Query::of(&arguments)?;
        let path = arguments.path()?.map_or_else(|| ".".to_owned(), Cow::into_owned);
        let (cwd, places) = (run.cwd.to_owned(), Arc::clone(&self.places));
        let (found, place) = blocking(&run.cancel, Some(self.limits.search), move |stop| {
            let place = places.existing(&cwd, &path)?;
            Ok((search(&place, &query, stop)?, place))
        })
        .await?;
        let text = found.told(self.limits.search.as_secs());
        let text = bounded(
            text,
            ToolName::Grep.name(),
            self.limits.text,
            Keep::Head,
            run.spill,
        );
        let data = Details {
            resolved_path: place.path().display().to_string(),
            total_matches: found.matches,
            files_with_matches: found.files,
            searched_files: found.searched,
            truncated: text.truncated || found.end != End::Whole,
        };
        Ok(ToolOutput::text(text.text).with_details(details(&data)))
    }
}

#[async_trait]
impl Tool for GrepTool {
    fn spec(&self) -> ToolSpec<'static> {
        spec(ToolName::Grep, DESCRIPTION, SCHEMA)
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        output(self.answer(&call).await)
    }
}

impl Query {
    fn of(arguments: &Arguments<'_>) -> Result<Self, Failure> {
        let pattern = arguments.required_text("pattern")?;
        if pattern.is_empty() {
            return Err(Failure("`pattern` must not be empty.".to_owned()));
        }
        let matcher = RegexMatcherBuilder::new()
            .fixed_strings(arguments.is_on("literal")?)
            .case_insensitive(arguments.is_on("ignoreCase")?)
            .line_terminator(Some(b'\n'))
            .build(&pattern)
            .map_err(|error| {
                Failure(format!(
                    "`pattern` cannot be searched for: {error}\nWith \"literal\": true it is plain text."
                ))
            })?;
        let context = arguments.whole("context", &(0..=MOST_CONTEXT))?.unwrap_or(0);
        Ok(Self {
            matcher,
            glob: arguments
                .text("glob")?
                .filter(|glob| !glob.is_empty())
                .map(Cow::into_owned),
            context: usize::try_from(context).unwrap_or(0),
            limit: arguments.whole("limit", &(1..=MOST))?.unwrap_or(DEFAULT_LIMIT),
        })
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Whole,
    Limit,
    Stopped,
}

#[derive(Default)]
struct Found {
    text: String,
    matches: u64,
    files: u64,
    searched: u64,
    end: End,
}

impl Found {
    fn told(&self, seconds: u64) -> String {
        let plural = |count: u64, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let mut text = if self.matches == 0 {
            format!(
                "No matches in {}.",
                plural(self.searched, "searched file", "searched files")
            )
        } else {
            let matches = plural(self.matches, "match", "matches");
            format!("{matches} in {}", plural(self.files, "file", "files"))
        };
        match self.end {
            End::Whole => {}
            End::Limit => text.push_str(", and perhaps more: the limit was reached"),
            End::Stopped => text.push_str(&format!(" when the search was ended after {seconds} s")),
        }
        text.push('\n');
        text.push_str(&self.text);
        text
    }
}

fn search(place: &Place, query: &Query, stop: &Stop) -> Result<Found, Failure> {
    let mut found = Found::default();
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(query.context)
        .after_context(query.context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST))
        .build();
    let path = place.path();
    if !path.is_dir() {
        search_file(place, query, &mut searcher, &mut found, stop)?;
        return Ok(found);
    }
    let globs = query.glob.as_deref().map(|glob| globs(&path, glob)).transpose()?;
    let walk = WalkBuilder::new(&path)
        .hidden(false)
        .git_global(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build();
    for entry in walk {
        if found.end != End::Whole {
            break;
        }
        if stop.is_set() {
            found.end = End::Stopped;
            break;
        }
        // Folders that may not be read, and what went away meanwhile.
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let is_wanted = globs
            .as_ref()
            .is_none_or(|globs| !globs.matched(entry.path(), false).is_ignore());
        let Ok(names) = entry.path().strip_prefix(&path) else {
            continue;
        };
        if is_file && is_wanted {
            // A file that cannot be read is no reason to tell nothing of the others.
            let _skipped = search_file(&place.inside(names), query, &mut searcher, &mut found, stop);
        }
    }
    Ok(found)
}

fn globs(folder: &Path, glob: &str) -> Result<Override, Failure> {
    let mut globs = OverrideBuilder::new(folder);
    let added = globs.add(glob).map(|_| ());
    added
        .and_then(|()| globs.build())
        .map_err(|error| Failure(format!("`glob` cannot be used: {error}")))
}

fn search_file(
    place: &Place,
    query: &Query,
    searcher: &mut Searcher,
    found: &mut Found,
    stop: &Stop,
) -> Result<(), Failure> {
    let file = place.open_file()?;
    let (before, matches) = (found.text.len(), found.matches);
    found.searched += 1;
    let mut rows = Rows {
        name: shown_path(Path::new(
            place.given().strip_prefix("./").unwrap_or(place.given()),
        )),
        query,
        found,
        is_binary: false,
    };
    let reader = stop.reader(file);
    let result = searcher.search_reader(&query.matcher, reader, &mut rows);
    if rows.is_binary {
        // What stood before the first byte that is no text is not worth telling.
        found.text.truncate(before);
        found.matches = matches;
        if found.end == End::Limit {
            found.end = End::Whole;
        }
        return Ok(());
    }
    found.files += u64::from(found.matches > matches);
    if stop.is_set() {
        found.end = End::Stopped;
        return Ok(());
    }
    Ok(result?)
}

/// Writes what a file holds into the answer.
struct Rows<'q> {
    name: String,
    query: &'q Query,
    found: &'q mut Found,
    is_binary: bool,
}

impl Rows<'_> {
    fn push(&mut self, line: Option<u64>, sign: char, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let at = match sign {
            ':' => self
                .query
                .matcher
                .find(bytes)
                .ok()
                .flatten()
                .map_or(0, |found| found.start()),
            _ => 0,
        };
        let line = line.unwrap_or_default();
        let text = window(bytes, at);
        self.found
            .text
            .push_str(&format!("{}{sign}{line}{sign}{text}\n", self.name));
    }
}

/// The part of a line around a place.
fn window(bytes: &[u8], at: usize) -> String {
    if bytes.len() <= LINE {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    // Only what may be shown is decoded: a line may be long.
    let from = at.saturating_sub(BEFORE_MATCH);
    let to = (from + LINE).min(bytes.len());
    let near = String::from_utf8_lossy(&bytes[from..to]).into_owned();
    let cut = |c: char| c == char::REPLACEMENT_CHARACTER;
    let near = if from > 0 {
        near.trim_start_matches(cut)
    } else {
        &near
    };
    let near = if to < bytes.len() {
        near.trim_end_matches(cut)
    } else {
        near
    };
    let (before, after) = (
        if from > 0 { "…" } else { "" },
        if to < bytes.len() { "…" } else { "" },
    );
    format!("{before}{near}{after} [of {} bytes]", bytes.len())
}

impl Sink for Rows<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.found.matches == self.query.limit {
            self.found.end = End::Limit;
            return Ok(false);
        }
        self.found.matches += 1;
        self.push(found.line_number(), ':', found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.push(context.line_number(), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.found.text.push_str("--\n");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}
