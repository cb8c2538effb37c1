//! What verbatim compaction costs, in terms of a newline scan of the same text in the same run, and whether a session
//! that is compacted again and again stays as fast as it was.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use foldline_compaction_core::verbatim::{
    Author, Demand, ParameterLayer, Parameters, RangePlan, RawRange, RegionBuilder, Rung, SectionKind,
    SmallRegion, ValidatedRanges, extractive, finish, parse_records, prepare, print_records, reconstruct,
};
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, Envelope};

use super::median;

/// At most so many newline scans for splitting, deleting and writing markers, and with the answer parsed and normalised.
const DELETE_LIMIT: f64 = 2.5;
const WHOLE_LIMIT: f64 = 4.0;
/// How much more a line may cost in the largest text than in the smallest, in newline scans.
const LINEAR_LIMIT: f64 = 1.5;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Numbers of lines.
    #[arg(long, value_delimiter = ',', default_value = "24000,200000,1000000")]
    lines: Vec<usize>,
    /// Runs of each measurement.
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// Compactions in a row.
    #[arg(long, default_value_t = 200)]
    rounds: usize,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let mut shares: Vec<(f64, f64)> = Vec::new();
    for &lines in &args.lines {
        shares.push(kernels(lines, args.runs)?);
    }
    rounds(args.rounds)?;
    if cfg!(debug_assertions) {
        println!("limits: skipped 1 (not an optimised build)");
        return Ok(());
    }
    for (lines, (delete, whole)) in args.lines.iter().zip(&shares) {
        if *delete > DELETE_LIMIT || *whole > WHOLE_LIMIT {
            bail!("{lines} lines cost more than {DELETE_LIMIT} and {WHOLE_LIMIT} newline scans");
        }
    }
    if let (Some(first), Some(last)) = (shares.first(), shares.last())
        && last.1 > first.1 * LINEAR_LIMIT
    {
        bail!("the cost grows faster than the text");
    }
    Ok(())
}

/// Prints and returns the cost of deleting, and of that with the answer parsed and normalised, in newline scans.
fn kernels(lines: usize, runs: usize) -> anyhow::Result<(f64, f64)> {
    let builder = builder(lines);
    let region = builder.clone().finish()?;
    let text = region.text().to_owned();
    let records: Vec<RawRange> = (0..region.line_count() as u64 / 12)
        .map(|k| RawRange {
            start: 12 * k + 1,
            end: 12 * k + 9,
        })
        .collect();
    let answer = print_records(&records);
    let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());

    let (mut scans, mut deletes, mut wholes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let start = Instant::now();
        black_box(memchr_lines(black_box(&text)));
        scans.push(start.elapsed());

        let copy = builder.clone();
        let start = Instant::now();
        let region = copy.finish()?;
        let result = reconstruct(&region, &ranges).into_text();
        deletes.push(start.elapsed());
        black_box(result);

        let copy = builder.clone();
        let start = Instant::now();
        let region = copy.finish()?;
        let records = parse_records(black_box(&answer))?;
        let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
        let result = reconstruct(&region, &ranges).into_text();
        wholes.push(start.elapsed());
        black_box(result);
    }
    // Whatever else the machine does makes a run slower, never faster: the fastest one says what the work costs.
    let fastest = |times: Vec<Duration>| times.into_iter().min().unwrap_or_default().as_secs_f64();
    let scan = fastest(scans).max(f64::MIN_POSITIVE);
    let share = |times: Vec<Duration>| fastest(times) / scan;
    let (delete, whole) = (share(deletes), share(wholes));
    println!(
        "{} lines, {:.1} MB: newline scan {:.3} ms; split, delete, write markers {delete:.2} scans; \
         with the answer parsed and normalised {whole:.2} scans",
        region.line_count(),
        text.len() as f64 / 1e6,
        scan * 1e3
    );
    Ok((delete, whole))
}

/// The positions of the newlines, as the fastest reader of lines finds them.
fn memchr_lines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).fold(0, |sum, at| sum ^ at)
}

