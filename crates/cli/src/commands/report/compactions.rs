//! What each compaction did: sizes, text, and what the text stands for.

use foldline_compaction_core::verbatim::{self, Parameters, SmallRegion};
use foldline_session_model::EntryIx;
use foldline_session_model::entry::{self, CompactionStrategy, EntryBody, EntryKind};
use foldline_session_model::fold::{Context, ContextItem, Profile};
use foldline_session_model::json;
use foldline_session_model::log::{Parent, SessionLog};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use serde_json::value::RawValue;

use super::lines::{self, Lines};
use super::replaced::{self, Replaced};
use super::shown::{Shown, time};
use crate::output::grouped;

pub(super) struct Compaction {
    /// Counted from 1 in the order of the file.
    pub(super) number: usize,
    pub(super) ix: EntryIx,
    pub(super) id: Shown,
    pub(super) time: Shown,
    pub(super) strategy: CompactionStrategy,
    pub(super) standing: Standing,
    /// What the entry says of the size before it; may be a provider's count.
    pub(super) recorded_before: u64,
    /// Our estimates; nothing for a compaction that no reader takes into account.
    pub(super) sizes: Option<Sizes>,
    pub(super) facts: Vec<(&'static str, Shown)>,
    pub(super) read_files: Vec<Shown>,
    pub(super) modified_files: Vec<Shown>,
    pub(super) body: Body,
}

/// Whether the model sees its text now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It does.
    InEffect,
    /// A later one took its place, or it was taken back.
    Past,
    /// It is on a branch that was left.
    OtherBranch,
}

/// Estimates of the context before and after.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The messages that the text replaced.
    pub(super) replaced: u64,
    /// Those that stayed.
    pub(super) kept: u64,
    /// The text.
    pub(super) text: u64,
}

impl Sizes {
    pub(super) fn before(self) -> u64 {
        self.replaced.saturating_add(self.kept)
    }

    pub(super) fn after(self) -> u64 {
        self.text.saturating_add(self.kept)
    }
}

pub(super) enum Body {
    /// Kept and removed lines.
    Lines(Lines),
    /// A text, and the messages that it replaced.
    Text { text: Shown, replaced: Replaced },
}

/// How much text of compactions the page holds, in bytes.
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    const PAGE: usize = 4_000_000;
    const CARD: usize = 1_000_000;
    /// What an element costs beside its text.
    const MARKUP: usize = 60;

    /// Takes a part for one card.
    fn card(&mut self) -> Self {
        let part = self.left.min(Self::CARD);
        self.left -= part;
        Self { left: part }
    }

    fn give_back(&mut self, rest: &Self) {
        self.left += rest.left;
    }

    /// Whether there is room for a text, which is then taken.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let cost = bytes + Self::MARKUP;
        let fits = cost <= self.left;
        if fits {
            self.left -= cost;
        }
        fits
    }
}

/// The longest text of a summary.
const LONGEST_TEXT: usize = 60_000;
/// Folding the log again costs its length, so with very many compactions only the newest are looked into.
const MOST_FOLDED: usize = 200;
const MOST_FILES: usize = 100;

/// All compactions of the file, in its order.
pub(super) fn collect(log: &SessionLog, context: &Context<'_>) -> Vec<Compaction> {
    let mut on_path = vec![false; log.len()];
    for ix in &context.path {
        if let Some(on_path) = on_path.get_mut(ix.index()) {
            *on_path = true;
        }
    }
    let all: Vec<EntryIx> = log
        .entries()
        .filter(|ix| log.kind(*ix) == EntryKind::Compaction)
        .collect();
    let mut budget = Budget { left: Budget::PAGE };
    // The newest first: if there is not room for all, it is for those.
    let mut compactions: Vec<Compaction> = all
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(at, &ix)| {
            let number = at + 1;
            let standing = match on_path.get(ix.index()) {
                Some(true) if context.compaction == Some(ix) => Standing::InEffect,
                Some(true) => Standing::Past,
                _ => Standing::OtherBranch,
            };
            let folded = if all.len() - number < MOST_FOLDED {
                Folded::around(log, ix)
            } else {
                None
            };
            compaction(log, number, ix, standing, folded.as_ref(), &mut budget)
        })
        .collect();
    compactions.reverse();
    compactions
}

