//! A summary without a model: the same sections, filled from the transcript.
//!
//! It quotes and counts; it concludes nothing. Lines for the critical context are those that the extractive planner
//! would keep of the same messages.

mod asked;
mod quoted;
mod said;
mod work;

use std::ops::Range;

use foldline_session_model::Tokens;
use foldline_session_model::fold::{Context, ContextItem};
use foldline_session_model::tokens::TokenCounter;

use super::assemble::{CommitOptions, Notes, SummaryCompaction, SummaryError, assemble};
use super::prepare::Preparation;
use super::sections::Sections;
use crate::redact::redact;
use crate::text::one_line;

/// The name of this summariser in entries and output.
pub(super) const PLANNER: &str = "extractive";

/// The first line of such a summary.
pub const EXTRACTED: &str =
    "*Extracted from the transcript without a model: quotes and counts, no conclusions.*";

const LINE_UNITS: usize = 300;
const QUOTE_UNITS: usize = 600;

/// The item that names the newest request; a later summary replaces it.
const LATEST: &str = "- Latest request: ";
/// The sections in order, as the prompts ask for them.
const ORDER: [&str; 9] = [
    "goal",
    "constraints & preferences",
    "progress",
    "done",
    "in progress",
    "blocked",
    "key decisions",
    "next steps",
    "critical context",
];
/// Sections that say how things stood when they were written.
const PASSING: [&str; 3] = ["in progress", "blocked", "next steps"];

/// Makes the entry without a model.
///
/// # Errors
/// [`SummaryError`] if the compaction does not pay, or the gate refuses.
pub fn extractive(
    preparation: &Preparation<'_, '_>,
    options: &CommitOptions<'_>,
    counter: &dyn TokenCounter,
) -> Result<SummaryCompaction, SummaryError> {
    let extract = Extract {
        context: preparation.context(),
        items: preparation.history_range().start..preparation.prefix_range().end,
        open_todos: options.open_todos,
        cap: super::assemble::cap(options),
    };
    let mut sections = Sections::default();
    let mut earlier = Earlier::None;
    if let Some(text) = preparation.previous_summary() {
        sections = Sections::parse(&redact(&text.replace(EXTRACTED, "")));
        earlier = taken_over(&mut sections, text.contains(EXTRACTED), &extract);
    }
    sections.append(Sections::parse(&filled(&extract, earlier)));
    sections.arrange(&ORDER);
    let notes = Notes {
        history: Some(sections.text()),
        note: Some(EXTRACTED),
        planner: PLANNER.to_owned(),
        ..Notes::default()
    };
    assemble(preparation, options, notes, counter)
}

/// What came before.
enum Earlier {
    /// Nothing.
    None,
    /// A summary with a goal of its own, and its counts of changes by file.
    Summary(Vec<(String, usize)>),
}

/// Prepares an earlier summary for what is new: what only held at its time goes, or is named as earlier if a model wrote
/// it.
fn taken_over(sections: &mut Sections, is_ours: bool, extract: &Extract<'_, '_>) -> Earlier {
    let mut counts = Vec::new();
    if is_ours {
        sections.take("goal", |item| item.starts_with(LATEST));
        sections.take("in progress", |_| true);
        sections.take("next steps", |_| true);
        sections.take("blocked", |item| !work::still_open(item, &extract.context.items));
        let changed = sections.take("done", |item| work::counted(item).is_some());
        counts = changed.iter().filter_map(|item| work::counted(item)).collect();
    } else {
        for name in PASSING {
            sections.rename(name, " (earlier)");
        }
    }
    Earlier::Summary(counts)
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
    filled(extract, Earlier::None)
}

fn filled(extract: &Extract<'_, '_>, earlier: Earlier) -> String {
    let items = extract.items();
    let goal = goal(extract, &earlier);
    let counts = match earlier {
        Earlier::None => Vec::new(),
        Earlier::Summary(counts) => counts,
    };
    let mut out = String::new();
    section(&mut out, "## Goal", goal);
    section(&mut out, "## Constraints & Preferences", asked::rules(items));
    section(&mut out, "## Progress", Vec::new());
    section(&mut out, "### Done", work::done(items, counts));
    let in_progress = said::last_word(items).map(|text| format!("- [ ] {text}"));
    section(&mut out, "### In Progress", in_progress.into_iter().collect());
    section(&mut out, "### Blocked", work::blocked(extract));
    section(&mut out, "## Key Decisions", said::decisions(items));
    section(&mut out, "## Next Steps", next_steps(extract));
    section(&mut out, "## Critical Context", quoted::lines(extract));
    out
}

impl<'e, 'l> Extract<'e, 'l> {
    fn items(&self) -> &'e [ContextItem<'l>] {
        self.context.items.get(self.items.clone()).unwrap_or_default()
    }

    /// What is summed up, and what stays after it.
    fn items_and_tail(&self) -> &'e [ContextItem<'l>] {
        self.context.items.get(self.items.start..).unwrap_or_default()
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

/// The first request, unless an earlier summary knows the goal, and the latest, wherever it stands.
fn goal(extract: &Extract<'_, '_>, earlier: &Earlier) -> Vec<String> {
    let latest = asked::latest_request(extract.items_and_tail());
    let first = match earlier {
        Earlier::None => asked::first_request(extract.items()),
        Earlier::Summary(_) => None,
    };
    match (first, latest) {
        (Some(first), Some(latest)) if first == latest => vec![format!("- {first}")],
        (first, latest) => {
            let first = first.map(|text| format!("- First request: {text}"));
            let latest = latest.map(|text| format!("{LATEST}{text}"));
            first.into_iter().chain(latest).collect()
        }
    }
}

fn next_steps(extract: &Extract<'_, '_>) -> Vec<String> {
    let todos = extract.open_todos.iter();
    let mut steps: Vec<String> = todos
        .map(|todo| format!("- {}", one_line(&redact(todo), LINE_UNITS)))
        .collect();
    steps.extend(said::plans(extract.items()));
    steps
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
