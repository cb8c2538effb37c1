//! What an operation and everyone who watches or stops it share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldline_compaction_core::decide::Reason;
use foldline_session_model::log::SessionLog;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, Events, NoticeLevel};
use crate::journal::{CommitError, Committed, Group, Journal, Pending};
use crate::queue::{Delivery, Queued, Queues, dequeued_entry, queued_entry};

/// What a session is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationKind {
    /// A run of the agent.
    Run,
    /// A compaction that someone asked for, or one because the session is idle.
    Compact,
    /// A handoff.
    Handoff,
    /// A move in the tree.
    Navigate,
    /// A prune, an undo, a label: short changes.
    Edit,
}

impl OperationKind {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Compact => "compact",
            Self::Handoff => "handoff",
            Self::Navigate => "navigate-tree",
            Self::Edit => "edit",
        }
    }
}

/// A part of an operation that can be stopped by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Compaction,
    Retry,
    BranchSummary,
    Handoff,
}

/// A compaction that a hook asked for.
#[derive(Debug)]
pub(crate) struct Requested {
    pub(crate) instructions: Option<String>,
}

/// The operation that holds the session.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) kind: OperationKind,
    pub(crate) cancel: CancellationToken,
    part: Option<(Part, CancellationToken)>,
    /// Why the context is being compacted, while it is.
    reason: Option<Reason>,
    /// Someone asked for a compaction by hand, which takes the place of the running automatic one.
    pub(crate) takeover: bool,
}

/// Shared by a session's core, its handles and its operations.
#[derive(Debug)]
pub(crate) struct Shared {
    journal: Mutex<Arc<Journal>>,
    pub(crate) events: Events,
    /// The session's id.
    session_id: Mutex<Arc<str>>,
    model: Mutex<Option<String>>,
    /// A compaction that a hook asked for, with its instructions.
    requested: Mutex<Option<Requested>>,
    queues: Mutex<Queues>,
    /// Held while the file and the queues change together: nobody sees the one without the other.
    books: tokio::sync::Mutex<()>,
    current: Mutex<Option<Current>>,
    /// Cancels what is prepared beside the agent, if something is.
    ahead: Mutex<Option<CancellationToken>>,
    idle: Notify,
}

impl Shared {
    pub(crate) fn new(journal: Journal, log: &SessionLog) -> Self {
        Self {
            session_id: Mutex::new(log.header().id.as_str().into()),
            model: Mutex::new(None),
            queues: Mutex::new(Queues::of(log)),
            journal: Mutex::new(Arc::new(journal)),
            requested: Mutex::new(None),
            books: tokio::sync::Mutex::new(()),
            events: Events::default(),
            current: Mutex::new(None),
            ahead: Mutex::new(None),
            idle: Notify::new(),
        }
    }

