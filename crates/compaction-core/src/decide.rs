//! What maintenance a session needs now: one table from numbers to an action (DESIGN, rule 3; spec "Orchestrator and
//! clients", 3.3 and 3.5 to 3.8).
//!
//! The table does nothing itself. It is asked at every boundary, and again after each step that it asked for.

use foldline_session_model::Tokens;
use foldline_session_model::message::StopReason;

use crate::accounting::{ContextSize, EmergencyReason, Limits, MaintenancePrune, SizeSource, prune_pays};
use crate::settings::{CompactionSettings, Strategy};

/// When the question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// A run has ended.
    AfterRun,
    /// A prompt is about to be sent; the size includes it.
    BeforePrompt,
    /// Tool results are in, the next request of the same run is about to be sent.
    BetweenRequests,
    /// The session has been idle for as long as the settings say.
    Idle,
}

/// Everything that the decision reads.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'s> {
    /// When the question is asked.
    pub boundary: Boundary,
    /// The settings.
    pub settings: &'s CompactionSettings,
    /// The limits of the current model; `None` if its window is unknown.
    pub limits: Option<&'s Limits>,
    /// The size of the context, with what is about to be sent.
    pub size: ContextSize,
    /// The newest answer; `None` if there is none.
    pub last: Option<LastAnswer>,
    /// Whether this turn has had its recovery from an overflow (R01).
    pub overflow_guard: Guard,
    /// Whether repeated failures have switched automatic compaction off.
    pub breaker: Breaker,
    /// Whether a larger model stands by.
    pub promotion: Promotion,
    /// What is known about pruning.
    pub prune: Prune,
    /// The size at which the last attempt was skipped, if nothing has changed its ground since (R02).
    pub quiet_at: Option<Tokens>,
    /// A resource limit that is exceeded.
    pub emergency: Option<EmergencyReason>,
}

/// The newest answer, as far as the decision needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastAnswer {
    /// How it ended.
    pub stop: StopReason,
    /// Whether it overflowed.
    pub overflow: Overflow,
    /// Whose it is.
    pub model: AnswerModel,
    /// Whether it counts for the context as it is.
    pub age: Age,
}

/// Whether an answer overflowed the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// No.
    No,
    /// The provider refused the request, or cut the answer off for want of room.
    Failed,
    /// The answer is good, and its usage says that there was no room left.
    Silent,
    /// The provider refused for another reason that no smaller request cures, such as safety.
    Refused,
}

/// Whose answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerModel {
    /// The current model's.
    Current,
    /// Another model's: its overflow says nothing about this one.
    Other,
}

/// Whether an answer is newer than the newest compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Age {
    /// It is, or there is no compaction.
    AfterCompaction,
    /// It is not.
    BeforeCompaction,
}

/// Whether the one recovery of a turn is still available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// It is.
    Armed,
    /// It was used.
    Used,
}

/// Whether repeated failures have switched automatic compaction off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breaker {
    /// They have not.
    Closed,
    /// They have.
    Open,
}

/// Whether a larger model stands by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promotion {
    /// None is configured, or it was tried.
    Unavailable,
    /// One is.
    Available,
}

/// What is known about pruning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Nobody has estimated.
    Unknown,
    /// An estimate.
    Estimated(MaintenancePrune),
    /// It was done, or cannot be done.
    Done,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Nothing.
    Nothing(Because),
    /// Estimate what a prune would save, and ask again.
    NeedPruneEstimate(PruneMinimum),
    /// Prune, and ask again.
    Prune(PruneReason),
    /// Switch to the larger model. After an overflow the run goes on with it; otherwise ask again.
    Promote(Reason),
    /// Compact.
    Compact(Compaction),
    /// Write a handoff document and open a new session; without a document compact as `context-full`.
    HandOff(Reason),
    /// The overflow stays: report it, and do not send the same request again.
    UnresolvedOverflow(Unresolved),
}

/// A compaction that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Why.
    pub reason: Reason,
    /// What follows.
    pub then: Then,
    /// Whether the next request depends on it.
    pub urgency: Urgency,
}

/// Why a compaction is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Someone asked.
    Manual,
    /// A request did not fit.
    Overflow,
    /// The context is over the threshold.
    Threshold,
    /// The session is idle.
    Idle,
}

