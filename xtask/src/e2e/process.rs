//! Programs that must not run for ever.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How a program ended.
pub(crate) enum Outcome {
    /// By itself.
    Ended(ExitStatus),
    /// It was ended after its time.
    TimedOut,
}

/// Runs a program and ends it when its time is up.
pub(crate) fn bounded(command: &mut Command, limit: Duration) -> anyhow::Result<Outcome> {
    wait(&mut command.stdin(Stdio::null()).spawn()?, limit)
}

/// The same, with what the program printed on standard output. It goes through a file, so that a program that prints
/// much is never stopped by a full pipe.
pub(super) fn bounded_output(command: &mut Command, limit: Duration) -> anyhow::Result<(Outcome, Vec<u8>)> {
    let mut output = tempfile::tempfile()?;
    command.stdout(output.try_clone()?);
    let outcome = bounded(command, limit)?;
    let mut bytes = Vec::new();
    output.seek(SeekFrom::Start(0))?;
    output.read_to_end(&mut bytes)?;
    Ok((outcome, bytes))
}

fn wait(process: &mut Child, limit: Duration) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(Outcome::Ended(status));
        }
        if started.elapsed() > limit {
            process.kill()?;
            process.wait()?;
            return Ok(Outcome::TimedOut);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
