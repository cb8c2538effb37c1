//! `cargo xtask conformance DIR`: runs files of recorded vectors against Foldline's public functions.
//!
//! The runner maps JSON to those functions and their results back to JSON. It holds no behaviour: what a case
//! needs and no function gives is counted as unsupported. A result that differs from the recorded one is a
//! failure unless `known.toml` names the decision behind it and pins what Foldline returns instead.

mod branch;
mod canonical;
mod compaction;
mod compare;
mod context;
mod known;
mod llm;
mod load;
mod overflow;
mod planning;
mod pruning;
mod regions;
mod report;
mod session;
#[cfg(test)]
mod tests;
mod thresholds;
mod tokens;
mod transcripts;
mod tree;
mod vector;
mod verbatim;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::workspace;
use compare::Difference;
use known::{Known, Verdict};
use report::{FileReport, Finding, Report};
use session::Sessions;
use vector::{Case, VectorFile};

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder with the vector files and their sessions.
    dir: PathBuf,
    /// Print the first differences of this vector file in full (for example `pi.load`).
    #[arg(long, value_name = "NAME")]
    show: Option<String>,
    /// Print the differences of this vector file in the form of known.toml.
    #[arg(long, value_name = "NAME")]
    pins: Option<String>,
    /// The differences that are decisions [default: conformance/known.toml of xtask].
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
}

/// What a case gives: the result as JSON, or why there is none.
type Outcome = Result<Value, NoResult>;