/// What follows a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// The failed answer leaves the live messages, and its request is sent again.
    Retry,
    /// The run goes on if there is unfinished work (D13).
    ContinueIfUnfinished,
    /// What was about to be sent is sent.
    Proceed,
    /// Nothing.
    Stop,
}

/// Whether the next request depends on a compaction (D6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// It does not: a clean failure is fine.
    Recoverable,
    /// It does: the ladder goes down to the planner without a model.
    LoadBearing,
}

/// How much an estimated prune must save to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PruneMinimum {
    /// Anything.
    Relaxed,
    /// What the policy says.
    Policy,
}

/// Why tool output is pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PruneReason {
    /// It brings the context below the threshold.
    Threshold,
    /// It saves more than it costs.
    Maintenance,
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Because {
    /// The context fits.
    BelowThreshold,
    /// The window is unknown.
    UnknownWindow,
    /// The settings say so.
    Disabled,
    /// The provider refused, and a smaller request would be refused too.
    Refused,
    /// The user cancelled the run.
    Aborted,
    /// The answer is older than the newest compaction.
    StaleAnswer,
    /// The run failed, and nothing was measured since the newest compaction.
    NothingMeasured,
    /// The last attempt was skipped, and the context has not grown enough since.
    Quiet,
    /// Too many attempts have failed.
    BreakerOpen,
}

/// Why an overflow stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unresolved {
    /// It came again after its recovery.
    GuardUsed,
    /// The settings allow no compaction.
    Disabled,
    /// Too many attempts have failed.
    BreakerOpen,
}

/// Decides. Rows as the specification counts them; the first that matches wins.
pub fn decide(s: &Snapshot<'_>) -> Action {
    if s.boundary == Boundary::Idle {
        return idle(s);
    }
    // 3.5: the resource floor, which no setting switches off.
    if s.boundary == Boundary::BeforePrompt && s.emergency.is_some() && s.prune != Prune::Done {
        return compact(Reason::Overflow, Then::Proceed, Urgency::Recoverable);
    }
    s.last
        .and_then(|last| overflow(s, last))
        .unwrap_or_else(|| threshold(s))
}

/// Rows 1 to 7b. `None`: go on with row 8.
fn overflow(s: &Snapshot<'_>, last: LastAnswer) -> Option<Action> {
    let after_run = s.boundary == Boundary::AfterRun;
    // Row 1.
    if last.overflow == Overflow::Refused {
        return after_run.then_some(Action::Nothing(Because::Refused));
    }
    // Row 2.
    if after_run && last.stop == StopReason::Aborted {
        return Some(Action::Nothing(Because::Aborted));
    }
    // Row 3. Before a prompt the size is still looked at: the prompt is part of it.
    if last.age == Age::BeforeCompaction {
        return after_run.then_some(Action::Nothing(Because::StaleAnswer));
    }
    // Row 4.
    if last.model == AnswerModel::Other || s.boundary == Boundary::BetweenRequests {
        return None;
    }
    match last.overflow {
        Overflow::No | Overflow::Refused => None,
        // Row 5: the answer is good and stays.
        Overflow::Silent => may_compact(s).is_ok().then(|| {
            compact(
                Reason::Overflow,
                after_overflow(s, Then::ContinueIfUnfinished),
                Urgency::LoadBearing,
            )
        }),
        // Rows 6, 7 and 7b.
        Overflow::Failed => Some(match (s.overflow_guard, s.promotion, may_compact(s)) {
            (Guard::Used, _, _) => Action::UnresolvedOverflow(Unresolved::GuardUsed),
            (Guard::Armed, Promotion::Available, _) => Action::Promote(Reason::Overflow),
            (Guard::Armed, Promotion::Unavailable, Ok(())) => compact(
                Reason::Overflow,
                after_overflow(s, Then::Retry),
                Urgency::LoadBearing,
            ),
            (Guard::Armed, Promotion::Unavailable, Err(Because::BreakerOpen)) => {
                Action::UnresolvedOverflow(Unresolved::BreakerOpen)
            }
            (Guard::Armed, Promotion::Unavailable, Err(_)) => {
                Action::UnresolvedOverflow(Unresolved::Disabled)
            }
        }),
    }
}

