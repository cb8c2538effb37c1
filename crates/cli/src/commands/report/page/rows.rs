//! The tree of entries as nested lists.

use maud::{Markup, html};

use crate::commands::report::entries::{Look, Node, Place, Row, Tree};
use crate::output::grouped;

pub(super) fn section(tree: &Tree) -> Markup {
    html! {
        section {
            h2 { "Entries" }
            p .lead {
                @match tree.branches {
                    0 => "None.",
                    1 => "One line, without branches.",
                    n => { (grouped(n as u64)) " lines; what was left stands indented where it branches off." },
                }
                " Numbers are estimated tokens."
            }
            ol .tree { (list(&tree.nodes)) }
            @if tree.more > 0 {
                p .note { (grouped(tree.more as u64)) " more entries are not shown; " code { "foldline tree SESSION --all" } " lists them all" }
            }
            ul .legend {
                li { i .key .dot .active {} "on the active path" }
                li { i .key .dot .left {} "left" }
                li { i .key .dot .boundary {} "compaction, summary or prune" }
            }
        }
    }
}

/// Branches lie at most as deep as the logarithm of the number of entries, so this may call itself.
fn list(nodes: &[Node]) -> Markup {
    html! {
        @for node in nodes {
            @match node {
                Node::Row(row) => (entry(row)),
                Node::Folded { rows, more, tokens } => li .fold {
                    details {
                        summary {
                            span .count { (grouped((rows.len() + more) as u64)) " entries" }
                            (failures(rows))
                            span .number { (grouped(*tokens)) }
                        }
                        ol { @for row in rows { (entry(row)) } }
                        @if *more > 0 { p .note { (grouped(*more as u64)) " more; " code { "foldline tree SESSION --all" } " lists them" } }
                    }
                },
                Node::Branch(branch) => li .branch { ol { (list(branch)) } },
            }
        }
    }
}

fn failures(rows: &[Row]) -> Markup {
    let failed = rows.iter().filter(|row| row.look == Look::Failed).count();
    html! { @if failed > 0 { span .failed { (failed) " failed" } } }
}

fn entry(row: &Row) -> Markup {
    let place = match row.place {
        Place::Leaf => "leaf",
        Place::Active => "active",
        Place::Left => "left",
    };
    let look = match row.look {
        Look::Plain => "",
        Look::Typed => "typed",
        Look::Failed => "bad",
        Look::Boundary => "boundary",
    };
    html! {
        li class=(format!("{place} {look}")) {
            span .kind { (row.kind) }
            span .said {
                @if row.place == Place::Leaf { span .chip .now { "stands here" } " " }
                @if let Some(label) = &row.label { span .chip { (label) } " " }
                (row.text)
            }
            code { (row.id) }
            span .number { @if row.tokens > 0 { (grouped(row.tokens)) } }
        }
    }
}
