//! Maintenance at a boundary: the table of compaction-core is asked, and asked again after each step, until there is
//! nothing left to do (DESIGN, rule 3; spec "Orchestrator and clients", 3).

mod follow;
mod snapshot;

use follow::stop_of;
use snapshot::last_assistant;

use foldline_compaction_core::accounting::{
    EmergencyLimits, EmergencyReason, Limits, MaintenancePrune, ResourceSample,
};
use foldline_compaction_core::decide::{
    Action, Age, AnswerModel, Because, Boundary, Compaction, Guard, LastAnswer, Overflow, Promotion, Prune,
    PruneMinimum, Reason, Snapshot, Then, Unresolved, Urgency, decide,
};
use foldline_compaction_core::prompts::{Prompt, Prompts, Variables};
use foldline_pruning::{Originals, View, plan};
use foldline_session_model::Tokens;
use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::Context;
use foldline_session_model::message::{AssistantMessage, Message, StopReason};
use foldline_session_model::model_call::{ErrorClass, OtherCause};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use crate::ask::media_bytes;
use crate::compaction::{Ended, Order, class_of_text};
use crate::continuation::{
    AutoContinue, Came, Continuation, Evidence, Headroom, Situation, Stopped, Tail, Waiting, continuation,
};
use crate::core::{Core, context};
use crate::event::{CompactionAction, CompactionEnd, Event, NoticeLevel, OperationOutcome, reason_name};
use crate::handoff::HandoffOptions;
use crate::message::Speaker;
use crate::retry::Fallback;
use crate::run::Input;
use crate::session::SessionError;
use crate::shared::Lease;
use crate::state_lines;

/// What maintenance came to.
#[derive(Debug)]
pub(crate) enum Maintained {
    /// Nothing that changes what follows.
    Nothing,
    /// The context was to be made smaller; what follows.
    Compacted(Continuation),
    /// The operation was cancelled.
    Cancelled,
    /// The run must not go on, and why.
    Stop(String),
}

const GUARD_USED: &str = "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context \
                          or switching to a larger-context model.";
const DISABLED: &str = "Context overflow: the settings switch automatic compaction off, so the same request is not sent \
                        again. Compact by hand, or switch to a larger-context model.";
const BREAKER_OPEN: &str = "Context overflow: automatic compaction failed too often and is switched off until one \
                            succeeds. Compact by hand, or switch to another model.";
const NOTHING_ELIGIBLE: &str = "Context overflow recovery skipped: nothing eligible to compact. Run /clear to preserve \
                                this session ID, or switch to a larger-context model before retrying.";
const TRUNCATION_STAYS: &str = "Response truncation recovery stopped after one retry.";
/// So many answers in a row are continued after they ended at the model's output limit.
const LENGTH_CONTINUATIONS: u32 = 3;
const NO_UNFINISHED_WORK: &str = "Auto-continue skipped: no unfinished work detected";

impl Core {
    /// Does what is due at a boundary. `pending` is the estimate of what is about to be sent.
    pub(crate) async fn maintain(
        &mut self,
        lease: &Lease,
        boundary: Boundary,
        pending: Tokens,
    ) -> Maintained {
        let mut prune = Prune::Unknown;
        // Each step changes what the table sees, so it is asked again; the number of steps is bounded all the same.
        for _ in 0..8 {
            if lease.is_cancelled() {
                return Maintained::Cancelled;
            }
            let (action, over_window) = match self.decision(boundary, pending, prune) {
                Ok(decided) => decided,
                Err(error) => {
                    self.shared
                        .events
                        .notice(NoticeLevel::Error, Some("maintenance"), error);
                    return Maintained::Nothing;
                }
            };
            match action {
                Action::Nothing(because) => {
                    self.tell_nothing(because, boundary);
                    self.prepare_ahead(because, pending);
                    return self.cut_answer(boundary, because);
                }
                Action::NeedPruneEstimate(minimum) => prune = self.prune_estimate(minimum),
                Action::Prune(_) => {
                    self.prune_now(boundary == Boundary::BetweenRequests).await;
                    prune = Prune::Done;
                }
                Action::Promote(reason) => {
                    if self.promote() && reason == Reason::Overflow {
                        self.live.overflow_guard = Guard::Used;
                        return Maintained::Compacted(Continuation::Retry);
                    }
                }
                Action::Compact(compaction) => {
                    return self
                        .compact_at(lease, boundary, compaction, pending, over_window)
                        .await;
                }
                Action::HandOff(reason) => {
                    if let Some(maintained) = self.hand_off_at(lease, boundary, reason).await {
                        return maintained;
                    }
                    // Without a document the context is compacted in the usual way.
                    let due = Compaction {
                        reason,
                        then: match boundary {
                            Boundary::AfterRun => Then::ContinueIfUnfinished,
                            Boundary::Idle => Then::Stop,
                            _ => Then::Proceed,
                        },
                        urgency: Urgency::Recoverable,
                    };
                    return self.compact_at(lease, boundary, due, pending, over_window).await;
                }
                Action::UnresolvedOverflow(unresolved) => return self.unresolved(unresolved, boundary),
            }
        }
        Maintained::Nothing
    }

