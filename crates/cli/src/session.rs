//! Finding and loading the session that a command works on.

use std::path::{Path, PathBuf};

use foldline_session_model::EntryIx;
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::import::{self, Agent};
use foldline_session_model::log::{Extent, LoadError, SessionLog, Trust};
use foldline_session_model::tree::Leaf;
use foldline_session_store::{
    DiskStore, Layout, ReadError, ResolveError, ResumeError, SessionStore as _, Stamp,
};

use crate::environment::working_folder;
use crate::error::{CommandError, ErrorKind};
use crate::output;

/// A session in memory, and the state of the file that it was read from.
pub(crate) struct Session {
    pub(crate) path: PathBuf,
    pub(crate) log: SessionLog,
    pub(crate) stamp: Stamp,
    /// The agent whose file this is, if it was imported on the way in. Such a file is only read.
    pub(crate) imported_from: Option<Agent>,
}

/// Whether a person is told about damage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    Warn,
    Silent,
}

impl Session {
    /// Reads a session. Damage is a warning: what is whole can be worked with.
    pub(crate) fn open(
        store: &DiskStore,
        name: impl AsRef<Path>,
        damage: Damage,
    ) -> Result<Self, CommandError> {
        let session = Self::load(store, resolve(store, name.as_ref())?, Trust::Validated)?;
        if damage == Damage::Warn {
            session.warn();
        }
        Ok(session)
    }

    /// Reads the session in a file and says nothing about damage.
    pub(crate) fn load(store: &DiskStore, path: PathBuf, trust: Trust) -> Result<Self, CommandError> {
        let snapshot = store.read(&path).map_err(|e| read_error(&path, &e))?;
        let stamp = snapshot.stamp();
        let (imported_from, bytes) = match import::session(&snapshot) {
            Ok(imported) => (Some(imported.agent), imported.text.into_bytes()),
            Err(_) => (None, snapshot.into()),
        };
        let log = SessionLog::load(bytes, trust).map_err(|e| load_error(&path, &e))?;
        Ok(Self {
            path,
            log,
            stamp,
            imported_from,
        })
    }

    /// Reads only as much of the end of a session as its context needs. Damage before that is not looked at. If the
    /// [context](Self::context) cannot be made of it, [`whole`](Self::whole) can say more.
    pub(crate) fn open_tail(store: &DiskStore, name: impl AsRef<Path>) -> Result<Self, CommandError> {
        let path = resolve(store, name.as_ref())?;
        let reader = store.reader(&path).map_err(|e| read_error(&path, &e))?;
        let resumed = match reader.resume(Profile::Auto) {
            // It may be another agent's session, which is read whole.
            Err(ResumeError::Load(LoadError::NotASession { .. })) => {
                return Self::open(store, &path, Damage::Warn);
            }
            resumed => resumed,
        };
        let resumed = resumed.map_err(|e| match e {
            ResumeError::Read(e) => read_error(&path, &e),
            ResumeError::Load(e) => load_error(&path, &e),
            e => CommandError::from_error(ErrorKind::NoSession, &e),
        })?;
        let session = Self {
            path,
            log: resumed.log,
            stamp: resumed.stamp,
            imported_from: None,
        };
        session.warn();
        Ok(session)
    }

    /// All of a session of which only the end was read, because a line there is damaged; `None` if it is all already.
    pub(crate) fn whole(&self, store: &DiskStore) -> Option<Result<Self, CommandError>> {
        matches!(self.log.extent(), Extent::Tail { .. }).then(|| Self::open(store, &self.path, Damage::Warn))
    }

    /// Tells a person of damage: what is whole can be worked with.
    fn warn(&self) {
        let damage = self.log.damage();
        if let Some(first) = damage.first() {
            let others = match damage.len() - 1 {
                0 => String::new(),
                n => format!(" (and {n} more; `foldline check` lists them)"),
            };
            output::warning(&format!(
                "{}:{}: {}{others}",
                self.path.display(),
                first.line,
                first.kind
            ));
        }
    }

    /// The entry that a person means: an id, or the start of exactly one.
    pub(crate) fn find(&self, name: &str) -> Result<EntryIx, CommandError> {
        if let Some(ix) = self.log.find(name) {
            return Ok(ix);
        }
        let mut found = self
            .log
            .entries()
            .filter(|ix| !name.is_empty() && self.log.id(*ix).starts_with(name));
        let error = |message: String| CommandError::new(ErrorKind::Failed, message);
        match (found.next(), found.next()) {
            (Some(ix), None) => Ok(ix),
            (Some(_), Some(_)) => Err(error(format!(
                "several entries of {} begin with {name}",
                self.path.display()
            ))
            .hint("type more of the id")),
            (None, _) => Err(
                error(format!("entry {name} not found in {}", self.path.display()))
                    .hint("`foldline tree SESSION` lists the entries"),
            ),
        }
    }

    /// The context at a leaf.
    pub(crate) fn context(&self, leaf: &Leaf) -> Result<Context<'_>, CommandError> {
        self.log.context(leaf, Profile::Auto).map_err(|e| {
            CommandError::from_error(ErrorKind::Failed, &e).hint("`foldline tree` lists the entries")
        })
    }
}

/// The file that a person means: a path, the start of an id, or `latest`.
pub(crate) fn resolve(store: &DiskStore, path: &Path) -> Result<PathBuf, CommandError> {
    let is_folder = path.is_dir();
    // A folder is no session, but an id may begin like its name.
    if path.exists() && !is_folder {
        return Ok(path.to_path_buf());
    }
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::NoSession, e);
    let Some(name) = path.to_str() else {
        // Ids are plain text.
        return Ok(path.to_path_buf());
    };
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let found = store.resolve(&layout, &working_folder()?, name);
    if is_folder && matches!(found, Err(ResolveError::NotFound(_))) {
        return Ok(path.to_path_buf());
    }
    found.map_err(|e| {
        let hint = match &e {
            ResolveError::Ambiguous { choices, .. } => {
                let ids: Vec<&str> = choices.iter().filter_map(|c| c.id.as_deref()).take(8).collect();
                format!("type more of the id: {}", ids.join(", "))
            }
            ResolveError::NoSession(_) => {
                "`foldline list --all` lists the sessions of every agent on this machine; \
                                           name one by its path or the start of its id"
                    .to_owned()
            }
            _ => "name a path, the start of an id, or `latest`; `foldline list --all` lists sessions"
                .to_owned(),
        };
        failed(&e).hint(hint)
    })
}

pub(crate) fn read_error(path: &Path, error: &ReadError) -> CommandError {
    let failed = CommandError::from_error(ErrorKind::NoSession, error);
    match error {
        _ if path.is_dir() => failed.hint("name a session file inside of the folder"),
        ReadError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => failed
            .hint("its permissions do not let you read it: `ls -l` shows them, its owner can change them"),
        ReadError::NotFound(_) => failed.hint("name the path of a session file"),
        _ => failed,
    }
}

fn load_error(path: &Path, error: &LoadError) -> CommandError {
    let message = match error {
        LoadError::NotASession { line, cause } => format!("{}:{line}: {cause}", path.display()),
        other => format!("{}: {other}", path.display()),
    };
    CommandError::new(ErrorKind::NoSession, message)
        .hint("a session begins with a line of type \"session\"; the file was left as it is")
}