/// Compacts a growing session again and again without a model, and prints the time of early and of late rounds.
fn rounds(rounds: usize) -> anyhow::Result<()> {
    let header = r#"{"type":"session","version":3,"id":"bench","timestamp":"t","cwd":"/w"}"#;
    let mut log = SessionLog::load(format!("{header}\n"), Trust::Validated)?;
    let layer = ParameterLayer::default();
    let mut times = Vec::new();
    let mut sizes = Vec::new();
    let mut numbers = Numbers(7);
    for round in 0..rounds {
        for part in 0..4 {
            let content = serde_json::to_string(&text(60, &mut numbers))?;
            append(&mut log, round * 5 + part, |head| {
                format!(r#"{{"type":"message",{head},"message":{{"role":"user","content":{content}}}}}"#)
            })?;
        }
        let start = Instant::now();
        let draft = {
            let context = log.context(&Leaf::Last, Profile::Auto)?;
            let parameters = Parameters::merge(std::slice::from_ref(&layer), None).0;
            let preparation = prepare(&context, parameters, SmallRegion::Refuse, &Heuristic)?;
            let chosen = extractive(&preparation);
            let plan = RangePlan {
                dropped: chosen.dropped,
                ..RangePlan::new(chosen.ranges, Rung::Extractive)
            };
            finish(
                &preparation,
                &plan,
                Demand::Any,
                preparation.tokens_before(),
                &Heuristic,
            )?
            .draft
        };
        times.push(start.elapsed());
        sizes.push(draft.summary.len());
        let envelope = Envelope {
            id: format!("{:08x}", round * 5 + 4).as_str().into(),
            parent: log.leaf().map(|leaf| log.entry_id(leaf)),
            timestamp: "t".to_owned(),
        };
        log.append(&EntryDraft::compaction(&draft).line(&envelope))?;
    }
    ensure!(rounds >= 8, "too few rounds to compare");
    let part = |range: std::ops::Range<usize>| times.get(range).unwrap_or_default().to_vec();
    let quarter = rounds / 4;
    let (early, late) = (
        median(part(quarter..2 * quarter)),
        median(part(rounds - quarter..rounds)),
    );
    println!(
        "{rounds} compactions in a row: {:.2} ms each in the second quarter, {:.2} ms in the last, ratio {:.2}; \
         text {} bytes at the end, at most {}",
        early.as_secs_f64() * 1e3,
        late.as_secs_f64() * 1e3,
        late.as_secs_f64() / early.as_secs_f64().max(f64::MIN_POSITIVE),
        sizes.last().copied().unwrap_or_default(),
        sizes.iter().max().copied().unwrap_or_default(),
    );
    Ok(())
}

fn append(log: &mut SessionLog, number: usize, line: impl FnOnce(&str) -> String) -> anyhow::Result<()> {
    let parent = log
        .leaf()
        .map_or_else(|| "null".to_owned(), |leaf| format!("\"{}\"", log.id(leaf)));
    let head = format!(r#""id":"{number:08x}","parentId":{parent},"timestamp":"t""#);
    log.append(&line(&head))?;
    Ok(())
}

/// A region of messages with 50 lines each.
fn builder(lines: usize) -> RegionBuilder {
    const KINDS: [SectionKind; 4] = [
        SectionKind::User,
        SectionKind::Assistant,
        SectionKind::ToolCalls,
        SectionKind::ToolResult,
    ];
    let mut numbers = Numbers(1);
    let mut builder = RegionBuilder::new();
    for kind in KINDS.into_iter().cycle().take(lines / 50) {
        builder.begin_message(None, Author::Session);
        builder.section(kind, |out| out.push_str(&text(49, &mut numbers)));
    }
    builder
}

/// Random numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Lines of about 50 bytes.
fn text(lines: usize, numbers: &mut Numbers) -> String {
    let mut text = String::new();
    for line in 0..lines {
        if line > 0 {
            text.push('\n');
        }
        for _ in 0..numbers.below(9) {
            match numbers.below(5) {
                0 => text.push_str(&format!("item_{} ", numbers.below(5_000))),
                1 => text.push_str("src/verbatim/line.rs "),
                2 => text.push_str("return "),
                3 => text.push_str("'not found' "),
                _ => text.push_str("the value "),
            }
        }
    }
    text
}
