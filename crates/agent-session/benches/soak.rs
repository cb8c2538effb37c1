//! 2,000 turns of one session, with calls of tools and compactions: neither the time of a turn nor the memory may grow
//! with what lies behind. Prints both halves. `cargo bench -p foldline-agent-session --bench soak -- 2000`
#![allow(clippy::unwrap_used, reason = "a bench that meets an error has failed")]
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Duration;

use foldline_agent_session::event::Event;
use foldline_agent_session::{Prompted, SessionState};
use foldline_session_store::DiskStore;
use tokio::time::Instant;

/// What one turn left.
struct Sample {
    time: Duration,
    resident_kib: u64,
}

#[tokio::main]
async fn main() {
    let turns = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    // As a test it only shows that it runs.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let turns: usize = turns.unwrap_or(if is_bench { 2_000 } else { 20 });

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let session = common::session(Arc::new(DiskStore::new()), &path);
    let mut events = session.subscribe();
    let mut compactions = 0;
    let mut samples = Vec::with_capacity(turns);
    for turn in 0..turns {
        let before = Instant::now();
        let Prompted::Ran(report) = session.prompt(format!("step {turn}")).await.unwrap() else {
            panic!("queued")
        };
        let time = before.elapsed();
        assert_eq!(report.error, None);
        while let Ok(event) = events.try_recv() {
            compactions += usize::from(matches!(&*event, Event::CompactionEnd(end) if end.result.is_some()));
        }
        samples.push(Sample {
            time,
            resident_kib: resident_kib().unwrap_or(0),
        });
    }
    let SessionState { session_file, .. } = session.state();
    let bytes = fs_err::metadata(session_file).unwrap().len();
    let (lines, in_memory) = (
        turns * 4,
        session
            .with_log(foldline_session_model::log::SessionLog::len)
            .await,
    );
    println!(
        "{turns} turns, {compactions} compactions, file of {bytes} bytes; entries in memory: {in_memory} of over {lines}"
    );
    let (first, second) = samples.split_at(turns / 2);
    for (name, half) in [("first half", first), ("second half", second)] {
        let mut times: Vec<Duration> = half.iter().map(|sample| sample.time).collect();
        times.sort();
        let total: Duration = times.iter().sum();
        let most = half.iter().map(|sample| sample.resident_kib).max().unwrap_or(0);
        let mean = half.iter().map(|sample| sample.resident_kib).sum::<u64>() / half.len().max(1) as u64;
        println!(
            "{name}: median {:?}, mean {:?} per turn; resident {mean} KiB on average, {most} KiB at most",
            times.get(times.len() / 2).copied().unwrap_or_default(),
            total / u32::try_from(half.len().max(1)).unwrap(),
        );
    }
}

/// The memory that the process has; `None` where no such file tells.
fn resident_kib() -> Option<u64> {
    let status = fs_err::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