/// Why a case gives no result.
#[derive(Debug)]
enum NoResult {
    /// Foldline has no function for it yet.
    Unsupported(&'static str),
    /// The runner does not understand the case.
    Unreadable(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for NoResult {
    fn from(error: E) -> Self {
        Self::Unreadable(error.into())
    }
}

/// How the cases of one vector file are run.
type Runner = fn(&Sessions, &Case) -> Outcome;

/// The runner of a vector file, named `system.function`.
fn runner(name: &str) -> Option<Runner> {
    Some(match name {
        "atomic.build_session_context" => context::atomic,
        "atomic.context_overflow" => overflow::atomic,
        "atomic.context_tokens" => tokens::of_usage,
        "atomic.estimate_tokens" | "ohmypi.estimate_tokens" => tokens::per_message,
        "atomic.keep_context" => verbatim::keep_context,
        "atomic.parameters" => planning::parameters,
        "atomic.planner_outcome" => planning::planner_outcome,
        "atomic.planner_parse" => verbatim::planner_parse,
        "atomic.prepare_boundary" => regions::prepare_boundary,
        "atomic.ranges_inline" => verbatim::ranges_inline,
        "atomic.ranges_repeated" => regions::ranges_repeated,
        "atomic.ranges_session" => regions::ranges_session,
        "atomic.region_trimming" => planning::region_trimming,
        "atomic.repair_tool_results" => llm::repair_tool_results,
        "atomic.prepare_branch_entries" => branch::atomic,
        "gajae.collect_entries_for_branch_summary" => branch::collect,
        "gajae.prepare_branch_entries" => branch::gajae,
        "pi.collect_entries_for_branch_summary" => branch::collect,
        "pi.prepare_branch_entries" => branch::pi,
        "atomic.runner" => planning::runner,
        "atomic.serialize" => regions::serialize,
        "gajae.build_session_context" => context::gajae,
        "gajae.context_overflow" | "ohmypi.context_overflow" | "pi.context_overflow" => overflow::is_overflow,
        "gajae.convert_to_llm" => llm::convert,
        "gajae.estimate_text_tokens" => tokens::texts,
        "gajae.estimate_tokens" => tokens::gajae,
        "gajae.file_lists" | "pi.file_lists" | "atomic.file_lists" => transcripts::file_lists,
        "gajae.find_cut_point" => compaction::gajae_cut_point,
        "gajae.load" => load::gajae,
        "gajae.prepare_compaction" => compaction::gajae_prepare,
        "gajae.prune_tool_arguments" => pruning::gajae_arguments,
        "gajae.prune_tool_outputs" => pruning::gajae_outputs,
        "gajae.serialize_conversation" => transcripts::gajae_serialize,
        "gajae.thresholds" => thresholds::gajae,
        "ohmypi.prune_tool_outputs" => pruning::ohmypi_outputs,
        "pi.build_session_context" => context::pi,
        "pi.estimate_tokens" => tokens::pi,
        "pi.find_cut_point" => compaction::pi_cut_point,
        "pi.load" => load::pi,
        "pi.prepare_compaction" => compaction::pi_prepare,
        "pi.serialize_conversation" => transcripts::pi_serialize,
        "pi.session_tree" => tree::whole,
        "pi.thresholds" => thresholds::pi,
        _ => return None,
    })
}

/// Runs all files, prints the report, and fails when a difference is not explained.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let default = workspace::root().join("xtask/conformance/known.toml");
    let known = Known::read(args.known.as_ref().unwrap_or(&default))?;
    let report = check(&args.dir, known)?;
    print!("{}", report.summary());
    if let Some(name) = &args.show {
        print!("{}", report.details(name)?);
    }
    if let Some(name) = &args.pins {
        print!("{}", report.pins(name)?);
    }
    if !report.is_clean() {
        bail!("{}", report.complaint());
    }
    Ok(())
}

/// Runs all vector files of a folder.
fn check(dir: &Path, mut known: Known) -> anyhow::Result<Report> {
    let sessions = Sessions::new(dir);
    let mut files = Vec::new();
    for path in vector_files(dir)? {
        let file = VectorFile::read(&path)?;
        files.push(check_file(&sessions, &file, &mut known));
    }
    if files.is_empty() {
        bail!("{}: no vector file", dir.display());
    }
    Ok(Report {
        files,
        stale: known.stale(),
    })
}

/// The files that are named `system.function.json`, in alphabetical order.
fn vector_files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".json") && name.split('.').count() == 3 {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn check_file(sessions: &Sessions, file: &VectorFile, known: &mut Known) -> FileReport {
    let mut report = FileReport::new(&file.name);
    let runner = runner(&file.name);
    for case in &file.cases {
        let outcome = match runner {
            Some(runner) => guarded(runner, sessions, case),
            None => Err(NoResult::Unsupported("no runner for this function")),
        };
        match outcome {
            Err(NoResult::Unsupported(reason)) => report.unsupported(reason),
            Err(NoResult::Unreadable(error)) => report.differs(Finding {
                case: case.name.clone(),
                note: Some(format!("{error:#}")),
                differences: Vec::new(),
            }),
            Ok(returned) => {
                let differences = compare::differences(&case.expected, &returned);
                match known.judge(&file.name, &case.name, &returned, differences) {
                    Verdict::Equal => report.passed += 1,
                    Verdict::Known => report.known += 1,
                    Verdict::Differs { differences, note } => report.differs(Finding {
                        case: case.name.clone(),
                        note,
                        differences,
                    }),
                }
            }
        }
    }
    report
}

/// A panic is a difference like any other: it must not hide the rest.
fn guarded(runner: Runner, sessions: &Sessions, case: &Case) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| runner(sessions, case))).unwrap_or_else(|_| Ok(json!({ "panic": true })))
}

/// A result in which Foldline refuses the input.
fn refused(error: &impl std::fmt::Display) -> Value {
    json!({ "error": error.to_string() })
}

/// A field of a case that must be there.
fn field<'v>(value: &'v Value, name: &str) -> anyhow::Result<&'v Value> {
    value
        .get(name)
        .with_context(|| format!("the case has no {name:?}"))
}

/// A text field of a case that must be there.
fn text_field<'v>(value: &'v Value, name: &str) -> anyhow::Result<&'v str> {
    field(value, name)?
        .as_str()
        .with_context(|| format!("{name:?} is no text"))
}
