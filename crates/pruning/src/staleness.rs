//! Staleness: results that a later one makes worthless (seed 000, "Pre-compaction pruning"; spec "Pruning", 5).
//!
//! Results are looked at newest first. Each is asked about before its own facts are added, so that only strictly later
//! ones count. It does not matter what becomes of the later one.

mod calls;
mod command;
mod members;
mod mutations;
mod path;
mod range_cover;
mod selector;
mod target_key;

use foldline_session_model::message::{ToolCall, ToolResult};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use calls::Calls;
pub(crate) use members::Members;
pub(crate) use mutations::{is_edit_tool, path_groups, proven_groups};
pub(crate) use path::{PathId, Paths};
pub(crate) use selector::split as split_selector;

use range_cover::RangeCover;
use selector::Selector;
use target_key::Answered;

/// Why a result is worthless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// A later result answers the same question.
    Repeated,
    /// The file that it shows was changed later.
    FileChanged,
    /// A later read shows all of its lines and more.
    Covered,
}

/// What the results that were seen so far, the newest, say about older ones.
pub(crate) struct Tracker<'v> {
    paths: Paths<'v>,
    answered: Answered<'v>,
    changed: FxHashSet<PathId>,
    covers: FxHashMap<PathId, RangeCover>,
    /// Room for the details of one result.
    details: Members<'v>,
}

impl<'v> Tracker<'v> {
    pub(crate) fn new(cwd: &'v str) -> Self {
        Self {
            paths: Paths::new(cwd),
            answered: Answered::default(),
            changed: FxHashSet::default(),
            covers: FxHashMap::default(),
            details: Members::default(),
        }
    }

    /// Whether the result is stale; then it counts as a later one itself. Errors and results without a call are never
    /// stale, and make none so, except that a partly applied change is a change.
    pub(crate) fn observe(
        &mut self,
        call: &'v ToolCall<'v>,
        arguments: &Members<'v>,
        result: &'v ToolResult<'v>,
    ) -> Option<Stale> {
        let mut details = std::mem::take(&mut self.details);
        details.read(match &*call.name {
            "read" | "resolve" => result.details.as_deref(),
            name if is_edit_tool(name) => result.details.as_deref(),
            _ => None,
        });
        let mut stale = None;
        if !result.is_error {
            let repeated = self.answered.repeats(call, arguments, &mut self.paths);
            if call.name == "read" {
                stale = self.observe_read(arguments, &details);
            }
            if repeated {
                stale = Some(Stale::Repeated);
            }
        }
        mutations::add_proven(
            &mut self.changed,
            call,
            arguments,
            &details,
            result.is_error,
            &mut self.paths,
        );
        self.details = details;
        stale
    }

    fn observe_read(&mut self, arguments: &Members<'v>, details: &Members<'v>) -> Option<Stale> {
        let path = arguments.path()?;
        let (base, selector) = selector::split(path);
        let base = self.paths.id(base);
        let resolved = details
            .text("resolvedPath")
            .filter(|path| !path.is_empty())
            .map(|path| self.paths.id(&path));
        let mut stale = None;
        if self.changed.contains(&base) || resolved.is_some_and(|id| self.changed.contains(&id)) {
            stale = Some(Stale::FileChanged);
        }
        if let Some(range) = selector::lines(&selector, arguments) {
            let cover = self.covers.entry(base).or_default();
            // A tool that cut its answer short has not shown all of the range.
            let is_inside = if was_truncated(details) {
                cover.contains_strictly(range)
            } else {
                cover.insert(range)
            };
            if is_inside {
                stale = stale.or(Some(Stale::Covered));
            }
        }
        stale
    }
}

/// Whether the tool says that it left something out.
pub(crate) fn was_truncated(details: &Members<'_>) -> bool {
    details.is_true("truncated")
        || details
            .get("truncation")
            .is_some_and(|raw| Members::of(Some(raw)).is_true("truncated"))
}

/// The whole file, by selector and arguments.
pub(crate) fn is_whole_file(selector: &Selector, arguments: &Members<'_>) -> bool {
    *selector == Selector::None && ["offset", "limit"].iter().all(|key| arguments.get(key).is_none())
}
