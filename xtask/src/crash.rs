//! `cargo xtask crash`: loses power, kills writers, fills disks and lets writers compete, then counts what is
//! missing. Each kind prints the seed that repeats it.

mod competing;
mod full;
mod injected;
mod killed;
mod session;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;

/// Crash session files in every way, and check that nothing acknowledged is lost.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Lives of a session in memory, each with faults at random steps.
    #[arg(long, default_value_t = 1000)]
    rounds: u64,
    /// Writing processes to kill at random moments.
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// Seconds for which two processes write to one session.
    #[arg(long, default_value_t = 10)]
    compete: u64,
    /// Repeats a run.
    #[arg(long)]
    seed: Option<u64>,
    /// The part of a process that this task starts itself.
    #[arg(long, hide = true, requires = "session")]
    child: Option<Child>,
    /// The session that such a process writes.
    #[arg(long, hide = true)]
    session: Option<PathBuf>,
    /// The first number that it writes.
    #[arg(long, hide = true, default_value_t = 0)]
    from: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Child {
    /// Appends until it is killed.
    Append,
    /// Keeps the session and appends for a while, or says that it is busy.
    Hold,
    /// Opens the session for each append.
    Commit,
}

impl Child {
    const fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Hold => "hold",
            Self::Commit => "commit",
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let (Some(child), Some(session)) = (args.child, &args.session) {
        let time = Duration::from_secs(args.compete);
        return match child {
            Child::Append => killed::append_until_killed(session, args.from),
            Child::Hold => competing::hold(session, args.from, time),
            Child::Commit => competing::commit(session, args.from, time),
        };
    }
    let seed = args.seed.unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| u64::from(now.subsec_nanos()))
    });
    println!("seed {seed}");
    let mut failures = 0;
    let kinds: [(&str, &dyn Fn() -> anyhow::Result<Outcome>); 4] = [
        ("injected", &|| injected::run(seed, args.rounds)),
        ("killed", &|| killed::run(seed, args.kills)),
        ("competing", &|| competing::run(args.compete)),
        ("disk full", &full::run),
    ];
    for (name, kind) in kinds {
        match kind() {
            Ok(Outcome::Passed(what)) => println!("{name}: passed, {what}"),
            Ok(Outcome::Skipped(why)) => println!("{name}: skipped 1 ({why})"),
            Err(error) => {
                failures += 1;
                println!("{name}: FAILED with seed {seed}: {error:#}");
            }
        }
    }
    if failures > 0 {
        bail!("{failures} kinds of crash lost something");
    }
    Ok(())
}

/// What became of one kind.
enum Outcome {
    Passed(String),
    Skipped(String),
}

/// `SplitMix64`: the same numbers for a seed on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
