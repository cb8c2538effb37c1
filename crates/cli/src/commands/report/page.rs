//! The page. Text of the session comes in as [`Shown`] only, so none of it becomes markup.

mod cards;
mod rows;

use foldline_llm_client::Catalogue;
use foldline_session_model::fold::Context;
use foldline_session_model::import::Agent;
use foldline_session_model::model_call::ModelRef;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart;
use super::compactions::Compaction;
use super::entries;
use super::numbers::{Numbers, Share, Use};
use super::shown::{Shown, time};
use super::timeline::{MarkKind, Timeline};
use crate::output::grouped;
use crate::session::Session;

pub(super) struct Report<'r> {
    pub(super) session: &'r Session,
    pub(super) context: &'r Context<'r>,
    pub(super) numbers: Numbers,
    pub(super) timeline: Timeline,
    pub(super) compactions: Vec<Compaction>,
}

/// Nothing runs and nothing is loaded, whatever the page says.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("style.css");
/// So many tools and damages are listed; the others are summed up.
const MOST_TOOLS: usize = 20;
const MOST_DAMAGE: usize = 20;

pub(super) fn render(report: &Report<'_>) -> String {
    let header = report.session.log.header();
    let title = match report.session.log.name().as_str() {
        Some(name) if !name.trim().is_empty() => Shown::line(name, 160),
        _ => Shown::line(&format!("Session {}", header.id), 160),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="robots" content="noindex";
                link rel="icon" href="data:,";
                title { (title) " · Foldline" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header .top {
                    p .eyebrow { "Session report" }
                    h1 { (title) }
                    (facts(report))
                }
                main {
                    (tiles(report))
                    (damage(report))
                    (over_time(report))
                    (fill(&report.numbers))
                    (cost(&report.numbers))
                    (cards::section(&report.compactions))
                    (rows::section(&entries::collect(&report.session.log, &report.context.path)))
                    (terms())
                }
                footer {
                    p {
                        "Made by " code { "foldline report" } " " (env!("CARGO_PKG_VERSION"))
                        ". Secrets that were recognised read " code { "[REDACTED:kind]" }
                        ". Nothing in this page runs or is loaded from elsewhere."
                    }
                }
            }
        }
    };
    page.into_string()
}

