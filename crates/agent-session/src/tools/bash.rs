//! `bash`: a command in the shell. It is not confined; its time and its output are.

mod environment;
mod group;
mod output;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use foldline_session_model::model_call::{ToolOutcome, ToolSpec};
use serde::Serialize;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::Instant;

use crate::tool::{Concurrency, Effect, Tool, ToolOutput, ToolRun};

use super::answer::{Failure, details, output, spec};
use super::arguments::Arguments;
use super::{Limits, ToolName};

use group::{GRACE, Leader, Running};
use output::{Output, text};

pub use environment::{PASSED_ON, SECRET_WORDS};

const DESCRIPTION: &str = "Run a command in bash, in the working folder. Standard input is empty, output and errors come \
    interleaved; of much output the beginning and the end are shown. The command and what it started are killed after the \
    timeout. Variables that hold keys or tokens are not passed on.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"command":{"type":"string","description":"The command"},
"timeout":{"type":"integer","minimum":1,"maximum":3600,"description":"Seconds (120)"}},"required":["command"]}"#;

const MOST_SECONDS: u64 = 3_600;
/// How long output is still read after the command ended, while something in the background holds its pipe open.
const LINGER: Duration = Duration::from_millis(250);
/// How long an answer waits for a cancelled command; the rest of its end goes on behind.
const CANCEL_WAIT: Duration = Duration::from_millis(100);
/// How long it is waited for what a command printed before it is ended, and how often.
const DRAIN: Duration = Duration::from_millis(10);
const DRAINS: usize = 4;
/// How often progress is shown, at most.
const PROGRESS: Duration = Duration::from_millis(100);
/// How much of what came since then is shown.
const PROGRESS_BYTES: usize = 8 * 1024;

pub(super) struct BashTool {
    limits: Arc<Limits>,
    pass_variables: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    timed_out: bool,
    cancelled: bool,
    /// Whether something in the background still held the output open.
    in_background: bool,
    truncated: bool,
    bytes: u64,
    milliseconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<String>,
}

/// How a command came to its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Exit(ExitStatus, Pipe),
    Timeout,
    Cancel,
    /// Its state could not be found out.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    Closed,
    Held,
}

impl BashTool {
    pub(super) fn new(limits: Arc<Limits>, pass_variables: Vec<String>) -> Self {
        Self {
            limits,
            pass_variables,
        }
    }

    async fn answer(&self, run: &ToolRun<'_>) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::of(run.arguments)?;
        let command = arguments.required_text("command")?;
        if command.trim().is_empty() {
            return Err(Failure("`command` must not be empty.".to_owned()));
        }
        if command.contains('\0') {
            return Err(Failure("`command` must not hold a NUL.".to_owned()));
        }
        let seconds = arguments.whole("timeout", &(1..=MOST_SECONDS))?;
        let timeout = seconds.map_or(self.limits.command, Duration::from_secs);
        if run.cancel.is_cancelled() {
            return Err(Failure::cancelled());
        }
        let begun = Instant::now();
        let mut running = self
            .start(&command, run.cwd)
            .map_err(|error| Failure(format!("The command could not be started: {error}")))?;
        let mut output = Output::new(self.limits.text, self.limits.spill.0);
        let end = follow(&mut running, &mut output, run, begun + timeout).await;
        match end {
            End::Exit(..) => running.forget(),
            End::Timeout | End::Cancel | End::Lost => {
                drain(&mut running, &mut output).await;
                let wait = if matches!(end, End::Cancel) {
                    CANCEL_WAIT
                } else {
                    GRACE + CANCEL_WAIT
                };
                if let Some(mut ending) = running.end() {
                    tokio::select! {
                        last = &mut ending => output.push(&last.unwrap_or_default()).await,
                        () = tokio::time::sleep(wait) => {}
                        () = run.cancel.cancelled(), if !matches!(end, End::Cancel) => {}
                    }
                }
            }
        }
        let bytes = output.total();
        let shown = output.told(self.limits.text, run.spill).await;
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut answer = ToolOutput::text(with_note(shown.text, end, timeout));
        if !matches!(end, End::Exit(status, _) if status.success()) {
            answer.outcome = ToolOutcome::Error;
        }
        let status = match end {
            End::Exit(status, _) => Some(status),
            _ => None,
        };
        Ok(answer.with_details(details(&Details {
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            timed_out: matches!(end, End::Timeout),
            cancelled: matches!(end, End::Cancel),
            in_background: matches!(end, End::Exit(_, Pipe::Held)),
            truncated: shown.truncated,
            bytes,
            milliseconds,
            artifact: shown.artifact,
        })))
    }

    fn start(&self, command: &str, cwd: &Path) -> io::Result<Running> {
        let started = self.start_with("bash", command, cwd);
        match started {
            Err(error) if error.kind() == io::ErrorKind::NotFound && cwd.is_dir() => {
                self.start_with("sh", command, cwd)
            }
            started => started,
        }
    }

