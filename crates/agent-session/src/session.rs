//! The door: what a host can ask of a session, and who may do what when (spec "Orchestrator and clients", 1.5, 6.2 and
//! 10).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldline_compaction_core::decide::{Reason, Urgency};
use foldline_compaction_core::settings::Planner;
use foldline_compaction_core::verbatim::Parameters;
use foldline_llm_client::LanguageModel;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{InputBlock, ModelRef};
use foldline_session_model::{EntryDraft, EntryId, HeaderDraft, Tokens};
use foldline_session_store::SessionStore;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::compaction::Order;
use crate::continuation::Tail;
use crate::core::{Core, SessionOptions, context};
use crate::event::{CompactionAction, CompactionEnd, Event, NoticeLevel};
use crate::journal::{CommitError, Journal, LoadSessionError};
use crate::message::text_of;
use crate::queue::{Delivery, Queued};
use crate::run::{RunReport, Start};
use crate::shared::{Lease, OperationKind, Part, Shared};

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

type ManualCompaction = futures::future::Shared<BoxFuture<'static, Result<CompactionEnd, SessionError>>>;

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
    },
    /// The operation was cancelled. Nothing was written.
    #[error("{what} cancelled")]
    Cancelled {
        /// Which operation.
        what: &'static str,
    },
    /// The operation failed. Nothing was written.
    #[error("{0}")]
    Failed(String),
}

impl From<CommitError> for SessionError {
    fn from(error: CommitError) -> Self {
        Self::Write {
            busy: error.is_busy(),
            message: error.to_string(),
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

    /// Says something to the model, and returns when nothing is left to do: retries, maintenance and continuations have
    /// settled. While a compaction runs it is accepted and delivered after it.
    ///
    /// # Errors
    /// [`SessionError`]; the prompt is then not in the session.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Prompted, SessionError> {
        let prompt = prompt.into();
        if text_of(&prompt.blocks).trim().is_empty()
            && !prompt
                .blocks
                .iter()
                .any(|block| matches!(block, InputBlock::Image(_)))
        {
            return Err(SessionError::EmptyPrompt);
        }
        let lease = match self.shared.begin(OperationKind::Run) {
            Ok(lease) => lease,
            Err(OperationKind::Run) => {
                let delivery = prompt.while_running.ok_or(SessionError::AgentBusy)?;
                self.enqueue(prompt.blocks, delivery).await?;
                return self.queued_or_run().await;
            }
            Err(OperationKind::Handoff) => return Err(SessionError::HandoffInProgress),
            Err(_) => {
                self.enqueue(prompt.blocks, prompt.while_running.unwrap_or(Delivery::FollowUp))
                    .await?;
                return self.queued_or_run().await;
            }
        };
        // What was accepted before comes first.
        let start = if self.shared.queues().is_empty() {
            Start::Prompt(prompt.blocks)
        } else {
            self.enqueue(prompt.blocks, Delivery::FollowUp).await?;
            Start::Queue
        };
        self.run(lease, start).await.map(Prompted::Ran)
    }

    /// A message that was queued just when the operation ended gets its turn all the same.
    async fn queued_or_run(&self) -> Result<Prompted, SessionError> {
        match self.shared.begin(OperationKind::Run) {
            Ok(lease) if !self.shared.queues().is_empty() => {
                self.run(lease, Start::Queue).await.map(Prompted::Ran)
            }
            _ => Ok(Prompted::Queued),
        }
    }

    /// Queues a message that is delivered before the next request of a run. It is in the session when this returns.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.enqueue(vec![InputBlock::Text(text.into().into())], Delivery::Steer)
            .await
    }

