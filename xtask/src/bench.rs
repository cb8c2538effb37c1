//! `cargo xtask bench`: measurements that need large generated files or whole processes.

mod cli;
mod pruning;
mod recall;
mod session_model;
mod store;
mod verbatim;

use std::time::Duration;

/// Measure what is too large for a unit bench.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// The start of the command, and a context, as whole processes.
    Cli(cli::Args),
    /// A search through everything that was said, against a newline scan of the same log.
    Recall(recall::Args),
    /// Head index, decode and estimates against plain scans and parsers over 100 MB.
    SessionModel(session_model::Args),
    /// The plan of a prune of 10,000 and 100,000 entries, against a typed decode of the same entries.
    Pruning(pruning::Args),
    /// Resume of a 1 GB session against one of 2 MB, and the listing of 50 sessions of 40 MB.
    Store(store::Args),
    /// Verbatim compaction against a newline scan of the same text, and 200 compactions in a row.
    Verbatim(verbatim::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Cli(args) => cli::run(args),
        What::Recall(args) => recall::run(args),
        What::SessionModel(args) => session_model::run(args),
        What::Pruning(args) => pruning::run(args),
        What::Store(args) => store::run(args),
        What::Verbatim(args) => verbatim::run(args),
    }
}

/// The middle one of some durations.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