    /// An answer that ended at the model's output limit goes on, a few times in a row (spec, 3.3 row 10).
    fn cut_answer(&mut self, boundary: Boundary, because: Because) -> Maintained {
        if boundary != Boundary::AfterRun {
            return Maintained::Nothing;
        }
        let evidence = self.evidence();
        if evidence.last_stop != stop_of(StopReason::Length) {
            self.live.length_continuations = 0;
            return Maintained::Nothing;
        }
        let is_cut_by_window = context(&self.log, self.options.profile).is_ok_and(|context| {
            last_assistant(&context).is_some_and(|(_, message)| self.is_cut_by_window(message))
        });
        if is_cut_by_window {
            if self.live.length_guard == Guard::Used {
                self.shared
                    .events
                    .notice(NoticeLevel::Warning, Some("maintenance"), TRUNCATION_STAYS);
            }
            return Maintained::Nothing;
        }
        let may = matches!(because, Because::BelowThreshold | Because::UnknownWindow)
            && self.options.settings.compaction.auto_continue
            && evidence.waiting == Waiting::Nothing
            && self.live.length_continuations < LENGTH_CONTINUATIONS;
        if !may {
            return Maintained::Nothing;
        }
        if !self.has_room_to_go_on() {
            self.shared
                .events
                .notice(NoticeLevel::Warning, Some("maintenance"), TRUNCATION_STAYS);
            return Maintained::Nothing;
        }
        self.live.length_continuations += 1;
        Maintained::Compacted(Continuation::AutoContinue)
    }

    /// Moves to the model with the larger window. Says whether that was done.
    fn promote(&mut self) -> bool {
        self.live.promoted = true;
        let Some(target) = self.options.models.promotion.clone() else {
            return false;
        };
        let model = target.profile().model_ref();
        self.use_model(target);
        self.shared.emit(Event::ModelChanged {
            model: model.to_string(),
            temporary: true,
        });
        true
    }

    /// Another model is another ground: what was learned about failures does not hold for it (R01).
    pub(crate) fn use_model(&mut self, model: std::sync::Arc<dyn foldline_llm_client::LanguageModel>) {
        *self.shared.model() = Some(model.profile().model_ref().to_string());
        self.options.models.current = Some(model);
        self.live.fallback = 0;
        self.live.failures = 0;
        self.live.quiet_at = None;
        *self.live.native_down.get_mut() = false;
        self.drop_ahead("the session is on another model");
    }

    fn prune_estimate(&self, minimum: PruneMinimum) -> Prune {
        let Ok(context) = context(&self.log, self.options.profile) else {
            return Prune::Done;
        };
        let policy = match minimum {
            PruneMinimum::Relaxed => self.options.settings.pruning.clone().relaxed_to(Tokens::ZERO),
            PruneMinimum::Policy => self.options.settings.pruning.clone(),
        };
        let plan = plan(&View::of_context(&context), &policy, Originals::InLog, &Heuristic);
        let cached = context.items.iter().rev().find_map(|item| match &item.message {
            Message::Assistant(message) => message.usage.map(|usage| usage.cache_read + usage.cache_write),
            _ => None,
        });
        Prune::Estimated(MaintenancePrune {
            savings: plan.tokens_saved,
            cache_cost: cached.unwrap_or(Tokens::ZERO),
        })
    }