    /// Queues a message that is delivered when a run would end. It is in the session when this returns.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.enqueue(vec![InputBlock::Text(text.into().into())], Delivery::FollowUp)
            .await
    }

    async fn enqueue(
        &self,
        blocks: Vec<InputBlock<'static>>,
        delivery: Delivery,
    ) -> Result<(), SessionError> {
        let message = Queued {
            id: uuid::Uuid::now_v7().simple().to_string(),
            delivery,
            blocks,
            alone: false,
        };
        self.shared.enqueue(message).await?;
        Ok(())
    }

    /// Takes the messages back that wait, for an editor; returns their texts by delivery.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn clear_queue(&self) -> Result<(Vec<String>, Vec<String>), SessionError> {
        let cleared = self.shared.clear_queue().await?;
        let of = |delivery| {
            let messages = cleared.iter().filter(|message| message.delivery == delivery);
            messages.map(|message| text_of(&message.blocks)).collect()
        };
        Ok((of(Delivery::Steer), of(Delivery::FollowUp)))
    }

    /// Holds waiting messages back, or releases them. Returns how many wait.
    pub fn pause_queue(&self, paused: bool) -> usize {
        let mut queues = self.shared.queues();
        queues.paused = paused;
        queues.all().count()
    }

    /// Goes on with the context as it is: a prompt that was not answered, results that the model did not read, messages
    /// that wait.
    ///
    /// # Errors
    /// There is nothing to go on with, or the session is busy.
    pub async fn resume(&self) -> Result<RunReport, SessionError> {
        let lease = self.begin(OperationKind::Run)?;
        let start = {
            let core = self.core.lock().await;
            let is_empty =
                context(&core.log, core.options.profile).is_ok_and(|context| context.items.is_empty());
            match core.tail() {
                Tail::Resumable => Start::Continue,
                Tail::Answered if !self.shared.queues().is_empty() => Start::Queue,
                Tail::Answered if is_empty => return Err(SessionError::NothingToContinue),
                Tail::Answered if core.has_open_calls() => Start::Continue,
                Tail::Answered => return Err(SessionError::AlreadyAnswered),
            }
        };
        self.run(lease, start).await
    }

    async fn run(&self, lease: Lease, start: Start) -> Result<RunReport, SessionError> {
        let core = Arc::clone(&self.core);
        let shared = Arc::clone(&self.shared);
        self.in_task(async move {
            let mut core = core.lock().await;
            if core.model().is_none() {
                return Err(SessionError::NoModel);
            }
            let mut report = core.drive(&lease, start).await;
            // A message that came in while the run was ending has not been seen by it.
            while !lease.is_cancelled() && report.error.is_none() && !shared.queues().next_any().is_empty() {
                report = core.drive(&lease, Start::Queue).await;
            }
            if let Some(requested) = shared.take_request().filter(|_| !lease.is_cancelled()) {
                let order = Order {
                    instructions: requested.instructions,
                    ..Order::automatic(Reason::Manual, Urgency::Recoverable)
                };
                let ended = core.compact(&lease, order).await;
                shared.emit(Event::CompactionEnd(Box::new(ended.end)));
            }
            drop(core);
            drop(lease);
            Ok(report)
        })
        .await
    }

    /// Compacts by hand. A run in progress is cancelled first; a running automatic compaction is taken over. Someone who
    /// asks while a compaction by hand runs gets the outcome of that one.
    ///
    /// # Errors
    /// The session is busy with something that a compaction must not interrupt.
    pub async fn compact(&self, options: CompactOptions) -> Result<CompactionEnd, SessionError> {
        let joined = {
            let mut manual = self.manual.lock().unwrap_or_else(PoisonError::into_inner);
            match &*manual {
                Some(running) => running.clone(),
                None => {
                    let session = self.clone();
                    let started = async move {
                        let ended = session.clone().compact_alone(options).await;
                        *session.manual.lock().unwrap_or_else(PoisonError::into_inner) = None;
                        ended
                    };
                    let task = tokio::spawn(started);
                    let shared: ManualCompaction = async move {
                        task.await
                            .unwrap_or_else(|error| Err(SessionError::Failed(error.to_string())))
                    }
                    .boxed()
                    .shared();
                    *manual = Some(shared.clone());
                    shared
                }
            }
        };
        joined.await
    }

    async fn compact_alone(self, options: CompactOptions) -> Result<CompactionEnd, SessionError> {
        let lease = self.take_over().await?;
        let order = Order {
            action: options.action,
            planner: options.planner,
            instructions: options.instructions,
            parameters: options.parameters,
            keep_recent: options.keep_recent,
            ..Order::automatic(Reason::Manual, Urgency::Recoverable)
        };
        let mut core = Arc::clone(&self.core).lock_owned().await;
        let ended = core.compact(&lease, order).await;
        let end = ended.end;
        // Whoever hears of the end may ask for the next thing at once.
        *self.manual.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let flushes =
            !lease.is_cancelled() && core.model().is_some() && !self.shared.queues().next_any().is_empty();
        if flushes {
            // Messages that came in meanwhile get their turn; the caller does not wait for that.
            lease.becomes(OperationKind::Run);
            self.shared.emit(Event::CompactionEnd(Box::new(end.clone())));
            tokio::spawn(async move {
                let report = core.drive(&lease, Start::Queue).await;
                tracing::debug!(?report.end, "delivered messages that waited for a compaction");
                drop(core);
                drop(lease);
            });
        } else {
            drop(core);
            drop(lease);
            self.shared.emit(Event::CompactionEnd(Box::new(end.clone())));
        }
        Ok(end)
    }

    /// The session for a compaction by hand.
    async fn take_over(&self) -> Result<Lease, SessionError> {
        loop {
            match self.shared.begin(OperationKind::Compact) {
                Ok(lease) => return Ok(lease),
                Err(OperationKind::Run) => {
                    if let Some(current) = &mut *self.shared.current() {
                        current.takeover = true;
                        current.cancel.cancel();
                    }
                    self.shared.wait_for_idle().await;
                }
                Err(holder @ OperationKind::Compact) => {
                    // Compaction of the idle session: nobody waits for it.
                    if !self.shared.is_running(Part::Compaction) {
                        return Err(busy(OperationKind::Compact, holder));
                    }
                    if let Some(current) = &mut *self.shared.current() {
                        current.takeover = true;
                        current.cancel.cancel();
                    }
                    self.shared.wait_for_idle().await;
                }
                Err(OperationKind::Edit) => self.shared.wait_for_idle().await,
                Err(holder) => return Err(busy(OperationKind::Compact, holder)),
            }
        }
    }

    /// Compacts because the session has been idle; returns at once if it is not.
    ///
    /// # Errors
    /// Never because of the compaction: its end is an event.
    pub async fn compact_idle(&self) -> Result<(), SessionError> {
        let Ok(lease) = self.shared.begin(OperationKind::Compact) else {
            return Ok(());
        };
        let core = Arc::clone(&self.core);
        self.in_task(async move {
            let mut core = core.lock().await;
            drop(core.idle(&lease).await);
            Ok(())
        })
        .await
    }

    /// Cancels whatever is in progress. Messages that wait stay.
    pub fn abort(&self) {
        if let Some(current) = &*self.shared.current() {
            current.cancel.cancel();
        }
    }

    /// Cancels the compaction in progress, and nothing else. Says whether there was one.
    pub fn abort_compaction(&self) -> bool {
        self.shared.stop(Part::Compaction) || self.shared.stop(Part::Handoff)
    }

    /// Ends the wait before a retry; the retry does not happen. Says whether there was one.
    pub fn abort_retry(&self) -> bool {
        self.shared.stop(Part::Retry)
    }

    /// Cancels the summary of a branch. Says whether there was one.
    pub fn abort_branch_summary(&self) -> bool {
        self.shared.stop(Part::BranchSummary)
    }

    /// Cancels the handoff in progress. Says whether there was one.
    pub fn abort_handoff(&self) -> bool {
        self.shared.stop(Part::Handoff)
    }

    /// Waits until nothing is in progress.
    pub async fn wait_for_idle(&self) {
        self.shared.wait_for_idle().await;
    }

    /// Waits until nothing is in progress, but not longer than this. Says whether it is so.
    pub async fn wait_for_idle_within(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.wait_for_idle()).await.is_ok()
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
    pub async fn set_name(&self, name: &str) -> Result<EntryId, SessionError> {
        let name = name.trim().to_owned();
        if name.is_empty() {
            return Err(SessionError::Failed("Session name cannot be empty".to_owned()));
        }
        self.edit(move |core| async move { Ok(core.append(EntryDraft::session_info(&name)).await?) }.boxed())
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
            let mut core = core.lock().await;
            let done = change(&mut core).await;
            drop(core);
            drop(lease);
            done
        })
        .await
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
