//! The extractive plan of a prepared verbatim compaction: target, floors, and what did not fit.

use foldline_session_model::message::Message;
use rustc_hash::FxHashSet;

use super::finish::DroppedLine;
use super::line::{MessageIndex, Region};
use super::parameters::QuerySource;
use super::prepare::Preparation;
use super::ranges::ValidatedRanges;
use crate::extractive::{self, FloorInput, FloorKind, Floors, Target};
use crate::file_ops::{ToolTable, changes_of};

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
    let parameters = preparation.parameters();
    let focus = (parameters.query_from == QuerySource::Named).then_some(&*parameters.query);
    let plan = extractive::plan(region, preparation.tail_text(), target, floors, focus);
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

/// The messages of the region with an error that is still open.
fn open_errors(preparation: &Preparation<'_, '_>) -> Vec<MessageIndex> {
    let context = preparation.context();
    let open = crate::open_errors::open_errors(&context.items);
    let open: FxHashSet<&str> = open.into_iter().map(|ix| context.log.id(ix)).collect();
    preparation
        .region()
        .messages()
        .iter()
        .enumerate()
        .filter(|(_, m)| m.origin.as_ref().is_some_and(|id| open.contains(id.as_str())))
        .map(|(i, _)| MessageIndex::from_index(i))
        .collect()
}

/// The files that calls of the context changed, in order of first change.
fn changed_paths(preparation: &Preparation<'_, '_>) -> Vec<String> {
    let tools = ToolTable::default();
    let mut seen = FxHashSet::default();
    let mut paths = Vec::new();
    for item in &preparation.context().items {
        let Message::Assistant(m) = &item.message else {
            continue;
        };
        for call in m.content.tool_calls() {
            paths.extend(
                changes_of(call, &tools)
                    .into_iter()
                    .filter(|path| seen.insert(path.clone())),
            );
        }
    }
    paths
}

#[cfg(test)]
mod tests;