/// The contexts before and after a compaction.
struct Folded<'l> {
    before: Context<'l>,
    after: Context<'l>,
}

impl<'l> Folded<'l> {
    /// `None` for a compaction that the fold does not take into account.
    fn around(log: &'l SessionLog, ix: EntryIx) -> Option<Self> {
        let before = match log.parent(ix) {
            Parent::Entry(parent) => Leaf::Entry(log.entry_id(parent)),
            Parent::Root | Parent::Missing => Leaf::BeforeFirst,
        };
        let after = log.context(&Leaf::Entry(log.entry_id(ix)), Profile::Auto).ok()?;
        let before = log.context(&before, Profile::Auto).ok()?;
        (after.compaction == Some(ix)).then_some(Self { before, after })
    }

    fn kept(&self) -> &[ContextItem<'l>] {
        self.after
            .items
            .get(self.after.kept_tail.clone())
            .unwrap_or_default()
    }

    /// The items that are not in the context any more.
    fn replaced(&self) -> Vec<&ContextItem<'l>> {
        let mut kept: Vec<EntryIx> = self.kept().iter().map(|item| item.source).collect();
        kept.sort_unstable();
        let items = self.before.items.iter();
        items
            .filter(|item| kept.binary_search(&item.source).is_err())
            .collect()
    }

    fn sizes(&self, text: u64) -> Sizes {
        let tokens = |item: &ContextItem<'_>| Heuristic.message(&item.message).get();
        Sizes {
            replaced: self.replaced().into_iter().map(tokens).sum(),
            kept: self.kept().iter().map(tokens).sum(),
            text,
        }
    }
}

fn compaction(
    log: &SessionLog,
    number: usize,
    ix: EntryIx,
    standing: Standing,
    folded: Option<&Folded<'_>>,
    budget: &mut Budget,
) -> Option<Compaction> {
    let entry = log.entry(ix).ok()?;
    let EntryBody::Compaction(entry_body) = entry.body else {
        return None;
    };
    let details = Details::of(entry_body.details.as_deref());
    let text_tokens = || match folded.and_then(|folded| folded.after.items.first()) {
        Some(item) if item.source == ix => Heuristic.message(&item.message).get(),
        _ => 0,
    };
    let mut own = budget.card();
    let body = body(&entry_body, &details, folded, &mut own);
    budget.give_back(&own);
    Some(Compaction {
        number,
        ix,
        id: Shown::line(log.id(ix), 80),
        time: Shown::line(&time(&entry.timestamp), 40),
        strategy: entry_body.strategy,
        standing,
        recorded_before: entry_body.tokens_before.get(),
        sizes: folded.map(|folded| folded.sizes(text_tokens())),
        facts: details.facts(&entry_body),
        read_files: details.files("readFiles"),
        modified_files: details.files("modifiedFiles"),
        body,
    })
}

fn body(
    compaction: &entry::Compaction<'_>,
    details: &Details<'_>,
    folded: Option<&Folded<'_>>,
    budget: &mut Budget,
) -> Body {
    if let (CompactionStrategy::VerbatimLines, Some(folded)) = (compaction.strategy, folded)
        && let Some(lines) = original_lines(&compaction.summary, details, folded, budget)
    {
        return Body::Lines(lines);
    }
    let text = Shown::text(&compaction.summary, LONGEST_TEXT);
    let text = if budget.take(text.len()) {
        text
    } else {
        Shown::text(&compaction.summary, 1000)
    };
    let replaced = folded.map(Folded::replaced).unwrap_or_default();
    Body::Text {
        text,
        replaced: replaced::collect(folded.map(|f| f.before.log), &replaced, budget),
    }
}

