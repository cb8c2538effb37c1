//! Two processes that want to write one session.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use foldline_session_store::{DiskStore, Durability, OpenError, SessionStore};

use super::session::{self, End, HEADER, entry, id};
use super::{Child, Outcome};

/// Where the numbers of the second process begin.
const SECOND: u64 = 0x4000_0000;

pub(super) fn run(seconds: u64) -> anyhow::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let mut told = Vec::new();
    for kind in [Child::Hold, Child::Commit] {
        let session = folder.path().join(format!("{}.jsonl", kind.name()));
        DiskStore::new().create(&session, &mut std::iter::once(HEADER.as_bytes()))?;
        let start = |from: u64| {
            Command::new(std::env::current_exe()?)
                .args(["crash", "--child", kind.name(), "--session"])
                .arg(&session)
                .args(["--from", &from.to_string(), "--compete", &seconds.to_string()])
                .stdout(Stdio::piped())
                .spawn()
        };
        let children = [start(0)?, start(SECOND)?];
        let mut acknowledged = Vec::new();
        let (mut busy, mut writers) = (0, 0);
        for child in children {
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "a writer failed");
            let before = acknowledged.len();
            for line in String::from_utf8(output.stdout)?.lines() {
                match line.strip_prefix("busy ") {
                    Some(times) => busy += times.parse::<u64>()?,
                    None => acknowledged.push(id(line.parse()?)),
                }
            }
            writers += usize::from(acknowledged.len() > before);
        }
        let mut found = session::ids(&DiskStore::new().read(&session)?, End::Whole)?;
        found.sort();
        acknowledged.sort();
        ensure!(
            found == acknowledged,
            "{} entries acknowledged, {} found",
            acknowledged.len(),
            found.len()
        );
        match kind {
            Child::Hold => ensure!((writers, busy) == (1, 1), "{writers} writers, {busy} told busy"),
            _ => ensure!(busy > 0, "nobody was told busy"),
        }
        told.push(format!(
            "{}: {} entries, {busy} times session_busy",
            kind.name(),
            found.len()
        ));
    }
    Ok(Outcome::Passed(format!(
        "{}; 0 lost, 0 interleaved",
        told.join("; ")
    )))
}

/// Keeps the session for a while, as an agent does.
pub(super) fn hold(session: &Path, from: u64, time: Duration) -> anyhow::Result<()> {
    // Both are there before either is done.
    std::thread::sleep(Duration::from_millis(50));
    let mut writer = match DiskStore::new().open(session, &session::options()) {
        Ok(writer) => writer,
        Err(OpenError::SessionBusy {
            owner: Some(owner), ..
        }) => {
            ensure!(owner.pid != std::process::id(), "busy with itself");
            return say(format_args!("busy 1"));
        }
        Err(error) => return Err(error).context("neither opened nor busy"),
    };
    let start = Instant::now();
    for number in from.. {
        if start.elapsed() > time {
            break;
        }
        writer.append(&entry(number), Durability::Commit)?;
        say(format_args!("{number}"))?;
    }
    Ok(())
}

/// Opens the session for each entry, as commands do, and tries again when it is busy.
pub(super) fn commit(session: &Path, from: u64, time: Duration) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut busy = 0_u64;
    let mut number = from;
    while start.elapsed() < time {
        match DiskStore::new().open(session, &session::options()) {
            Ok(mut writer) => {
                writer.append(&entry(number), Durability::Commit)?;
                say(format_args!("{number}"))?;
                number += 1;
            }
            Err(OpenError::SessionBusy { .. }) => {
                busy += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            Err(error) => bail!(error),
        }
    }
    say(format_args!("busy {busy}"))
}

fn say(what: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}")?;
    out.flush()?;
    Ok(())
}
