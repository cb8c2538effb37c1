//! The compactions, each on a card.

use foldline_session_model::entry::CompactionStrategy;
use maud::{Markup, html};

use crate::commands::report::chart;
use crate::commands::report::compactions::{Body, Compaction, Sizes, Standing};
use crate::commands::report::lines::{Lines, Piece, ShownLine};
use crate::commands::report::replaced::Replaced;
use crate::commands::report::shown::Shown;
use crate::output::grouped;

pub(super) fn section(compactions: &[Compaction]) -> Markup {
    // The text that the model sees now, or else the newest, lies open.
    let open = compactions
        .iter()
        .rposition(|compaction| compaction.standing == Standing::InEffect)
        .or(compactions.len().checked_sub(1));
    html! {
        section {
            h2 { "Compactions" }
            @if compactions.is_empty() {
                p .lead { "None: the model sees the active path as it is." }
            } @else {
                p .lead { "What each left, and behind every gap what stood there. Nothing was removed from the file." }
                @for (at, compaction) in compactions.iter().enumerate() {
                    (card(compaction, open == Some(at)))
                }
            }
        }
    }
}

fn card(compaction: &Compaction, is_open: bool) -> Markup {
    let (standing, class) = match compaction.standing {
        Standing::InEffect => ("in effect", "chip now"),
        Standing::Past => ("past", "chip"),
        Standing::OtherBranch => ("on another branch", "chip"),
    };
    html! {
        article .card id=(format!("compaction-{}", compaction.number)) {
            header {
                h3 { "Compaction " (compaction.number) }
                span .chip { (compaction.strategy.as_str()) }
                span class=(class) { (standing) }
                p .meta { code { (compaction.id) } " · " (compaction.time) }
            }
            @match compaction.sizes {
                Some(sizes) => (measures(sizes)),
                None => p .note {
                    "Readers do not take it into account, or it is too far back to be looked into. The entry says "
                    (grouped(compaction.recorded_before)) " tokens before."
                },
            }
            (facts(compaction))
            (body(compaction, is_open))
        }
    }
}

fn measures(sizes: Sizes) -> Markup {
    let (before, after) = (sizes.before(), sizes.after());
    let less = (1.0 - after as f64 / before.max(1) as f64) * 100.0;
    html! {
        (chart::before_and_after(sizes))
        p .measure {
            @if less >= 0.0 { strong { (format!("{less:.0} % less")) } } @else { strong { (format!("{:.0} % more", -less)) } }
        }
        ul .legend {
            li { i .key .replaced {} "replaced " b { (grouped(sizes.replaced)) } }
            li { i .key .text {} "text of the compaction " b { (grouped(sizes.text)) } }
            li { i .key .kept {} "kept messages " b { (grouped(sizes.kept)) } }
        }
    }
}

fn facts(compaction: &Compaction) -> Markup {
    html! {
        @if !compaction.facts.is_empty() {
            dl .facts {
                @for (name, value) in &compaction.facts { div { dt { (name) } dd { (value) } } }
            }
        }
        (files("read", &compaction.read_files))
        (files("changed", &compaction.modified_files))
    }
}

fn files(what: &'static str, files: &[Shown]) -> Markup {
    html! {
        @if !files.is_empty() {
            details .files {
                summary { (files.len()) @if files.len() == 1 { " file " } @else { " files " } (what) }
                ul { @for file in files { li { code { (file) } } } }
            }
        }
    }
}

fn body(compaction: &Compaction, is_open: bool) -> Markup {
    match &compaction.body {
        Body::Lines(lines) => html! {
            details .body open[is_open] {
                summary { "Lines kept and removed" }
                (kept_and_removed(lines, &compaction.id))
            }
        },
        Body::Text { text, replaced } => html! {
            details .body open[is_open] {
                summary {
                    @match compaction.strategy {
                        CompactionStrategy::VerbatimLines => "What it left",
                        CompactionStrategy::Prose => "The summary",
                    }
                }
                div .lines { pre .prose { (text) } }
                @if text.cut > 0 {
                    p .note { (grouped(text.cut as u64)) " more characters; " code { "foldline show SESSION " (compaction.id) } " prints all" }
                }
            }
            @if compaction.strategy == CompactionStrategy::VerbatimLines && !replaced.messages.is_empty() {
                p .note { "Its lines could not be matched with those that it worked on, so the messages are listed instead." }
            }
            (messages(replaced))
        },
    }
}

fn kept_and_removed(lines: &Lines, id: &Shown) -> Markup {
    html! {
        div .lines {
            @for piece in &lines.pieces {
                @match piece {
                    Piece::Kept(lines) => pre { (text_of(lines)) },
                    Piece::Folded(lines) => details .more {
                        summary { (grouped(lines.len() as u64)) " more lines kept" }
                        pre { (text_of(lines)) }
                    },
                    Piece::Removed { count, first, last, entry, lines, more } => details .gap {
                        summary {
                            span .marker { "(filtered " (count) " lines)" }
                            span .where {
                                @if first == last { "line " (first) } @else { "lines " (grouped(*first as u64)) "–" (grouped(*last as u64)) }
                            }
                        }
                        @if !lines.is_empty() { pre .old { (text_of(lines)) } }
                        @if *more > 0 {
                            p .note {
                                (grouped(*more as u64)) " more lines are not shown"
                                @if let Some(entry) = entry { "; they begin in " code { "foldline show SESSION " (entry) } }
                            }
                        }
                    },
                }
            }
        }
        @if lines.left_lines > 0 {
            p .note {
                (grouped(lines.left_lines as u64)) " more lines are not shown; " code { "foldline show SESSION " (id) } " prints what was kept"
            }
        }
    }
}

fn text_of(lines: &[ShownLine]) -> Markup {
    html! {
        @for (at, line) in lines.iter().enumerate() {
            @if at > 0 { "\n" }
            @if !line.role.is_empty() { b { (line.role) } } (line.text)
            @if line.text.cut > 0 { i { " … " (line.text.cut) " more characters" } }
        }
    }
}

fn messages(replaced: &Replaced) -> Markup {
    html! {
        @if !replaced.messages.is_empty() {
            details .body {
                summary { "The " (grouped((replaced.messages.len() + replaced.more) as u64)) " messages that it replaced" }
                div .messages {
                    @for message in &replaced.messages {
                        details {
                            summary {
                                span .role { (message.role) }
                                span .first { (message.first) }
                                span .number { (grouped(message.tokens)) }
                            }
                            pre { (message.text) }
                            @if message.text.cut > 0 {
                                p .note { (grouped(message.text.cut as u64)) " more characters; " code { "foldline show SESSION " (message.id) } " prints all" }
                            }
                        }
                    }
                    @if replaced.more > 0 {
                        p .note { (grouped(replaced.more as u64)) " more messages are not shown; " code { "foldline tree SESSION --all" } " lists every entry" }
                    }
                }
            }
        }
    }
}
