//! Who writes a session: the record that a lock file holds, and whether its process still runs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process that writes a session.
///
/// The start of the process is part of the record because process ids are used again: a new process
/// with the id of a crashed owner is not that owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// When the process started, in the system's own measure; only compared for equality.
    pub start: Option<String>,
    /// Name of the machine.
    pub host: String,
}

/// What is known about the process of an owner record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It provably does not run any more.
    Dead,
    /// It belongs to another machine.
    Unknown,
}

impl Owner {
    /// The record of this process.
    pub fn this_process() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start: process_start(pid),
            host: host_name(),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// Asks the system about the process of a record.
pub(crate) fn liveness(owner: &Owner) -> Liveness {
    if owner.host != host_name() {
        return Liveness::Unknown;
    }
    let Some(pid) = i32::try_from(owner.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    else {
        return Liveness::Dead;
    };
    match rustix::process::test_kill_process(pid) {
        Err(rustix::io::Errno::SRCH) => Liveness::Dead,
        // Any other answer, a refusal included, means that the id is taken. By the same process?
        _ => match (&owner.start, process_start(owner.pid)) {
            (Some(recorded), Some(found)) if *recorded != found => Liveness::Dead,
            _ => Liveness::Alive,
        },
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Boot and start tick of a process; `None` where the system does not tell.
fn process_start(pid: u32) -> Option<String> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_ascii_whitespace().nth(19)?;
    let boot = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{}/{ticks}", boot.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive() {
        assert_eq!(liveness(&Owner::this_process()), Liveness::Alive);
    }

    #[test]
    fn an_id_that_was_used_again_is_not_the_owner() {
        let mut owner = Owner::this_process();
        owner.start = Some("another boot/1".into());
        assert_eq!(liveness(&owner), Liveness::Dead);
    }

    #[test]
    fn a_process_that_ended_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let owner = Owner {
            pid: child.id(),
            ..Owner::this_process()
        };
        child.wait().unwrap();
        assert_eq!(liveness(&owner), Liveness::Dead);
    }

    #[test]
    fn another_machine_is_unknown() {
        let owner = Owner {
            host: "elsewhere.invalid".into(),
            ..Owner::this_process()
        };
        assert_eq!(liveness(&owner), Liveness::Unknown);
    }
}
