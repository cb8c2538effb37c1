//! Where the coding agents of this machine keep their sessions.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::volume::Volume;

/// An agent whose sessions we can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Agent {
    /// Ours.
    Foldline,
    /// pi.
    Pi,
    /// oh-my-pi.
    OhMyPi,
    /// gajae-code.
    Gajae,
    /// atomic.
    Atomic,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
}

impl Agent {
    /// The name that listings show.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foldline => "foldline",
            Self::Pi => "pi",
            Self::OhMyPi => "oh-my-pi",
            Self::Gajae => "gajae-code",
            Self::Atomic => "atomic",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// How many folders lie between an agent's folder and its sessions: one per project, or year, month and day.
    const fn depth(self) -> usize {
        match self {
            Self::Codex => 3,
            _ => 1,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A folder in which an agent keeps its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFolder {
    /// Whose.
    pub agent: Agent,
    /// Where.
    pub folder: PathBuf,
}

/// The folders of the other agents, by the environment variables that they honour themselves, else under the
/// user's home. They need not exist.
#[allow(
    clippy::disallowed_methods,
    reason = "the variables of other agents name their folders"
)]
pub(crate) fn from_environment(home: &Path) -> Vec<AgentFolder> {
    folders(home, &|name| {
        std::env::var_os(name).filter(|value| !value.is_empty())
    })
}

fn folders(home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<AgentFolder> {
    let known: [(Agent, &str, &str, &str); 6] = [
        (Agent::Pi, "PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),
        (Agent::OhMyPi, "OMP_CODING_AGENT_DIR", ".omp/agent", "sessions"),
        (Agent::Gajae, "GJC_CODING_AGENT_DIR", ".gjc/agent", "sessions"),
        (
            Agent::Atomic,
            "ATOMIC_CODING_AGENT_DIR",
            ".atomic/agent",
            "sessions",
        ),
        (Agent::ClaudeCode, "CLAUDE_CONFIG_DIR", ".claude", "projects"),
        (Agent::Codex, "CODEX_HOME", ".codex", "sessions"),
    ];
    known
        .into_iter()
        .map(|(agent, name, default, sessions)| {
            let base = variable(name).map_or_else(|| home.join(default), PathBuf::from);
            AgentFolder {
                agent,
                folder: base.join(sessions),
            }
        })
        .collect()
}

/// The session files of an agent, sorted by path. A folder that does not exist holds none. Links are not
/// followed, hidden names are skipped, and so are sessions of subagents, which lie deeper.
pub(crate) fn session_files(volume: &dyn Volume, place: &AgentFolder) -> io::Result<Vec<PathBuf>> {
    let mut level = vec![place.folder.clone()];
    let mut files = Vec::new();
    for depth in 0..=place.agent.depth() {
        let mut deeper = Vec::new();
        for folder in level {
            let items = match volume.list(&folder) {
                Ok(items) => items,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // One folder that may not be read does not hide the others.
                Err(error) if depth > 0 && error.kind() == io::ErrorKind::PermissionDenied => continue,
                Err(error) => return Err(error),
            };
            for item in items {
                let path = folder.join(item.name());
                if item.name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                if item.is_folder {
                    deeper.push(path);
                } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                    files.push(path);
                }
            }
        }
        level = deeper;
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_win_over_home() {
        let found = folders(Path::new("/home/me"), &|name| {
            (name == "CODEX_HOME").then(|| "/else".into())
        });
        let of = |agent| &found.iter().find(|place| place.agent == agent).unwrap().folder;
        assert_eq!(of(Agent::Pi), Path::new("/home/me/.pi/agent/sessions"));
        assert_eq!(of(Agent::ClaudeCode), Path::new("/home/me/.claude/projects"));
        assert_eq!(of(Agent::Codex), Path::new("/else/sessions"));
    }
}
