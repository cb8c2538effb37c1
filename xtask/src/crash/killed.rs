//! A process that appends and is killed with SIGKILL at random moments.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use foldline_session_store::{DiskStore, Durability, SessionStore};

use super::session::{self, End, HEADER, entry};
use super::{Child, Dice, Outcome};

/// Kills per session: the file stays small enough to check each time.
const PER_SESSION: u64 = 50;

pub(super) fn run(seed: u64, kills: u64) -> anyhow::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let mut dice = Dice(seed);
    let (mut total, mut torn) = (0, 0);
    let mut done = 0;
    while done < kills {
        let session = folder.path().join(format!("{done}.jsonl"));
        DiskStore::new().create(&session, &mut std::iter::once(HEADER.as_bytes()))?;
        let mut acknowledged = Vec::new();
        let mut from = 0;
        for _ in 0..PER_SESSION.min(kills - done) {
            let acked =
                start_and_kill(&session, from, dice.below(12_000)).with_context(|| format!("kill {done}"))?;
            acknowledged.extend(acked.iter().map(|number| session::id(*number)));
            let bytes = DiskStore::new().read(&session)?;
            torn += u64::from(!bytes.ends_with(b"\n"));
            let found = session::ids(&bytes, End::MayBeTorn).with_context(|| format!("kill {done}"))?;
            session::check_acknowledged(&found, &acknowledged).with_context(|| format!("kill {done}"))?;
            // The last entry may be there without an acknowledgement: its number is not used again.
            from = acked.last().map_or(from, |last| last + 1) + 1;
            done += 1;
        }
        total += acknowledged.len();
        // After all that, the session takes an entry and is whole.
        let mut writer = DiskStore::new().open(&session, &session::options())?;
        writer.append(&entry(from + 1), Durability::Commit)?;
        drop(writer);
        session::ids(&DiskStore::new().read(&session)?, End::Whole)?;
    }
    Ok(Outcome::Passed(format!(
        "{kills} kills, {total} entries acknowledged, {torn} tails torn, 0 lost, 0 unreadable"
    )))
}

/// Starts a writer, kills it after some microseconds, and returns the numbers that it acknowledged.
fn start_and_kill(session: &Path, from: u64, micros: u64) -> anyhow::Result<Vec<u64>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["crash", "--child", Child::Append.name(), "--session"])
        .arg(session)
        .args(["--from", &from.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().context("no pipe")?;
    std::thread::sleep(Duration::from_micros(micros));
    child.kill()?;
    let status = child.wait()?;
    ensure!(status.code().is_none(), "the writer ended by itself: {status}");
    let mut acknowledged = Vec::new();
    for line in BufReader::new(output).lines() {
        acknowledged.push(line?.parse()?);
    }
    Ok(acknowledged)
}

/// The writer: each number goes out only after the entry is on the disk. Now and then the file is backed up or
/// rewritten as it is.
pub(super) fn append_until_killed(session: &Path, from: u64) -> anyhow::Result<()> {
    let store = DiskStore::new();
    let mut writer = store.open(session, &session::options())?;
    let mut acknowledge = std::io::stdout().lock();
    for number in from.. {
        if number % 16 == 7 {
            writer.backup("compact", std::time::SystemTime::now())?;
        }
        if number % 16 == 15 {
            let bytes = store.read(session)?;
            let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            writer.rewrite(&mut lines, "rewrite", std::time::SystemTime::now())?;
        }
        writer.append(&entry(number), Durability::Commit)?;
        writeln!(acknowledge, "{number}")?;
        acknowledge.flush()?;
    }
    Ok(())
}
