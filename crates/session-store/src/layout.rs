//! Where things are: the folders of this user, and the names of sessions in them (spec "Session model", 10).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

use crate::agents::{self, Agent, AgentFolder};
use crate::blob;
use crate::time;

/// Bytes of a folder's name for a project: a file system takes 255.
const FOLDER_NAME: usize = 200;

/// The folders of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    data: PathBuf,
    config: PathBuf,
    agents: Vec<AgentFolder>,
}

/// Why a path could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The system does not say where this user's files are.
    #[error("this user has no home folder")]
    NoHome,
    /// An id that could leave its folder, or that other agents do not accept.
    #[error("{0:?} is no session id: letters, digits, and `.`, `_`, `-` between them")]
    InvalidId(String),
}

impl Layout {
    /// The folders by the XDG rules, on every system; other agents' folders where those agents keep them.
    ///
    /// # Errors
    /// There is no home folder.
    pub fn from_environment() -> Result<Self, LayoutError> {
        let base = etcetera::base_strategy::Xdg::new().map_err(|_| LayoutError::NoHome)?;
        let agents = agents::from_environment(base.home_dir());
        Ok(Self {
            data: base.data_dir().join("foldline"),
            config: base.config_dir().join("foldline"),
            agents,
        })
    }

    /// Folders at given places, for tests and for portable set-ups.
    pub fn at(data: PathBuf, config: PathBuf, agents: Vec<AgentFolder>) -> Self {
        Self { data, config, agents }
    }

    /// All of our sessions.
    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// Blobs of all sessions.
    pub fn blobs(&self) -> PathBuf {
        self.data.join("blobs")
    }

    /// Where deleted sessions go.
    pub fn trash(&self) -> PathBuf {
        self.data.join("trash")
    }

    /// What the user typed in chats.
    pub fn chat_history(&self) -> PathBuf {
        self.data.join("chat-history.txt")
    }

    /// The user's settings.
    pub fn user_settings(&self) -> PathBuf {
        self.config.join("settings.json")
    }

    /// The settings of a project (design page, D12: they may not name endpoints, keys or commands unless the
    /// user trusts the project).
    pub fn project_settings(project: &Path) -> PathBuf {
        project.join(".foldline").join("settings.json")
    }

    /// Which projects the user trusts; no project can write it.
    pub fn trusted_projects(&self) -> PathBuf {
        self.data.join("trusted-projects.json")
    }

    /// Other agents' folders of sessions, read-only for us.
    pub fn agents(&self) -> &[AgentFolder] {
        &self.agents
    }

    /// Our own folder and those of the other agents.
    pub fn all_folders(&self) -> Vec<AgentFolder> {
        let ours = AgentFolder {
            agent: Agent::Foldline,
            folder: self.sessions(),
        };
        std::iter::once(ours).chain(self.agents.iter().cloned()).collect()
    }

    /// Our sessions of a project.
    pub fn project_folder(&self, cwd: &Path) -> PathBuf {
        self.sessions().join(project_name(cwd))
    }

    /// The file of a new session.
    ///
    /// # Errors
    /// The id could not be part of a file name.
    pub fn new_session(&self, cwd: &Path, created: SystemTime, id: &str) -> Result<PathBuf, LayoutError> {
        if !is_session_id(id) {
            return Err(LayoutError::InvalidId(id.to_owned()));
        }
        let name = format!("{}_{id}.jsonl", time::for_file_name(created));
        Ok(self.project_folder(cwd).join(name))
    }
}

/// `--home-me-project--`: the path without its first separator, the others as `-`. Two projects may share
/// a name (`/a/b-c` and `/a/b/c`): the header says which one a session belongs to. A name too long for a file
/// system ends with a hash instead.
fn project_name(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let path = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    let name = path.replace(['/', '\\', ':'], "-");
    if name.len() <= FOLDER_NAME {
        return format!("--{name}--");
    }
    let mut cut = FOLDER_NAME - 20;
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    let hash = Sha256::digest(cwd.as_bytes());
    let hash = blob::hex(hash.get(..8).unwrap_or_default());
    format!("--{}-{hash}--", name.get(..cut).unwrap_or_default())
}

fn is_session_id(id: &str) -> bool {
    let bytes = id.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    bytes.len() <= 128
        && ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn layout() -> Layout {
        Layout::at("/d".into(), "/c".into(), Vec::new())
    }

    #[test]
    fn projects_are_folders() {
        assert_eq!(project_name(Path::new("/home/me/project")), "--home-me-project--");
        assert_eq!(project_name(Path::new("C:\\work")), "--C--work--");
        assert_eq!(project_name(Path::new("/")), "----");
        let long = format!("/{}", "ü/".repeat(500));
        let other = format!("{long}x");
        assert!(project_name(Path::new(&long)).len() < 255);
        assert_ne!(project_name(Path::new(&long)), project_name(Path::new(&other)));
    }

    #[test]
    fn sessions_are_named_by_time_and_id() {
        let path = layout()
            .new_session(Path::new("/w"), UNIX_EPOCH, "0198-a")
            .unwrap();
        assert_eq!(
            path,
            Path::new("/d/sessions/--w--/1970-01-01T00-00-00-000Z_0198-a.jsonl")
        );
    }

    #[test]
    fn ids_stay_in_their_folder() {
        for id in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "-a",
            "a-",
            ".a",
            "a b",
            "a\0b",
            &"a".repeat(200),
        ] {
            assert!(
                layout().new_session(Path::new("/w"), UNIX_EPOCH, id).is_err(),
                "{id:?}"
            );
        }
        for id in ["a", "0198f3a2-7b1c-7def-8000-000000000000", "a.b_c-d"] {
            assert!(
                layout().new_session(Path::new("/w"), UNIX_EPOCH, id).is_ok(),
                "{id:?}"
            );
        }
    }
}
