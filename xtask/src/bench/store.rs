//! How long the store takes for large sessions. Times are ratios of runs that alternate, because machines are noisy.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use foldline_session_model::fold::Profile;
use foldline_session_store::{Agent, AgentFolder, Count, DiskStore, Project, ResumeExtent, SessionStore};

use super::median;

/// Entries from one compaction to the next, and of the context that stays.
const PER_COMPACTION: u64 = 1000;
const KEPT: u64 = 60;
/// Entries after the last compaction: the same in every file.
const AFTER: u64 = 400;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Megabytes of the large session.
    #[arg(long, default_value_t = 1000)]
    large: u64,
    /// Sessions to list, of 40 MB each.
    #[arg(long, default_value_t = 50)]
    sessions: u64,
    /// Runs of each measurement.
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// The binary whose `context` is measured as a whole process.
    #[arg(long)]
    foldline: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let small = folder.path().join("small.jsonl");
    let large = folder.path().join("large.jsonl");
    write_session(&small, 2 << 20)?;
    write_session(&large, args.large * 1_000_000)?;

    let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        for (path, times) in [(&small, &mut of_small), (&large, &mut of_large)] {
            let start = Instant::now();
            let resumed = DiskStore::new().reader(path)?.resume(Profile::Auto)?;
            times.push(start.elapsed());
            ensure!(
                resumed.extent == ResumeExtent::Tail,
                "{} was read whole: {:?}",
                path.display(),
                resumed.extent
            );
        }
    }
    let read = DiskStore::new().reader(&large)?.resume(Profile::Auto)?.bytes_read;
    report(
        "resume, in process",
        median(of_small).as_secs_f64(),
        median(of_large).as_secs_f64(),
    );
    println!("  bytes read of the large session: {read}");

    match &args.foldline {
        None => println!("context, whole process: skipped 1 (no --foldline)"),
        Some(binary) => {
            let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
            for _ in 0..args.runs {
                of_small.push(context(binary, &small)?);
                of_large.push(context(binary, &large)?);
            }
            report(
                "context, whole process",
                median(of_small).as_secs_f64(),
                median(of_large).as_secs_f64(),
            );
            match peak_memory(binary, &large) {
                Some(kib) => println!("  peak memory with the large session: {kib} KiB"),
                None => println!("  peak memory: skipped 1 (there is no /usr/bin/time)"),
            }
        }
    }
    fs_err::remove_file(&large)?;
    listing(folder.path(), args)
}

fn report(what: &str, small: f64, large: f64) {
    let (small, large) = (small * 1e3, large * 1e3);
    println!(
        "{what}: {small:.2} ms small, {large:.2} ms large, ratio {:.2}",
        large / small.max(f64::MIN_POSITIVE)
    );
}

fn context(binary: &Path, session: &Path) -> anyhow::Result<std::time::Duration> {
    let start = Instant::now();
    let status = Command::new(binary)
        .args(["context", "--json"])
        .arg(session)
        .stdout(Stdio::null())
        .status()
        .with_context(|| binary.display().to_string())?;
    ensure!(status.success(), "context failed: {status}");
    Ok(start.elapsed())
}

fn peak_memory(binary: &Path, session: &Path) -> Option<u64> {
    let output = Command::new("/usr/bin/time")
        .args(["-f", "%M"])
        .arg(binary)
        .args(["context", "--json"])
        .arg(session)
        .stdout(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8(output.stderr)
        .ok()?
        .lines()
        .last()?
        .trim()
        .parse()
        .ok()
}

fn listing(folder: &Path, args: &Args) -> anyhow::Result<()> {
    let project = folder.join("sessions").join("--w--");
    fs_err::create_dir_all(&project)?;
    let first = project.join("0.jsonl");
    write_session(&first, 40_000_000)?;
    for number in 1..args.sessions {
        fs_err::copy(&first, project.join(format!("{number}.jsonl")))?;
    }
    let folders = [AgentFolder {
        agent: Agent::Foldline,
        folder: folder.join("sessions"),
    }];
    let mut times = Vec::new();
    let mut share = 0.0;
    for _ in 0..args.runs {
        let start = Instant::now();
        let listing = DiskStore::new().list(&folders, Project::Any, Count::Nothing)?;
        times.push(start.elapsed());
        let total: u64 = listing.sessions.iter().map(|session| session.len).sum();
        ensure!(
            listing.sessions.len() as u64 == args.sessions,
            "{} sessions listed",
            listing.sessions.len()
        );
        share = listing.bytes_read as f64 / total as f64;
    }
    let time = median(times).as_secs_f64() * 1e3;
    println!(
        "list {} sessions of 40 MB: {time:.2} ms, {:.3} % of their bytes",
        args.sessions,
        share * 100.0
    );
    if share >= 0.01 {
        bail!("a listing reads more than 1 % of the bytes");
    }
    Ok(())
}

/// A session of about this many bytes, compacted again and again, whose newest context is always the same size.
fn write_session(path: &Path, len: u64) -> anyhow::Result<()> {
    let mut file = std::io::BufWriter::with_capacity(1 << 20, fs_err::File::create(path)?);
    writeln!(
        file,
        r#"{{"type":"session","version":3,"id":"bench","timestamp":"2026-08-01T00:00:00.000Z","cwd":"/w"}}"#
    )?;
    let text = "what a tool printed, or what somebody said about it; ".repeat(30);
    let mut written = 0;
    let mut number = 0_u64;
    let mut last_compaction = 0;
    loop {
        let parent = number
            .checked_sub(1)
            .map_or_else(|| "null".to_owned(), |parent| format!("\"{parent:08x}\""));
        let head =
            format!(r#""id":"{number:08x}","parentId":{parent},"timestamp":"2026-08-01T00:00:01.000Z""#);
        let compacts = number > 0 && number.is_multiple_of(PER_COMPACTION);
        let line = if compacts {
            last_compaction = number;
            let kept = number - KEPT;
            format!(
                r#"{{"type":"compaction",{head},"summary":"What happened before.","firstKeptEntryId":"{kept:08x}","tokensBefore":100000}}"#
            )
        } else {
            format!(
                r#"{{"type":"message",{head},"message":{{"role":"user","content":"{text}","timestamp":1}}}}"#
            )
        };
        writeln!(file, "{line}")?;
        written += line.len() as u64 + 1;
        number += 1;
        // Each file ends as far after its compaction as every other.
        if written >= len && last_compaction > 0 && number - last_compaction == AFTER + 1 {
            break;
        }
    }
    file.into_inner()
        .map_err(std::io::IntoInnerError::into_error)?
        .sync_all()?;
    Ok(())
}
