//! The tree as text for people. Long runs without a branch are folded into one line.

use foldline_session_model::EntryIx;
use foldline_session_model::log::SessionLog;
use foldline_session_model::tree::Labels;

use super::outline::Outline;
use super::row::{Row, folded, print};
use crate::output::{BOLD, DIM, grouped};
use crate::session::Session;

/// What is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// Runs of entries between branches, labels, compactions and what the user typed.
    LongRuns,
    /// Nothing.
    Nothing,
}

/// A run of fewer entries than this is drawn whole.
const SHORT_RUN: usize = 5;
/// Of the messages of the user in a run, so many are drawn at its start and at its end.
const FIRST_TYPED: usize = 2;
const LAST_TYPED: usize = 4;

pub(super) fn draw(
    session: &Session,
    labels: &Labels<'_>,
    active: &[bool],
    context_tokens: u64,
    fold: Fold,
    width: usize,
) -> String {
    let log = &session.log;
    let leaf = log.stands_at();
    let outline = Outline::of(log, active);
    let drawing = Drawing {
        log,
        labels,
        active,
        leaf,
        outline: &outline,
        ids: IdWidths::of(log),
        fold,
        width,
    };
    let place = match leaf {
        Some(leaf) => format!("at {}", drawing.ids.shown(log, leaf)),
        None => "before its first entry".to_owned(),
    };
    let lines = match outline.tips() {
        1 => "one line".to_owned(),
        tips => format!("{} lines", grouped(tips as u64)),
    };
    let mut out = format!(
        "{BOLD}{}{BOLD:#}\n{DIM}{} entries in {lines}, about {} tokens in context\nstands {place}{DIM:#}\n",
        log.header().id,
        grouped(log.len() as u64),
        grouped(context_tokens),
    );
    for &root in outline.roots() {
        drawing.tree(&mut out, root);
    }
    if outline.tips() > 1 || outline.roots().len() > 1 {
        out.push_str(&format!(
            "{DIM}● on the path to where it stands  ○ left  ◆ ◇ compaction or summary{DIM:#}\n"
        ));
    }
    out
}

struct Drawing<'d> {
    log: &'d SessionLog,
    labels: &'d Labels<'d>,
    active: &'d [bool],
    leaf: Option<EntryIx>,
    outline: &'d Outline,
    ids: IdWidths,
    fold: Fold,
    width: usize,
}

/// A line of entries that is still to be drawn.
struct Open {
    from: EntryIx,
    /// What stands before its first row, and before the others.
    first: String,
    rest: String,
}

