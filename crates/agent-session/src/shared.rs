//! What an operation and everyone who watches or stops it share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldline_session_model::log::SessionLog;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, Events};
use crate::journal::{CommitError, Group, Journal, Pending};
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
    current: Mutex<Option<Current>>,
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
            events: Events::default(),
            current: Mutex::new(None),
            idle: Notify::new(),
        }
    }

    pub(crate) fn journal(&self) -> Arc<Journal> {
        Arc::clone(&self.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn session_id(&self) -> Arc<str> {
        Arc::clone(&self.session_id.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves to another session. What waits stays behind in the file of the old one.
    pub(crate) fn switch_to(&self, journal: Journal, log: &SessionLog) {
        let (steer_mode, follow_up_mode) = {
            let queues = self.queues();
            (queues.steer_mode, queues.follow_up_mode)
        };
        *self.session_id.lock().unwrap_or_else(PoisonError::into_inner) = log.header().id.as_str().into();
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(journal);
        let mut queues = Queues::of(log);
        queues.steer_mode = steer_mode;
        queues.follow_up_mode = follow_up_mode;
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
        if let Some(holder) = &*current {
            return Err(holder.kind);
        }
        let cancel = CancellationToken::new();
        *current = Some(Current {
            kind,
            cancel: cancel.clone(),
            part: None,
            takeover: false,
        });
        Ok(Lease {
            shared: Arc::clone(self),
            cancel,
        })
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
    pub(crate) async fn enqueue(self: &Arc<Self>, message: Queued) -> Result<(), CommitError> {
        self.keep_books(queued_entry(std::slice::from_ref(&message)))
            .await?;
        self.queues().push(message);
        self.emit_queues();
        Ok(())
    }

    /// Takes all waiting messages back.
    pub(crate) async fn clear_queue(self: &Arc<Self>) -> Result<Vec<Queued>, CommitError> {
        let messages: Vec<Queued> = self.queues().all().cloned().collect();
        if messages.is_empty() {
            return Ok(messages);
        }
        self.keep_books(dequeued_entry(&messages)).await?;
        let cleared = self.queues().clear();
        self.emit_queues();
        Ok(cleared)
    }

    async fn keep_books(
        self: &Arc<Self>,
        draft: foldline_session_model::EntryDraft,
    ) -> Result<(), CommitError> {
        let journal = self.journal();
        let group = Group {
            entries: vec![Pending::from(draft)],
            bookkeeping: true,
            ..Group::default()
        };
        journal.commit_books(group).await.map(|_| ())
    }
}

/// The right to change a session, for one operation.
#[derive(Debug)]
pub(crate) struct Lease {
    shared: Arc<Shared>,
    /// Cancelled when the operation is.
    pub(crate) cancel: CancellationToken,
}

impl Lease {
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

    /// The operation becomes one of another kind, without letting go of the session.
    pub(crate) fn becomes(&self, kind: OperationKind) {
        if let Some(current) = &mut *self.shared.current() {
            current.kind = kind;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.shared.current() = None;
        self.shared.idle.notify_waiters();
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
        }
    }
}
