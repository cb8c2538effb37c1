//! The files of a patch: the envelope format of `apply_patch`, and unified diffs.

use super::{Arguments, cleaned, text};

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Edited(String),
    Added(String),
    /// Deleted, or moved away.
    Gone(String),
}

/// The changes of the patch among the arguments.
pub(super) fn changes(arguments: &Arguments<'_>) -> Vec<Change> {
    ["input", "patch", "patchText", "patch_text", "diff"]
        .iter()
        .find_map(|key| {
            let (_, value) = arguments.iter().find(|(name, _)| name == key)?;
            text(value)
        })
        .map(|patch| parse(&patch))
        .unwrap_or_default()
}

fn parse(patch: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut old = None;
    for line in patch.lines() {
        let line = line.trim_end();
        if let Some(path) = line.strip_prefix("*** Update File:").and_then(cleaned) {
            changes.push(Change::Edited(path));
        } else if let Some(path) = line.strip_prefix("*** Add File:").and_then(cleaned) {
            changes.push(Change::Added(path));
        } else if let Some(path) = line.strip_prefix("*** Delete File:").and_then(cleaned) {
            changes.push(Change::Gone(path));
        } else if let Some(path) = line.strip_prefix("*** Move to:").and_then(cleaned) {
            if let Some(Change::Edited(from)) = changes.pop() {
                changes.push(Change::Gone(from));
            }
            changes.push(Change::Edited(path));
        } else if let Some(path) = line.strip_prefix("--- ") {
            old = Some(path);
        } else if let (Some(from), Some(to)) = (old.take(), line.strip_prefix("+++ ")) {
            changes.extend(unified(from, to));
        }
    }
    changes
}

/// The two header lines of a file in a unified diff.
fn unified(from: &str, to: &str) -> Vec<Change> {
    let (from, to) = (diff_path(from, "a/"), diff_path(to, "b/"));
    match (from, to) {
        (None, Some(to)) => vec![Change::Added(to)],
        (Some(from), None) => vec![Change::Gone(from)],
        (Some(from), Some(to)) if from != to => vec![Change::Gone(from), Change::Edited(to)],
        (_, Some(to)) => vec![Change::Edited(to)],
        (None, None) => Vec::new(),
    }
}

fn diff_path(path: &str, side: &str) -> Option<String> {
    let path = path.split('\t').next().unwrap_or_default();
    if path == "/dev/null" {
        return None;
    }
    cleaned(path.strip_prefix(side).unwrap_or(path))
}