/// The lines that a verbatim compaction worked on, matched with what it left of them.
fn original_lines(
    text: &str,
    details: &Details<'_>,
    folded: &Folded<'_>,
    budget: &mut Budget,
) -> Option<Lines> {
    let kept = folded
        .kept()
        .iter()
        .filter(|item| item.message.is_visible())
        .count();
    let stated = details.preserve_recent().unwrap_or(kept);
    let mut tried = None;
    for preserve_recent in [kept, stated] {
        if tried.replace(preserve_recent) == Some(preserve_recent) {
            continue;
        }
        let parameters = Parameters {
            preserve_recent,
            ..Parameters::with_query(String::new())
        };
        let Ok(preparation) = verbatim::prepare(&folded.before, parameters, SmallRegion::Allow, &Heuristic)
        else {
            continue;
        };
        if let Some(runs) = lines::align(text, preparation.region()) {
            return Some(lines::collect(preparation.region(), &runs, budget));
        }
    }
    None
}

/// `details` of an entry of any writer.
struct Details<'d> {
    members: Vec<(std::borrow::Cow<'d, str>, &'d RawValue)>,
}

impl<'d> Details<'d> {
    fn of(raw: Option<&'d RawValue>) -> Self {
        Self {
            members: raw.and_then(json::object).unwrap_or_default(),
        }
    }

    fn get(&self, name: &str) -> Option<&'d RawValue> {
        let (_, value) = self.members.iter().rev().find(|(key, _)| key == name)?;
        Some(value)
    }

    fn within(&self, name: &str) -> Self {
        Self::of(self.get(name))
    }

    fn preserve_recent(&self) -> Option<usize> {
        let number = json::number(self.within("parameters").get("preserve_recent")?)?;
        (0.0..1e6).contains(&number).then(|| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is between 0 and a million"
            )]
            let count = number as usize;
            count
        })
    }

    fn files(&self, name: &str) -> Vec<Shown> {
        let list = self.get(name).and_then(json::elements).unwrap_or_default();
        let names = list.into_iter().filter_map(json::text);
        names
            .take(MOST_FILES)
            .map(|name| Shown::line(&name, 200))
            .collect()
    }

    /// Who chose what stays, in words that a person knows.
    fn planner(&self) -> Option<String> {
        let text = |name| self.get(name).and_then(json::text);
        let planner = text("planner").or_else(|| text("rung"))?;
        Some(match &*planner {
            "planned" => "a model".to_owned(),
            "extractive" => "the extractive planner, without a model".to_owned(),
            "fresh" => "nobody: all lines that could go went".to_owned(),
            other => other.to_owned(),
        })
    }

    /// What else the entry says of itself.
    fn facts(&self, compaction: &entry::Compaction<'_>) -> Vec<(&'static str, Shown)> {
        let mut facts = Vec::new();
        let text = |raw: Option<&RawValue>| raw.and_then(json::text).map(|text| Shown::line(&text, 80));
        let written = |raw: Option<&RawValue>| raw.map(|raw| Shown::line(&number(raw.get()), 80));
        let model = self.within("plannerModel");
        let parameters = self.within("parameters");
        let stats = self.within("stats");
        let candidates = [
            (
                "chosen by",
                self.planner().map(|planner| Shown::line(&planner, 80)),
            ),
            ("model", text(model.get("id")).or_else(|| text(self.get("model")))),
            (
                "share of lines to keep",
                written(parameters.get("compression_ratio")),
            ),
            ("share of tokens to keep", written(parameters.get("budget"))),
            ("about", text(parameters.get("query"))),
            ("lines before", written(stats.get("linesBefore"))),
            ("lines kept", written(stats.get("linesKept"))),
            ("gaps", written(stats.get("rangeCount"))),
        ];
        for (name, value) in candidates {
            facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
        }
        if compaction.from_extension {
            facts.push(("written by", Shown::line("an extension", 20)));
        }
        facts
    }
}

/// A whole number with its digits in groups; anything else as it is.
fn number(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), grouped)
}
