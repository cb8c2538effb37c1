//! Mutations: which files a call changed (spec "Pruning", 5.2; defects 3 and 5).

use std::borrow::Cow;

use foldline_session_model::json;
use foldline_session_model::message::ToolCall;
use rustc_hash::FxHashSet;
use serde_json::value::RawValue;

use super::Members;
use super::path::{PathId, Paths};
use crate::text::trim;

/// Files that a call changes together: a file, or a file and where it moves to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group<'v> {
    /// The paths as the call names them.
    pub(crate) paths: Vec<Cow<'v, str>>,
    /// The same as what they mean.
    pub(crate) ids: Vec<PathId>,
}

impl<'v> Group<'v> {
    fn add(&mut self, path: Cow<'v, str>, paths: &mut Paths<'v>) {
        self.ids.push(paths.id(&path));
        self.paths.push(path);
    }

    fn one(path: Cow<'v, str>, paths: &mut Paths<'v>) -> Self {
        let mut group = Self::default();
        group.add(path, paths);
        group
    }
}

/// Tools that change files.
pub(crate) fn is_edit_tool(name: &str) -> bool {
    matches!(name, "edit" | "write" | "apply_patch" | "ast_edit")
}

/// The files that a call names: its path, or the files of the patch in `input`.
pub(crate) fn path_groups<'v>(arguments: &Members<'v>, paths: &mut Paths<'v>) -> Vec<Group<'v>> {
    if let Some(path) = arguments.path() {
        return vec![Group::one(path.clone(), paths)];
    }
    let Some(patch) = arguments.text("input") else {
        return Vec::new();
    };
    let mut groups: Vec<Group<'v>> = Vec::new();
    for line in patch.split('\n') {
        let Some(marked) = line.strip_prefix("*** ") else {
            continue;
        };
        let begins = ["Add File: ", "Update File: ", "Delete File: "]
            .iter()
            .find_map(|mark| marked.strip_prefix(mark));
        let moves = marked.strip_prefix("Move to: ");
        let Some(path) = begins.or(moves).map(trim).filter(|path| !path.is_empty()) else {
            continue;
        };
        let path = Cow::Owned(path.to_owned());
        match groups.last_mut().filter(|_| moves.is_some()) {
            Some(group) => group.add(path, paths),
            None => groups.push(Group::one(path, paths)),
        }
    }
    groups
}

/// Adds the files that a result proves to be changed; see [`proven_groups`].
pub(crate) fn add_proven<'v>(
    changed: &mut FxHashSet<PathId>,
    call: &ToolCall<'v>,
    arguments: &Members<'v>,
    details: &Members<'v>,
    is_error: bool,
    paths: &mut Paths<'v>,
) {
    // Nearly every change is one of one file, named by its path.
    let is_plain = matches!(&*call.name, "edit" | "write") && details.elements("perFileResults").is_none();
    match arguments.path() {
        Some(path) if is_plain => {
            if !is_error {
                changed.insert(paths.id(path));
            }
        }
        _ => {
            let groups = proven_groups(call, arguments, details, is_error, paths);
            changed.extend(groups.into_iter().flat_map(|group| group.ids));
        }
    }
}

/// The groups that a result proves to be changed. A preview that was not applied changed nothing; one that was applied
/// in part did so even if it ended with an error.
pub(crate) fn proven_groups<'v>(
    call: &ToolCall<'v>,
    arguments: &Members<'v>,
    details: &Members<'v>,
    is_error: bool,
    paths: &mut Paths<'v>,
) -> Vec<Group<'v>> {
    let name = &*call.name;
    if matches!(name, "resolve" | "ast_edit") {
        if let Some(files) = applied_files(details) {
            return files.into_iter().map(|file| Group::one(file, paths)).collect();
        }
        if is_not_applied(details) {
            return Vec::new();
        }
    }
    if is_error || !is_edit_tool(name) {
        return Vec::new();
    }
    let mut groups = path_groups(arguments, paths);
    if let Some(rows) = details.elements("perFileResults") {
        let proven: FxHashSet<PathId> = rows.iter().filter_map(|row| proven_path(row, paths)).collect();
        groups.retain(|group| group.ids.iter().any(|id| proven.contains(id)));
    }
    groups
}

fn sources<'v>(details: &Members<'v>) -> [Members<'v>; 2] {
    [details.clone(), Members::of(details.get("sourceResultDetails"))]
}

fn applied_files<'v>(details: &Members<'v>) -> Option<Vec<Cow<'v, str>>> {
    let files = sources(details)
        .iter()
        .filter(|source| source.is_true("applied"))
        .find_map(|source| source.elements("files"))?;
    let files = files.into_iter().filter_map(json::text);
    Some(files.filter(|file| !file.is_empty()).collect())
}

fn is_not_applied(details: &Members<'_>) -> bool {
    sources(details).iter().any(|source| source.is_false("applied"))
}

/// The path of a row that says that its file was changed.
fn proven_path(row: &RawValue, paths: &mut Paths<'_>) -> Option<PathId> {
    let row = Members::of(Some(row));
    let path = row.text("path")?;
    let proven = match row.get("isError") {
        Some(raw) => raw.get() == "false",
        None => row.text("diff").is_some(),
    };
    proven.then(|| paths.id(&path))
}
