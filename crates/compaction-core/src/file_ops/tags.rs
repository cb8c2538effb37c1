//! The file lists as tags at the end of a summary (D14).

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

use super::FileLists;
use crate::inert::{Wrapper, inert};

/// How many files a tag block names; the entry's details name all.
pub const MAX_LISTED: usize = 20;

/// Blocks of any writer: ours, glued ones without line breaks between files, and the tree form.
static BLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?s)<read-files>.*?</read-files>\s*|<modified-files>.*?</modified-files>\s*",
        r"|<files>.*?</files>\s*"
    ))
    .ok()
});

/// The summary without the tag blocks of any earlier compaction, and without blanks at its end.
pub fn strip_file_tags(summary: &str) -> String {
    let stripped = match BLOCK.as_ref() {
        Some(block) => block.replace_all(summary, ""),
        None => summary.into(),
    };
    stripped.trim_end().to_owned()
}

/// The summary with exactly one block for each list that is not empty.
pub fn with_file_tags(summary: &str, lists: &FileLists) -> String {
    let mut out = strip_file_tags(summary);
    for (tag, files) in [
        ("read-files", &lists.read_files),
        ("modified-files", &lists.modified_files),
    ] {
        if files.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        let _ = writeln!(out, "<{tag}>");
        for file in files.iter().take(MAX_LISTED) {
            // A file name is text of the session: it closes no tag and opens no line.
            let line = file.replace(['\n', '\r'], " ");
            let _ = writeln!(out, "{}", inert(&line, Wrapper::Stored));
        }
        if let Some(more) = files.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
            let _ = writeln!(out, "… ({more} more files omitted)");
        }
        let _ = write!(out, "</{tag}>");
    }
    out
}
