//! Nothing vanishes: every visible entry was in some request, or is in the tail (DESIGN, rule 6).

use std::collections::BTreeSet;

use super::*;
use crate::testing::prose;

/// A small generator of its own: the sessions are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn grow(mut rows: Rows, dice: &mut Dice, count: usize, from: usize) -> Rows {
    let mut open: Option<String> = None;
    for at in from..from + count {
        let id = format!("e{at}");
        let text = prose(1 + usize::try_from(dice.roll(60)).unwrap());
        rows = match (dice.roll(12), open.take()) {
            (0..=6, Some(call)) => rows.result(&id, &call, "bash", &text),
            (0..=2, _) => rows.user(&id, &text),
            (3..=5, _) => {
                open = Some(format!("k{at}"));
                rows.call(&id, &format!("k{at}"), "bash", "{\"command\":\"x\"}")
            }
            (6, _) => rows.entry(
                &id,
                "custom_message",
                &format!(
                    "\"customType\":\"n\",\"display\":true,\"content\":{}",
                    crate::testing::json(&text)
                ),
            ),
            (7, _) => rows.entry(
                &id,
                "branch_summary",
                &format!("\"fromId\":\"x\",\"summary\":{}", crate::testing::json(&text)),
            ),
            (8, _) => rows.message(
                &id,
                &format!(
                    "{{\"role\":\"developer\",\"content\":{}}}",
                    crate::testing::json(&text)
                ),
            ),
            (9, _) => rows.label(&id),
            _ => rows.assistant(&id, &text),
        };
    }
    rows
}

/// Entries whose text was in a request or is in the context at the end, and all that were ever visible.
struct Tally {
    visible: BTreeSet<String>,
    asked: BTreeSet<String>,
}

/// Three compactions in a row; gives how many visible entries are nowhere.
fn lost(setup: &Setup, dice: &mut Dice) -> (usize, usize) {
    let mut rows = Rows::new();
    let mut tally = Tally {
        visible: BTreeSet::new(),
        asked: BTreeSet::new(),
    };
    let mut at = 0;
    for round in 0..3 {
        let count = 5 + usize::try_from(dice.roll(20)).unwrap();
        rows = grow(rows, dice, count, at);
        at += count;
        let log = rows.log();
        let context = context(&log);
        see(&mut tally.visible, &log, &context);
        let Ok(preparation) = setup.prepare(&context) else {
            continue;
        };
        let limits = setup.limits();
        let job = SummaryJob::new(
            &preparation,
            setup.job_options(limits.as_ref(), &context),
            &Heuristic,
        )
        .unwrap();
        assert!(job.dropped().is_empty());
        for request in job.requests() {
            tally
                .asked
                .extend(request.entries.iter().map(ToString::to_string));
        }
        let replies: Vec<LlmReply> = job.requests().iter().map(|_| reply(NOTES)).collect();
        let Ok(compaction) = job.finish(&replies, &Heuristic) else {
            continue;
        };
        rows = appended(rows, &format!("C{round}"), &compaction);
    }
    let log = rows.log();
    let context = context(&log);
    let mut kept = BTreeSet::new();
    see(&mut kept, &log, &context);
    let lost = tally
        .visible
        .iter()
        .filter(|id| !tally.asked.contains(*id) && !kept.contains(*id))
        .count();
    (lost, tally.visible.len())
}

fn see(into: &mut BTreeSet<String>, log: &SessionLog, context: &Context<'_>) {
    let boundary = context.compaction;
    let items = context
        .items
        .iter()
        .filter(|item| item.message.is_visible() && Some(item.source) != boundary);
    into.extend(items.map(|item| log.id(item.source).to_owned()));
}

fn lost_in_all(rule: Window) -> (usize, usize) {
    let mut all = (0, 0);
    for seed in 0..1_000 {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ (seed * 0x1234_5677 + 1));
        let mut setup = Setup::new(200_000, 50 + dice.roll(300));
        setup.rule = rule;
        setup.settings.max_summary_tokens = Some(Tokens(300));
        setup.settings.keep_user_tokens = Tokens(40);
        let (lost, visible) = lost(&setup, &mut dice);
        all = (all.0 + lost, all.1 + visible);
    }
    all
}

#[test]
fn three_compactions_in_a_row_lose_nothing() {
    let (lost, visible) = lost_in_all(Window::FromFirstKept);
    assert_eq!(lost, 0, "of {visible}");
    assert!(visible > 30_000);
}

/// The README of this crate states these numbers.
#[test]
fn the_other_window_loses_what_the_earlier_compaction_kept() {
    let (lost, visible) = lost_in_all(Window::AfterCompaction);
    let readme = include_str!("../../../README.md");
    let stated = format!("{lost} of {visible}");
    assert!(
        lost > 0 && readme.contains(&stated),
        "README should say: {stated}"
    );
}