fn facts(report: &Report<'_>) -> Markup {
    let log = &report.session.log;
    let header = log.header();
    let last = log.leaf().map_or("", |ix| log.timestamp(ix));
    let file = report
        .session
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let agent = match report.session.imported_from {
        Some(Agent::ClaudeCode) => Some("Claude Code"),
        Some(Agent::Codex) => Some("Codex"),
        _ => None,
    };
    let rows = [
        ("id", Shown::line(&header.id, 80)),
        ("folder", Shown::line(&header.cwd, 200)),
        ("file", Shown::line(&file, 160)),
        ("began", Shown::line(&time(&header.timestamp), 40)),
        ("last entry", Shown::line(&time(last), 40)),
        ("written by", Shown::line(agent.unwrap_or_default(), 40)),
    ];
    html! {
        dl .facts {
            @for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

fn tiles(report: &Report<'_>) -> Markup {
    let numbers = &report.numbers;
    let tile = |value: String, name: &'static str, note: String| {
        html! {
            div .tile {
                p .value { (value) }
                p .name { (name) }
                @if !note.is_empty() { p .note { (note) } }
            }
        }
    };
    let folded = numbers.all_tokens.saturating_sub(numbers.context_tokens);
    let share = (numbers.all_tokens > 0).then(|| folded as f64 / numbers.all_tokens as f64 * 100.0);
    html! {
        section .tiles aria-label="Totals" {
            (tile(grouped(numbers.context_tokens), "tokens in context", "estimate, now".to_owned()))
            (tile(
                grouped(numbers.all_tokens),
                "tokens in the file",
                share.map_or_else(String::new, |share| format!("{share:.0} % are not in context")),
            ))
            (tile(grouped(numbers.turns), if numbers.turns == 1 { "turn" } else { "turns" }, format!("{} entries", grouped(report.session.log.len() as u64))))
            (tile(
                grouped(report.compactions.len() as u64),
                if report.compactions.len() == 1 { "compaction" } else { "compactions" },
                counted(numbers.prunes, "prune"),
            ))
            @if numbers.total.requests > 0 {
                (tile(dollars(numbers.total.cost), "cost", counted(numbers.total.requests, "request")))
                @if let Some(share) = numbers.total.cache_share() {
                    (tile(format!("{share} %"), "of input from cache", String::new()))
                }
            }
        }
    }
}

fn counted(number: u64, what: &'static str) -> String {
    match number {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{} {what}s", grouped(n)),
    }
}

/// A sum in dollars. What was not recorded is not nothing.
fn dollars(cost: Option<f64>) -> String {
    cost.filter(|cost| *cost > 0.0)
        .map_or_else(|| "–".to_owned(), |cost| format!("${cost:.2}"))
}

fn damage(report: &Report<'_>) -> Markup {
    let damage = report.session.log.damage();
    html! {
        @if !damage.is_empty() {
            section .damage {
                h2 { "Damage in the file" }
                p { "What is whole was read. " code { "foldline check SESSION --repair" } " repairs the rest and keeps a copy." }
                ul {
                    @for damage in damage.iter().take(MOST_DAMAGE) {
                        li { "line " (damage.line.get()) ": " (Shown::line(&damage.kind.to_string(), 200)) }
                    }
                    @if damage.len() > MOST_DAMAGE {
                        li { (grouped((damage.len() - MOST_DAMAGE) as u64)) " more; " code { "foldline check SESSION" } " lists them" }
                    }
                }
            }
        }
    }
}

fn over_time(report: &Report<'_>) -> Markup {
    let timeline = &report.timeline;
    let window = window(report.context);
    let has = |wanted: fn(&MarkKind) -> bool| timeline.marks.iter().any(|mark| wanted(&mark.kind));
    html! {
        section {
            h2 { "Context over time" }
            @if timeline.messages == 0 {
                p .lead { "The active path has no messages." }
            } @else {
                p .lead {
                    "What the model was shown after each message of the active path, in tokens."
                    @if let Some((name, window)) = &window { " The window of " (name) " is " (grouped(*window)) " tokens." }
                }
                (chart::context(timeline, window.as_ref().map(|(_, window)| *window)))
                ul .legend {
                    li { i .key .estimate {} "estimate" }
                    @if timeline.points.iter().any(|point| point.measured.is_some()) {
                        li { i .key .measured {} "counted by the provider, with its instructions and tools" }
                    }
                    li { i .key .turn {} "turn of the user" }
                    @if has(|kind| matches!(kind, MarkKind::Compaction(_))) { li { i .key .compaction {} "compaction" } }
                    @if has(|kind| *kind == MarkKind::Prune) { li { i .key .prune {} "prune" } }
                    @if has(|kind| *kind == MarkKind::Undo) { li { i .key .undo {} "taken back" } }
                    li .axis { "→ messages on the path" }
                }
            }
        }
    }
}

/// The model at the end of the path and its window, if they are known.
fn window(context: &Context<'_>) -> Option<(Shown, u64)> {
    let state = context.state();
    let model = state.model()?;
    let name = ModelRef {
        provider: model.provider.to_string(),
        id: model.model.to_string(),
    };
    let window = Catalogue::built_in().profile(&name, None)?.context_window?;
    Some((Shown::line(&name.id, 80), window.get()))
}

fn fill(numbers: &Numbers) -> Markup {
    html! {
        section {
            h2 { "What fills it" }
            p .lead { "Estimated tokens of the whole file, every branch, and the part that the model sees now." }
            div .columns {
                (shares("By role", "messages", &numbers.roles, false))
                (shares("Tool results", "calls", &numbers.tools, true))
            }
            ul .legend { li { i .key .all {} "in the file" } li { i .key .now {} "in context now" } }
        }
    }
}

fn shares(title: &'static str, counted: &'static str, shares: &[Share], with_errors: bool) -> Markup {
    let whole = shares
        .iter()
        .map(|share| share.all.max(share.now))
        .max()
        .unwrap_or(0);
    let (listed, others) = shares.split_at(shares.len().min(MOST_TOOLS));
    let sum = |of: fn(&Share) -> u64| others.iter().map(of).fold(0, u64::saturating_add);
    let rest = (!others.is_empty()).then(|| Share {
        name: format!("{} others", others.len()),
        count: sum(|s| s.count),
        errors: sum(|s| s.errors),
        all: sum(|s| s.all),
        now: sum(|s| s.now),
    });
    html! {
        div {
            h3 { (title) }
            @if shares.is_empty() {
                p .note { "None." }
            } @else {
                div .scroll { table .shares {
                    thead { tr {
                        th scope="col" { span .hidden { "name" } }
                        th scope="col" { (counted) }
                        @if with_errors { th scope="col" { "errors" } }
                        th scope="col" { "in file" }
                        th scope="col" { "in context" }
                    } }
                    tbody {
                        @for share in listed.iter().chain(&rest) {
                            tr {
                                th scope="row" {
                                    span .name { (Shown::line(&share.name, 40)) }
                                    (chart::share(share.all.max(share.now), share.now, whole))
                                }
                                td { (grouped(share.count)) }
                                @if with_errors { td .errors[share.errors > 0] { (grouped(share.errors)) } }
                                td { (grouped(share.all)) }
                                td { (grouped(share.now)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn cost(numbers: &Numbers) -> Markup {
    let row = |name: Markup, uses: &Use| {
        html! {
            tr {
                th scope="row" { (name) }
                td { (grouped(uses.requests)) }
                td { (grouped(uses.cache_read)) }
                td { (grouped(uses.cache_write)) }
                td { (grouped(uses.uncached)) }
                td { (grouped(uses.output)) }
                td { (uses.cache_share().map_or_else(|| "–".to_owned(), |share| format!("{share} %"))) }
                td { (dollars(uses.cost)) }
            }
        }
    };
    html! {
        section {
            h2 { "Cost and cache" }
            @if numbers.total.requests == 0 {
                p .lead { "The file records no usage." }
            } @else {
                p .lead { "Tokens that providers counted and charged, over every branch of the file." }
                div .scroll { table .uses {
                    thead { tr {
                        th scope="col" { "model" } th scope="col" { "requests" } th scope="col" { "cache read" }
                        th scope="col" { "cache write" } th scope="col" { "uncached" } th scope="col" { "output" }
                        th scope="col" { "from cache" } th scope="col" { "cost" }
                    } }
                    tbody {
                        @for model in numbers.models.iter().take(MOST_TOOLS) { (row(html! { (Shown::line(&model.name, 60)) }, &model.uses)) }
                    }
                    @if numbers.models.len() > 1 {
                        tfoot { (row(html! { "all" }, &numbers.total)) }
                    }
                } }
                h3 { "Input of each request" }
                (chart::requests(&numbers.requests))
                ul .legend {
                    li { i .key .read {} "read from the cache" }
                    li { i .key .written {} "written to the cache" }
                    li { i .key .uncached {} "neither" }
                    li .axis { "→ requests, ↑ tokens" }
                }
            }
        }
    }
}

fn terms() -> Markup {
    let terms = [
        (
            "context",
            "The messages that the model is shown with the next request.",
        ),
        (
            "token",
            "The unit in which models read and providers charge, about four characters of English. Numbers are estimates of one and the same estimator, unless the page says that a provider counted them.",
        ),
        (
            "entry",
            "One line of the session file: a message, or something that happened. Entries form a tree, and none is ever removed.",
        ),
        (
            "active path",
            "The entries from the first one to the one where the session stands. Only they can be in context.",
        ),
        (
            "compaction",
            "An entry whose text stands for everything before it, except for the messages that it keeps.",
        ),
        (
            "verbatim-lines",
            "A compaction that deletes lines and keeps the others word for word. A marker, (filtered N lines), stands where lines were deleted.",
        ),
        (
            "context-full",
            "A compaction that replaces messages by a summary.",
        ),
        (
            "kept messages",
            "The newest messages before a compaction, which stay as they were.",
        ),
        (
            "prune",
            "Replaces old tool output by a short notice; the output stays in the file.",
        ),
        (
            "cache",
            "Providers keep the beginning of a prompt for some minutes and charge less for what they read from there. A compaction changes the beginning, so what follows it has to be written again.",
        ),
    ];
    html! {
        section {
            details .terms {
                summary { h2 { "Terms" } }
                dl { @for (term, meaning) in terms { div { dt { (term) } dd { (meaning) } } } }
                p { "To read something whole: " code { "foldline show SESSION ID" } " prints an entry, "
                    code { "foldline context SESSION --format text" } " what the model sees, "
                    code { "foldline tree SESSION --all" } " every entry. SESSION is the file of this session." }
            }
        }
    }
}
