//! The goals of session-model, as ratios between operations of one run. Milliseconds of a shared machine say little;
//! what holds is how an operation compares with a plain one over the same bytes in the same minute.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tail::{Need, TailReader};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;

use super::median;
use crate::workspace;

/// Arguments of the measurement.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Megabytes of the session that is made for it.
    #[arg(long, default_value_t = 100)]
    megabytes: usize,
    /// How often each operation runs; the median counts.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

/// Measures, prints a table, and fails if a ratio is not what the project promises.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "unoptimised numbers say nothing: cargo run --release -p xtask -- bench session-model"
    );
    let (megabytes, rounds) = (args.megabytes, args.rounds);
    let source = fs_err::read(workspace::root().join("fixtures/sessions/realistic.jsonl"))?;
    let file = long_session(&source, megabytes * 1_000_000)?;
    let log = SessionLog::load(&*file, Trust::Validated)?;
    let text = all_text(&log);
    println!(
        "{:.1} MB, {} entries, {:.1} MB of text, {rounds} rounds",
        file.len() as f64 / 1e6,
        log.len(),
        text.len() as f64 / 1e6
    );
    let lines = || file.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let mut operations = [
        Operation::new("newlines", || memchr::memchr_iter(b'\n', &file).count() as u64),
        Operation::new("newline positions", || {
            memchr::memchr_iter(b'\n', &file).fold(0, |sum, at| sum ^ at as u64)
        }),
        Operation::timed("head index and id map", || {
            let bytes = file.clone();
            let start = Instant::now();
            let log = SessionLog::load(bytes, Trust::Claimed);
            let time = start.elapsed();
            (log.map_or(0, |log| log.len() as u64), time)
        }),
        Operation::timed("load, validated", || {
            let bytes = file.clone();
            let start = Instant::now();
            let log = SessionLog::load(bytes, Trust::Validated);
            let time = start.elapsed();
            (log.map_or(0, |log| log.len() as u64), time)
        }),
        Operation::new("serde_json::Value of each line", || {
            lines()
                .filter(|line| serde_json::from_slice::<serde_json::Value>(line).is_ok())
                .count() as u64
        }),
        Operation::new("decode of each entry", || {
            log.entries()
                .filter(|ix| black_box(log.entry(*ix)).is_ok())
                .count() as u64
        }),
        Operation::new("serde derive of each line", || {
            lines()
                .filter(|line| black_box(serde_json::from_slice::<Derived>(line)).is_ok())
                .count() as u64
        }),
        Operation::new("resume from the end, with its context", || {
            let Some(log) = resume(&file) else { return 0 };
            log.context(&Leaf::Last, Profile::Auto)
                .map_or(0, |context| context.items.len() as u64)
        }),
        Operation::new("path", || {
            log.leaf().map_or(0, |leaf| log.path(leaf).len() as u64)
        }),
        Operation::new("estimate", || Heuristic.one(&text).get()),
        Operation::new("estimate, chars() loop", || by_characters(&text)),
    ];
    measure(&mut operations, rounds);
    let [newlines, .., estimate, by_characters] = &operations;
    ensure!(estimate.check == by_characters.check, "the estimates differ");
    for operation in &operations {
        println!(
            "{:40} {:10.3} ms {:8.2} x newlines   {}",
            operation.name,
            operation.median() * 1e3,
            operation.median() / newlines.median(),
            operation.check
        );
    }
    let [_, _, index, _, value, decode, derive, ..] = &operations;
    let promises = [
        Promise {
            what: "head index and id map / newlines",
            ratio: index.median() / newlines.median(),
            bound: Bound::AtMost(2.0),
        },
        Promise {
            what: "Value of each line / head index and id map",
            ratio: value.median() / index.median(),
            bound: Bound::AtLeast(15.0),
        },
        Promise {
            what: "decode / serde derive",
            ratio: decode.median() / derive.median(),
            bound: Bound::AtMost(1.0),
        },
        Promise {
            what: "chars() loop / estimate",
            ratio: by_characters.median() / estimate.median(),
            bound: Bound::AtLeast(4.0),
        },
    ];
    for promise in &promises {
        println!("{}", promise.line());
    }
    ensure!(promises.iter().all(Promise::holds), "a promise is not kept");
    Ok(())
}

/// One operation and how long it took in each round.
struct Operation<'o> {
    name: &'static str,
    run: Box<dyn FnMut() -> (u64, Duration) + 'o>,
    times: Vec<Duration>,
    check: u64,
}

impl<'o> Operation<'o> {
    /// An operation that measures itself; the number is what it found, so that nothing is optimised away.
    fn timed(name: &'static str, run: impl FnMut() -> (u64, Duration) + 'o) -> Self {
        Self {
            name,
            run: Box::new(run),
            times: Vec::new(),
            check: 0,
        }
    }

    fn new(name: &'static str, mut run: impl FnMut() -> u64 + 'o) -> Self {
        Self::timed(name, move || {
            let start = Instant::now();
            let found = run();
            (found, start.elapsed())
        })
    }