    pub(crate) fn journal(&self) -> Arc<Journal> {
        Arc::clone(&self.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn session_id(&self) -> Arc<str> {
        Arc::clone(&self.session_id.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves to another session, whose file holds what waits. The caller [keeps the books](Self::books) meanwhile.
    pub(crate) fn switch_to(&self, journal: Journal, log: &SessionLog) {
        let (steer_mode, follow_up_mode, paused, prompted) = {
            let queues = self.queues();
            (
                queues.steer_mode,
                queues.follow_up_mode,
                queues.paused,
                queues.prompted,
            )
        };
        *self.session_id.lock().unwrap_or_else(PoisonError::into_inner) = log.header().id.as_str().into();
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(journal);
        let mut queues = Queues::of(log);
        queues.steer_mode = steer_mode;
        queues.follow_up_mode = follow_up_mode;
        queues.paused = paused;
        queues.prompted = prompted;
        *self.queues() = queues;
    }

    /// Remembers that a hook wants a compaction as soon as one may be made.
    pub(crate) fn request_compaction(&self, instructions: Option<String>) {
        *self.requested.lock().unwrap_or_else(PoisonError::into_inner) = Some(Requested { instructions });
    }

    /// The compaction that a hook asked for since the last call.
    pub(crate) fn take_request(&self) -> Option<Requested> {
        self.requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the session's model, for whoever does not hold the core.
    pub(crate) fn model(&self) -> MutexGuard<'_, Option<String>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the session for an operation, or says who has it.
    pub(crate) fn begin(self: &Arc<Self>, kind: OperationKind) -> Result<Lease, OperationKind> {
        let mut current = self.current();
        match &*current {
            Some(holder) => Err(holder.kind),
            None => Ok(self.take(&mut current, kind)),
        }
    }

    fn take(self: &Arc<Self>, current: &mut Option<Current>, kind: OperationKind) -> Lease {
        let cancel = CancellationToken::new();
        *current = Some(Current {
            kind,
            cancel: cancel.clone(),
            part: None,
            reason: None,
            takeover: false,
        });
        Lease {
            shared: Arc::clone(self),
            cancel,
            held: true,
        }
    }

    /// Takes the session for a run of the messages that wait, if nobody has it. Whoever has it delivers them, and is told
    /// to where that is not a matter of course.
    pub(crate) fn begin_for_waiting(self: &Arc<Self>) -> Option<Lease> {
        let mut current = self.current();
        let mut queues = self.queues();
        match &*current {
            Some(holder) => {
                if holder.kind != OperationKind::Run || holder.cancel.is_cancelled() {
                    queues.prompted = true;
                }
                None
            }
            None if queues.next_any().is_empty() => None,
            None => {
                drop(queues);
                Some(self.take(&mut current, OperationKind::Run))
            }
        }
    }

    /// Cancels the operation, and with it the prompts that wait for its end and what is prepared beside it. The messages
    /// stay.
    pub(crate) fn abort(&self) {
        self.stop_ahead();
        if let Some(current) = &*self.current() {
            current.cancel.cancel();
            self.queues().prompted = false;
        }
    }

    /// Waits until no operation holds the session.
    pub(crate) async fn wait_for_idle(&self) {
        loop {
            let notified = self.idle.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            if self.current().is_none() {
                return;
            }
            notified.await;
        }
    }

    /// Stops a part of the operation, if it is running. Says whether it was.
    pub(crate) fn stop(&self, part: Part) -> bool {
        match &*self.current() {
            Some(Current {
                part: Some((running, token)),
                ..
            }) if *running == part => {
                token.cancel();
                true
            }
            _ => false,
        }
    }

    /// What cancels the preparation beside the agent.
    pub(crate) fn ahead(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels what is prepared beside the agent. Says whether something was.
    pub(crate) fn stop_ahead(&self) -> bool {
        let token = self.ahead().take();
        token.inspect(CancellationToken::cancel).is_some()
    }

    /// Why the context is being compacted, if it is.
    pub(crate) fn compaction_reason(&self) -> Option<Reason> {
        self.current().as_ref().and_then(|current| current.reason)
    }

    /// Whether this part is running.
    pub(crate) fn is_running(&self, part: Part) -> bool {
        matches!(&*self.current(), Some(Current { part: Some((running, _)), .. }) if *running == part)
    }

    pub(crate) fn emit(&self, event: Event) {
        self.events.emit(event);
    }

    pub(crate) fn emit_queues(&self) {
        let (steering, follow_up) = {
            let queues = self.queues();
            (queues.texts(Delivery::Steer), queues.texts(Delivery::FollowUp))
        };
        self.emit(Event::QueueUpdate { steering, follow_up });
    }

    /// Accepts a message: it is in the session when this returns.
    pub(crate) async fn enqueue(&self, message: Queued) -> Result<(), CommitError> {
        let _books = self.books().await;
        self.keep_books(queued_entry(std::slice::from_ref(&message)))
            .await?;
        self.queues().push(message);
        self.emit_queues();
        Ok(())
    }

    /// Takes all waiting messages back.
    pub(crate) async fn clear_queue(&self) -> Result<Vec<Queued>, CommitError> {
        let _books = self.books().await;
        let messages: Vec<Queued> = self.queues().all().cloned().collect();
        if messages.is_empty() {
            return Ok(messages);
        }
        self.keep_books(dequeued_entry(&messages)).await?;
        let cleared = self.queues().clear();
        self.emit_queues();
        Ok(cleared)
    }

    /// Keeps everyone else from changing what waits.
    pub(crate) async fn books(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.books.lock().await
    }

    async fn keep_books(&self, draft: foldline_session_model::EntryDraft) -> Result<(), CommitError> {
        let journal = self.journal();
        let group = Group {
            entries: vec![Pending::from(draft)],
            bookkeeping: true,
            ..Group::default()
        };
        let committed = journal.commit_books(group).await?;
        self.tell_retries(&committed);
        Ok(())
    }

    /// Says that something was written only after the disk had refused it (R08).
    pub(crate) fn tell_retries(&self, committed: &Committed) {
        if let Some(refused) = &committed.refused_before {
            self.events.notice(
                NoticeLevel::Warning,
                Some("session"),
                format!("The session was written only after another try: {refused}"),
            );
        }
    }
}

/// The right to change a session, for one operation.
#[derive(Debug)]
pub(crate) struct Lease {
    shared: Arc<Shared>,
    /// Cancelled when the operation is.
    pub(crate) cancel: CancellationToken,
    /// Not yet let go of.
    held: bool,
}

/// What happens to the messages that wait when an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// They get their turn.
    Deliver,
    /// They stay, but for prompts that were accepted on the promise that they run after this operation.
    Leave,
}

impl Lease {
    /// Lets go of the session; if messages wait that get their turn now, it becomes a run instead. There is no moment in
    /// between in which a message could be overlooked.
    pub(crate) fn end(mut self, waiting: Waiting) -> Option<Self> {
        let shared = Arc::clone(&self.shared);
        let mut current = shared.current();
        let mut queues = shared.queues();
        let takeover = current.as_ref().is_some_and(|current| current.takeover);
        let waits = !queues.next_any().is_empty();
        let due = queues.prompted || waiting == Waiting::Deliver;
        self.held = false;
        if waits && due && !takeover {
            queues.prompted = false;
            drop(queues);
            return Some(shared.take(&mut current, OperationKind::Run));
        }
        if !waits {
            queues.prompted = false;
        }
        *current = None;
        shared.idle.notify_waiters();
        None
    }

    /// Begins a compaction for this reason; as [`part`](Self::part).
    pub(crate) fn compaction(&self, reason: Reason) -> PartGuard<'_> {
        let part = self.part(Part::Compaction);
        if let Some(current) = &mut *self.shared.current() {
            current.reason = Some(reason);
        }
        part
    }

    /// Begins a part that can be stopped by itself; it ends when the guard is dropped.
    pub(crate) fn part(&self, part: Part) -> PartGuard<'_> {
        let token = self.cancel.child_token();
        if let Some(current) = &mut *self.shared.current() {
            current.part = Some((part, token.clone()));
        }
        PartGuard { lease: self, token }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether a compaction by hand waits for this operation.
    pub(crate) fn takeover(&self) -> bool {
        self.shared
            .current()
            .as_ref()
            .is_some_and(|current| current.takeover)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.held {
            *self.shared.current() = None;
            self.shared.idle.notify_waiters();
        }
    }
}

/// How long work that was cancelled may take to notice it (R11: a cancel takes effect within 200 ms).
const GRACE: Duration = Duration::from_millis(100);

/// The outcome of work; `None`: it was cancelled and did not come to an end in time, so it was dropped.
pub(crate) async fn within_grace<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    let too_late = async {
        cancel.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = too_late => None,
    }
}

/// A part of an operation.
pub(crate) struct PartGuard<'l> {
    lease: &'l Lease,
    /// Cancelled when the part is, or the whole operation.
    pub(crate) token: CancellationToken,
}

impl Drop for PartGuard<'_> {
    fn drop(&mut self) {
        if let Some(current) = &mut *self.lease.shared.current() {
            current.part = None;
            current.reason = None;
        }
    }
}
