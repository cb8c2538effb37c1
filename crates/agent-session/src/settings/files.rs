//! The settings files of a user and a project: read as layers; changed one key at a time, the user's only.
//!
//! All of this blocks for as long as a small file takes.
#![expect(clippy::disallowed_types, reason = "a setting is a small value")]

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use foldline_compaction_core::settings::Strategy;
use foldline_session_store::Layout;
use fs_err as fs;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::catalog::{self, KeyPath, Kind, shown};
use super::layers::{acceptable, syntax_message};
use super::{
    Environment, FileLayer, Layers, Overrides, ProblemKind, ProjectTrust, Resolved, TrustedProjects,
    nearest_key, resolve, write,
};

/// A settings file is written by hand: anything longer is something else.
const MAX_BYTES: u64 = 1 << 20;
/// How often a lock is tried for.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Where the settings of a session are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFiles {
    user: PathBuf,
    project: Option<PathBuf>,
    trust: ProjectTrust,
}

/// Why a setting was not changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// Nobody knows the key.
    #[error("there is no setting {key}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that may be meant.
        nearest: Option<String>,
    },
    /// The key does not take the value.
    #[error("{key} takes {expected}, and not {found}")]
    WrongValue {
        /// The key.
        key: String,
        /// What it takes.
        expected: String,
        /// What there is.
        found: String,
    },
    /// The key is a member of something that is set as a whole.
    #[error("{whole} is set as a whole, with all that it needs")]
    PartOfWhole {
        /// The key.
        key: String,
        /// What it is a member of.
        whole: String,
    },
    /// The value has no form in JSON.
    #[error("the value cannot be written as JSON")]
    NotJson(#[from] serde_json::Error),
    /// The file is no JSON object; changing it could lose what its author meant.
    #[error("{}: line {line}, column {column}: {message}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in bytes.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// Somebody else is changing it.
    #[error("{} is being changed by another program", file.display())]
    Busy {
        /// The file.
        file: PathBuf,
    },
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SettingsFiles {
    /// The files of this user and of the project in this folder, and whether the user trusts it.
    pub fn new(layout: &Layout, project: &Path) -> Self {
        let trusted = TrustedProjects::read(layout).contains(project);
        Self {
            user: layout.user_settings(),
            project: Some(Layout::project_settings(project)),
            trust: if trusted {
                ProjectTrust::Trusted
            } else {
                ProjectTrust::Untrusted
            },
        }
    }

    /// Files at given places.
    pub const fn at(user: PathBuf, project: Option<PathBuf>, trust: ProjectTrust) -> Self {
        Self { user, project, trust }
    }

    /// The user's file.
    pub fn user(&self) -> &Path {
        &self.user
    }

    /// The project's file.
    pub fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// Whether the user trusts the project.
    pub const fn trust(&self) -> ProjectTrust {
        self.trust
    }

    /// Reads the files and lays them over the defaults, with the environment and the overrides on top.
    pub fn load(&self, environment: &Environment, overrides: &Overrides) -> Resolved {
        let user = read_layer(&self.user);
        let project = self.project.as_deref().and_then(read_layer);
        resolve(&Layers {
            user: user.as_ref(),
            project: project.as_ref(),
            trust: self.trust,
            environment: Some(environment),
            overrides: Some(overrides),
        })
    }

    /// Sets a key in the user's file: that key, and nothing else in it. Members of a group are set one by one.
    ///
    /// # Errors
    /// Nobody knows the key, it does not take the value, the file is damaged or busy, or it cannot be written.
    pub fn set(&self, key: &str, value: impl Serialize) -> Result<(), SetError> {
        let value = serde_json::to_value(value)?;
        let path = known_path(key)?;
        if let Some(whole) = whole_of(&path) {
            return Err(SetError::PartOfWhole {
                key: key.to_owned(),
                whole,
            });
        }
        let mut leaves = Vec::new();
        collect_leaves(path, value, &mut leaves)?;
        for (path, value) in &leaves {
            acceptable(path, value).map_err(|kind| set_error(path, kind))?;
        }
        self.change(&leaves)
    }

    /// Takes a key out of the user's file; what lies below it holds again.
    ///
    /// # Errors
    /// Nobody knows the key, or the file is damaged, busy or cannot be written.
    pub fn unset(&self, key: &str) -> Result<(), SetError> {
        let path = known_path(key)?;
        self.edit_user(|text| Ok(write::with_value(text, &path, None)?))
    }

    /// Switches automatic compaction on or off in the user's file. On also takes back the strategy `off` there.
    ///
    /// # Errors
    /// The file is damaged or busy, or cannot be written.
    pub fn set_auto_compaction(&self, auto: AutoCompaction) -> Result<(), SetError> {
        let path = |name: &str| vec!["compaction".to_owned(), name.to_owned()];
        let enabled = (path("enabled"), json!(auto == AutoCompaction::On));
        let user = read_layer(&self.user);
        let own = resolve(&Layers {
            user: user.as_ref(),
            ..Layers::default()
        });
        let is_off = own.settings.compaction.core.strategy == Strategy::Off;
        if auto == AutoCompaction::On && is_off {
            self.change(&[enabled, (path("strategy"), json!(Strategy::Auto))])
        } else {
            self.change(&[enabled])
        }
    }

    fn change(&self, leaves: &[(KeyPath, Value)]) -> Result<(), SetError> {
        self.edit_user(|text| {
            leaves.iter().try_fold(text.to_owned(), |text, (path, value)| {
                Ok(write::with_value(&text, path, Some(value))?)
            })
        })
    }

    /// Reads the user's file anew under its lock, edits the text, and puts it in the old one's place.
    fn edit_user(&self, edit: impl FnOnce(&str) -> Result<String, EditError>) -> Result<(), SetError> {
        // Whoever keeps the file elsewhere and links to it wants the link to stay.
        let file = fs::canonicalize(&self.user).unwrap_or_else(|_| self.user.clone());
        let folder = file.parent().unwrap_or(Path::new("."));
        private_folder(folder)?;
        let _lock = lock(&file)?;
        let text = match read_bounded(&file) {
            Ok(text) if text.trim().is_empty() => "{}\n".to_owned(),
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => "{}\n".to_owned(),
            Err(error) => return Err(error.into()),
        };
        let damaged = |line, column, message| SetError::Damaged {
            file: file.clone(),
            line,
            column,
            message,
        };
        serde_json::from_str::<Map<String, Value>>(&text)
            .map_err(|e| damaged(e.line(), e.column(), syntax_message(&e)))?;
        let changed = edit(&text).map_err(|EditError(message)| damaged(1, 0, message))?;
        if changed != text {
            publish(folder, &file, &changed)?;
        }
        Ok(())
    }
}

/// Whether contexts are compacted without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoCompaction {
    /// They are.
    On,
    /// Only on request.
    Off,
}

