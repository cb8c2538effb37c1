//! Lines about the state of the work, for whoever writes a summary (spec "Orchestrator and clients", 9.1).

use crate::continuation::GoalSays;
use crate::work::{GoalMode, Todo, WorkState, Workflow};

/// At most so many todos are told.
const MOST_OPEN: usize = 10;
/// At most so many workflows are told.
const WORKFLOWS: usize = 5;

/// The state of the work at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkNow {
    pub(crate) goal_says: GoalSays,
    pub(crate) open_todos: Vec<String>,
    pub(crate) active_workflows: usize,
    pub(crate) lines: Vec<String>,
}

/// Reads the state of the work. A source that panics counts as empty: it must not stop a compaction.
pub(crate) fn read(work: &dyn WorkState) -> WorkNow {
    let isolated = |what: &str| tracing::warn!(what, "the state of the work could not be read");
    let goal = isolate(|| work.goal()).unwrap_or_else(|| {
        isolated("goal");
        None
    });
    let todos = isolate(|| work.todos()).unwrap_or_else(|| {
        isolated("todos");
        Vec::new()
    });
    let workflows = isolate(|| work.workflows()).unwrap_or_else(|| {
        isolated("workflows");
        Vec::new()
    });
    let active_workflows = workflows
        .iter()
        .filter(|workflow| !isolate(|| work.is_inert(workflow)).unwrap_or(true))
        .count();

    let mut lines = Vec::new();
    let mut goal_says = GoalSays::Nothing;
    if let Some(goal) = &goal {
        let objective = told(&goal.objective, 160);
        if goal.status == "paused" {
            goal_says = GoalSays::Paused;
        } else if goal.mode == GoalMode::On && goal.status == "active" {
            goal_says = GoalSays::Active;
        }
        if goal.mode == GoalMode::On {
            lines.push(format!(
                "Active goal: {objective} (status: {})",
                told(&goal.status, 40)
            ));
        } else if goal.status == "paused" {
            lines.push(format!("Paused goal: {objective} (status: paused)"));
        }
    }
    lines.extend(workflows.iter().take(WORKFLOWS).filter_map(workflow_line));
    let open: Vec<&Todo> = todos.iter().filter(|todo| todo.status.is_open()).collect();
    if !open.is_empty() {
        let texts: Vec<String> = open
            .iter()
            .take(MOST_OPEN)
            .map(|todo| told(&todo.text, 120))
            .collect();
        lines.push(format!("Open todos: {}", texts.join("; ")));
    }
    WorkNow {
        goal_says,
        open_todos: open.into_iter().map(|todo| todo.text.clone()).collect(),
        active_workflows,
        lines,
    }
}

fn workflow_line(workflow: &Workflow) -> Option<String> {
    if workflow.name.trim().is_empty() {
        return None;
    }
    let phase = workflow.phase.as_deref().unwrap_or("unknown");
    Some(format!(
        "Active skill: {} phase={}",
        told(&workflow.name, 100),
        told(phase, 80)
    ))
}

/// Text of the host on one line, without markup, cut to a length. It is cut before it is escaped, so that no entity is
/// ever split.
fn told(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    let flat = text.replace("\r\n", "\n");
    for c in flat.trim().chars() {
        let (piece, cost): (&str, usize) = match c {
            '&' => ("&amp;", 5),
            '<' => ("&lt;", 4),
            '>' => ("&gt;", 4),
            '\r' | '\n' => (" ", 1),
            _ => ("", 1),
        };
        if length + cost > most {
            break;
        }
        length += cost;
        if piece.is_empty() {
            out.push(c);
        } else {
            out.push_str(piece);
        }
    }
    out
}

fn isolate<T>(read: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Goal, TodoStatus};

    struct Busy;

    impl WorkState for Busy {
        fn goal(&self) -> Option<Goal> {
            Some(Goal {
                objective: "ship <it> &\r\nrest".to_owned(),
                status: "active".to_owned(),
                mode: GoalMode::On,
            })
        }

        fn todos(&self) -> Vec<Todo> {
            let todo = |text: &str, status| Todo {
                text: text.to_owned(),
                status,
            };
            vec![
                todo("write", TodoStatus::Completed),
                todo("test", TodoStatus::InProgress),
                todo("land", TodoStatus::Pending),
            ]
        }

        fn workflows(&self) -> Vec<Workflow> {
            vec![
                Workflow {
                    name: "ultragoal".to_owned(),
                    phase: Some("blocked".to_owned()),
                },
                Workflow {
                    name: " ".to_owned(),
                    phase: None,
                },
            ]
        }

        fn is_inert(&self, workflow: &Workflow) -> bool {
            workflow.phase.as_deref() != Some("blocked")
        }
    }

    #[test]
    fn lines_are_flat_and_without_markup() {
        let now = read(&Busy);
        assert_eq!(
            now.lines,
            [
                "Active goal: ship &lt;it&gt; &amp; rest (status: active)",
                "Active skill: ultragoal phase=blocked",
                "Open todos: test; land",
            ]
        );
        assert_eq!((now.goal_says, now.active_workflows), (GoalSays::Active, 1));
    }

    #[test]
    fn a_source_that_panics_counts_as_empty() {
        struct Broken;
        impl WorkState for Broken {
            fn goal(&self) -> Option<Goal> {
                std::panic::panic_any("broken")
            }
        }
        assert_eq!(read(&Broken).lines, Vec::<String>::new());
    }

    #[test]
    fn a_cut_never_splits_an_entity() {
        assert_eq!(told(&"<".repeat(50), 10), "&lt;&lt;");
        assert_eq!(told(&"漢".repeat(50), 3), "漢漢漢");
    }
}
