//! What is left over in folders of ours: artifacts, locks and backups whose session is gone, and files of writes
//! that were cut off. Also the way of a session into the trash.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::artifact;
use crate::backup;
use crate::lock;
use crate::time;
use crate::volume::{FileKind, FolderItem, Volume};

/// A staged file this old belongs to no write that still runs.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Something that nobody needs any more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: LeftoverKind,
}

/// What a leftover is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftoverKind {
    /// A file of a write that was cut off.
    Staged,
    /// The lock of a session that is gone.
    Lock,
    /// An artifact, or the claim of one, of a session that is gone.
    Artifact,
}

/// Why a session was not moved, or leftovers were not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrashError {
    /// The system refused.
    #[error("cannot tidy up {}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Finds leftovers in a folder of sessions. Anything that is not surely ours is left alone, and so are backups:
/// see [`orphaned_backups`].
pub(crate) fn leftovers(
    volume: &dyn Volume,
    folder: &Path,
    now: SystemTime,
) -> Result<Vec<Leftover>, TrashError> {
    let failed = |path: &Path, source| TrashError::Io {
        path: path.to_path_buf(),
        source,
    };
    let items = volume.list(folder).map_err(|source| failed(folder, source))?;
    let exists = |name: &str| items.iter().any(|item| item.name() == name);
    let mut found = Vec::new();
    for item in &items {
        let path = folder.join(item.name());
        let name = item.name().to_string_lossy();
        if item.is_folder {
            if is_artifact_folder(volume, &path) {
                let inside = volume.list(&path).map_err(|source| failed(&path, source))?;
                let has_session = session_names(&name).iter().any(|session| exists(session));
                for file in &inside {
                    let path = path.join(file.name());
                    if is_staged(file) {
                        found.extend(abandoned(volume, path, now));
                    } else if !has_session {
                        found.push(Leftover {
                            path,
                            kind: LeftoverKind::Artifact,
                        });
                    }
                }
            }
        } else if let Some(session) = lock::session_of(&name) {
            if !exists(session) {
                found.push(Leftover {
                    path,
                    kind: LeftoverKind::Lock,
                });
            }
        } else if is_staged(item) {
            found.extend(abandoned(volume, path, now));
        }
    }
    found.sort();
    Ok(found)
}

/// A staged file that is too old to be of a write that still runs.
fn abandoned(volume: &dyn Volume, path: PathBuf, now: SystemTime) -> Option<Leftover> {
    let modified = volume.stat(&path).ok()?.modified;
    let age = now.duration_since(modified).ok()?;
    (age > ABANDONED).then_some(Leftover {
        path,
        kind: LeftoverKind::Staged,
    })
}

/// The names of the sessions whose artifacts a folder of this name would hold.
fn session_names(folder: &str) -> Vec<String> {
    let plain = folder.strip_suffix(".artifacts").map(str::to_owned);
    std::iter::once(format!("{folder}.jsonl")).chain(plain).collect()
}

/// Only a real folder in which each name is an artifact's, or one that such a file has while it is written.
fn is_artifact_folder(volume: &dyn Volume, folder: &Path) -> bool {
    let is_folder = volume
        .stat(folder)
        .is_ok_and(|stat| stat.kind == FileKind::Folder);
    is_folder
        && volume.list(folder).is_ok_and(|items| {
            let ours = |item: &FolderItem| is_artifact(item) || is_staged(item);
            items.iter().any(is_artifact) && items.iter().all(ours)
        })
}

fn is_artifact(item: &FolderItem) -> bool {
    !item.is_folder && artifact::is_artifact_name(&item.name().to_string_lossy())
}

fn is_staged(item: &FolderItem) -> bool {
    let name = item.name().to_string_lossy();
    !item.is_folder && name.starts_with(".foldline-") && name.ends_with(".tmp")
}

/// A folder of sessions and those in it, but for artifacts and hidden ones.
pub(crate) fn project_folders(volume: &dyn Volume, sessions: &Path) -> Result<Vec<PathBuf>, TrashError> {
    let items = match volume.list(sessions) {
        Ok(items) => items,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(TrashError::Io {
                path: sessions.to_path_buf(),
                source,
            });
        }
    };
    let hidden = |item: &FolderItem| item.name().as_encoded_bytes().starts_with(b".");
    let projects = items.iter().filter(|item| item.is_folder && !hidden(item));
    let paths = projects.map(|item| sessions.join(item.name()));
    Ok(std::iter::once(sessions.to_path_buf())
        .chain(paths.filter(|path| !is_artifact_folder(volume, path)))
        .collect())
}

