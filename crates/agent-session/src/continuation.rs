//! What follows maintenance: the second table (DESIGN, rule 3; D13; spec "Orchestrator and clients", 9.2 to 9.4; R14).
//!
//! At most one continuation follows a compaction. Messages that wait come before everything else, work that is known to
//! be unfinished comes next, and otherwise nothing goes on by itself.

use foldline_compaction_core::accounting::Limits;
use foldline_compaction_core::decide::{Reason, Then};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::StopReason;

/// What a compaction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Came {
    /// It is in the session.
    Committed,
    /// There was nothing to do, or it would not have paid.
    Skipped,
    /// It was cancelled.
    Cancelled,
    /// A hook forbade it.
    Vetoed,
    /// It failed.
    Failed,
}

/// Whether messages wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Some do.
    Messages,
    /// None does.
    Nothing,
}

/// Whether the context ends in something that a model can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tail {
    /// It does: a user's message or a tool's result.
    Resumable,
    /// It ends in an answer, or is empty.
    Answered,
}

/// What the goal says about going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GoalSays {
    /// It is paused: nothing goes on by itself.
    Paused,
    /// It is active.
    Active,
    /// There is none, or it says nothing.
    Nothing,
}

/// Evidence of unfinished work, read at the moment of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Messages that wait.
    pub waiting: Waiting,
    /// How the last answer ended; `None` if there is none.
    pub last_stop: Option<StopReason>,
    /// The goal.
    pub goal: GoalSays,
    /// Todos that are open.
    pub open_todos: usize,
    /// Workflows that are not inert.
    pub active_workflows: usize,
}

impl Evidence {
    /// Whether there is unfinished work. In this order: waiting messages, an answer that was cut off, a paused goal
    /// (which overrides the rest), an active goal, open todos, active workflows.
    pub const fn shows_unfinished_work(&self) -> bool {
        if matches!(self.waiting, Waiting::Messages) || matches!(self.last_stop, Some(StopReason::Length)) {
            return true;
        }
        match self.goal {
            GoalSays::Paused => false,
            GoalSays::Active => true,
            GoalSays::Nothing => self.open_todos > 0 || self.active_workflows > 0,
        }
    }
}

/// Whether enough room is left after a compaction for going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Headroom {
    /// It is.
    Enough,
    /// The next boundary would compact again at once.
    Tight,
}

impl Headroom {
    /// The room after a compaction that left this much. A retry may use the window up to the reserve; going on without
    /// being asked needs a fifth of the threshold.
    pub fn after(residual: Tokens, then: Then, limits: Option<&Limits>) -> Self {
        let Some(limits) = limits else {
            return Self::Enough;
        };
        let most = match then {
            Then::Retry => Self::most_for_a_retry(limits),
            Then::ContinueIfUnfinished | Then::Proceed | Then::Stop => {
                Tokens(limits.threshold().get() / 5 * 4)
            }
        };
        if residual <= most {
            Self::Enough
        } else {
            Self::Tight
        }
    }

    /// The largest context with which a request is sent again.
    pub(crate) fn most_for_a_retry(limits: &Limits) -> Tokens {
        let window = limits.window();
        let share = Tokens(window.get() / 100 * 15 + window.get() % 100 * 15 / 100);
        window.saturating_sub(limits.reserve().min(share))
    }
}

/// Everything that the decision reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Why the compaction was due.
    pub reason: Reason,
    /// What was to follow it.
    pub then: Then,
    /// What it came to.
    pub came: Came,
    /// Evidence of unfinished work.
    pub evidence: Evidence,
    /// What the context ends in, without a failed answer.
    pub tail: Tail,
    /// Room.
    pub headroom: Headroom,
    /// `compaction.autoContinue`.
    pub auto_continue: AutoContinue,
}

impl Situation {
    /// After a compaction that is not in the session only what waits counts.
    pub(crate) const fn without_commit(reason: Reason, then: Then, came: Came, waiting: Waiting) -> Self {
        Self {
            reason,
            then,
            came,
            evidence: Evidence {
                waiting,
                last_stop: None,
                goal: GoalSays::Nothing,
                open_todos: 0,
                active_workflows: 0,
            },
            tail: Tail::Answered,
            headroom: Headroom::Tight,
            auto_continue: AutoContinue::Off,
        }
    }
}

