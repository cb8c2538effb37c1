//! From what a person types to a session: a path, `latest`, or the start of an id.

use std::path::{Path, PathBuf};

use super::{Count, ListError, Project, SessionSummary, list};
use crate::agents::{Agent, AgentFolder};
use crate::layout::Layout;
use crate::volume::{FileKind, Volume};

/// Why a name leads to no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// This project has no session.
    #[error("no session of {} yet", .0.display())]
    NoSession(PathBuf),
    /// Nothing has this path, and no id starts so.
    #[error("no session has the path or an id that starts with {0:?}")]
    NotFound(String),
    /// Several ids start so.
    #[error("{prefix:?} is the start of {} session ids", choices.len())]
    Ambiguous {
        /// What was typed.
        prefix: String,
        /// The sessions, newest first.
        choices: Vec<SessionSummary>,
    },
    /// The sessions cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
}

/// Looks in the project first, then in all of our sessions, then in the other agents'.
pub(crate) fn resolve(
    volume: &dyn Volume,
    layout: &Layout,
    cwd: &Path,
    name: &str,
) -> Result<PathBuf, ResolveError> {
    let ours = AgentFolder {
        agent: Agent::Foldline,
        folder: layout.sessions(),
    };
    if name == "latest" {
        let sessions = list(volume, &[ours], Project::Only(cwd), Count::Nothing)?.sessions;
        let newest = sessions.into_iter().find(|session| session.id.is_some());
        return newest
            .map(|session| session.path)
            .ok_or_else(|| ResolveError::NoSession(cwd.to_path_buf()));
    }
    if name.is_empty() {
        return Err(ResolveError::NotFound(String::new()));
    }
    let path = cwd.join(name);
    if volume.stat(&path).is_ok_and(|stat| stat.kind != FileKind::Folder) {
        return Ok(path);
    }
    if name.contains(['/', '\\']) {
        return Err(ResolveError::NotFound(name.to_owned()));
    }
    let places = [
        (vec![ours.clone()], Project::Only(cwd)),
        (vec![ours], Project::Any),
        (layout.agents().to_vec(), Project::Any),
    ];
    for (folders, project) in places {
        let mut found = list(volume, &folders, project, Count::Nothing)?.sessions;
        found.retain(|session| matches(session, name));
        let exact = found
            .iter()
            .position(|session| session.id.as_deref() == Some(name));
        match (exact, found.len()) {
            (_, 0) => {}
            (Some(exact), _) => return Ok(found.swap_remove(exact).path),
            (None, 1) => return Ok(found.swap_remove(0).path),
            (None, _) => {
                return Err(ResolveError::Ambiguous {
                    prefix: name.to_owned(),
                    choices: found,
                });
            }
        }
    }
    Err(ResolveError::NotFound(name.to_owned()))
}

/// Whether an id, or a file's name, or what follows the time in it, starts with the given text, in any case.
fn matches(session: &SessionSummary, prefix: &str) -> bool {
    let stem = session.path.file_stem().unwrap_or_default().to_string_lossy();
    let after_time = stem.rsplit_once('_').map(|(_, id)| id);
    [session.id.as_deref(), Some(&*stem), after_time]
        .into_iter()
        .flatten()
        .any(|name| {
            name.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        })
}
