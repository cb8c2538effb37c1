//! Tasks of the workspace: `cargo xtask help` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task reports to the terminal"
)]

mod bench;
mod browser;
mod codegen;
mod conformance;
mod crash;
mod e2e;
mod fixtures;
mod import_check;
mod loss;
mod ranking;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};

/// Tasks of the Foldline workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

/// One variant and one module per task, in alphabetical order.
#[derive(Subcommand)]
enum Task {
    /// Measure what is too large for a unit bench.
    Bench(bench::Args),
    /// Look at reports in a real browser: errors, requests, screens, contrast, hostile text.
    Browser(browser::Args),
    /// Write the files of `docs/` that follow from the code, or check that they are fresh.
    Codegen(codegen::Args),
    /// Run files of recorded vectors and explain every difference.
    Conformance(conformance::Args),
    /// Lose power, kill writers, fill disks; check that nothing acknowledged is lost.
    Crash(crash::Args),
    /// Chat in a terminal by a script; talk to a real llama.cpp server through all three APIs.
    E2e(e2e::Args),
    /// Write the generated sessions of `fixtures/`, or check that they are fresh.
    Fixtures(fixtures::Args),
    /// Import the sessions of other agents in a folder; check that every row is accounted for.
    ImportCheck(import_check::Args),
    /// Summarise sessions three times in a row and count the entries that are lost.
    Loss(loss::Args),
    /// Compare the extractive ranking with the reference, on its sessions, and time it.
    Ranking(ranking::Args),
    /// Check the rules of the workspace that no compiler knows.
    Tidy,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Bench(args) => bench::run(&args),
        Task::Browser(args) => browser::run(&args),
        Task::Codegen(args) => codegen::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::Crash(args) => crash::run(&args),
        Task::E2e(args) => e2e::run(&args),
        Task::Fixtures(args) => fixtures::run(&args),
        Task::ImportCheck(args) => import_check::run(&args),
        Task::Loss(args) => loss::run(&args),
        Task::Ranking(args) => ranking::run(&args),
        Task::Tidy => tidy::run(),
    }
}
