//! A compaction that is prepared beside the agent and committed once it is due (DESIGN, D21).
//!
//! From a soft line below the threshold on, the plan is made on a copy of what the session knows, in a task of its own.
//! What is said meanwhile comes after the plan's boundary and stays. The plan holds as long as the session only grew:
//! another place in the tree, another compaction, another model or other settings, and it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldline_compaction_core::accounting::Limits;
use foldline_compaction_core::decide::{Because, Reason, Urgency};
use foldline_compaction_core::settings::{Planner, Strategy};
use foldline_session_model::entry::EntryKind;
use foldline_session_model::model_call::ModelRef;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::{EntryId, Tokens};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{NotPlanned, Order, Planned, Prepared, Timing};
use crate::core::{Core, Live, context};
use crate::event::{AheadOutcome, CompactionAction, Event};
use crate::hooks::HookEvent;
use crate::shared::Shared;

/// A plan that is being made, or waits until it is due. Dropped, it is cancelled.
#[derive(Debug)]
pub(crate) struct Ahead {
    action: CompactionAction,
    planner: Planner,
    model: Option<ModelRef>,
    /// The newest compaction when the plan was begun.
    compaction: Option<EntryId>,
    /// The end of the path then.
    leaf: EntryId,
    cancel: CancellationToken,
    end: Arc<End>,
    task: JoinHandle<Option<Ready>>,
}

/// A plan and the failures before it.
#[derive(Debug)]
struct Ready {
    planned: Planned,
    failures: Vec<String>,
}

/// Tells the end of a preparation, once.
#[derive(Debug)]
struct End {
    shared: Arc<Shared>,
    told: AtomicBool,
}

impl End {
    fn tell(&self, outcome: AheadOutcome, why: Option<String>) {
        if !self.told.swap(true, Ordering::SeqCst) {
            drop(self.shared.ahead().take());
            self.shared.emit(Event::BackgroundCompactionEnd {
                outcome,
                error_message: why,
            });
        }
    }
}

impl Ahead {
    fn drop_because(self, why: &str) {
        self.end.tell(AheadOutcome::Dropped, Some(why.to_owned()));
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.task.abort();
        self.end.tell(AheadOutcome::Dropped, None);
    }
}

impl Core {
    /// Begins a preparation where nothing is due yet, if the settings ask for it and the context has crossed the soft
    /// line. One at a time, and one only until something changes.
    pub(crate) fn prepare_ahead(&mut self, because: Because, pending: Tokens) {
        let Some(soft) = self.options.settings.background else {
            return;
        };
        if self
            .live
            .ahead
            .as_ref()
            .is_some_and(|ahead| ahead.cancel.is_cancelled())
        {
            self.live.ahead = None;
        }
        if because != Because::BelowThreshold || self.live.ahead.is_some() || !self.plans_alone() {
            return;
        }
        let planner = self.planner();
        let action = match self.options.settings.compaction.strategy.resolved(planner) {
            Strategy::VerbatimLines => CompactionAction::VerbatimLines,
            Strategy::ContextFull => CompactionAction::ContextFull,
            _ => return,
        };
        let Some((compaction, leaf, size)) = self.stand() else {
            return;
        };
        let is_near = |limits: &Limits| size + pending > soft.of(limits.threshold());
        if !self.limits().as_ref().is_some_and(is_near) {
            return;
        }
        let order = Order {
            timing: Timing::Ahead,
            ..Order::automatic(Reason::Threshold, Urgency::Recoverable)
        };
        let cancel = CancellationToken::new();
        *self.shared.ahead() = Some(cancel.clone());
        let end = Arc::new(End {
            shared: Arc::clone(&self.shared),
            told: AtomicBool::new(false),
        });
        self.shared.emit(Event::BackgroundCompactionStart { action });
        let mut beside = self.copy();
        let (token, told) = (cancel.clone(), Arc::clone(&end));
        let task = tokio::spawn(async move {
            let (mut failures, mut size) = (Vec::new(), None);
            let planned = beside
                .planned(&order, action, planner, &token, &mut failures, &mut size)
                .await;
            match planned {
                Ok(planned) => Some(Ready { planned, failures }),
                Err(not) => {
                    let (outcome, why) = match not {
                        NotPlanned::Skipped(why) | NotPlanned::Unpaid { reason: why, .. } => {
                            (AheadOutcome::Dropped, Some(why))
                        }
                        NotPlanned::Cancelled | NotPlanned::Vetoed => (AheadOutcome::Dropped, None),
                        NotPlanned::Failed(why) | NotPlanned::FailedBy { cause: why, .. } => {
                            (AheadOutcome::Failed, Some(why))
                        }
                    };
                    told.tell(outcome, why);
                    None
                }
            }
        });
        self.live.ahead = Some(Ahead {
            action,
            planner,
            model: self.model_ref(),
            compaction,
            leaf,
            cancel,
            end,
            task,
        });
    }