/// A text that was a JSON object and could not be edited as one.
struct EditError(String);

impl From<foldline_session_model::json::DecodeError> for EditError {
    fn from(error: foldline_session_model::json::DecodeError) -> Self {
        Self(error.to_string())
    }
}

fn known_path(key: &str) -> Result<KeyPath, SetError> {
    let path = catalog::root().path(key).filter(|path| !path.is_empty());
    path.ok_or_else(|| SetError::UnknownKey {
        key: key.to_owned(),
        nearest: nearest_key(key),
    })
}

/// What a key is a member of, if that is taken or left as a whole: `hooks.guard` of `hooks.guard.command`.
fn whole_of(path: &[String]) -> Option<String> {
    let (last, parent) = path.split_last()?;
    let (name, member) = last.rsplit_once('.')?;
    let node = catalog::root().at(path)?;
    let members = node.schema.get("properties")?;
    let is_whole = matches!(node.kind, Kind::Leaf) && members.get(member).is_some();
    is_whole.then(|| [&shown(parent), name].join("."))
}

/// The values of a group one by one; anything else is one value.
fn collect_leaves(path: KeyPath, value: Value, leaves: &mut Vec<(KeyPath, Value)>) -> Result<(), SetError> {
    let node = catalog::root().at(&path);
    match (node.map(|node| &node.kind), value) {
        (None, _) => {
            let (name, parent) = path
                .split_last()
                .map_or(("", &[][..]), |(name, parent)| (name.as_str(), parent));
            Err(SetError::UnknownKey {
                key: shown(&path),
                nearest: catalog::nearest(parent, name),
            })
        }
        (Some(Kind::Group(_) | Kind::Named(_)), Value::Object(members)) => {
            members.into_iter().try_for_each(|(name, value)| {
                let mut path = path.clone();
                path.push(name);
                collect_leaves(path, value, leaves)
            })
        }
        (Some(_), value) => {
            leaves.push((path, value));
            Ok(())
        }
    }
}

fn set_error(path: &[String], kind: ProblemKind) -> SetError {
    match kind {
        ProblemKind::WrongValue { expected, found } => SetError::WrongValue {
            key: shown(path),
            expected,
            found,
        },
        ProblemKind::UnknownKey { nearest } => SetError::UnknownKey {
            key: shown(path),
            nearest,
        },
        // A single value at a known path has no other problems.
        _ => SetError::UnknownKey {
            key: shown(path),
            nearest: None,
        },
    }
}

/// The file as a layer; `None` if there is none.
fn read_layer(file: &Path) -> Option<FileLayer> {
    match read_bounded(file) {
        Ok(text) if text.trim().is_empty() => None,
        Ok(text) => Some(FileLayer::parse(file.to_path_buf(), &text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(FileLayer::unreadable(file.to_path_buf(), error.to_string())),
    }
}

pub(super) fn read_bounded(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    // To open a pipe would wait for whoever writes to it.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let open = fs::File::open(file)?;
    open.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// The folder, made private if it is made here.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Replaces a file whole, readable by its user only.
pub(super) fn publish(folder: &Path, file: &Path, text: &str) -> io::Result<()> {
    let mut staged = tempfile::Builder::new()
        .prefix(".settings-")
        .tempfile_in(folder)?;
    staged.write_all(text.as_bytes())?;
    staged.as_file().sync_all()?;
    staged.persist(file).map_err(|error| error.error)?;
    #[cfg(unix)]
    fs::File::open(folder)?.sync_all()?;
    Ok(())
}

/// Holds off other writers while it lives; the lock ends with its process.
pub(super) fn lock(file: &Path) -> Result<std::fs::File, SetError> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let lock = options.open(file.with_file_name(name))?.into_parts().0;
    for attempt in 0..LOCK_TRIES {
        if attempt > 0 {
            #[expect(
                clippy::disallowed_methods,
                reason = "files are waited for where they are read: blocking"
            )]
            std::thread::sleep(LOCK_PAUSE);
        }
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(std::fs::TryLockError::WouldBlock) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Err(SetError::Busy {
        file: file.to_path_buf(),
    })
}
