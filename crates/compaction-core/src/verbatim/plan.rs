//! The extractive plan of a prepared verbatim compaction: target, floors, and what did not fit.

use foldline_session_model::json::members;
use foldline_session_model::message::{Message, ToolCall};
use rustc_hash::{FxHashMap, FxHashSet};

use super::finish::DroppedLine;
use super::line::{MessageIndex, Region};
use super::prepare::Preparation;
use super::ranges::ValidatedRanges;
use crate::extractive::{self, FloorInput, FloorKind, Floors, Target};

/// The lines that the embedded planner deletes, and the floors for which there was no room.
#[derive(Clone, Debug)]
#[must_use]
pub struct ExtractiveRanges {
    /// What to delete.
    pub ranges: ValidatedRanges,
    /// What ranked first and did not fit.
    pub dropped: Vec<DroppedLine>,
}

/// Plans a prepared compaction without a model.
pub fn extractive(preparation: &Preparation<'_, '_>) -> ExtractiveRanges {
    extractive_within(preparation, target(preparation))
}

/// Plans a prepared compaction without a model, to a target of the caller's.
pub(crate) fn extractive_within(preparation: &Preparation<'_, '_>, target: Target) -> ExtractiveRanges {
    let region = preparation.region();
    let open_errors = open_errors(preparation);
    let changed = changed_paths(preparation);
    let changed_paths: Vec<&str> = changed.iter().map(String::as_str).collect();
    let floors = Floors::On(FloorInput {
        open_errors: &open_errors,
        changed_paths: &changed_paths,
    });
    let plan = extractive::plan(region, preparation.tail_text(), target, floors);
    ExtractiveRanges {
        ranges: plan.ranges,
        dropped: dropped_lines(region, &plan.dropped),
    }
}

/// A share of the lines, and a share of the tokens if one is asked for; the stricter wins.
fn target(preparation: &Preparation<'_, '_>) -> Target {
    let region = preparation.region();
    let parameters = preparation.parameters();
    let lines = Target::lines(parameters.ratio.of(region.line_count()));
    match parameters.budget {
        Some(budget) => {
            let chars = region.text().chars().count();
            lines.and(Target::chars(budget.of(chars)))
        }
        None => lines,
    }
}

fn dropped_lines(region: &Region<'_>, dropped: &[extractive::Dropped]) -> Vec<DroppedLine> {
    let mut lines: Vec<DroppedLine> = Vec::new();
    let mut wanted = dropped.iter().peekable();
    for line in region.lines() {
        while let Some(dropped) = wanted.next_if(|d| d.line <= line.number) {
            if dropped.line != line.number {
                continue;
            }
            let entry_id = region
                .messages()
                .get(line.message.index())
                .and_then(|m| m.origin.clone());
            let reason = match dropped.kind {
                FloorKind::UserMessage => "no room for a line of a user message",
                FloorKind::OpenError => "no room for a line of an open error",
                FloorKind::ChangedPath => "no room for a line that names a changed file",
            };
            match lines.last_mut() {
                Some(last) if last.entry_id == entry_id && last.reason == reason => last.lines += 1,
                _ => lines.push(DroppedLine {
                    entry_id,
                    reason,
                    lines: 1,
                }),
            }
        }
    }
    lines
}

/// What a call is about: the tool and all of its arguments.
fn call_key(call: &ToolCall<'_>) -> String {
    let mut key = String::new();
    super::serialize::write_call(&mut key, call);
    key
}

/// The messages whose result is an error that nothing after it has resolved: no later call with the same
/// arguments, and none of the same tool on the same file, succeeded.
fn open_errors(preparation: &Preparation<'_, '_>) -> Vec<MessageIndex> {
    let context = preparation.context();
    let mut calls: FxHashMap<&str, (&ToolCall<'_>, Option<String>)> = FxHashMap::default();
    let mut failed: Vec<(&str, &str, String, Option<String>)> = Vec::new();
    for item in &context.items {
        match &item.message {
            Message::Assistant(m) => {
                for call in m.content.tool_calls() {
                    calls.insert(&call.id, (call, path_of(call)));
                }
            }
            Message::ToolResult(m) => {
                let Some((call, path)) = calls.get(&*m.tool_call_id) else {
                    continue;
                };
                let key = call_key(call);
                if m.is_error {
                    failed.push((context.log.id(item.source), &call.name, key, path.clone()));
                } else {
                    failed.retain(|(_, tool, failed_key, failed_path)| {
                        let same_file = *tool == &*call.name && failed_path.is_some() && failed_path == path;
                        !(same_file || *failed_key == key)
                    });
                }
            }
            _ => {}
        }
    }
    let open: FxHashSet<&str> = failed.iter().map(|(id, ..)| *id).collect();
    preparation
        .region()
        .messages()
        .iter()
        .enumerate()
        .filter(|(_, m)| m.origin.as_ref().is_some_and(|id| open.contains(id.as_str())))
        .map(|(i, _)| MessageIndex::from_index(i))
        .collect()
}

/// The files that calls of the context changed, as the calls name them, in order of first change.
fn changed_paths(preparation: &Preparation<'_, '_>) -> Vec<String> {
    let mut seen = FxHashSet::default();
    let mut paths = Vec::new();
    for item in &preparation.context().items {
        let Message::Assistant(m) = &item.message else {
            continue;
        };
        for call in m.content.tool_calls() {
            if !matches!(
                &*call.name.to_ascii_lowercase(),
                "write" | "edit" | "multiedit" | "multi_edit" | "notebookedit"
            ) {
                continue;
            }
            if let Some(path) = path_of(call).filter(|path| seen.insert(path.clone())) {
                paths.push(path);
            }
        }
    }
    paths
}

/// The file that a call names.
fn path_of(call: &ToolCall<'_>) -> Option<String> {
    let members = members(call.arguments.as_deref()?)?;
    let (_, value) = members
        .iter()
        .find(|(key, _)| matches!(&**key, "path" | "file_path" | "filePath" | "notebook_path"))?;
    serde_json::from_str(value).ok()
}

#[cfg(test)]
mod tests;
