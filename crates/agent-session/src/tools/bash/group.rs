//! A command and its process group: however the call ends, nothing of it stays unless the command itself ended well.

use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::time::Instant;

/// How long a group may take to end when it is told to.
pub(super) const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(15);

/// The first process of a group. Killed with its group when dropped before it ended.
pub(super) struct Leader {
    child: Child,
    group: Option<Pid>,
}

impl Leader {
    pub(super) fn new(child: Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            child,
            group: id.and_then(Pid::from_raw),
        }
    }

    /// Waits until it ends. What it left in the background is left alone.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.group = None;
        status
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // A group that is gone needs no signal.
            let _sent = kill_process_group(group, signal);
        }
    }

    /// Whether it has ended. It stays a zombie until it is waited for, so that its number names no other group.
    fn has_ended(&self) -> bool {
        let Some(group) = self.group else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(group), options), Ok(None))
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A running command with the end of its pipe.
pub(super) struct Running {
    /// Away once it is being ended.
    parts: Option<(Leader, Receiver)>,
}

impl Running {
    pub(super) fn new(leader: Leader, receiver: Receiver) -> Self {
        Self {
            parts: Some((leader, receiver)),
        }
    }

    pub(super) fn parts(&mut self) -> Option<(&mut Leader, &mut Receiver)> {
        self.parts.as_mut().map(|(leader, receiver)| (leader, receiver))
    }

    /// Ends the group in the background; gives the task that does.
    pub(super) fn end(&mut self) -> Option<tokio::task::JoinHandle<Vec<u8>>> {
        let (leader, receiver) = self.parts.take()?;
        // Without a runtime dropping the leader kills at once.
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        Some(runtime.spawn(end(leader, receiver)))
    }

    /// The command has ended by itself.
    pub(super) fn forget(&mut self) {
        self.parts = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ending = self.end();
    }
}

/// Asks the group to end, kills it if it does not, and gives what it still printed. If this is dropped, the leader is,
/// and that kills.
async fn end(mut leader: Leader, mut receiver: Receiver) -> Vec<u8> {
    leader.signal(Signal::TERM);
    // One that is stopped would not hear it.
    leader.signal(Signal::CONT);
    let deadline = Instant::now() + GRACE;
    let (mut last, mut buffer) = (Vec::new(), vec![0; 8 * 1024]);
    let mut is_open = true;
    while Instant::now() < deadline && (is_open || !leader.has_ended()) {
        tokio::select! {
            read = receiver.read(&mut buffer), if is_open => match read {
                Ok(0) | Err(_) => is_open = false,
                Ok(bytes) if last.len() < LAST => last.extend_from_slice(&buffer[..bytes]),
                Ok(_) => {}
            },
            () = tokio::time::sleep(TICK) => {}
        }
    }
    leader.signal(Signal::KILL);
    let _status = leader.wait().await;
    last
}

/// How much is kept of what a command prints while it ends.
const LAST: usize = 64 * 1024;