    /// Replaces old tool output by notices. What goes wrong leaves everything as it is.
    async fn prune_now(&mut self, mid_turn: bool) {
        let (draft, results, tokens_saved) = {
            let Ok(context) = context(&self.log, self.options.profile) else {
                return;
            };
            let policy = self.options.settings.pruning.clone().relaxed_to(Tokens::ZERO);
            let plan = plan(&View::of_context(&context), &policy, Originals::InLog, &Heuristic);
            (plan.mask(), plan.replacements.len(), plan.tokens_saved)
        };
        let Some(draft) = draft else {
            return;
        };
        match self.append(draft).await {
            Ok(entry_id) => {
                self.shared.emit(Event::Pruned {
                    entry_id,
                    results,
                    tokens_saved,
                });
                let source = if mid_turn { "prune" } else { "maintenance-prune" };
                self.shared.events.notice(
                    NoticeLevel::Info,
                    Some(source),
                    format!(
                        "Replaced {results} old tool results by notices; about {tokens_saved} tokens less"
                    ),
                );
            }
            Err(error) => self
                .shared
                .events
                .notice(NoticeLevel::Warning, Some("prune"), error.to_string()),
        }
    }

    /// Hands the session off because of a boundary. `None`: there is no document, and the context is to be compacted.
    async fn hand_off_at(&mut self, lease: &Lease, boundary: Boundary, reason: Reason) -> Option<Maintained> {
        let action = CompactionAction::Handoff;
        self.shared
            .emit(Event::CompactionStart(crate::event::CompactionStart {
                reason,
                action,
                mid_turn: false,
            }));
        let focus = Prompts::default()
            .render(Prompt::HandoffFocus, &Variables::default())
            .ok();
        let options = HandoffOptions {
            focus,
            copy: self.options.settings.handoff_copy,
            ..HandoffOptions::default()
        };
        // Before the session is another one: the work is the old one's.
        let last_stop = self.evidence().last_stop;
        let done = self.hand_off(lease, &options).await;
        let outcome = match &done {
            Ok(_) => OperationOutcome::Committed,
            Err(SessionError::Cancelled { .. }) => OperationOutcome::Cancelled,
            Err(_) => OperationOutcome::Failed,
        };
        let mut end = CompactionEnd::new(reason, action, outcome);
        let maintained = match done {
            Ok(_) => {
                let follow = continuation(&Situation {
                    reason,
                    then: match boundary {
                        Boundary::AfterRun => Then::ContinueIfUnfinished,
                        Boundary::Idle => Then::Stop,
                        Boundary::BeforePrompt | Boundary::BetweenRequests => Then::Proceed,
                    },
                    came: Came::Committed,
                    evidence: Evidence {
                        last_stop,
                        ..self.evidence()
                    },
                    tail: Tail::Answered,
                    headroom: Headroom::Enough,
                    auto_continue: self.auto_continue(),
                });
                if let Continuation::Stop(stopped) = follow {
                    end.continuation_skip_reason = stopped.skip_reason();
                }
                Some(Maintained::Compacted(follow))
            }
            Err(SessionError::Cancelled { .. }) => Some(Maintained::Cancelled),
            Err(error) => {
                end.error_message = Some(error.to_string());
                None
            }
        };
        self.shared.emit(Event::CompactionEnd(Box::new(end)));
        if let Some(Maintained::Compacted(follow)) = &maintained {
            self.tell_follow(*follow);
        }
        maintained
    }

    /// Says what a user should know about nothing having been done.
    fn tell_nothing(&mut self, because: Because, boundary: Boundary) {
        if because == Because::BreakerOpen && boundary == Boundary::BeforePrompt {
            self.shared.events.notice(
                NoticeLevel::Warning,
                Some("maintenance"),
                "Automatic compaction failed too often and is switched off until one succeeds: compact by hand",
            );
        }
    }

    /// How this session's contexts are made smaller, if nobody says otherwise.
    pub(crate) fn action(&self) -> CompactionAction {
        use foldline_compaction_core::settings::Strategy;
        match self.options.settings.compaction.strategy.manual(self.planner()) {
            Strategy::VerbatimLines => CompactionAction::VerbatimLines,
            _ => CompactionAction::ContextFull,
        }
    }

    /// Compacts the idle session, if the settings say so.
    pub(crate) async fn idle(&mut self, lease: &Lease) -> Maintained {
        self.maintain(lease, Boundary::Idle, Tokens::ZERO).await
    }
}

/// The words that set unfinished work going.
pub(crate) fn auto_continue() -> Option<Input> {
    let prompts = Prompts::default();
    let text = prompts.render(Prompt::AutoContinue, &Variables::default()).ok()?;
    Some(Input {
        speaker: Speaker::Developer,
        blocks: vec![foldline_session_model::model_call::InputBlock::Text(text.into())],
        queued_id: None,
    })
}
