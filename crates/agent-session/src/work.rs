//! What the user's work stands at: goal, todos, workflow phases. The host knows it; it decides whether a run goes on
//! after maintenance (D13), and it is told to whoever writes a summary (spec "Orchestrator and clients", 9.1 and 9.2).

/// Tells what the work stands at. Read again each time a decision depends on it.
pub trait WorkState: Send + Sync {
    /// The goal, if there is one.
    fn goal(&self) -> Option<Goal> {
        None
    }

    /// The todos in order, done ones included.
    fn todos(&self) -> Vec<Todo> {
        Vec::new()
    }

    /// The active workflows in order.
    fn workflows(&self) -> Vec<Workflow> {
        Vec::new()
    }

    /// Whether a workflow in this phase has nothing left to do by itself. Unknown ones have not.
    fn is_inert(&self, workflow: &Workflow) -> bool {
        let _ = workflow;
        true
    }
}

/// No goal, no todos, no workflows.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWork;

impl WorkState for NoWork {}

/// What the user wants to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// In the user's words.
    pub objective: String,
    /// Where it stands; only `active` counts as work, `paused` stops everything else.
    pub status: String,
    /// Whether goal mode is on.
    pub mode: GoalMode,
}

/// Whether goal mode is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GoalMode {
    /// It is.
    On,
    /// It is off; the goal is only remembered.
    Off,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// What.
    pub text: String,
    /// Where it stands.
    pub status: TodoStatus,
}

/// Where a todo stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

impl TodoStatus {
    /// Whether something is left to do.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// A workflow that guides the agent through phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// The phase it is in, if that is known.
    pub phase: Option<String>,
}
