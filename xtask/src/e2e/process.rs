//! Programs that must not run for ever.

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How a program ended.
pub(super) enum Outcome {
    /// By itself.
    Ended(ExitStatus),
    /// It was ended after its time.
    TimedOut,
}

/// Runs a program and ends it when its time is up.
pub(super) fn bounded(command: &mut Command, limit: Duration) -> anyhow::Result<Outcome> {
    let mut process = command.stdin(Stdio::null()).spawn()?;
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
