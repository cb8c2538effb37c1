//! Maintenance at a boundary: the table of compaction-core is asked, and asked again after each step, until there is
//! nothing left to do (DESIGN, rule 3; spec "Orchestrator and clients", 3).

use foldline_compaction_core::accounting::{
    EmergencyLimits, EmergencyReason, MaintenancePrune, ResourceSample,
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

    /// What the table says about the session as it is, and whether the context is over the window.
    fn decision(
        &mut self,
        boundary: Boundary,
        pending: Tokens,
        prune: Prune,
    ) -> Result<(Action, bool), String> {
        let log = self.checked_log().map_err(|error| error.to_string())?;
        let context = context(&log, self.options.profile).map_err(|error| error.to_string())?;
        let limits = self.limits();
        let size = self.size(&context, pending);
        let last = self.last_answer(&context);
        let recovered = self.live.overflow_guard == Guard::Used
            || boundary == Boundary::AfterRun
                && last.is_some_and(|last| last.overflow == Overflow::Failed)
                && recovered(&context);
        let over_window = limits
            .as_ref()
            .is_some_and(|limits| size.tokens > limits.window());
        let snapshot = Snapshot {
            boundary,
            settings: &self.options.settings.compaction,
            limits: limits.as_ref(),
            size,
            last,
            overflow_guard: if recovered { Guard::Used } else { Guard::Armed },
            breaker: self.live.breaker(),
            promotion: self.promotion(),
            prune,
            quiet_at: self.live.quiet_at,
            emergency: if boundary == Boundary::BeforePrompt {
                emergency(&context)
            } else {
                None
            },
        };
        Ok((decide(&snapshot), over_window))
    }

    fn last_answer(&self, context: &Context<'_>) -> Option<LastAnswer> {
        let (at, message) = last_assistant(context)?;
        let entry = context.log.id(context.items.get(at)?.source);
        let current = self.model_ref();
        let is_current =
            current.is_some_and(|model| message.provider == *model.provider && message.model == *model.id);
        Some(LastAnswer {
            stop: message.stop_reason,
            overflow: self.overflow(entry, message),
            model: if is_current {
                AnswerModel::Current
            } else {
                AnswerModel::Other
            },
            age: if context.kept_tail.contains(&at) {
                Age::BeforeCompaction
            } else {
                Age::AfterCompaction
            },
        })
    }

    fn overflow(&self, entry: &str, message: &AssistantMessage<'_>) -> Overflow {
        if message.stop_reason == StopReason::Error {
            return match &self.live.last_failure {
                Some((failed, class)) if failed.as_str() == entry => match class {
                    class if class.wants_smaller_request() => Overflow::Failed,
                    ErrorClass::Other(OtherCause::Refused) => Overflow::Refused,
                    _ => Overflow::No,
                },
                // Another process met it: only its words are left.
                _ => match message.error_message.as_deref().map(class_of_text) {
                    Some(class) if class.wants_smaller_request() => Overflow::Failed,
                    _ => Overflow::No,
                },
            };
        }
        let window = self.model().and_then(|model| self.window(model.profile()));
        let (Some(usage), Some(window), Some(stop)) = (message.usage, window, stop_of(message.stop_reason))
        else {
            return Overflow::No;
        };
        match usage.shows_overflow(stop, window) {
            // An answer without room for a word is no answer.
            true if message.content.is_visible() => Overflow::Silent,
            true => Overflow::Failed,
            false if self.live.length_guard == Guard::Armed && self.is_cut_by_window(message) => {
                Overflow::Silent
            }
            false => Overflow::No,
        }
    }

    /// Whether an answer broke off because the window was full: before the output that the model may write, which did
    /// not fit behind the prompt. The answer is good as far as it goes, so it stays.
    fn is_cut_by_window(&self, message: &AssistantMessage<'_>) -> bool {
        let Some(profile) = self.model().map(|model| model.profile()) else {
            return false;
        };
        let (Some(usage), Some(window), Some(most)) =
            (message.usage, self.window(profile), profile.max_output)
        else {
            return false;
        };
        message.stop_reason == StopReason::Length
            && message.content.is_visible()
            && usage.output < most
            && usage.prompt() + most > window
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
        self.live.length_continuations += 1;
        Maintained::Compacted(Continuation::AutoContinue)
    }

    fn promotion(&self) -> Promotion {
        let larger = self.options.models.promotion.as_ref().is_some_and(|target| {
            let window = |model: &std::sync::Arc<dyn foldline_llm_client::LanguageModel>| {
                model.profile().context_window.unwrap_or(Tokens::ZERO)
            };
            let current = self.model().map_or(Tokens::ZERO, window);
            current > Tokens::ZERO
                && window(target) > current
                && self.model_ref() != Some(target.profile().model_ref())
        });
        if larger && !self.live.promoted {
            Promotion::Available
        } else {
            Promotion::Unavailable
        }
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

    fn auto_continue(&self) -> AutoContinue {
        if self.options.settings.compaction.auto_continue {
            AutoContinue::On
        } else {
            AutoContinue::Off
        }
    }

    /// Says why nothing goes on, where a user may have expected it.
    fn tell_follow(&self, follow: Continuation) {
        match follow {
            Continuation::Stop(Stopped::NoUnfinishedWork) => {
                self.shared
                    .events
                    .notice(NoticeLevel::Info, Some("auto-continue"), NO_UNFINISHED_WORK);
            }
            Continuation::Stop(Stopped::NoHeadroom) => self.shared.events.notice(
                NoticeLevel::Warning,
                Some("auto-continue"),
                "The compaction left too little room, so nothing goes on by itself",
            ),
            _ => {}
        }
    }

    /// Compacts because of a boundary, and decides what follows.
    async fn compact_at(
        &mut self,
        lease: &Lease,
        boundary: Boundary,
        due: Compaction,
        pending: Tokens,
        over_window: bool,
    ) -> Maintained {
        let mid_turn = boundary == Boundary::BetweenRequests;
        if due.reason == Reason::Overflow {
            self.live.overflow_guard = Guard::Used;
            self.live.length_guard = Guard::Used;
        }
        let order = Order {
            mid_turn,
            ..Order::automatic(due.reason, due.urgency)
        };
        let ended = self.compact(lease, order).await;
        // What is about to be sent was part of what the attempt was about.
        if let Some(quiet_at) = &mut self.live.quiet_at {
            *quiet_at += pending;
        }
        let follow = self.follow(due, &ended, pending);
        let takeover = lease.takeover();
        let Ended {
            mut end,
            came,
            residual,
        } = ended;
        end.will_retry = follow == Continuation::Retry;
        if let Continuation::Stop(stopped) = follow {
            end.continuation_skip_reason = stopped.skip_reason().filter(|_| came == Came::Committed);
        }
        end.manual_takeover_pending = takeover;
        // Before a prompt its request is sent all the same, and tells whether the overflow stays.
        let unresolved = boundary == Boundary::AfterRun
            && due.reason == Reason::Overflow
            && matches!(came, Came::Failed | Came::Skipped);
        if unresolved {
            end.unresolved_overflow = true;
            let sizes = self.sizes();
            let cause = end.error_message.take().unwrap_or_default();
            end.error_message = Some(match came {
                Came::Skipped => format!("{NOTHING_ELIGIBLE} ({cause}){sizes}"),
                _ => format!("{cause}{sizes}"),
            });
        }
        // Between two requests the next one must fit; nobody sends what is known not to (D16).
        let stop = if mid_turn {
            self.refusal(came, residual, over_window, &end)
        } else {
            None
        };
        if let Some(text) = &stop {
            end.error_message = Some(text.clone());
        }
        let failed = end.error_message.clone();
        self.shared.emit(Event::CompactionEnd(Box::new(end)));
        self.tell_follow(follow);
        if unresolved && boundary == Boundary::AfterRun {
            let text = failed.unwrap_or_default();
            return match self.fallback() {
                Fallback::Available if due.then == Then::Retry => {
                    self.next_model(&text);
                    Maintained::Compacted(Continuation::Retry)
                }
                _ if due.then == Then::Retry && follow != Continuation::Deliver => Maintained::Stop(text),
                _ => Maintained::Compacted(follow),
            };
        }
        match (stop, came) {
            (Some(_), Came::Cancelled) => Maintained::Cancelled,
            (Some(text), _) => Maintained::Stop(text),
            (None, Came::Cancelled) if lease.is_cancelled() => Maintained::Cancelled,
            _ => Maintained::Compacted(follow),
        }
    }

    /// Why the next request of a run is not sent after a compaction between two requests; `None`: it is sent.
    fn refusal(
        &self,
        came: Came,
        residual: Tokens,
        over_window: bool,
        end: &CompactionEnd,
    ) -> Option<String> {
        let window = self.limits().map(|limits| limits.window());
        match came {
            Came::Cancelled => Some(
                "Post-tool context compaction was cancelled before the next provider request.".to_owned(),
            ),
            Came::Committed => window.filter(|window| residual > *window).map(|window| {
                format!(
                    "Post-tool context remains over the provider hard input limit after compaction ({residual} > \
                     {window} tokens); the next provider request was not sent."
                )
            }),
            Came::Failed | Came::Skipped | Came::Vetoed if over_window => Some(format!(
                "Post-tool context compaction failed before the next provider request: {}",
                end.error_message.as_deref().unwrap_or("nothing eligible to compact")
            )),
            Came::Failed | Came::Skipped | Came::Vetoed => None,
        }
    }

    /// What follows a compaction.
    fn follow(&mut self, due: Compaction, ended: &Ended, pending: Tokens) -> Continuation {
        let limits = self.limits();
        let situation = Situation {
            reason: due.reason,
            then: due.then,
            came: ended.came,
            evidence: self.evidence(),
            tail: self.tail(),
            headroom: Headroom::after(ended.residual + pending, due.then, limits.as_ref()),
            auto_continue: self.auto_continue(),
        };
        continuation(&situation)
    }

    /// Evidence of unfinished work, read now (D13).
    pub(crate) fn evidence(&self) -> Evidence {
        let work = state_lines::read(&*self.options.work);
        let last_stop = context(&self.log, self.options.profile).ok().and_then(|context| {
            context.items.iter().rev().find_map(|item| match &item.message {
                Message::Assistant(message) => stop_of(message.stop_reason),
                _ => None,
            })
        });
        let waits = !self.shared.queues().is_empty();
        Evidence {
            waiting: if waits {
                Waiting::Messages
            } else {
                Waiting::Nothing
            },
            last_stop,
            goal: work.goal_says,
            open_todos: work.open_todos.len(),
            active_workflows: work.active_workflows,
        }
    }

    /// What the context ends in; failed answers are no answers.
    pub(crate) fn tail(&self) -> Tail {
        let Ok(context) = context(&self.log, self.options.profile) else {
            return Tail::Answered;
        };
        let last = context
            .items
            .iter()
            .rev()
            .map(|item| &item.message)
            .find(|message| match message {
                Message::Assistant(answer) => {
                    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                        && answer.content.is_visible()
                }
                message => message.is_visible(),
            });
        match last {
            None
            | Some(
                Message::Assistant(_)
                | Message::CompactionSummary(_)
                | Message::BranchSummary(_)
                | Message::VerbatimBoundary(_)
                | Message::Unknown(_),
            ) => Tail::Answered,
            Some(_) => Tail::Resumable,
        }
    }

    /// Whether the newest answer called tools whose results are missing: a run was cut off there.
    pub(crate) fn has_open_calls(&self) -> bool {
        let Ok(context) = context(&self.log, self.options.profile) else {
            return false;
        };
        let mut answered = 0;
        for item in context.items.iter().rev() {
            match &item.message {
                Message::ToolResult(_) => answered += 1,
                Message::Assistant(message) => return message.content.tool_calls().count() > answered,
                _ => {}
            }
        }
        false
    }

    /// An overflow that stays. Told once; the same request is not sent again.
    fn unresolved(&mut self, unresolved: Unresolved, boundary: Boundary) -> Maintained {
        let text = match unresolved {
            Unresolved::GuardUsed => GUARD_USED,
            Unresolved::Disabled => DISABLED,
            Unresolved::BreakerOpen => BREAKER_OPEN,
        };
        // Before a prompt, the prompt is sent all the same, and its own failure decides.
        if boundary == Boundary::AfterRun && self.fallback() == Fallback::Available {
            self.next_model(text);
            return Maintained::Compacted(Continuation::Retry);
        }
        let text = format!("{text}{}", self.sizes());
        if unresolved == Unresolved::Disabled
            && self.options.settings.compaction.auto_continue
            && self.tail() == Tail::Answered
            && self.evidence().shows_unfinished_work()
        {
            return Maintained::Compacted(Continuation::AutoContinue);
        }
        let action = self.action();
        if unresolved != Unresolved::Disabled {
            self.shared
                .emit(Event::CompactionStart(crate::event::CompactionStart {
                    reason: Reason::Overflow,
                    action,
                    mid_turn: false,
                }));
            self.shared.emit(Event::CompactionEnd(Box::new(CompactionEnd {
                error_message: Some(text.clone()),
                unresolved_overflow: true,
                ..CompactionEnd::new(Reason::Overflow, action, OperationOutcome::Failed)
            })));
        }
        Maintained::Stop(text)
    }

    /// The sizes behind an overflow that stays: what a user can do something about (FB-009, FB-010).
    fn sizes(&self) -> String {
        let Some(window) = self.limits().map(|limits| limits.window()) else {
            return String::new();
        };
        let overhead = self.overhead();
        let mut text =
            format!(" The window holds {window} tokens; system text and tools take about {overhead}");
        if let Ok(context) = context(&self.log, self.options.profile) {
            let sizes = context
                .items
                .iter()
                .map(|item| (Heuristic.message(&item.message), item));
            if let Some((tokens, item)) = sizes.max_by_key(|(tokens, _)| *tokens) {
                let (id, role) = (context.log.id(item.source), item.message.role());
                text.push_str(&format!(", and the largest entry, {id} ({role}), {tokens}"));
            }
        }
        text.push('.');
        text
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

/// The newest answer of a context and its place.
fn last_assistant<'c, 'l>(context: &'c Context<'l>) -> Option<(usize, &'c AssistantMessage<'l>)> {
    let mut items = context.items.iter().enumerate().rev();
    items.find_map(|(at, item)| match &item.message {
        Message::Assistant(message) => Some((at, &**message)),
        _ => None,
    })
}

/// Whether the turn has had a compaction because of an overflow: the log knows it after a resume too (R01).
fn recovered(context: &Context<'_>) -> bool {
    for ix in context.path.iter().rev() {
        match context.log.kind(*ix) {
            EntryKind::Message => {
                if matches!(context.log.message(*ix).as_deref(), Some(Message::User(_))) {
                    return false;
                }
            }
            EntryKind::Compaction => return is_of_overflow(context.log.raw_line(*ix)),
            _ => {}
        }
    }
    false
}

/// Whether a compaction entry says that an overflow was its reason.
fn is_of_overflow(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Entry {
        details: Option<Details>,
    }
    #[derive(serde::Deserialize)]
    struct Details {
        foldline: Option<Record>,
    }
    #[derive(serde::Deserialize)]
    struct Record {
        reason: String,
    }
    let entry = serde_json::from_slice::<Entry>(line).ok();
    entry
        .and_then(|entry| entry.details?.foldline)
        .is_some_and(|record| record.reason == reason_name::name(Reason::Overflow))
}

fn stop_of(stop: StopReason) -> Option<foldline_session_model::model_call::StopReason> {
    use foldline_session_model::model_call::StopReason as Call;
    Some(match stop {
        StopReason::Stop => Call::Stop,
        StopReason::Length => Call::Length,
        StopReason::ToolUse => Call::ToolUse,
        StopReason::Error => Call::Error,
        StopReason::Aborted => Call::Aborted,
        _ => return None,
    })
}

/// The resource limit that a context exceeds, if any.
fn emergency(context: &Context<'_>) -> Option<EmergencyReason> {
    let text: usize = context
        .items
        .iter()
        .filter_map(|item| item.message.content())
        .flat_map(foldline_session_model::message::Content::texts)
        .map(str::len)
        .sum();
    let bytes = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    EmergencyLimits::for_memory(None).exceeded_by(&ResourceSample {
        provider_bytes: bytes(text),
        message_count: bytes(context.items.len()),
        image_bytes: bytes(media_bytes(context)),
        ..ResourceSample::default()
    })
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
