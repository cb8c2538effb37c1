//! A summary without a model: the same sections, filled from the transcript.
//!
//! It quotes and counts; it concludes nothing. Lines for the critical context are those that the extractive planner
//! would keep of the same messages.

use std::ops::Range;
use std::sync::LazyLock;

use foldline_session_model::Tokens;
use foldline_session_model::fold::{Context, ContextItem};
use foldline_session_model::llm::Wrappers;
use foldline_session_model::message::{Message, StopReason};
use foldline_session_model::tokens::TokenCounter;
use regex::Regex;
use rustc_hash::FxHashMap;

use super::assemble::{CommitOptions, Notes, SummaryCompaction, SummaryError, assemble};
use super::prepare::Preparation;
use super::sections::Sections;
use crate::extractive::{Floors, Target, plan};
use crate::file_ops::{FailedCalls, ToolTable, changes_of};
use crate::open_errors::open_errors;
use crate::redact::redact;
use crate::text::one_line;
use crate::verbatim::serialize::add_message;
use crate::verbatim::{LinePart, RegionBuilder};

/// The name of this summariser in entries and output.
pub(super) const PLANNER: &str = "extractive";

/// The first line of such a summary.
pub const EXTRACTED: &str =
    "*Extracted from the transcript without a model: quotes and counts, no conclusions.*";

/// Sentences of a user that set a rule.
static RULE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:must|never|always|don't|do not|dont|only|prefer|avoid|should|make sure|ensure|no need|",
        r"without|instead of|keep|use)\b"
    ))
    .ok()
});
/// Sentences of the model that decide or explain.
static DECISION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:decided|because|instead of|rather than|root cause|turns out|",
        r"the (?:fix|problem|issue|reason|bug) (?:is|was)|fixed by)\b"
    ))
    .ok()
});
/// Sentences of the model about what comes.
static NEXT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:next|now I(?:'ll| will|'m going to)|let me|I'll|remaining|still (?:need|have) to|to do|todo)\b")
        .ok()
});
/// Commands whose success is progress.
static CHECK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:test|check|build|lint|clippy|tsc|pytest|commit|push|merge|install|deploy|migrate|release)\b").ok()
});

const LINE_UNITS: usize = 300;
const QUOTE_UNITS: usize = 600;

/// Makes the entry without a model.
///
/// # Errors
/// [`SummaryError`] if the compaction does not pay, or the gate refuses.
pub fn extractive(
    preparation: &Preparation<'_, '_>,
    options: &CommitOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<SummaryCompaction, SummaryError> {
    let mut sections = Sections::default();
    if let Some(earlier) = preparation.previous_summary() {
        sections = Sections::parse(&redact(&earlier.replace(EXTRACTED, "")));
    }
    let fresh = Sections::parse(&extracted_notes(&Extract {
        context: preparation.context(),
        items: preparation.history_range().start..preparation.prefix_range().end,
        open_todos: options.open_todos,
        cap: super::assemble::cap(options),
    }));
    sections.append(fresh);
    let notes = Notes {
        history: Some(sections.text()),
        note: Some(EXTRACTED),
        planner: PLANNER.to_owned(),
        ..Notes::default()
    };
    assemble(preparation, options, notes, counter)
}

/// What is extracted from.
#[derive(Clone, Debug)]
pub struct Extract<'e, 'l> {
    /// The context.
    pub context: &'e Context<'l>,
    /// Which of its items are summed up. Those after them stay in the context: they say what will be needed.
    pub items: Range<usize>,
    /// Todos that are not done.
    pub open_todos: &'e [String],
    /// The most tokens of quoted lines.
    pub cap: Tokens,
}

/// The sections of a summary, filled without a model.
pub fn extracted_notes(extract: &Extract<'_, '_>) -> String {
    let items = extract.items();
    let mut out = String::new();
    section(&mut out, "## Goal", goal(items));
    section(&mut out, "## Constraints & Preferences", rules(items));
    section(&mut out, "## Progress", Vec::new());
    section(&mut out, "### Done", done(items));
    section(&mut out, "### In Progress", in_progress(items));
    section(&mut out, "### Blocked", blocked(extract));
    section(
        &mut out,
        "## Key Decisions",
        sentences_of_model(items, DECISION.as_ref(), 8),
    );
    section(&mut out, "## Next Steps", next_steps(items, extract.open_todos));
    section(&mut out, "## Critical Context", lines(extract));
    out
}

impl<'e, 'l> Extract<'e, 'l> {
    fn items(&self) -> &'e [ContextItem<'l>] {
        self.context.items.get(self.items.clone()).unwrap_or_default()
    }
}

