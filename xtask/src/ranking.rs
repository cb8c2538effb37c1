//! Compares the extractive ranking and its packing with the reference, line for line.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use foldline_compaction_core::extractive::{Packed, Ranking, Target, balanced};
use foldline_compaction_core::verbatim::{Author, Region, RegionBuilder, SectionKind, reconstruct};
use serde::Deserialize;

use crate::workspace;

/// Arguments of `ranking`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with the reference modules.
    eval_dir: PathBuf,
    /// Folder with the sessions which the reference names.
    sessions_dir: PathBuf,
    /// Program that runs the reference.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

/// One cut as the reference sees it.
#[derive(Deserialize)]
struct ReferenceCut {
    session: String,
    epoch: usize,
    #[serde(rename = "cut")]
    at: usize,
    /// Text, kind letter and message of each line.
    rows: Vec<(String, String, usize)>,
    synthetic: Vec<bool>,
    tail: String,
    ranking: Vec<usize>,
    /// Kept lines by share of the tokens in percent.
    kept: BTreeMap<usize, Vec<usize>>,
}

/// How often each ranking is timed; the fastest run counts.
const TIMED_RUNS: usize = 5;

#[derive(Default)]
struct Tally {
    cuts: usize,
    lines: usize,
    bytes: usize,
    differences: usize,
    time: Duration,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.cuts += other.cuts;
        self.lines += other.lines;
        self.bytes += other.bytes;
        self.differences += other.differences;
        self.time += other.time;
    }

    fn print(&self, name: &str) {
        let megabytes = self.bytes as f64 / 1e6;
        println!(
            "{name}: {} cuts, {} lines, {megabytes:.2} MB, {} differences, ranking {:.1} ms/MB",
            self.cuts,
            self.lines,
            self.differences,
            self.time.as_secs_f64() * 1e3 / megabytes.max(f64::MIN_POSITIVE),
        );
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = workspace::root().join("xtask/ranking/reference.py");
    let mut reference = Command::new(&args.python)
        .arg(&program)
        .args([absolute(&args.eval_dir)?, absolute(&args.sessions_dir)?])
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", args.python.display()))?;
    let output = reference.stdout.take().context("the reference has no output")?;
    let mut total = Tally::default();
    let mut session = (String::new(), Tally::default());
    for line in BufReader::new(output).lines() {
        let cut: ReferenceCut = serde_json::from_str(&line?).context("the reference wrote something else")?;
        if session.0 != cut.session {
            if session.1.cuts > 0 {
                session.1.print(&session.0);
            }
            session = (cut.session.clone(), Tally::default());
        }
        let tally = compare(&cut)?;
        session.1.add(&tally);
        total.add(&tally);
    }
    session.1.print(&session.0);
    total.print("total");
    let status = reference.wait()?;
    ensure!(status.success(), "the reference ended with {status}");
    ensure!(total.cuts > 0, "the reference found no cut");
    if total.differences > 0 {
        bail!("{} differences from the reference", total.differences);
    }
    Ok(())
}

fn absolute(folder: &Path) -> anyhow::Result<PathBuf> {
    Ok(fs_err::canonicalize(folder)?)
}

/// Ranks and packs one cut; each line that the reference places otherwise is a difference.
fn compare(cut: &ReferenceCut) -> anyhow::Result<Tally> {
    let region = region(cut)?;
    let expected: Vec<&str> = cut.rows.iter().map(|r| r.0.as_str()).collect();
    ensure!(
        region.text() == expected.join("\n"),
        "the region's text is not the reference's"
    );

    let mut tally = Tally {
        cuts: 1,
        lines: region.line_count(),
        bytes: region.text().len(),
        ..Tally::default()
    };
    let (ranking, time) = timed_ranking(&region, &cut.tail);
    tally.time = time;
    let found: Vec<usize> = ranking.positions().collect();
    tally.differences += differences(&found, &cut.ranking);

    for (&percent, kept) in &cut.kept {
        let target = Target::percent_of(&region, percent);
        let mut packed = Packed::new(&region);
        packed.pack(ranking.positions(), target);
        let found: Vec<usize> = (0..region.line_count())
            .filter(|&line| packed.contains(line))
            .collect();
        tally.differences += differences(&found, kept);
        let text = reconstruct(&region, &packed.deleted(&region)).into_text();
        // What is really written has the size that the packing counted.
        tally.differences += usize::from(text.chars().count() as u64 != packed.chars());
    }
    if tally.differences > 0 {
        println!(
            "{} epoch {} cut {}: {} differences",
            cut.session, cut.epoch, cut.at, tally.differences
        );
    }
    Ok(tally)
}

fn differences(found: &[usize], expected: &[usize]) -> usize {
    let shared = found.iter().zip(expected).filter(|(a, b)| a != b).count();
    shared + found.len().abs_diff(expected.len())
}

fn timed_ranking(region: &Region<'_>, tail: &str) -> (Ranking, Duration) {
    let mut ranking = balanced(region, tail);
    let mut fastest = Duration::MAX;
    for _ in 0..TIMED_RUNS {
        let start = Instant::now();
        ranking = balanced(region, tail);
        fastest = fastest.min(start.elapsed());
    }
    (ranking, fastest)
}

/// Builds the region from the reference's lines, section by section.
fn region(cut: &ReferenceCut) -> anyhow::Result<Region<'static>> {
    let mut builder = RegionBuilder::new();
    let mut begun = 0;
    let mut rows = cut.rows.as_slice();
    while let Some(((_, kind, message), _)) = rows.split_first() {
        if kind.is_empty() {
            rows = &rows[1..]; // the builder writes the blank line itself
            continue;
        }
        let same = rows
            .iter()
            .take_while(|r| r.1 == *kind && r.2 == *message)
            .count();
        let (section, rest) = rows.split_at(same);
        rows = rest;
        begin_messages(&mut builder, cut, &mut begun, message + 1);
        let kind = match kind.as_str() {
            "U" => SectionKind::User,
            "T" => SectionKind::AssistantThinking,
            "A" => SectionKind::Assistant,
            "C" => SectionKind::ToolCalls,
            "R" => SectionKind::ToolResult,
            other => bail!("the reference has a line of kind {other:?}"),
        };
        let text = section
            .iter()
            .map(|r| r.0.as_str())
            .collect::<Vec<_>>()
            .join("\n");
        let content = text
            .strip_prefix(kind.header())
            .context("a section begins without its header")?;
        builder.section(kind, |out| out.push_str(content));
    }
    begin_messages(&mut builder, cut, &mut begun, cut.synthetic.len());
    Ok(builder.finish()?)
}

fn begin_messages(builder: &mut RegionBuilder, cut: &ReferenceCut, begun: &mut usize, upto: usize) {
    for synthetic in cut.synthetic.iter().take(upto).skip(*begun) {
        builder.begin_message(
            None,
            if *synthetic {
                Author::Synthetic
            } else {
                Author::Session
            },
        );
    }
    *begun = upto.max(*begun);
}
