//! The door: what a host can ask of a session, and who may do what when (spec "Orchestrator and clients", 1.5, 6.2 and
//! 10).

mod compacting;
mod idle;
mod lifecycle;
mod prompting;
mod stopping;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use foldline_compaction_core::settings::Planner;
use foldline_compaction_core::verbatim::Parameters;
use foldline_llm_client::LanguageModel;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{InputBlock, ModelRef};
use foldline_session_model::{EntryDraft, EntryId, HeaderDraft, Tokens};
use foldline_session_store::{SessionStore, Stamp};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::OwnedMutexGuard;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::compaction::BackupChoice;
use crate::core::{Core, SessionOptions};
use crate::event::{CompactionAction, Event, FailureKind, NoticeLevel, reason_name};
use crate::journal::{CommitError, Group, Journal, LoadSessionError, Pending, full_text_of, system_of};
use crate::queue::Delivery;
use crate::run::{RunReport, Start};
use crate::shared::{Lease, OperationKind, Part, Shared, Waiting};
use compacting::ManualCompaction;

pub use idle::IdleWatch;
pub use lifecycle::Switch;

/// A session of an agent: the loop, and the maintenance that keeps its context healthy.
///
/// Handles are cheap to clone. One operation runs at a time, in a task of its own: a caller that goes away does not stop
/// it. When a call returns, everything that follows from it has happened.
#[derive(Clone)]
pub struct AgentSession {
    shared: Arc<Shared>,
    core: Arc<tokio::sync::Mutex<Core>>,
    /// The compaction by hand that is running, for those who ask for one meanwhile.
    manual: Arc<Mutex<Option<ManualCompaction>>>,
}

/// Why a session does not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A run is in progress.
    #[error(
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    )]
    AgentBusy,
    /// Another operation holds the session.
    #[error("Cannot start {wanted} while a {holder} transition is in progress.", wanted = wanted.name(), holder = holder.name())]
    Busy {
        /// What was asked for.
        wanted: OperationKind,
        /// What is in progress.
        holder: OperationKind,
    },
    /// A handoff is in progress: no turn may start.
    #[error("Cannot start a turn while a handoff is in progress.")]
    HandoffInProgress,
    /// There is nothing to say.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// There is nobody to ask.
    #[error("No model configured")]
    NoModel,
    /// There is nothing that could go on.
    #[error("No messages to continue from")]
    NothingToContinue,
    /// The context ends in an answer.
    #[error("Cannot continue from message role: assistant")]
    AlreadyAnswered,
    /// Nothing was written.
    #[error("{message}")]
    Write {
        /// Why.
        message: String,
        /// Whether another writer is the cause.
        busy: bool,
        /// What the system said, if it was the system that refused.
        system: Option<std::io::ErrorKind>,
    },
    /// The operation was cancelled. Nothing was written.
    #[error("{what} cancelled")]
    Cancelled {
        /// Which operation.
        what: &'static str,
    },
    /// The document of a handoff was made, and the new session could not be written. The session is as it was.
    #[error("{message}")]
    HandoffNotWritten {
        /// Why.
        message: String,
        /// What the system said, if it was the system that refused.
        system: Option<std::io::ErrorKind>,
        /// The document, so that it is not lost.
        handoff_document: Box<crate::handoff::HandoffDocument>,
    },
    /// A model failed, or the way to it. Nothing was written.
    #[error("{message}")]
    Provider {
        /// Why.
        message: String,
        /// How; [`FailureKind::Answer`] if it answered with something that cannot be used.
        kind: FailureKind,
    },
    /// The operation failed. Nothing was written.
    #[error("{0}")]
    Failed(String),
}

impl SessionError {
    /// Something could not be written, and nobody else is the cause.
    pub(crate) fn refused(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Write {
            message: full_text_of(error),
            busy: false,
            system: system_of(error),
        }
    }
}

impl From<CommitError> for SessionError {
    fn from(error: CommitError) -> Self {
        Self::Write {
            busy: error.is_busy(),
            message: error.full_text(),
            system: error.system(),
        }
    }
}

/// Something to say, and what becomes of it if the session is busy.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Texts and pictures.
    pub blocks: Vec<InputBlock<'static>>,
    /// How it is delivered if a run is in progress; `None`: it is refused then.
    pub while_running: Option<Delivery>,
}

impl Prompt {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            blocks: vec![InputBlock::Text(text.into().into())],
            while_running: None,
        }
    }

    /// The same, which waits for its turn if a run is in progress.
    #[must_use]
    pub fn queued_as(mut self, delivery: Delivery) -> Self {
        self.while_running = Some(delivery);
        self
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self::text(text)
    }
}

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Prompted {
    /// It ran, with everything that followed from it.
    Ran(RunReport),
    /// It waits for its turn; it is in the session.
    Queued,
}