/// A heading with its items; the heading of the progress stands alone.
fn section(out: &mut String, heading: &str, items: Vec<String>) {
    if items.is_empty() && heading != "## Progress" {
        return;
    }
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str(heading);
    for item in items {
        out.push('\n');
        out.push_str(&item);
    }
}

/// What the user typed, oldest first.
fn typed<'m>(items: &'m [ContextItem<'_>]) -> impl DoubleEndedIterator<Item = String> + 'm {
    items.iter().filter_map(|item| match &item.message {
        Message::User(m) if !m.synthetic => {
            let text = m.content.texts().collect::<Vec<_>>().join("\n");
            let text = redact(&text).into_owned();
            (!text.trim().is_empty()).then_some(text)
        }
        _ => None,
    })
}

/// The first request and the latest.
fn goal(items: &[ContextItem<'_>]) -> Vec<String> {
    let requests: Vec<String> = typed(items).map(|text| one_line(&text, QUOTE_UNITS)).collect();
    match (requests.first(), requests.last()) {
        (Some(first), Some(last)) if requests.len() > 1 => {
            vec![
                format!("- First request: {first}"),
                format!("- Latest request: {last}"),
            ]
        }
        (Some(only), _) => vec![format!("- {only}")],
        _ => Vec::new(),
    }
}

/// Sentences that set a rule, of all requests but a single one, which is the goal as a whole.
fn rules(items: &[ContextItem<'_>]) -> Vec<String> {
    let texts: Vec<String> = typed(items).collect();
    if texts.len() < 2 {
        return Vec::new();
    }
    newest(texts.iter().flat_map(|text| matching(text, RULE.as_ref())), 12)
}

/// Files with how often they were changed, and commands that worked.
fn done(items: &[ContextItem<'_>]) -> Vec<String> {
    let failed = FailedCalls::of(items.iter().map(|item| &item.message));
    let tools = ToolTable::default();
    let mut order: Vec<String> = Vec::new();
    let mut changes: FxHashMap<String, usize> = FxHashMap::default();
    let mut commands: Vec<String> = Vec::new();
    for item in items {
        let Message::Assistant(m) = &item.message else {
            continue;
        };
        for call in m.content.tool_calls().filter(|call| !failed.contains(&call.id)) {
            for path in changes_of(call, &tools) {
                let count = changes.entry(path.clone()).or_insert(0);
                if *count == 0 {
                    order.push(path);
                }
                *count += 1;
            }
            if let Some(command) = command_of(call) {
                let command = one_line(&redact(&command), 160);
                if CHECK.as_ref().is_some_and(|check| check.is_match(&command)) {
                    commands.retain(|known| *known != command);
                    commands.push(command);
                }
            }
        }
    }
    let mut lines: Vec<String> = order
        .iter()
        .map(|path| match changes.get(path) {
            Some(1) | None => format!("- [x] Changed `{path}`"),
            Some(count) => format!("- [x] Changed `{path}` ({count} times)"),
        })
        .collect();
    lines.extend(newest(commands.into_iter().map(|c| format!("[x] Ran `{c}`")), 8));
    lines
}

fn command_of(call: &foldline_session_model::message::ToolCall<'_>) -> Option<String> {
    if !matches!(
        &*call.name.to_ascii_lowercase(),
        "bash" | "shell" | "exec" | "run_command" | "terminal"
    ) {
        return None;
    }
    let members = foldline_session_model::json::members(call.arguments.as_deref()?)?;
    let (_, value) = members
        .iter()
        .find(|(key, _)| matches!(&**key, "command" | "cmd"))?;
    serde_json::from_str(value).ok()
}

/// The last thing the model said.
fn in_progress(items: &[ContextItem<'_>]) -> Vec<String> {
    let last = said_by_model(items).next_back();
    last.map(|text| format!("- [ ] {}", one_line(&text, QUOTE_UNITS)))
        .into_iter()
        .collect()
}

/// Open errors, with the line that names each.
fn blocked(extract: &Extract<'_, '_>) -> Vec<String> {
    let open = open_errors(&extract.context.items);
    let items = extract.items().iter().filter(|item| open.contains(&item.source));
    newest(
        items.filter_map(|item| match &item.message {
            Message::ToolResult(m) => {
                let text = m.content.texts().collect::<Vec<_>>().join("\n");
                let line = text
                    .lines()
                    .find(|l| crate::extractive::is_error_line(l))
                    .or(text.lines().next())?;
                let line = one_line(&redact(line), LINE_UNITS);
                (!line.is_empty()).then(|| format!("{}: {line}", m.tool_name))
            }
            _ => None,
        }),
        6,
    )
}

fn next_steps(items: &[ContextItem<'_>], open_todos: &[String]) -> Vec<String> {
    let mut steps: Vec<String> = open_todos
        .iter()
        .map(|todo| format!("- {}", one_line(&redact(todo), LINE_UNITS)))
        .collect();
    if let Some(last) = said_by_model(items).next_back() {
        steps.extend(newest(matching(&last, NEXT.as_ref()).into_iter(), 3));
    }
    steps
}

fn said_by_model<'m>(items: &'m [ContextItem<'_>]) -> impl DoubleEndedIterator<Item = String> + 'm {
    items.iter().filter_map(|item| match &item.message {
        Message::Assistant(m) if m.stop_reason != StopReason::Error => {
            let text = m.content.texts().collect::<Vec<_>>().join("\n");
            let text = redact(&text).into_owned();
            (!text.trim().is_empty()).then_some(text)
        }
        _ => None,
    })
}

fn sentences_of_model(items: &[ContextItem<'_>], pattern: Option<&Regex>, most: usize) -> Vec<String> {
    let texts: Vec<String> = said_by_model(items).collect();
    newest(texts.iter().flat_map(|text| matching(text, pattern)), most)
}

/// The sentences of a text that match, each on one line. Code is no sentence.
fn matching(text: &str, pattern: Option<&Regex>) -> Vec<String> {
    let Some(pattern) = pattern else { return Vec::new() };
    let mut fence = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fence = !fence;
            continue;
        }
        if fence {
            continue;
        }
        // A short line is taken whole: dots inside of names end no sentence.
        let sentences: Vec<&str> = if line.len() <= LINE_UNITS {
            vec![line]
        } else {
            line.split_inclusive(". ").collect()
        };
        for sentence in sentences {
            let sentence = sentence.trim().trim_start_matches(['-', '*', '#', '>', ' ']);
            if sentence.len() > 12 && pattern.is_match(sentence) {
                found.push(one_line(sentence, LINE_UNITS));
            }
        }
    }
    found
}

/// The newest of some texts as list items, oldest first, each once.
fn newest(texts: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        all.retain(|known| *known != text);
        all.push(text);
    }
    let skip = all.len().saturating_sub(most);
    all.into_iter()
        .skip(skip)
        .map(|text| format!("- {text}"))
        .collect()
}

/// The share of the cap that quoted lines take, in characters: four to a token.
const LINE_CHARS: usize = 6_000;
/// How many lines are quoted at most.
const MOST_LINES: usize = 60;

/// Lines that the work ahead is most likely to need.
fn lines(extract: &Extract<'_, '_>) -> Vec<String> {
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
        Target::chars(chars).and(Target::lines(MOST_LINES)),
        Floors::Off,
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
    quoted.retain(|text| text.len() > 3);
    newest(quoted.into_iter(), MOST_LINES)
}