/// Rows 8 to 11.
fn threshold(s: &Snapshot<'_>) -> Action {
    // Row 8.
    if let Err(because) = may_compact(s) {
        return Action::Nothing(because);
    }
    // Row 9.
    let failed = s.last.is_some_and(|last| last.stop == StopReason::Error);
    if s.boundary == Boundary::AfterRun && failed && s.size.source == SizeSource::Estimated {
        return Action::Nothing(Because::NothingMeasured);
    }
    let Some(limits) = s.limits else {
        return Action::Nothing(Because::UnknownWindow);
    };
    // Row 10.
    if !limits.exceeded_by(s.size.tokens) {
        return below_threshold(s);
    }
    let over_window = s.size.tokens > limits.window();
    let urgent = s.boundary == Boundary::BetweenRequests && over_window;
    if !urgent
        && s.quiet_at
            .is_some_and(|at| s.size.tokens < at + recovery_band(limits))
    {
        return Action::Nothing(Because::Quiet);
    }
    // Row 11: prune, promotion, then handoff or compaction.
    match s.prune {
        Prune::Unknown => return Action::NeedPruneEstimate(PruneMinimum::Relaxed),
        Prune::Estimated(prune) if !limits.exceeded_by(s.size.tokens.saturating_sub(prune.savings)) => {
            return Action::Prune(PruneReason::Threshold);
        }
        Prune::Estimated(_) | Prune::Done => {}
    }
    if s.promotion == Promotion::Available {
        return Action::Promote(Reason::Threshold);
    }
    let then = match s.boundary {
        Boundary::AfterRun | Boundary::Idle => Then::ContinueIfUnfinished,
        Boundary::BeforePrompt | Boundary::BetweenRequests => Then::Proceed,
    };
    if s.settings.strategy == Strategy::Handoff && s.boundary != Boundary::BetweenRequests {
        return Action::HandOff(Reason::Threshold);
    }
    let urgency = if urgent {
        Urgency::LoadBearing
    } else {
        Urgency::Recoverable
    };
    compact(Reason::Threshold, then, urgency)
}

/// The prune below the threshold, before a prompt (3.6).
fn below_threshold(s: &Snapshot<'_>) -> Action {
    if s.boundary == Boundary::BeforePrompt && s.settings.maintenance_pruning_enabled {
        match s.prune {
            Prune::Unknown => return Action::NeedPruneEstimate(PruneMinimum::Policy),
            Prune::Estimated(prune) if prune_pays(s.settings, prune) => {
                return Action::Prune(PruneReason::Maintenance);
            }
            Prune::Estimated(_) | Prune::Done => {}
        }
    }
    Action::Nothing(Because::BelowThreshold)
}

/// 3.8. The settings stop it like every other automatic path (R07).
fn idle(s: &Snapshot<'_>) -> Action {
    if let Err(because) = may_compact(s) {
        return Action::Nothing(because);
    }
    if !s.settings.idle_enabled {
        return Action::Nothing(Because::Disabled);
    }
    let from = s.settings.idle_threshold_tokens;
    if from == Tokens::ZERO || s.size.tokens < from {
        return Action::Nothing(Because::BelowThreshold);
    }
    let band = s.limits.map_or(Tokens::ZERO, recovery_band);
    if s.quiet_at
        .is_some_and(|at| s.size.tokens < at + band.max(Tokens(1)))
    {
        return Action::Nothing(Because::Quiet);
    }
    if s.settings.strategy == Strategy::Handoff {
        return Action::HandOff(Reason::Idle);
    }
    compact(Reason::Idle, Then::Stop, Urgency::Recoverable)
}

/// Whether automatic compaction may run.
fn may_compact(s: &Snapshot<'_>) -> Result<(), Because> {
    if !s.settings.enabled || s.settings.strategy == Strategy::Off {
        return Err(Because::Disabled);
    }
    if s.breaker == Breaker::Open {
        return Err(Because::BreakerOpen);
    }
    Ok(())
}

/// Before a prompt, the prompt is the continuation.
fn after_overflow(s: &Snapshot<'_>, after_run: Then) -> Then {
    match s.boundary {
        Boundary::AfterRun | Boundary::Idle => after_run,
        Boundary::BeforePrompt | Boundary::BetweenRequests => Then::Proceed,
    }
}

const fn compact(reason: Reason, then: Then, urgency: Urgency) -> Action {
    Action::Compact(Compaction {
        reason,
        then,
        urgency,
    })
}

/// How much a context must grow after a skipped attempt before the next one: 5 % of the threshold.
pub fn recovery_band(limits: &Limits) -> Tokens {
    Tokens((limits.threshold().get() / 20).max(1))
}

#[cfg(test)]
mod tests;