impl Drawing<'_> {
    fn tree(&self, out: &mut String, root: EntryIx) {
        let mut open = vec![Open {
            from: root,
            first: String::new(),
            rest: String::new(),
        }];
        while let Some(line) = open.pop() {
            self.line(out, line, &mut open);
        }
    }

    /// Draws a line up to its next branch; puts the branches, and what follows them, on the stack.
    fn line(&self, out: &mut String, line: Open, open: &mut Vec<Open>) {
        let mut run = Vec::new();
        let mut at = Some(line.from);
        let mut fork = None;
        while let Some(ix) = at {
            run.push(Row::of(self.log, self.labels, ix, self.leaf));
            at = self.outline.onward(ix);
            if self.outline.beside(ix).next().is_some() {
                fork = Some(ix);
                break;
            }
        }
        let mut prefix = line.first;
        for part in self.parts(&run) {
            match part {
                Part::Row(row) => print(
                    out,
                    row,
                    &prefix,
                    self.marker(row.ix),
                    &self.ids,
                    self.log,
                    self.width,
                ),
                Part::Folded(rows) => folded(out, rows, &prefix, self.width),
            }
            prefix.clone_from(&line.rest);
        }
        let Some(fork) = fork else { return };
        if let Some(onward) = at {
            open.push(Open {
                from: onward,
                first: prefix.clone(),
                rest: line.rest.clone(),
            });
        }
        for child in self.outline.beside(fork).rev() {
            open.push(Open {
                from: child,
                first: format!("{prefix}├─"),
                rest: format!("{}│ ", line.rest),
            });
        }
    }

    fn parts<'r, 'l>(&self, run: &'r [Row<'l>]) -> Vec<Part<'r, 'l>> {
        if self.fold == Fold::Nothing {
            return run.iter().map(Part::Row).collect();
        }
        let mut parts = Vec::new();
        let mut rest = run;
        let last = run.len().saturating_sub(1);
        let stands_out = |at: usize, row: &Row<'_>| at == 0 || at == last || row.stands_out;
        let mut at = 0;
        while !rest.is_empty() {
            let plain = rest
                .iter()
                .enumerate()
                .take_while(|(i, row)| !stands_out(at + i, row))
                .count();
            let (stretch, others) = rest.split_at(plain);
            Self::stretch(stretch, &mut parts);
            rest = others;
            at += plain;
            if let Some((row, others)) = rest.split_first() {
                parts.push(Part::Row(row));
                rest = others;
                at += 1;
            }
        }
        parts
    }

    /// The parts of a stretch in which nothing stands out.
    fn stretch<'r, 'l>(rows: &'r [Row<'l>], parts: &mut Vec<Part<'r, 'l>>) {
        if rows.len() < SHORT_RUN {
            parts.extend(rows.iter().map(Part::Row));
            return;
        }
        let typed: Vec<usize> = (0..)
            .zip(rows)
            .filter(|(_, row)| row.is_typed)
            .map(|(i, _)| i)
            .collect();
        let shown: Vec<usize> = if typed.len() > FIRST_TYPED + LAST_TYPED {
            let (first, last) = (
                typed.iter().take(FIRST_TYPED),
                typed.iter().rev().take(LAST_TYPED).rev(),
            );
            first.chain(last).copied().collect()
        } else {
            typed
        };
        let mut from = 0;
        for at in shown.into_iter().map(Some).chain([None]) {
            let to = at.unwrap_or(rows.len());
            match rows.get(from..to).unwrap_or_default() {
                [] => {}
                [row] => parts.push(Part::Row(row)),
                hidden => parts.push(Part::Folded(hidden)),
            }
            parts.extend(at.and_then(|at| rows.get(at)).map(Part::Row));
            from = to + 1;
        }
    }

    fn marker(&self, ix: EntryIx) -> super::row::Marker {
        if self.active.get(ix.index()).copied().unwrap_or_default() {
            super::row::Marker::Active
        } else {
            super::row::Marker::Left
        }
    }
}

enum Part<'r, 'l> {
    Row(&'r Row<'l>),
    Folded(&'r [Row<'l>]),
}

/// How many characters of each id tell it from all others, and at least eight.
pub(super) struct IdWidths(Vec<u16>);

impl IdWidths {
    fn of(log: &SessionLog) -> Self {
        let mut sorted: Vec<(&str, EntryIx)> = log.entries().map(|ix| (log.id(ix), ix)).collect();
        sorted.sort_unstable();
        let shared = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
        let mut widths = vec![8; log.len()];
        for pair in sorted.windows(2) {
            let [(a, first), (b, second)] = pair else { continue };
            let needed = u16::try_from(shared(a, b) + 1).unwrap_or(u16::MAX);
            for ix in [first, second] {
                if let Some(width) = widths.get_mut(ix.index()) {
                    *width = needed.max(*width);
                }
            }
        }
        Self(widths)
    }

    /// The start of an id that means this entry alone.
    pub(super) fn shown<'l>(&self, log: &'l SessionLog, ix: EntryIx) -> &'l str {
        let id = log.id(ix);
        let width = usize::from(self.0.get(ix.index()).copied().unwrap_or(u16::MAX));
        id.char_indices()
            .nth(width)
            .and_then(|(at, _)| id.get(..at))
            .unwrap_or(id)
    }
}
