//! The digest of a result: what matters most of it, error first (seed 000, "Pre-compaction pruning"; spec
//! "Pruning", 6). Each text is scanned once.

mod sanitize;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use foldline_session_model::json::{self, stringify};
use foldline_session_model::message::{Content, ToolResult};

use crate::staleness::Members;
use crate::text::{cut, trim};

use sanitize::sanitize;

/// The longest digest, in UTF-16 units: about 64 tokens. The only budget of a notice.
const DIGEST_UNITS: usize = 256;
const PATH_UNITS: usize = 120;
const TAIL_UNITS: usize = 160;
const ERROR_UNITS: usize = 240;

/// The digest of a result; `None` if its notice tells the size only. `path` is the one that its call names.
#[cfg(test)]
fn digest(result: &ToolResult<'_>, path: Option<&str>) -> Option<String> {
    let mut out = String::new();
    let kind = Kind::of(&result.tool_name);
    write_digest(&mut out, result, kind, path, &mut Members::default());
    (!out.is_empty()).then_some(out)
}

/// Appends the digest of a result; nothing if its notice tells the size only. `kind` is that of its tool,
/// `path` the one that its call names, `details` is room for the details of the result.
pub(crate) fn write_digest<'r>(
    out: &mut String,
    result: &'r ToolResult<'r>,
    kind: Kind,
    path: Option<&str>,
    details: &mut Members<'r>,
) {
    if kind == Kind::Other && !result.is_error {
        return;
    }
    let joined = joined_text(&result.content);
    let text = sanitize(&joined);
    let has_use = kind == Kind::Bash || path.is_none();
    details.read(result.details.as_deref().filter(|_| has_use));
    let details = &*details;
    let path = || {
        path.map(Cow::Borrowed)
            .or_else(|| details.text("resolvedPath").filter(|path| !path.is_empty()))
    };
    let start = out.len();
    let mut parts = Parts { joined: out, start };
    match kind {
        Kind::Bash => {
            let found = scan::error_line(&text);
            parts.push("exit", &exit_status(result, details));
            parts.push_cut("error", found, ERROR_UNITS);
            parts.push_cut("path", path().as_deref(), PATH_UNITS);
            parts.push_cut("tail", last_line(&text), TAIL_UNITS);
        }
        Kind::Search => {
            let found = scan::search(&text);
            parts.push_cut("error", found.error_line, ERROR_UNITS);
            parts.push_cut("path", path().as_deref(), PATH_UNITS);
            parts.push_cut("matches", found.matches, DIGEST_UNITS);
            parts.push_cut("files", found.files, DIGEST_UNITS);
            if parts.is_empty() {
                parts.joined.push_str("search digest unavailable");
            }
        }
        Kind::Other => match (scan::error_line(&text), first_line(&text)) {
            (Some(line), _) => {
                parts.push_cut("error", Some(line), ERROR_UNITS);
                parts.push_cut("path", path().as_deref(), PATH_UNITS);
            }
            (None, Some(line)) => parts.push_cut("summary", Some(line), ERROR_UNITS),
            (None, None) => parts.push("error", "tool result failed without text"),
        },
    }
    if let Cow::Owned(cut) = cut(&out[start..], DIGEST_UNITS) {
        out.truncate(start);
        out.push_str(&cut);
    }
}

/// All text of a result: its text blocks joined by newlines.
pub(crate) fn joined_text<'c>(content: &'c Content<'_>) -> Cow<'c, str> {
    let mut texts = content.texts();
    let first = texts.next().unwrap_or_default();
    match texts.next() {
        None => Cow::Borrowed(first),
        Some(second) => {
            let mut all = [first, second].join("\n");
            for text in texts {
                all.push('\n');
                all.push_str(text);
            }
            Cow::Owned(all)
        }
    }
}

/// What kind of output a tool gives, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bash,
    Search,
    Other,
}

impl Kind {
    pub(crate) fn of(tool: &str) -> Self {
        if tool.eq_ignore_ascii_case("bash") {
            Self::Bash
        } else if tool.eq_ignore_ascii_case("search") || tool.eq_ignore_ascii_case("grep") {
            Self::Search
        } else {
            Self::Other
        }
    }
}

struct Parts<'o> {
    joined: &'o mut String,
    start: usize,
}

impl Parts<'_> {
    fn is_empty(&self) -> bool {
        self.joined.len() == self.start
    }

    fn push(&mut self, key: &str, value: &str) {
        if !self.is_empty() {
            self.joined.push_str("; ");
        }
        self.joined.push_str(key);
        self.joined.push('=');
        self.joined.push_str(value);
    }

    fn push_cut(&mut self, key: &str, value: Option<&str>, max: usize) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.push(key, &cut(value, max));
        }
    }
}

fn exit_status<'r>(result: &ToolResult<'_>, details: &Members<'r>) -> Cow<'r, str> {
    match details.get("exitCode").filter(|raw| json::number(raw).is_some()) {
        Some(raw) => stringify(raw),
        None if result.is_error => Cow::Borrowed("1"),
        None => Cow::Borrowed("0"),
    }
}

fn first_line(text: &str) -> Option<&str> {
    let line = trim(text).split('\n').next().map(trim)?;
    (!line.is_empty()).then_some(line)
}

/// The last line of the trimmed text, with the blanks that it begins with.
fn last_line(text: &str) -> Option<&str> {
    let line = trim(text).rsplit('\n').next()?;
    (!line.is_empty()).then_some(line)
}
