//! Compactions that someone asks for, and those of an idle session (spec "Orchestrator and clients", 3.8 and 6.2).

use std::sync::{Arc, PoisonError};

use foldline_compaction_core::decide::{Reason, Urgency};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{AgentSession, CompactOptions, SessionError, busy};
use crate::compaction::Order;
use crate::event::{CompactionEnd, Event};
use crate::shared::{Lease, OperationKind, Waiting};

/// A compaction by hand that is running, for those who ask for one meanwhile.
pub(super) type ManualCompaction =
    futures::future::Shared<BoxFuture<'static, Result<CompactionEnd, SessionError>>>;

impl AgentSession {
    /// Compacts by hand. A run in progress is cancelled first; a running automatic compaction is taken over. Someone who
    /// asks while a compaction by hand runs gets the outcome of that one.
    ///
    /// # Errors
    /// The session is busy with something that a compaction must not interrupt.
    pub async fn compact(&self, options: CompactOptions) -> Result<CompactionEnd, SessionError> {
        let joined = {
            let mut manual = self.manual.lock().unwrap_or_else(PoisonError::into_inner);
            match &*manual {
                // One that has ended is none to join.
                Some(running) if running.peek().is_none() => running.clone(),
                _ => {
                    // Whoever cancels right behind this call means this compaction.
                    let lease = self.shared.begin(OperationKind::Compact).ok();
                    let task = tokio::spawn(self.clone().compact_alone(options, lease));
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

    async fn compact_alone(
        self,
        options: CompactOptions,
        lease: Option<Lease>,
    ) -> Result<CompactionEnd, SessionError> {
        let taken = match lease {
            Some(lease) => Ok(lease),
            None => self.take_over().await,
        };
        let lease = match taken {
            Ok(lease) => lease,
            Err(error) => {
                self.forget_manual();
                return Err(error);
            }
        };
        let order = Order {
            action: options.action,
            planner: options.planner,
            instructions: options.instructions,
            parameters: options.parameters,
            keep_recent: options.keep_recent,
            backup: options.backup,
            ..Order::automatic(Reason::Manual, Urgency::Recoverable)
        };
        let mut core = Arc::clone(&self.core).lock_owned().await;
        let ended = core.compact(&lease, order).await;
        let end = ended.end;
        // Whoever hears of the end may ask for the next thing at once.
        self.forget_manual();
        let waiting = if lease.is_cancelled() || core.model().is_none() {
            Waiting::Leave
        } else {
            Waiting::Deliver
        };
        let next = lease.end(waiting);
        self.shared.emit(Event::CompactionEnd(Box::new(end.clone())));
        if let Some(lease) = next {
            // Messages that came in meanwhile get their turn; the caller does not wait for that.
            Self::deliver_behind(core, lease);
        }
        Ok(end)
    }

    fn forget_manual(&self) {
        *self.manual.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The session for a compaction by hand.
    async fn take_over(&self) -> Result<Lease, SessionError> {
        loop {
            match self.shared.begin(OperationKind::Compact) {
                Ok(lease) => return Ok(lease),
                // A run, the compaction of an idle session, or the very end of one by hand.
                Err(OperationKind::Run | OperationKind::Compact) => {
                    if let Some(current) = &mut *self.shared.current()
                        && matches!(current.kind, OperationKind::Run | OperationKind::Compact)
                    {
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
        let core = self.core();
        self.in_task(async move {
            let mut core = core.lock_owned().await;
            drop(core.idle(&lease).await);
            Self::release(core, lease);
            Ok(())
        })
        .await
    }
}
