//! Running the program of a hook: bounded in what it may write, and gone when nobody waits for it any more.

use std::ffi::OsString;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use foldline_compaction_core::redact::redact;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::HookError;

/// The most that a program may answer.
pub(super) const MAX_OUTPUT: usize = 1 << 20;
/// As much of its complaints is kept; the rest is read and forgotten.
const MAX_STDERR: usize = 4096;
/// How long the output of a program that has ended is waited for: something that it started may still hold it.
const GRACE: Duration = Duration::from_millis(200);

/// What a program finds in its environment: what finding other programs, files and languages takes, and no keys.
const VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SystemRoot",
    "TEMP",
];

/// The environment of a program.
pub(super) fn minimal_environment() -> Vec<(OsString, OsString)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "programs need to find others, and their user's files"
    )]
    let set = |name: &&str| std::env::var_os(name).map(|value| (OsString::from(name), value));
    VARIABLES.iter().filter_map(set).collect()
}

/// A program to run.
pub(super) struct Program<'p> {
    pub(super) command: &'p str,
    pub(super) args: &'p [String],
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) cwd: &'p Path,
}

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    /// Without secrets and control characters, cut.
    pub(super) stderr: String,
}

impl Finished {
    /// A program that failed is a hook that failed.
    pub(super) fn succeeded(&self) -> Result<(), HookError> {
        if self.status.success() {
            return Ok(());
        }
        Err(HookError::Exit {
            status: self.status,
            stderr: self.stderr.clone(),
        })
    }
}

impl Program<'_> {
    /// Runs it to its end. Dropped before that, the program and all that it started are killed.
    pub(super) async fn run(self, input: Vec<u8>) -> Result<Finished, HookError> {
        let mut command = Command::new(self.command);
        command
            .args(self.args)
            .env_clear()
            .envs(self.environment)
            .current_dir(self.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|source| HookError::Spawn {
            command: self.command.to_owned(),
            source,
        })?;
        let group = Group::of(&child);
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let (status, pipes) = {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // A program may end without reading what it is told.
                    stdin.write_all(&input).await.ok();
                }
                Ok(())
            };
            let mut pipes = pin!(async {
                tokio::try_join!(feed, read_all(out, &mut stdout), read_beginning(err, &mut stderr))
                    .map(|_| ())
            });
            let mut exit = pin!(child.wait());
            tokio::select! {
                read = &mut pipes => {
                    read?;
                    (exit.await?, Pipes::Closed)
                }
                status = &mut exit => {
                    let status = status?;
                    match tokio::time::timeout(GRACE, pipes).await {
                        Ok(read) => {
                            read?;
                            (status, Pipes::Closed)
                        }
                        Err(_) => (status, Pipes::Held),
                    }
                }
            }
        };
        match pipes {
            Pipes::Closed => group.let_go(),
            // What still holds them would write to nobody.
            Pipes::Held => drop(group),
        }
        Ok(Finished {
            status,
            stdout,
            stderr: readable(&stderr),
        })
    }
}

/// Whether anything can still write after a program has ended.
enum Pipes {
    Closed,
    Held,
}

async fn read_all(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), HookError> {
    let Some(pipe) = pipe else {
        return Ok(());
    };
    pipe.take(MAX_OUTPUT as u64 + 1).read_to_end(into).await?;
    if into.len() > MAX_OUTPUT {
        return Err(HookError::OutputTooLong { limit: MAX_OUTPUT });
    }
    Ok(())
}

async fn read_beginning(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), HookError> {
    let Some(mut pipe) = pipe else {
        return Ok(());
    };
    let mut buffer = [0; 4096];
    loop {
        let read = pipe.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        let room = MAX_STDERR.saturating_sub(into.len()).min(read);
        into.extend_from_slice(buffer.get(..room).unwrap_or_default());
    }
}

/// What people and models may see of it.
fn readable(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = redact(text.trim());
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect()
}

/// The program and what it started. Dropped, they are killed.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: id.and_then(rustix::process::Pid::from_raw),
        }
    }

    #[cfg(not(unix))]
    fn of(_child: &Child) -> Self {
        Self {}
    }

    /// Whatever is still in the group may go on.
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no groups"))]
    fn let_go(mut self) {
        #[cfg(unix)]
        {
            self.leader = None;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            // It may have ended meanwhile.
            rustix::process::kill_process_group(leader, rustix::process::Signal::KILL).ok();
        }
    }
}
