//! A session that an agent works in: its file, its tools, its models.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use foldline_agent_session::settings::{Settings, ToolsAllowed};
use foldline_agent_session::tools::{ArtifactSource, Selection, ToolOptions, builtin};
use foldline_agent_session::{AgentSession, SessionOptions};
use foldline_pruning::Original;
use foldline_session_model::HeaderDraft;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tree::Leaf;
use foldline_session_store::{ArtifactRef, DiskStore, Layout, SessionStore as _};

use crate::commit;
use crate::error::{CommandError, ErrorKind};
use crate::output;
use crate::session::{Damage, Session};
use crate::setup::Setup;

/// How much of a session is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As much of its end as the context needs.
    Tail,
    /// All of it.
    Whole,
}

/// Opens a session for an agent; a new one if none is named.
///
/// # Errors
/// There is no such session, it cannot be written, or its model cannot be asked.
pub(crate) fn open(
    setup: &Setup,
    name: Option<&Path>,
    tools: Option<&Selection>,
    reach: Reach,
) -> Result<AgentSession, CommandError> {
    // Before anything is read: a model that cannot be asked is not worth waiting for.
    let options = setup.options()?;
    let store = DiskStore::new();
    let session = match (name, reach) {
        (None, _) => return create(setup, options, tools, None),
        (Some(name), Reach::Tail) => {
            let tail = Session::open_tail(&store, name)?;
            match tail.context(&Leaf::Last).is_err().then(|| tail.whole(&store)) {
                Some(Some(whole)) => whole?,
                _ => tail,
            }
        }
        (Some(name), Reach::Whole) => Session::open(&store, name, Damage::Warn)?,
    };
    commit::not_imported(&session)?;
    over(setup, session, options, tools)
}

/// Opens a session that was read.
///
/// # Errors
/// The tools cannot be confined.
pub(crate) fn over(
    setup: &Setup,
    session: Session,
    mut options: SessionOptions,
    tools: Option<&Selection>,
) -> Result<AgentSession, CommandError> {
    let todos = equip(setup, &mut options, tools, &session.path)?;
    if let Ok(context) = session.log.context(&Leaf::Last, Profile::Auto) {
        todos.sync(&context);
    }
    let Session { path, log, stamp, .. } = session;
    let store = Arc::new(DiskStore::new());
    Ok(AgentSession::open_read(store, &path, log, stamp, options))
}

/// Begins a new session among those of the project.
///
/// # Errors
/// There is no home folder, or the disk refuses.
pub(crate) fn create(
    setup: &Setup,
    mut options: SessionOptions,
    tools: Option<&Selection>,
    parent: Option<String>,
) -> Result<AgentSession, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let id = uuid::Uuid::now_v7().to_string();
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let path = layout
        .new_session(setup.cwd(), SystemTime::now(), &id)
        .map_err(|e| failed(&e))?;
    let header = HeaderDraft {
        id,
        timestamp: commit::now(),
        cwd: setup.cwd().display().to_string(),
        parent_session: parent,
        title: None,
    };
    equip(setup, &mut options, tools, &path)?;
    AgentSession::create(Arc::new(DiskStore::new()), &path, &header, options).map_err(|e| commit::failed(&e))
}

/// Gives a session its tools, and tells the model about them.
fn equip(
    setup: &Setup,
    options: &mut SessionOptions,
    tools: Option<&Selection>,
    path: &Path,
) -> Result<foldline_agent_session::tools::Todos, CommandError> {
    let mut wanted = ToolOptions::new(setup.cwd());
    wanted.selection = tools.map_or_else(|| selection(setup.settings()), Selection::clone);
    wanted.allowed.clone_from(&setup.settings().tools.folders);
    wanted.artifacts = Some(Arc::new(Kept {
        session: path.to_path_buf(),
    }));
    let todos = wanted.todos.clone();
    options.tools = builtin(&wanted).map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
    options.work = Arc::new(todos.clone());
    options.system = vec![system(setup.cwd())];
    Ok(todos)
}

fn system(cwd: &Path) -> String {
    format!(
        "You help with the project in the folder {}. Look at files before you say what is in them, and name them with \
         their lines. Do what was asked, nothing beside it, and say briefly what you did and what you found.",
        cwd.display()
    )
}

/// The tools that settings allow.
fn selection(settings: &Settings) -> Selection {
    match &settings.tools.allowed {
        ToolsAllowed::ReadOnly => Selection::ReadOnly,
        ToolsAllowed::All => Selection::All,
        ToolsAllowed::None => Selection::None,
        ToolsAllowed::Named(names) => names.join(",").parse().unwrap_or_else(|error| {
            output::warning(&format!("tools.allowed: {error}"));
            Selection::ReadOnly
        }),
    }
}

/// What a session keeps outside of its context.
struct Kept {
    session: PathBuf,
}

impl ArtifactSource for Kept {
    fn read(&self, address: &str) -> Option<String> {
        let store = DiskStore::new();
        match ArtifactRef::parse(address)? {
            ArtifactRef::Stored(id) => {
                let bytes = store.artifacts(&self.session).read(id).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            ArtifactRef::Entry(id) => {
                let bytes: Vec<u8> = store.read(&self.session).ok()?.into();
                let log = SessionLog::load(bytes, Trust::Claimed).ok()?;
                let original = Original::of(&log, log.find(id.as_str())?)?;
                Some(original.as_str().to_owned())
            }
        }
    }
}
