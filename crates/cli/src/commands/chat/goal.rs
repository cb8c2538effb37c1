//! The goal of a conversation: whoever writes a summary is told, and while it is active work goes on after an automatic
//! compaction (D13).

use std::sync::{Arc, Mutex, PoisonError};

use foldline_agent_session::work::{Goal, GoalMode, Todo, WorkState, Workflow};

use super::command::GoalCommand;

/// What the user wants to reach, shared with the session.
#[derive(Clone, Default)]
pub(super) struct SharedGoal(Arc<Mutex<Option<Kept>>>);

#[derive(Clone)]
struct Kept {
    objective: String,
    stand: Stand,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    Active,
    Paused,
}

impl SharedGoal {
    /// Carries a command out, and says what holds now.
    pub(super) fn obey(&self, command: GoalCommand) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (command, &mut *kept) {
            (GoalCommand::Set(objective), kept) => {
                *kept = Some(Kept {
                    objective,
                    stand: Stand::Active,
                });
            }
            (GoalCommand::Clear, kept) => *kept = None,
            (GoalCommand::Pause, Some(kept)) => kept.stand = Stand::Paused,
            (GoalCommand::Resume, Some(kept)) => kept.stand = Stand::Active,
            (GoalCommand::Show | GoalCommand::Pause | GoalCommand::Resume, _) => {}
        }
        match &*kept {
            None => "There is no goal; /goal TEXT sets one".to_owned(),
            Some(Kept {
                objective,
                stand: Stand::Active,
            }) => format!("The goal is: {objective}"),
            Some(Kept { objective, .. }) => format!("The goal is paused: {objective}"),
        }
    }

    /// The work of a session with this goal in it.
    pub(super) fn beside(&self, work: Arc<dyn WorkState>) -> Arc<dyn WorkState> {
        Arc::new(WithGoal {
            goal: self.clone(),
            work,
        })
    }
}

struct WithGoal {
    goal: SharedGoal,
    work: Arc<dyn WorkState>,
}

impl WorkState for WithGoal {
    fn goal(&self) -> Option<Goal> {
        let kept = self.goal.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match kept {
            None => self.work.goal(),
            Some(Kept { objective, stand }) => Some(Goal {
                objective,
                status: match stand {
                    Stand::Active => "active".to_owned(),
                    Stand::Paused => "paused".to_owned(),
                },
                mode: GoalMode::On,
            }),
        }
    }

    fn todos(&self) -> Vec<Todo> {
        self.work.todos()
    }

    fn workflows(&self) -> Vec<Workflow> {
        self.work.workflows()
    }

    fn is_inert(&self, workflow: &Workflow) -> bool {
        self.work.is_inert(workflow)
    }
}

#[cfg(test)]
mod tests {
    use foldline_agent_session::work::NoWork;

    use super::*;

    #[test]
    fn a_goal_is_set_paused_resumed_and_cleared() {
        let goal = SharedGoal::default();
        let work = goal.beside(Arc::new(NoWork));
        for (command, says, status) in [
            (GoalCommand::Show, "There is no goal; /goal TEXT sets one", None),
            (GoalCommand::Pause, "There is no goal; /goal TEXT sets one", None),
            (
                GoalCommand::Set("green tests".to_owned()),
                "The goal is: green tests",
                Some("active"),
            ),
            (
                GoalCommand::Pause,
                "The goal is paused: green tests",
                Some("paused"),
            ),
            (GoalCommand::Resume, "The goal is: green tests", Some("active")),
            (GoalCommand::Clear, "There is no goal; /goal TEXT sets one", None),
        ] {
            assert_eq!(goal.obey(command.clone()), says, "{command:?}");
            let told = work.goal().map(|goal| goal.status);
            assert_eq!(told.as_deref(), status, "{command:?}");
        }
    }
}