/// The sessions that are gone from a folder but for backups of ours.
pub(crate) fn orphaned_backups(volume: &dyn Volume, folder: &Path) -> Result<Vec<PathBuf>, TrashError> {
    let sessions = backup::sessions(volume, folder).map_err(|source| TrashError::Io {
        path: folder.to_path_buf(),
        source,
    })?;
    Ok(sessions
        .into_iter()
        .filter(|session| volume.stat(session).is_err())
        .collect())
}

pub(crate) fn remove(volume: &dyn Volume, path: &Path) -> Result<(), TrashError> {
    volume.remove(path).map_err(|source| TrashError::Io {
        path: path.to_path_buf(),
        source,
    })
}

/// A session in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "somebody wants to know where it is"]
pub struct Trashed {
    /// The folder that holds it now, and nothing else.
    pub folder: PathBuf,
    /// How many files and folders were moved.
    pub items: usize,
}

/// The folder beside a session that takes its trash if the other one is on another disk. Listings skip hidden names.
const TRASH_BESIDE: &str = ".foldline-trash";
/// What our diagnostics beside a session are about, see [`SidecarName`](crate::SidecarName).
const DIAGNOSTICS: [&str; 2] = ["compaction-", "branch-"];

/// Moves a session into a folder of its own in the trash, with its artifacts, our backups of it, its diagnostics and
/// what was once cut out of it.
pub(crate) fn trash(
    volume: &dyn Volume,
    session: &Path,
    trash: &Path,
    now: SystemTime,
) -> Result<Trashed, TrashError> {
    let beside = belongings(volume, session);
    match move_all(volume, session, &beside, trash, now) {
        Err(TrashError::Io { path, source })
            if path == session && source.kind() == io::ErrorKind::CrossesDevices =>
        {
            let trash = session.with_file_name(TRASH_BESIDE);
            move_all(volume, session, &beside, &trash, now)
        }
        result => result,
    }
}

fn move_all(
    volume: &dyn Volume,
    session: &Path,
    beside: &[PathBuf],
    trash: &Path,
    now: SystemTime,
) -> Result<Trashed, TrashError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| TrashError::Io { path, source }
    };
    let stem = session.file_stem().unwrap_or_default().to_string_lossy();
    let mut target = trash.join(format!("{}_{stem}", time::for_file_name(now)));
    let mut number = 1_u32;
    while volume.stat(&target).is_ok() {
        number += 1;
        target = trash.join(format!("{}_{stem}.{number}", time::for_file_name(now)));
    }
    volume.create_folder(&target).map_err(failed(&target))?;
    // The session goes first: if it cannot go, nothing has.
    for path in std::iter::once(session).chain(beside.iter().map(PathBuf::as_path)) {
        let to = target.join(path.file_name().unwrap_or_default());
        volume.rename(path, &to).map_err(failed(path))?;
    }
    volume.sync_folder(&target).map_err(failed(&target))?;
    if let Some(folder) = session.parent() {
        volume.sync_folder(folder).map_err(failed(folder))?;
    }
    Ok(Trashed {
        folder: target,
        items: beside.len() + 1,
    })
}

/// What lies beside a session and is of no use without it.
fn belongings(volume: &dyn Volume, session: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let artifacts = artifact::folder_of(session);
    // Another folder may well have that name: `src` beside `src.jsonl`.
    if is_artifact_folder(volume, &artifacts) {
        found.push(artifacts);
    }
    let backups = backup::list(volume, session).unwrap_or_default();
    found.extend(backups.into_iter().map(|backup| backup.path));
    let stem = session.file_stem().unwrap_or_default().to_string_lossy();
    let name = session.file_name().unwrap_or_default().to_string_lossy();
    let folder = session.parent().unwrap_or(Path::new(""));
    for item in volume.list(folder).unwrap_or_default() {
        let other = item.name().to_string_lossy();
        let is_diagnostic = other
            .strip_prefix(&*stem)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| {
                DIAGNOSTICS.iter().any(|kind| rest.starts_with(kind)) && has_extension(rest, &["json"])
            });
        let is_cut_out = other
            .strip_prefix(&*name)
            .is_some_and(|rest| rest.starts_with('.') && has_extension(rest, &["torn", "damaged"]));
        if !item.is_folder && (is_diagnostic || is_cut_out) {
            found.push(folder.join(item.name()));
        }
    }
    found
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, found)| extensions.contains(&found))
}