    /// Forgets a preparation: what it was made for is gone.
    pub(crate) fn drop_ahead(&mut self, why: &str) {
        if let Some(ahead) = self.live.ahead.take() {
            ahead.drop_because(why);
        }
    }

    /// The prepared plan for a compaction that is due now, brought up to what was said meanwhile. One that is still being
    /// made is waited for: it began earlier than any other could.
    pub(super) async fn take_ahead(
        &mut self,
        order: &Order,
        action: CompactionAction,
        planner: Planner,
        token: &CancellationToken,
    ) -> Option<(Planned, Vec<String>)> {
        let mut ahead = self.live.ahead.take()?;
        if !matches!(order.reason, Reason::Threshold | Reason::Idle) {
            ahead.drop_because("a compaction for another reason came first");
            return None;
        }
        if ahead.action != action || ahead.planner != planner || ahead.model != self.model_ref() {
            ahead.drop_because("the session is compacted in another way now");
            return None;
        }
        let ready = tokio::select! {
            biased;
            () = token.cancelled() => None,
            () = ahead.cancel.cancelled() => None,
            done = &mut ahead.task => done.ok().flatten(),
        };
        // Without one the end was told, or is by dropping this.
        let Ready { planned, failures } = ready?;
        match self.brought_up(&ahead, planned, order) {
            Ok(planned) => {
                ahead.end.tell(AheadOutcome::Committed, None);
                Some((planned, failures))
            }
            Err(why) => {
                ahead.drop_because(why);
                None
            }
        }
    }

    /// The plan for the session as it is, if it only grew.
    fn brought_up(
        &self,
        ahead: &Ahead,
        mut planned: Planned,
        order: &Order,
    ) -> Result<Planned, &'static str> {
        const MOVED: &str = "the session moved on elsewhere";
        let context = context(&self.log, self.options.profile).map_err(|_| MOVED)?;
        let log = context.log;
        let at = context
            .path
            .iter()
            .rposition(|ix| log.id(*ix) == ahead.leaf.as_str());
        let newest = context.compaction.map(|ix| log.entry_id(ix));
        let Some(at) = at.filter(|_| newest == ahead.compaction) else {
            return Err(MOVED);
        };
        let newer = context.path.get(at + 1..).unwrap_or_default();
        if newer.iter().any(|ix| log.kind(*ix) == EntryKind::Compaction) {
            return Err(MOVED);
        }
        let first_newer = newer.first().map(|ix| log.entry_id(*ix));
        let added: Tokens = context
            .items
            .iter()
            .filter(|item| newer.contains(&item.source))
            .map(|item| Heuristic.message(&item.message))
            .sum();
        planned.tokens_before += added;
        planned.tokens_after += added;
        let saved = planned.tokens_before.saturating_sub(planned.tokens_after);
        if saved < order.demand().least(planned.tokens_before) {
            return Err("it would not pay any more");
        }
        let still_over = |limits: &Limits| limits.exceeded_by(planned.tokens_after + self.overhead());
        if self.limits().as_ref().is_some_and(still_over) {
            return Err("too much was said since");
        }
        planned.draft.tokens_before = self.size(&context, Tokens::ZERO).tokens;
        // All that was there then may be in the plan; what came later stays.
        planned.draft.first_kept = planned.draft.first_kept.take().or(first_newer);
        planned.extras.prepared = Prepared::InBackground;
        Ok(planned)
    }

    /// Whether a plan may be made without asking anybody: hooks speak about what is about to happen.
    fn plans_alone(&self) -> bool {
        let hooks = &self.options.hooks;
        !hooks.wants(HookEvent::SessionBeforeCompact) && !hooks.wants(HookEvent::SessionCompacting)
    }

    /// The newest compaction, the end of the path and the size of the context.
    fn stand(&self) -> Option<(Option<EntryId>, EntryId, Tokens)> {
        let context = context(&self.log, self.options.profile).ok()?;
        let leaf = context.path.last()?;
        Some((
            context.compaction.map(|ix| context.log.entry_id(ix)),
            context.log.entry_id(*leaf),
            self.size(&context, Tokens::ZERO).tokens,
        ))
    }

    /// The same session as it is now, for a task that changes nothing.
    fn copy(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            log: Arc::clone(&self.log),
            options: self.options.clone(),
            live: Live {
                windows: self.live.windows.clone(),
                fallback: self.live.fallback,
                ..Live::new()
            },
        }
    }
}
