//! Floors: lines that rank before all others, whatever the ranking thinks of them (DESIGN, section 3).

use aho_corasick::AhoCorasick;
use foldline_session_model::LineNumber;

use super::error_line::is_error;
use super::pack::Packed;
use crate::verbatim::{Author, LinePart, MessageIndex, Region, SectionKind};

/// Whether there are floors.
#[derive(Clone, Copy, Debug)]
pub enum Floors<'a> {
    /// The pure ranking.
    Off,
    /// User messages, open errors and changed files first.
    On(FloorInput<'a>),
}

/// What the session knows and the lines do not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct FloorInput<'a> {
    /// Messages with a tool result whose error nothing after it has resolved.
    pub open_errors: &'a [MessageIndex],
    /// Files that were changed, as the tools named them.
    pub changed_paths: &'a [&'a str],
}

/// Why a line is a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FloorKind {
    /// Words of the person.
    UserMessage,
    /// The report of an error that is still open.
    OpenError,
    /// The line that names a changed file.
    ChangedPath,
}

/// A floor that the target had no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dropped {
    /// The line.
    pub line: LineNumber,
    /// Why it was wanted.
    pub kind: FloorKind,
}

/// A line in front of the ranking; `path` is the position of the changed path it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) line: usize,
    message: MessageIndex,
    kind: FloorKind,
    path: Option<usize>,
}

/// A line of a changed path that is longer than this is a call with the content of the file in it.
const MAX_PATH_LINE: usize = 500;

impl Floors<'_> {
    /// The lines in the order in which they are packed: newest message first, in the order of the text within.
    pub(super) fn wanted(&self, region: &Region<'_>) -> Vec<Wanted> {
        let Self::On(input) = self else { return Vec::new() };
        let mut wanted = Vec::new();
        let mut open = vec![false; region.messages().len()];
        for message in input.open_errors {
            if let Some(open) = open.get_mut(message.index()) {
                *open = true;
            }
        }
        for line in region.lines() {
            if !matches!(line.part, LinePart::Header | LinePart::Content) {
                continue;
            }
            let want = |kind| Wanted {
                line: line.number.index(),
                message: line.message,
                kind,
                path: None,
            };
            if line.kind == SectionKind::User && line.author == Author::Session {
                wanted.push(want(FloorKind::UserMessage));
            } else if line.kind == SectionKind::ToolResult
                && open.get(line.message.index()) == Some(&true)
                && is_error(line.text.trim_matches([' ', '\t', '\r']))
            {
                wanted.push(want(FloorKind::OpenError));
            }
        }
        wanted.extend(newest_lines_of_paths(region, input.changed_paths));
        wanted.sort_by_key(|w| (std::cmp::Reverse(w.message), w.line, w.kind));
        wanted
    }

    /// The wanted lines that were not kept; a path that another kept line names is not dropped.
    pub(super) fn dropped(&self, region: &Region<'_>, wanted: &[Wanted], packed: &Packed) -> Vec<Dropped> {
        let Self::On(input) = self else { return Vec::new() };
        let mut named = vec![false; input.changed_paths.len()];
        if wanted
            .iter()
            .any(|w| w.path.is_some() && !packed.contains(w.line))
        {
            for_each_path(region, input.changed_paths, |path, line| {
                if packed.contains(line)
                    && let Some(named) = named.get_mut(path)
                {
                    *named = true;
                }
            });
        }
        let is_named = |w: &Wanted| w.path.and_then(|p| named.get(p)).is_some_and(|&n| n);
        let mut dropped: Vec<Dropped> = wanted
            .iter()
            .filter(|w| !packed.contains(w.line) && !is_named(w))
            .map(|w| Dropped {
                line: LineNumber::from_index(w.line),
                kind: w.kind,
            })
            .collect();
        dropped.sort_unstable();
        dropped.dedup();
        dropped
    }
}

/// For each path the newest line of ordinary length that names it, or the newest of any length.
fn newest_lines_of_paths(region: &Region<'_>, paths: &[&str]) -> Vec<Wanted> {
    let mut newest: Vec<(Option<usize>, Option<usize>)> = vec![(None, None); paths.len()];
    for_each_path(region, paths, |path, line| {
        if let Some((short, any)) = newest.get_mut(path) {
            *any = Some(line);
            if region.text_at(line).len() <= MAX_PATH_LINE {
                *short = Some(line);
            }
        }
    });
    let newest = newest.into_iter().enumerate();
    newest
        .filter_map(|(path, (short, any))| {
            let line = short.or(any)?;
            let message = region.message_of(line)?;
            Some(Wanted {
                line,
                message,
                kind: FloorKind::ChangedPath,
                path: Some(path),
            })
        })
        .collect()
}

/// Visits each line that names a path, in order. A path inside of a longer word does not count.
fn for_each_path(region: &Region<'_>, paths: &[&str], mut visit: impl FnMut(usize, usize)) {
    // Building fails only for more patterns than a session can name; then there are no floors for them.
    let Ok(finder) = AhoCorasick::new(paths) else {
        return;
    };
    let bytes = region.text().as_bytes();
    let is_word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    for found in finder.find_overlapping_iter(bytes) {
        let touches = |edge: usize, outside: Option<usize>| {
            is_word(bytes.get(edge)) && is_word(outside.and_then(|at| bytes.get(at)))
        };
        if found.is_empty()
            || touches(found.start(), found.start().checked_sub(1))
            || touches(found.end() - 1, Some(found.end()))
        {
            continue;
        }
        visit(found.pattern().as_usize(), region.line_at(found.start()));
    }
}
