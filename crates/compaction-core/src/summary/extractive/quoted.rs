//! Lines that the work ahead is most likely to need, as the extractive planner ranks them.

use std::sync::LazyLock;

use foldline_session_model::fold::ContextItem;
use foldline_session_model::llm::Wrappers;
use foldline_session_model::message::Message;
use regex::Regex;

use super::said::stands_alone;
use super::{Extract, LINE_UNITS, newest};
use crate::extractive::{Floors, Target, is_error_line, plan};
use crate::text::one_line;
use crate::verbatim::serialize::add_message;
use crate::verbatim::{LinePart, RegionBuilder};

/// The share of the cap that quoted lines take, in characters: four to a token.
const LINE_CHARS: usize = 6_000;
/// How many lines are quoted at most.
const MOST_LINES: usize = 24;
/// How many lines the planner chooses, of which those that say nothing by themselves are then left out.
const CHOSEN_LINES: usize = 120;

/// Lines that the work ahead is most likely to need.
pub(super) fn lines(extract: &Extract<'_, '_>) -> Vec<String> {
    let context = extract.context;
    let wrappers = Wrappers::default();
    let visible: Vec<&ContextItem<'_>> = context
        .items
        .iter()
        .filter(|item| item.message.is_visible())
        .collect();
    let first_kept = context.items.get(extract.items.end).map(|item| item.source);
    let (mut region, mut tail) = (RegionBuilder::new(), RegionBuilder::new());
    let mut in_tail = false;
    let boundary = usize::from(context.compaction.is_some());
    for (at, (item, seen)) in visible.into_iter().zip(context.converted(&wrappers)).enumerate() {
        in_tail |= Some(item.source) == first_kept;
        if at < boundary
            && matches!(
                item.message,
                Message::CompactionSummary(_) | Message::VerbatimBoundary(_)
            )
        {
            continue;
        }
        add_message(
            if in_tail { &mut tail } else { &mut region },
            context,
            item,
            &seen,
        );
    }
    let (Ok(region), Ok(tail)) = (region.finish(), tail.finish()) else {
        return Vec::new();
    };
    let chars = usize::try_from(extract.cap.get())
        .unwrap_or(LINE_CHARS)
        .min(LINE_CHARS);
    let kept = plan(
        &region,
        tail.text(),
        Target::chars(chars).and(Target::lines(CHOSEN_LINES)),
        Floors::Off,
        None,
    );
    let mut quoted = Vec::new();
    for line in region.lines() {
        let ranges = kept.ranges.ranges();
        let next = ranges.partition_point(|range| range.end() < line.number);
        let deleted = ranges.get(next).is_some_and(|range| range.start() <= line.number);
        if !deleted && line.part == LinePart::Content {
            let text = line.text.trim().trim_start_matches(['-', '*', '#', '>', ' ']);
            quoted.push(one_line(text, LINE_UNITS));
        }
    }
    quoted.retain(|text| is_telling(text));
    newest(quoted.into_iter(), MOST_LINES)
}

/// Whether a line says something to a reader who does not see what stood around it. Code does not: it is in the files.
fn is_telling(line: &str) -> bool {
    let is_list_item = line.len() < 60
        && line
            .split_once(". ")
            .is_some_and(|(n, _)| n.parse::<u32>().is_ok());
    let begins_with_words =
        line.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '`' | '(' | '~' | '/' | '.'));
    let is_short = line.split_whitespace().nth(3).is_none();
    let is_place = PLACE.as_ref().is_some_and(|place| place.is_match(line));
    let is_fragment = is_list_item || !begins_with_words || is_code(line);
    !is_fragment && (is_place || (stands_alone(line) && (!is_short || is_error_line(line))))
}

/// A line of a file.
static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\w./~-]+\.\w{1,6}:\d+").ok());

/// Beginnings of lines of code in usual languages.
const CODE: [&str; 31] = [
    "import ",
    "export ",
    "const ",
    "let ",
    "var ",
    "return",
    "if ",
    "else",
    "for (",
    "while ",
    "}",
    ")",
    "]",
    "this.",
    "self.",
    "await ",
    "function ",
    "class ",
    "async ",
    "fn ",
    "pub ",
    "use ",
    "def ",
    "from ",
    "#",
    "@",
    "//",
    "/*",
    "<",
    "\"",
    "|",
];

fn is_code(line: &str) -> bool {
    line.ends_with(['{', '(', '[', ';', ',', '=', '+', '&', '>', '\\'])
        || CODE.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_fragments_tell_nothing() {
        for code in [
            "import { a } from './b'",
            "this.ui.addChild(new Border());",
            "if (event.type === 'end') {",
            "./core/index.ts",
            "APP_NAME,",
            "2. Open the file in an editor",
            "│ ├── bash.ts, edit.ts, find.ts, grep.ts",
            "Let me trace through the flow of it",
        ] {
            assert!(!is_telling(code), "{code}");
        }
        for told in [
            "src/parser.rs:7",
            "error[E0425]: cannot find value `rule`",
            "The window of the small model is 8,192 tokens",
            "npm run version:major # For breaking changes",
        ] {
            assert!(is_telling(told), "{told}");
        }
    }
}