/// What is asked of a compaction by hand.
#[derive(Clone, Debug, Default)]
pub struct CompactOptions {
    /// What the user wants beside the usual.
    pub instructions: Option<String>,
    /// How; `None`: as the settings say, but never a handoff.
    pub action: Option<CompactionAction>,
    /// Who plans; `None`: the session's models if there are any.
    pub planner: Option<Planner>,
    /// Parameters of a verbatim compaction.
    pub parameters: Option<Parameters>,
    /// Tokens of recent messages that stay.
    pub keep_recent: Option<Tokens>,
    /// Whether the session is copied beforehand.
    pub backup: BackupChoice,
}

/// A name that was given or taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The entry that says so.
    pub entry_id: EntryId,
    /// A copy of the session, if it had to be brought into today's form.
    pub backup_path: Option<PathBuf>,
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// The model, `provider/id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether a run is in progress.
    pub is_streaming: bool,
    /// Whether a compaction or a branch summary is in progress.
    pub is_compacting: bool,
    /// Why the context is being compacted, if it is: `manual`, `overflow`, `threshold` or `idle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_reason: Option<&'static str>,
    /// The file.
    pub session_file: PathBuf,
    /// The session's id.
    pub session_id: String,
    /// How many messages wait.
    pub pending_message_count: usize,
    /// Whether waiting messages are held back.
    pub queued_messages_paused: bool,
}

impl AgentSession {
    /// Opens a session: as much of its end as the context needs.
    ///
    /// # Errors
    /// The file cannot be read, or is no session.
    pub fn open(
        store: Arc<dyn SessionStore>,
        path: &Path,
        options: SessionOptions,
    ) -> Result<Self, LoadSessionError> {
        let (journal, log) = Journal::open(store, path, options.profile)?;
        Ok(Self::over(journal, log, options))
    }

    /// Opens a session and reads all of it: for work on its tree.
    ///
    /// # Errors
    /// The file cannot be read, or is no session.
    pub fn open_whole(
        store: Arc<dyn SessionStore>,
        path: &Path,
        options: SessionOptions,
    ) -> Result<Self, LoadSessionError> {
        let (journal, log) = Journal::open_whole(store, path)?;
        Ok(Self::over(journal, log, options))
    }

    /// Opens a session that was read already. Nothing is written to it if the file is another one by now.
    pub fn open_read(
        store: Arc<dyn SessionStore>,
        path: &Path,
        log: SessionLog,
        stamp: Stamp,
        options: SessionOptions,
    ) -> Self {
        let journal = Journal::over_read(store, path, &log, stamp);
        Self::over(journal, log, options)
    }

    /// Writes a new session and opens it.
    ///
    /// # Errors
    /// The file exists, or the disk refuses.
    pub fn create(
        store: Arc<dyn SessionStore>,
        path: &Path,
        header: &HeaderDraft,
        options: SessionOptions,
    ) -> Result<Self, LoadSessionError> {
        let (journal, log) = Journal::create(store, path, header, &[])?;
        Ok(Self::over(journal, log, options))
    }

    pub(crate) fn over(journal: Journal, log: SessionLog, options: SessionOptions) -> Self {
        let shared = Arc::new(Shared::new(journal, &log));
        let core = Core::new(Arc::clone(&shared), log, options);
        Self {
            shared,
            core: Arc::new(tokio::sync::Mutex::new(core)),
            manual: Arc::new(Mutex::new(None)),
        }
    }

    /// Everything that happens from now on, in order.
    pub fn subscribe(&self) -> UnboundedReceiver<Arc<Event>> {
        self.shared.events.subscribe()
    }

    /// Moves to another model; what failed with the old one says nothing about it.
    ///
    /// # Errors
    /// The session is busy, or the change could not be written.
    pub async fn set_model(&self, model: Arc<dyn LanguageModel>) -> Result<(), SessionError> {
        let ModelRef { provider, id } = model.profile().model_ref();
        self.edit(move |core| {
            async move {
                core.append(EntryDraft::model_change(&provider, &id)).await?;
                core.use_model(model);
                core.live.promoted = false;
                core.shared.emit(Event::ModelChanged {
                    model: format!("{provider}/{id}"),
                    temporary: false,
                });
                Ok(())
            }
            .boxed()
        })
        .await
    }

    /// Names the session.
    ///
    /// # Errors
    /// The name is empty, the session is busy, or the change could not be written.
    pub async fn set_name(&self, name: &str) -> Result<Renamed, SessionError> {
        let name = name.trim();
        if name.is_empty() {
            return Err(SessionError::Failed("Session name cannot be empty".to_owned()));
        }
        self.write_name(name).await
    }

    /// Takes the session's name away.
    ///
    /// # Errors
    /// The session is busy, or the change could not be written.
    pub async fn clear_name(&self) -> Result<Renamed, SessionError> {
        self.write_name("").await
    }

