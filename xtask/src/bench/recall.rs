//! The goal of `recall`: a search through everything that was said, as a ratio to a scan of the log for newlines.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::ensure;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::search::{Query, Ranking, Totals, text_of};
use foldline_session_model::tree::Leaf;

use super::session_model::long_session;
use crate::workspace;

/// Arguments of the measurement.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Megabytes of the session that is made for it.
    #[arg(long, default_value_t = 100)]
    megabytes: usize,
    /// How often each operation runs; the fastest run counts.
    #[arg(long, default_value_t = 25)]
    rounds: usize,
}

/// A rare word, an identifier, a path, words that are in many entries, and a word that is nowhere.
const QUERIES: &[&str] = &[
    "HRN1730",
    "weigh_tenant_lane",
    "crates/heron-core/src/lease.rs",
    "lease expired",
    "the whole file before I commit",
    "zzyzx",
];
/// Newline scans that one search may cost.
const LIMIT: f64 = 6.0;

/// Measures, prints a table, and fails if a search costs more than it may.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "unoptimised numbers say nothing: cargo run --release -p xtask -- bench recall"
    );
    let source = fs_err::read(workspace::root().join("fixtures/sessions/realistic.jsonl"))?;
    let file = long_session(&source, args.megabytes * 1_000_000)?;
    let log = SessionLog::load(&*file, Trust::Claimed)?;
    println!(
        "{:.1} MB, {} entries, {} rounds",
        file.len() as f64 / 1e6,
        log.len(),
        args.rounds
    );
    let mut newlines = Fastest::new();
    let mut index = Fastest::new();
    let mut searches: Vec<(Fastest, Fastest, usize, usize)> = QUERIES
        .iter()
        .map(|_| (Fastest::new(), Fastest::new(), 0, 0))
        .collect();
    for _ in 0..args.rounds.max(1) {
        newlines.time(|| black_box(memchr::memchr_iter(b'\n', &file).fold(0, |sum, at| sum ^ at)));
        let bytes = file.clone();
        index.time(|| black_box(SessionLog::load(bytes, Trust::Claimed).map_or(0, |log| log.len())));
        for (text, (scan, all, hits, decoded)) in QUERIES.iter().zip(&mut searches) {
            let query = Query::new(text);
            scan.time(|| black_box(query.scan(&log)));
            (*hits, *decoded) = all.time(|| search(&query, &log));
        }
    }
    let unit = newlines.seconds();
    println!("{:44} {:8.2} ms", "newline positions", unit * 1e3);
    println!(
        "{:44} {:8.2} ms {:6.2} x",
        "head index",
        index.seconds() * 1e3,
        index.seconds() / unit
    );
    let mut missed = false;
    for (text, (scan, all, hits, decoded)) in QUERIES.iter().zip(&searches) {
        let ratio = all.seconds() / unit;
        missed |= ratio > LIMIT;
        let verdict = if ratio > LIMIT { "MISSED" } else { "ok" };
        println!(
            "{:44} {:8.2} ms {ratio:6.2} x  (at most {LIMIT}: {verdict}; scan {:.2} x, {hits} hits of {decoded} decoded)",
            format!("recall {text:?}"),
            all.seconds() * 1e3,
            scan.seconds() / unit
        );
    }
    ensure!(!missed, "a promise is not kept");
    Ok(())
}

/// Everything that a search in a loaded log does; the hits, and how many entries were decoded for them.
fn search(query: &Query, log: &SessionLog) -> (usize, usize) {
    let scan = query.scan(log);
    let mut totals = Totals::default();
    totals.add(&scan);
    let mut ranking = Ranking::new(query, &totals, 10);
    let mut decoded = 0;
    ranking.look_into(0, &scan, &mut |document| {
        decoded += 1;
        let ix = log.entry_at(document as usize)?;
        Some(text_of(&log.own_message(ix, Profile::Foldline).ok()??))
    });
    if ranking.found().is_empty() {
        return (0, decoded);
    }
    let standings = log.standings(&Leaf::Last, Profile::Auto);
    for found in ranking.found() {
        let ix = log.entry_at(found.document as usize);
        let text = ix.and_then(|ix| log.own_message(ix, Profile::Foldline).ok()?);
        black_box(text.map(|message| ranking.snippet(&text_of(&message))));
        black_box(
            ix.zip(standings.as_ref().ok())
                .map(|(ix, standings)| standings.of(ix)),
        );
    }
    (ranking.found().len(), decoded)
}

/// The fastest of some runs: what the work itself takes, without what else the machine does.
struct Fastest(Duration);

impl Fastest {
    fn new() -> Self {
        Self(Duration::MAX)
    }

    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.0 = self.0.min(start.elapsed());
        result
    }

    fn seconds(&self) -> f64 {
        self.0.as_secs_f64()
    }
}
