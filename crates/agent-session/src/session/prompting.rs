//! Saying something to the model, at once or when its turn comes (spec "Orchestrator and clients", 1.2 and 1.5; R09).

use std::sync::Arc;

use foldline_compaction_core::decide::{Reason, Urgency};
use foldline_session_model::model_call::InputBlock;

use super::{AgentSession, Prompt, Prompted, SessionError};
use crate::compaction::Order;
use crate::continuation::Tail;
use crate::core::context;
use crate::event::Event;
use crate::message::text_of;
use crate::queue::{Delivery, Queued};
use crate::run::{RunReport, Start};
use crate::shared::{Lease, OperationKind, Waiting};

impl AgentSession {
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
        let lease = loop {
            match self.shared.begin(OperationKind::Run) {
                Ok(lease) => break lease,
                Err(OperationKind::Run) => {
                    let delivery = prompt.while_running.ok_or(SessionError::AgentBusy)?;
                    return self.wait_for_turn(prompt.blocks, delivery).await;
                }
                Err(OperationKind::Handoff) => return Err(SessionError::HandoffInProgress),
                // Over in a moment.
                Err(OperationKind::Edit) => self.shared.wait_for_idle().await,
                Err(_) => {
                    let delivery = prompt.while_running.unwrap_or(Delivery::FollowUp);
                    return self.wait_for_turn(prompt.blocks, delivery).await;
                }
            }
        };
        if self.shared.model().is_none() {
            return Err(SessionError::NoModel);
        }
        // What was accepted before comes first.
        let start = if self.shared.queues().next_any().is_empty() {
            Start::Prompt(prompt.blocks)
        } else {
            self.enqueue(prompt.blocks, Delivery::FollowUp).await?;
            Start::Queue
        };
        self.run(lease, start).await.map(Prompted::Ran)
    }

    /// Accepts a message that someone else delivers; if they have just let go of the session, nobody would, so this does.
    async fn wait_for_turn(
        &self,
        blocks: Vec<InputBlock<'static>>,
        delivery: Delivery,
    ) -> Result<Prompted, SessionError> {
        self.enqueue(blocks, delivery).await?;
        match self.shared.begin_for_waiting() {
            Some(lease) => self.run(lease, Start::Queue).await.map(Prompted::Ran),
            None => Ok(Prompted::Queued),
        }
    }

    /// Queues a message that is delivered before the next request of a run. It is in the session when this returns.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn steer(&self, message: impl Into<Prompt>) -> Result<(), SessionError> {
        self.enqueue(message.into().blocks, Delivery::Steer).await
    }

    /// Queues a message that is delivered when a run would end. It is in the session when this returns.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn follow_up(&self, message: impl Into<Prompt>) -> Result<(), SessionError> {
        self.enqueue(message.into().blocks, Delivery::FollowUp).await
    }

    /// In a task of its own, so that a caller who goes away leaves no message that is written and not known to wait.
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
        let shared = Arc::clone(&self.shared);
        self.in_task(async move { Ok(shared.enqueue(message).await?) })
            .await
    }

    /// Takes the messages back that wait, for an editor; returns their texts by delivery.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn clear_queue(&self) -> Result<(Vec<String>, Vec<String>), SessionError> {
        let shared = Arc::clone(&self.shared);
        let cleared = self
            .in_task(async move { Ok(shared.clear_queue().await?) })
            .await?;
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
        if self.shared.model().is_none() {
            return Err(SessionError::NoModel);
        }
        let start = {
            let core = self.core.lock().await;
            let is_empty =
                context(&core.log, core.options.profile).is_ok_and(|context| context.items.is_empty());
            match core.tail() {
                Tail::Resumable => Start::Continue,
                Tail::Answered if !self.shared.queues().next_any().is_empty() => Start::Queue,
                Tail::Answered if is_empty => return Err(SessionError::NothingToContinue),
                Tail::Answered if core.has_open_calls() => Start::Continue,
                Tail::Answered => return Err(SessionError::AlreadyAnswered),
            }
        };
        self.run(lease, start).await
    }

    async fn run(&self, lease: Lease, start: Start) -> Result<RunReport, SessionError> {
        let session = self.clone();
        self.in_task(async move {
            let mut core = session.core().lock_owned().await;
            let (mut lease, mut start) = (lease, start);
            loop {
                let report = core.drive(&lease, start).await?;
                if let Some(requested) = session.shared.take_request().filter(|_| !lease.is_cancelled()) {
                    let order = Order {
                        instructions: requested.instructions,
                        ..Order::automatic(Reason::Manual, Urgency::Recoverable)
                    };
                    let ended = core.compact(&lease, order).await;
                    session.shared.emit(Event::CompactionEnd(Box::new(ended.end)));
                }
                let goes_on = !lease.is_cancelled() && report.error.is_none();
                let waiting = if goes_on { Waiting::Deliver } else { Waiting::Leave };
                match lease.end(waiting) {
                    None => return Ok(report),
                    // A message that came in while the run was ending has not been seen by it.
                    Some(next) if goes_on => (lease, start) = (next, Start::Queue),
                    // One that came in after a cancel is no part of what was cancelled.
                    Some(next) => {
                        Self::deliver_behind(core, next);
                        return Ok(report);
                    }
                }
            }
        })
        .await
    }
}