    async fn write_name(&self, name: &str) -> Result<Renamed, SessionError> {
        let draft = EntryDraft::session_info(name);
        self.edit(move |core| {
            async move {
                let group = Group {
                    entries: vec![Pending::from(draft)],
                    ..Group::default()
                };
                let committed = core.commit(group).await?;
                let entry_id = committed.ids.into_iter().next().ok_or(CommitError::Moved)?;
                Ok(Renamed {
                    entry_id,
                    backup_path: committed.backup,
                })
            }
            .boxed()
        })
        .await
    }

    /// Changes how the session behaves from now on.
    ///
    /// # Errors
    /// The session is busy.
    pub async fn change_options(
        &self,
        change: impl FnOnce(&mut SessionOptions) + Send + 'static,
    ) -> Result<(), SessionError> {
        self.edit(move |core| {
            async move {
                core.drop_ahead("the settings are others");
                change(&mut core.options);
                let mut queues = core.shared.queues();
                queues.steer_mode = core.options.settings.steering;
                queues.follow_up_mode = core.options.settings.follow_up;
                Ok(())
            }
            .boxed()
        })
        .await
    }

    /// Reads the session as it is, between two steps of what is in progress.
    pub async fn with_log<R>(&self, read: impl FnOnce(&SessionLog) -> R) -> R {
        let core = self.core.lock().await;
        read(&core.log)
    }

    /// How large the context is: the number that decides when it is made smaller (D10).
    pub async fn context_tokens(&self) -> Tokens {
        self.core.lock().await.size_now()
    }

    /// Where the session stands.
    pub fn state(&self) -> SessionState {
        let (is_streaming, is_compacting) = match &*self.shared.current() {
            Some(current) => (
                current.kind == OperationKind::Run,
                current.kind == OperationKind::Compact,
            ),
            None => (false, false),
        };
        let is_compacting = is_compacting
            || self.shared.is_running(Part::Compaction)
            || self.shared.is_running(Part::BranchSummary);
        let (pending_message_count, queued_messages_paused) = {
            let queues = self.shared.queues();
            (queues.all().count(), queues.paused)
        };
        SessionState {
            model: self.shared.model().clone(),
            session_id: self.shared.session_id().to_string(),
            is_streaming,
            is_compacting,
            compaction_reason: self.shared.compaction_reason().map(reason_name::name),
            session_file: self.shared.journal().path().to_path_buf(),
            pending_message_count,
            queued_messages_paused,
        }
    }

    /// The file of the session.
    pub fn path(&self) -> PathBuf {
        self.shared.journal().path().to_path_buf()
    }

    pub(crate) fn begin(&self, wanted: OperationKind) -> Result<Lease, SessionError> {
        self.shared.begin(wanted).map_err(|holder| busy(wanted, holder))
    }

    pub(crate) fn core(&self) -> Arc<tokio::sync::Mutex<Core>> {
        Arc::clone(&self.core)
    }

    /// A short change that no model takes part in.
    pub(crate) async fn edit<T: Send + 'static>(
        &self,
        change: impl for<'c> FnOnce(&'c mut Core) -> BoxFuture<'c, Result<T, SessionError>> + Send + 'static,
    ) -> Result<T, SessionError> {
        let lease = self.begin(OperationKind::Edit)?;
        let core = self.core();
        self.in_task(async move {
            let mut core = core.lock_owned().await;
            let done = change(&mut core).await;
            Self::release(core, lease);
            done
        })
        .await
    }

    /// Lets go of the session. Prompts that were accepted meanwhile get their turn; nobody waits for that here.
    pub(crate) fn release(core: OwnedMutexGuard<Core>, lease: Lease) {
        if let Some(lease) = lease.end(Waiting::Leave) {
            Self::deliver_behind(core, lease);
        }
    }

    /// Delivers the messages that wait, in a task of its own.
    fn deliver_behind(mut core: OwnedMutexGuard<Core>, lease: Lease) {
        tokio::spawn(async move {
            let mut next = Some(lease);
            while let Some(lease) = next {
                let report = core.drive(&lease, Start::Queue).await;
                let goes_on =
                    !lease.is_cancelled() && report.is_ok_and(|report: RunReport| report.error.is_none());
                next = lease.end(if goes_on { Waiting::Deliver } else { Waiting::Leave });
            }
        });
    }

    /// Runs an operation to its end, whether or not the caller waits for it.
    pub(crate) async fn in_task<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, SessionError>> + Send + 'static,
    ) -> Result<T, SessionError> {
        match tokio::spawn(operation).await {
            Ok(done) => done,
            Err(error) => {
                let text = format!("the operation ended unexpectedly: {error}");
                self.shared
                    .events
                    .notice(NoticeLevel::Error, Some("session"), text.clone());
                Err(SessionError::Failed(text))
            }
        }
    }
}

/// Why an operation cannot begin.
fn busy(wanted: OperationKind, holder: OperationKind) -> SessionError {
    match (wanted, holder) {
        (OperationKind::Run, OperationKind::Run) => SessionError::AgentBusy,
        (OperationKind::Run, OperationKind::Handoff) => SessionError::HandoffInProgress,
        (wanted, holder) => SessionError::Busy { wanted, holder },
    }
}