    fn median(&self) -> f64 {
        median(self.times.clone()).as_secs_f64()
    }
}

/// Runs all operations in turn, round after round, so that a slow minute slows all of them.
fn measure(operations: &mut [Operation<'_>], rounds: usize) {
    for _ in 0..rounds.max(1) {
        for operation in &mut *operations {
            let (found, time) = (operation.run)();
            operation.check = found;
            operation.times.push(time);
        }
    }
}

/// What must hold between two operations.
struct Promise {
    what: &'static str,
    ratio: f64,
    bound: Bound,
}

enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Promise {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.ratio <= limit,
            Bound::AtLeast(limit) => self.ratio >= limit,
        }
    }

    fn line(&self) -> String {
        let (word, limit) = match self.bound {
            Bound::AtMost(limit) => ("at most", limit),
            Bound::AtLeast(limit) => ("at least", limit),
        };
        let verdict = if self.holds() { "ok" } else { "MISSED" };
        format!(
            "{verdict:>6}  {:6.2}  ({word} {limit})  {}",
            self.ratio, self.what
        )
    }
}

/// The fixture again and again, as one session: ids are new in each copy, and each copy goes on from the one before.
pub(super) fn long_session(source: &[u8], size: usize) -> anyhow::Result<Vec<u8>> {
    let text = std::str::from_utf8(source)?;
    let (header, body) = text.split_once('\n').context("the fixture has a header")?;
    let mut out = Vec::with_capacity(size + source.len());
    out.extend_from_slice(header.as_bytes());
    out.push(b'\n');
    let mut copy = 0;
    let mut last = String::from("null");
    while out.len() < size {
        for line in body.lines() {
            let (kind, id, rest) = line
                .strip_prefix("{\"type\":\"")
                .and_then(|rest| {
                    let (kind, rest) = rest.split_once("\",\"id\":\"")?;
                    let (id, rest) = rest.split_once("\",\"parentId\":")?;
                    let (_, rest) = rest.split_once(",\"timestamp\"")?;
                    Some((kind, id, rest))
                })
                .context("the fixture has the usual layout")?;
            let id = format!("\"{id}{copy:02x}\"");
            out.extend_from_slice(
                format!("{{\"type\":\"{kind}\",\"id\":{id},\"parentId\":{last},\"timestamp\"{rest}\n")
                    .as_bytes(),
            );
            last = id;
        }
        copy += 1;
    }
    Ok(out)
}

fn all_text(log: &SessionLog) -> String {
    let mut text = String::new();
    for message in log.entries().filter_map(|ix| log.message(ix)) {
        if let Some(content) = message.content() {
            for part in content.texts() {
                text.push_str(part);
            }
        }
    }
    text
}

fn by_characters(text: &str) -> u64 {
    let (mut dense, mut other) = (0_u64, 0_u64);
    for c in text.chars() {
        let dense_here = matches!(c,
            '\u{1100}'..='\u{11FF}' | '\u{3000}'..='\u{30FF}' | '\u{3130}'..='\u{318F}' | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}'
            | '\u{10000}'..);
        if dense_here {
            dense += 1;
        } else {
            other += 1;
        }
    }
    dense + other.div_ceil(4)
}

fn resume(file: &[u8]) -> Option<SessionLog> {
    let mut reader = TailReader::new(file.len() as u64, Profile::Auto);
    while let Need::Bytes(range) = reader.need() {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        reader.feed(file.get(range)?);
    }
    reader.finish().ok()
}

/// The fields of the entries and messages that sessions hold most of, as anyone would derive them.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "decoded to be compared, not read")]
struct Derived {
    r#type: String,
    id: Option<String>,
    parent_id: Option<String>,
    timestamp: Option<String>,
    message: Option<DerivedMessage>,
    summary: Option<String>,
    first_kept_entry_id: Option<String>,
    tokens_before: Option<f64>,
    details: Option<Box<serde_json::value::RawValue>>,
    custom_type: Option<String>,
    data: Option<Box<serde_json::value::RawValue>>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "decoded to be compared, not read")]
struct DerivedMessage {
    role: String,
    content: Option<DerivedContent>,
    provider: Option<String>,
    model: Option<String>,
    api: Option<String>,
    stop_reason: Option<String>,
    usage: Option<DerivedUsage>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    is_error: Option<bool>,
    timestamp: Option<f64>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "decoded to be compared, not read")]
struct DerivedUsage {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    total_tokens: Option<f64>,
}

/// Only blocks: text as content would need an untagged enum, which is slower.
#[derive(serde::Deserialize)]
#[serde(transparent)]
#[allow(dead_code, reason = "decoded to be compared, not read")]
struct DerivedContent(Vec<DerivedBlock>);

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "decoded to be compared, not read")]
struct DerivedBlock {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    thinking_signature: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Box<serde_json::value::RawValue>>,
}
