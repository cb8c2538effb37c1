//! How long the command takes as a whole process: to start, and to show a context. The fastest of many runs counts:
//! what a busy machine adds is not the program's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::workspace;

/// Arguments of the measurement.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The binary [default: built from here, optimised].
    #[arg(long)]
    foldline: Option<PathBuf>,
    /// How often each command runs.
    #[arg(long, default_value_t = 60)]
    runs: usize,
}

/// Milliseconds that `--version` may take above a program that does nothing.
const START: f64 = 4.0;
/// Milliseconds that the context of the 2 MB fixture may take.
const CONTEXT: f64 = 25.0;

/// Measures, prints, and fails if something takes longer than it may.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let foldline = match &args.foldline {
        Some(path) => path.clone(),
        None => built()?,
    };
    let empty = empty_program(folder.path())?;
    let fixture = workspace::root().join("fixtures/sessions/realistic.jsonl");
    let commands: [(&str, &Path, Vec<&str>); 3] = [
        ("a program that does nothing", &empty, Vec::new()),
        ("foldline --version", &foldline, vec!["--version"]),
        (
            "foldline context --json, 2 MB",
            &foldline,
            vec!["context", fixture.to_str().context("the path is text")?, "--json"],
        ),
    ];
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..args.runs.max(1) {
        for ((name, program, arguments), times) in commands.iter().zip(&mut times) {
            let start = Instant::now();
            let status = Command::new(program)
                .args(arguments)
                .stdout(Stdio::null())
                .status()
                .with_context(|| format!("cannot run {}", program.display()))?;
            times.push(start.elapsed());
            ensure!(status.success(), "{name} failed");
        }
    }
    let fastest: Vec<f64> = times
        .iter()
        .map(|times| times.iter().min().map_or(0.0, Duration::as_secs_f64) * 1e3)
        .collect();
    for (((name, ..), times), fastest) in commands.iter().zip(times).zip(&fastest) {
        let median = super::median(times).as_secs_f64() * 1e3;
        println!("{name:32} {fastest:8.2} ms   (median {median:.2} ms)");
    }
    let [empty, version, context] = fastest[..] else {
        return Ok(());
    };
    let mut kept = true;
    for (what, took, limit) in [
        (
            "foldline --version above a program that does nothing",
            version - empty,
            START,
        ),
        ("foldline context --json", context, CONTEXT),
    ] {
        kept &= took <= limit;
        let verdict = if took <= limit { "ok" } else { "MISSED" };
        println!("{verdict:>6}  {took:6.2} ms  (at most {limit} ms)  {what}");
    }
    ensure!(kept, "a promise is not kept");
    Ok(())
}

/// Builds the command the way that people install it.
fn built() -> anyhow::Result<PathBuf> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .current_dir(workspace::root())
        .no_deps()
        .exec()?;
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "foldline-cli"])
        .current_dir(workspace::root())
        .status()?;
    ensure!(status.success(), "the command cannot be built");
    Ok(metadata.target_directory.join("release/foldline").into())
}

fn empty_program(folder: &Path) -> anyhow::Result<PathBuf> {
    let source = folder.join("empty.rs");
    fs_err::write(&source, "fn main() {}\n")?;
    let program = folder.join("empty");
    let status = Command::new("rustc")
        .arg("-O")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status()?;
    ensure!(status.success(), "an empty program cannot be built");
    Ok(program)
}