/// Whether unfinished work goes on without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AutoContinue {
    /// It does.
    On,
    /// It does not.
    Off,
}

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Continuation {
    /// The request of the failed answer is sent again.
    Retry,
    /// The waiting messages are delivered.
    Deliver,
    /// The model is told to go on.
    AutoContinue,
    /// Nothing.
    Stop(Stopped),
}

/// Why nothing goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stopped {
    /// There is nothing left to do.
    Done,
    /// Nothing shows that work is unfinished.
    NoUnfinishedWork,
    /// The goal is paused.
    GoalPaused,
    /// Nothing can be resumed, and the settings forbid to go on without being asked.
    AutoContinueDisabled,
    /// The next boundary would compact again at once.
    NoHeadroom,
    /// The compaction was cancelled, skipped or failed.
    NotCommitted,
}

impl Stopped {
    /// The name in `continuationSkipReason`; `None` where nothing was skipped.
    pub const fn skip_reason(self) -> Option<&'static str> {
        match self {
            Self::AutoContinueDisabled => Some("auto_continue_disabled_non_resumable_tail"),
            Self::GoalPaused => Some("goal_paused"),
            Self::NoHeadroom => Some("no_headroom"),
            Self::NoUnfinishedWork => Some("no_unfinished_work"),
            Self::Done | Self::NotCommitted => None,
        }
    }
}

/// Decides. The first row that matches wins.
pub fn continuation(s: &Situation) -> Continuation {
    let waits = s.evidence.waiting == Waiting::Messages;
    // Idle maintenance never goes on: nobody waits for it, and what waits would not have been idle.
    if s.reason == Reason::Idle || s.then == Then::Stop {
        return if waits {
            Continuation::Deliver
        } else {
            Continuation::Stop(Stopped::Done)
        };
    }
    // Accepted messages get their turn whatever came of the compaction (R09).
    if s.came != Came::Committed {
        return if waits {
            Continuation::Deliver
        } else {
            Continuation::Stop(Stopped::NotCommitted)
        };
    }
    match s.then {
        Then::Retry => retry(s, waits),
        Then::ContinueIfUnfinished if waits => Continuation::Deliver,
        Then::ContinueIfUnfinished if s.auto_continue == AutoContinue::Off => {
            Continuation::Stop(Stopped::Done)
        }
        Then::ContinueIfUnfinished if !s.evidence.shows_unfinished_work() => {
            Continuation::Stop(Stopped::NoUnfinishedWork)
        }
        Then::ContinueIfUnfinished if s.headroom == Headroom::Tight => {
            Continuation::Stop(Stopped::NoHeadroom)
        }
        Then::ContinueIfUnfinished => Continuation::AutoContinue,
        Then::Proceed | Then::Stop => Continuation::Stop(Stopped::Done),
    }
}

/// 9.4: after the compaction of an overflow.
fn retry(s: &Situation, waits: bool) -> Continuation {
    let cut_off = s.evidence.last_stop == Some(StopReason::Length);
    if s.evidence.goal == GoalSays::Paused && !waits && !cut_off {
        return Continuation::Stop(Stopped::GoalPaused);
    }
    match (s.headroom, s.tail) {
        (Headroom::Tight, _) if waits => Continuation::Deliver,
        (Headroom::Tight, _) => Continuation::Stop(Stopped::NoHeadroom),
        (Headroom::Enough, Tail::Resumable) => Continuation::Retry,
        (Headroom::Enough, Tail::Answered) if waits => Continuation::Deliver,
        (Headroom::Enough, Tail::Answered) if s.auto_continue == AutoContinue::On => {
            Continuation::AutoContinue
        }
        (Headroom::Enough, Tail::Answered) => Continuation::Stop(Stopped::AutoContinueDisabled),
    }
}

#[cfg(test)]
mod tests;