    fn start_with(&self, shell: &str, command: &str, cwd: &Path) -> io::Result<Running> {
        // One pipe for both, so that lines stand in the order in which they were written.
        let (reader, writer) = io::pipe()?;
        let receiver = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let mut start = Command::new(shell);
        start
            .arg("-c")
            .arg(command)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .envs(environment::SET);
        for name in environment::withheld(std::env::vars_os(), &self.pass_variables) {
            start.env_remove(name);
        }
        let leader = Leader::new(start.spawn()?);
        Ok(Running::new(leader, receiver))
    }
}

#[async_trait]
impl Tool for BashTool {
    fn spec(&self) -> ToolSpec<'static> {
        spec(ToolName::Bash, DESCRIPTION, SCHEMA)
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Exclusive
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        output(self.answer(&call).await)
    }
}

/// Reads output until the command ends and its pipe is closed, or until it may not go on.
async fn follow(running: &mut Running, output: &mut Output, run: &ToolRun<'_>, deadline: Instant) -> End {
    let Some((leader, receiver)) = running.parts() else {
        return End::Lost;
    };
    let mut progress = Progress::new();
    let mut buffer = vec![0; 32 * 1024];
    let mut status = None;
    let mut is_open = true;
    let mut until = deadline;
    loop {
        if let (Some(status), false) = (status, is_open) {
            progress.flush(run);
            return End::Exit(status, Pipe::Closed);
        }
        tokio::select! {
            biased;
            () = run.cancel.cancelled() => {
                return status.map_or(End::Cancel, |status| End::Exit(status, Pipe::Held));
            }
            () = tokio::time::sleep_until(until) => {
                progress.flush(run);
                return status.map_or(End::Timeout, |status| End::Exit(status, Pipe::Held));
            }
            ended = leader.wait(), if status.is_none() => match ended {
                Ok(ended) => {
                    status = Some(ended);
                    until = Instant::now() + LINGER;
                }
                Err(_) => return End::Lost,
            },
            read = receiver.read(&mut buffer), if is_open => match read {
                Ok(0) | Err(_) => is_open = false,
                Ok(bytes) => {
                    output.push(&buffer[..bytes]).await;
                    progress.push(&buffer[..bytes], run);
                }
            },
        }
    }
}

/// Reads what is in the pipe already: what a command printed before its end belongs to the answer.
async fn drain(running: &mut Running, output: &mut Output) {
    let Some((_, receiver)) = running.parts() else {
        return;
    };
    let mut buffer = vec![0; 32 * 1024];
    for _ in 0..DRAINS {
        match tokio::time::timeout(DRAIN, receiver.read(&mut buffer)).await {
            Ok(Ok(bytes)) if bytes > 0 => output.push(&buffer[..bytes]).await,
            _ => return,
        }
    }
}

/// Shows what was printed, not too often.
struct Progress {
    pending: Vec<u8>,
    shown: Instant,
}

impl Progress {
    fn new() -> Self {
        Self {
            pending: Vec::new(),
            shown: Instant::now(),
        }
    }

    fn push(&mut self, bytes: &[u8], run: &ToolRun<'_>) {
        self.pending.extend_from_slice(bytes);
        let excess = self.pending.len().saturating_sub(PROGRESS_BYTES);
        self.pending.drain(..excess);
        if self.shown.elapsed() >= PROGRESS {
            self.flush(run);
        }
    }

    fn flush(&mut self, run: &ToolRun<'_>) {
        if !self.pending.is_empty() {
            (run.progress)(&text(&self.pending));
            self.pending.clear();
        }
        self.shown = Instant::now();
    }
}

fn with_note(mut text: String, end: End, timeout: Duration) -> String {
    let note = match end {
        End::Exit(status, pipe) => {
            let mut notes = Vec::new();
            match (status.code(), status.signal()) {
                (Some(0), _) => {}
                (Some(code), _) => notes.push(format!("exit code {code}")),
                (None, Some(signal)) => notes.push(format!("killed by signal {signal}")),
                (None, None) => notes.push("ended without an exit code".to_owned()),
            }
            if pipe == Pipe::Held {
                notes.push("something still runs in the background".to_owned());
            }
            (!notes.is_empty()).then(|| notes.join("; "))
        }
        End::Timeout => Some(format!(
            "killed: the command ran longer than {} s",
            timeout.as_secs_f64()
        )),
        End::Cancel => Some("cancelled, and killed".to_owned()),
        End::Lost => Some("killed: its state could not be found out".to_owned()),
    };
    match note {
        None if text.is_empty() => "(no output)".to_owned(),
        None => text,
        Some(note) => {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{note}]"));
            text
        }
    }
}
