//! Which files a session read and changed, from its tool calls, cumulative over compactions and branches (seed 000,
//! "File-operation context in summaries"; FB-138, FB-140).

mod patch;
mod selector;
mod tags;
mod tools;

use std::borrow::Cow;
use std::cmp::Ordering;

use foldline_session_model::json::{Raw, members};
use foldline_session_model::message::{Message, ToolCall};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

pub use tags::{MAX_LISTED, strip_file_tags, with_file_tags};
pub use tools::ToolTable;

use tools::FileUse;

/// Files by what was done to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOps {
    read: FxHashSet<String>,
    written: FxHashSet<String>,
    edited: FxHashSet<String>,
}

/// The two lists of a summary: what was only read, and what was changed; sorted by UTF-16 units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileLists {
    /// Files that were read and not changed.
    pub read_files: Vec<String>,
    /// Files that were changed.
    pub modified_files: Vec<String>,
}

impl FileOps {
    /// Adds what the calls of these messages did. A call that failed changed nothing; `outcomes` knows which did.
    pub fn add_calls<'m, 'a: 'm>(
        &mut self,
        messages: impl Iterator<Item = &'m Message<'a>>,
        outcomes: &FailedCalls,
        tools: &ToolTable,
    ) {
        for message in messages {
            let Message::Assistant(message) = message else {
                continue;
            };
            for call in message.content.tool_calls() {
                self.add_call(call, outcomes, tools);
            }
        }
    }

    /// Adds the lists of an earlier compaction or branch summary: `details` of its entry. Lists of extensions do not
    /// count; the caller looks at that.
    pub fn add_details(&mut self, details: &str) {
        // Each list counts by itself; a broken one costs only itself.
        for (key, value) in object(details) {
            let set = match &*key {
                "readFiles" => &mut self.read,
                "modifiedFiles" => &mut self.edited,
                _ => continue,
            };
            let paths: Vec<Raw<'_>> = serde_json::from_str(&value).unwrap_or_default();
            for path in paths {
                if let Some(path) = serde_json::from_str::<String>(path.get())
                    .ok()
                    .and_then(|p| cleaned(&p))
                {
                    set.insert(path);
                }
            }
        }
    }

    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.written.is_empty() && self.edited.is_empty()
    }

    /// Files that were read, sorted; some of them may have been changed too.
    pub fn read(&self) -> Vec<&str> {
        sorted(self.read.iter().map(String::as_str))
    }

    /// Files that were written whole, sorted.
    pub fn written(&self) -> Vec<&str> {
        sorted(self.written.iter().map(String::as_str))
    }

    /// Files that were edited, sorted.
    pub fn edited(&self) -> Vec<&str> {
        sorted(self.edited.iter().map(String::as_str))
    }

    /// The two lists of a summary.
    pub fn lists(&self) -> FileLists {
        let changed: FxHashSet<&str> = self.edited.union(&self.written).map(String::as_str).collect();
        let owned = |paths: Vec<&str>| paths.into_iter().map(str::to_owned).collect();
        let only_read = self
            .read
            .iter()
            .map(String::as_str)
            .filter(|path| !changed.contains(path));
        FileLists {
            read_files: owned(sorted(only_read)),
            modified_files: owned(sorted(changed.iter().copied())),
        }
    }

    fn add_call(&mut self, call: &ToolCall<'_>, outcomes: &FailedCalls, tools: &ToolTable) {
        let Some(file_use) = tools.use_of(&call.name) else {
            return;
        };
        let failed = outcomes.contains(&call.id);
        let Some(arguments) = call.arguments.as_deref().and_then(members) else {
            return;
        };
        match file_use {
            FileUse::Read => self.read.extend(paths(&arguments)),
            // What was not written did not change.
            _ if failed => {}
            FileUse::Write => self.written.extend(paths(&arguments)),
            FileUse::Edit => self.edited.extend(paths(&arguments)),
            FileUse::Patch => {
                let changes = patch::changes(&arguments);
                if changes.is_empty() {
                    self.edited.extend(paths(&arguments));
                }
                for change in changes {
                    match change {
                        patch::Change::Edited(path) => drop(self.edited.insert(path)),
                        patch::Change::Added(path) => drop(self.written.insert(path)),
                        patch::Change::Gone(path) => self.forget(&path),
                    }
                }
            }
            FileUse::Move => {
                for (key, value) in &arguments {
                    match &**key {
                        "source" | "from" | "old_path" | "oldPath" | "src" => {
                            if let Some(path) = text(value).and_then(|p| cleaned(&p)) {
                                self.forget(&path);
                            }
                        }
                        "destination" | "to" | "new_path" | "newPath" | "dest" | "target" => {
                            self.edited.extend(text(value).and_then(|p| cleaned(&p)));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// A file that is gone is in no list.
    fn forget(&mut self, path: &str) {
        self.read.remove(path);
        self.written.remove(path);
        self.edited.remove(path);
    }
}

/// The ids of calls whose result is an error.
#[derive(Clone, Debug, Default)]
pub struct FailedCalls {
    failed: FxHashMap<String, Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Failed,
    Succeeded,
}

impl FailedCalls {
    /// Reads the results among these messages; of several for one call the first counts.
    pub fn of<'m, 'a: 'm>(messages: impl Iterator<Item = &'m Message<'a>>) -> Self {
        let mut failed = FxHashMap::default();
        for message in messages {
            if let Message::ToolResult(result) = message {
                let outcome = if result.is_error {
                    Outcome::Failed
                } else {
                    Outcome::Succeeded
                };
                failed.entry(result.tool_call_id.to_string()).or_insert(outcome);
            }
        }
        Self { failed }
    }

    /// Whether the call failed.
    pub fn contains(&self, call_id: &str) -> bool {
        self.failed.get(call_id) == Some(&Outcome::Failed)
    }
}

/// The files that a call names, cleaned, in the order of its arguments. Empty for tools that touch no files.
pub fn paths_of(call: &ToolCall<'_>, tools: &ToolTable) -> Vec<String> {
    let mut ops = FileOps::default();
    ops.add_call(call, &FailedCalls::default(), tools);
    let mut all: Vec<String> = ops
        .read
        .into_iter()
        .chain(ops.written)
        .chain(ops.edited)
        .collect();
    all.sort_by(|a, b| by_units(a, b));
    all.dedup();
    all
}

/// What a call changes, if it succeeds.
pub fn changes_of(call: &ToolCall<'_>, tools: &ToolTable) -> Vec<String> {
    let mut ops = FileOps::default();
    ops.add_call(call, &FailedCalls::default(), tools);
    ops.lists().modified_files
}

type Arguments<'r> = [(Cow<'r, str>, Cow<'r, str>)];

/// The names under which tools take a file, most usual first.
const PATH_KEYS: [&str; 9] = [
    "path",
    "file_path",
    "filePath",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "absolute_path",
    "uri",
];

/// The files of ordinary arguments: the first path field, and those of lists of files or edits.
fn paths(arguments: &Arguments<'_>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(path) = first_path(arguments) {
        found.push(path);
    }
    for (key, value) in arguments {
        if matches!(
            &**key,
            "paths" | "files" | "file_paths" | "filePaths" | "edits" | "changes"
        ) {
            let items: Vec<Raw<'_>> = serde_json::from_str(value).unwrap_or_default();
            for item in items {
                found.extend(match text(item.get()) {
                    Some(path) => cleaned(&path),
                    None => first_path(&members(&item).unwrap_or_default()),
                });
            }
        }
    }
    found
}

fn first_path(arguments: &Arguments<'_>) -> Option<String> {
    PATH_KEYS.iter().find_map(|key| {
        let (_, value) = arguments.iter().find(|(name, _)| name == key)?;
        cleaned(&text(value)?)
    })
}

/// A JSON string; `None` for anything else.
fn text(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

fn object(json: &str) -> Vec<(String, String)> {
    let raw: Result<&serde_json::value::RawValue, _> = serde_json::from_str(json);
    let owned = |(key, value): (Cow<'_, str>, Cow<'_, str>)| (key.into_owned(), value.into_owned());
    raw.ok()
        .and_then(members)
        .map(|all| all.into_iter().map(owned).collect())
        .unwrap_or_default()
}

/// A path without the selector of a part; `None` for what is no file.
fn cleaned(path: &str) -> Option<String> {
    let path = path.trim();
    if path.is_empty() || path.contains("://") {
        return None;
    }
    let path = selector::stripped(path);
    (!path.is_empty()).then(|| path.to_owned())
}

/// The order of lists: by UTF-16 units, as JavaScript sorts.
pub(crate) fn by_units(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

fn sorted<'p>(paths: impl Iterator<Item = &'p str>) -> Vec<&'p str> {
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_by(|a, b| by_units(a, b));
    paths
}

#[cfg(test)]
mod tests;
