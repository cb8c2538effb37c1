//! The rows of the tables of the specification, through a session: what happens at each boundary, and what follows it
//! (spec "Orchestrator and clients", 3.3, 3.4, 9 and 17; field cases and requirements by their numbers).
//!
//! Rows without a test here, and why:
//!
//! - auto-compaction-continue 13 (a busy agent), retry "a failed continuation start": a run is one task, so a
//!   continuation is the next step of it and cannot find the agent busy.
//! - state-aware "goal completed by a `before_agent_start` handler", "abort during state read": evidence is read, without
//!   waiting for anything, in the step that decides; nothing runs between that and the request.
//! - promotion "provider session suspended, closed once": requests carry no session state of a provider.
//! - queue "estimates 110+1500", "ratio in (1,2]", "usage unknown right after compaction": the size of a context is a pure
//!   function; its table is in compaction-core.
//! - handoff "post-commit failure code": after the new file is written nothing that can fail is left.
//! - midrun "without the checkpoint the first event would be overflow": that is `agent_end` without it, not a behaviour.
//! - retry "transient unbounded", "`retry_now`": attempts are bounded (spec, 8.2), and a wait is cancelled, not skipped.
//! - pruning-cache-epoch "artifact failure", "commit gate rejection": a prune is one entry (D4); nothing is staged.
//! - handoff "artifact only for auto": the document is the first message of the new session, nothing else is stored.
//! - A "output-budget recovery": the class is an overflow like others here, so the overflow guard holds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use foldline_compaction_core::decide::Reason;
use foldline_llm_client::testing::{Asked, Script, ScriptedModel};
use foldline_session_model::model_call::{ErrorClass, LlmRequest, ModelProfile, OtherCause, ToolChoice};

use super::*;
use crate::SessionOptions;
use crate::event::{CompactionAction, CompactionEnd, Event, OperationOutcome};
use crate::run::RunReport;
use crate::testing::{name, profile, slow_summary};
use crate::work::{Goal, GoalMode, Todo, TodoStatus, WorkState, Workflow};

mod ahead;
mod continuation;
mod dead_settings;
mod field_sizes;
mod field_turns;
mod guards;
mod handoff;
mod length;
mod midrun;
mod native;
mod queue;
mod requests;
mod retry;
mod summaries;
mod tree;
mod verbatim;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Turn,
    Handoff,
    /// A summary, of a branch or a context.
    Summary,
}

fn kind(request: &LlmRequest<'_>) -> Kind {
    if request.tool_choice == ToolChoice::None && request.system.iter().any(|text| text.contains("engineer"))
    {
        Kind::Handoff
    } else if request.system.iter().any(|text| text.contains("engineer")) {
        Kind::Turn
    } else {
        Kind::Summary
    }
}

/// Answers by what a request is for. Summaries that are not scripted are good ones.
#[derive(Default)]
struct Play {
    turns: VecDeque<Script>,
    summaries: VecDeque<Script>,
    handoffs: VecDeque<Script>,
}

impl Play {
    fn turns(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self {
            turns: scripts.into_iter().collect(),
            ..Self::default()
        }
    }

    fn summaries(mut self, scripts: impl IntoIterator<Item = Script>) -> Self {
        self.summaries.extend(scripts);
        self
    }

    fn model(self, name: &str, window: u64) -> Arc<ScriptedModel> {
        Arc::new(self.scripted(profile(name, window)))
    }

    fn scripted(self, profile: ModelProfile) -> ScriptedModel {
        let play = Mutex::new(self);
        ScriptedModel::answering(profile, move |request, _| {
            let mut play = play.lock().unwrap();
            match kind(request) {
                Kind::Turn => play.turns.pop_front().unwrap_or_else(|| too_many("turn")),
                Kind::Handoff => play.handoffs.pop_front().unwrap_or_else(|| too_many("handoff")),
                Kind::Summary => play.summaries.pop_front().unwrap_or_else(summary),
            }
        })
    }

    fn rig(self) -> Rig {
        self.rig_with(|_| {})
    }

    fn rig_with(self, change: impl FnOnce(&mut SessionOptions)) -> Rig {
        Rig::on(self.model("one", 200_000), change)
    }
}

fn too_many(what: &str) -> Script {
    Script::failure(
        ErrorClass::Other(OtherCause::Protocol),
        format!("no {what} is left in the script"),
    )
}

/// An answer over the threshold of 170,000 tokens.
fn over() -> Script {
    Script::reply("so far", used(180_000))
}

/// An answer with much room left.
fn done() -> Script {
    Script::reply("done", used(20_000))
}

/// The work of a host, as a test has it.
#[derive(Default)]
struct Board {
    goal: Option<Goal>,
    todos: Vec<Todo>,
    workflows: Vec<Workflow>,
}

#[derive(Default)]
struct Work(Mutex<Board>);

impl WorkState for Work {
    fn goal(&self) -> Option<Goal> {
        self.0.lock().unwrap().goal.clone()
    }

    fn todos(&self) -> Vec<Todo> {
        self.0.lock().unwrap().todos.clone()
    }

    fn workflows(&self) -> Vec<Workflow> {
        self.0.lock().unwrap().workflows.clone()
    }

    fn is_inert(&self, workflow: &Workflow) -> bool {
        workflow.phase.as_deref() != Some("blocked")
    }
}

fn board(board: Board) -> Arc<Work> {
    Arc::new(Work(Mutex::new(board)))
}

fn goal(status: &str, mode: GoalMode) -> Goal {
    Goal {
        objective: "ship it".to_owned(),
        status: status.to_owned(),
        mode,
    }
}

fn todos() -> Vec<Todo> {
    vec![Todo {
        text: "write the parser".to_owned(),
        status: TodoStatus::Pending,
    }]
}

fn workflow(phase: &str) -> Vec<Workflow> {
    vec![Workflow {
        name: "ultragoal".to_owned(),
        phase: Some(phase.to_owned()),
    }]
}

/// A todo that is open.
fn unfinished() -> Arc<Work> {
    board(Board {
        todos: todos(),
        ..Board::default()
    })
}

/// The events of a test, and what they say.
struct Told(Vec<Arc<Event>>);

impl Told {
    fn count(&self, wanted: &str) -> usize {
        self.0.iter().filter(|event| name(event) == wanted).count()
    }

    fn ends(&self) -> Vec<&CompactionEnd> {
        let ends = self.0.iter().filter_map(|event| match &**event {
            Event::CompactionEnd(end) => Some(&**end),
            _ => None,
        });
        ends.collect()
    }

    /// The one end of a compaction.
    fn end(&self) -> &CompactionEnd {
        let ends = self.ends();
        assert_eq!(ends.len(), 1, "{ends:#?}");
        assert_eq!(self.count("compaction_start"), 1);
        ends[0]
    }

    fn notices(&self) -> Vec<&str> {
        let notices = self.0.iter().filter_map(|event| match &**event {
            Event::Notice { message, .. } => Some(message.as_str()),
            _ => None,
        });
        notices.collect()
    }
}

impl Rig {
    /// Prompts, and returns what came of it with everything that was told.
    async fn run(&mut self, prompt: &str) -> (RunReport, Told) {
        let Prompted::Ran(report) = self.session.prompt(prompt).await.unwrap() else {
            panic!("queued")
        };
        (report, Told(self.events()))
    }

    fn asked(&self, wanted: Kind) -> Vec<Asked> {
        let mut asked = self.model.asked();
        asked.retain(|asked| kind(&asked.request) == wanted);
        asked
    }

    /// How many messages of the program's own are in the context.
    fn told_to_go_on(&self) -> usize {
        let context = self.context();
        context
            .iter()
            .filter(|line| line.starts_with("developer: "))
            .count()
    }

    fn compactions(&self) -> usize {
        let log = self.log();
        log.entries()
            .filter(|ix| log.kind(*ix) == foldline_session_model::entry::EntryKind::Compaction)
            .count()
    }
}

/// Compactions end one way or another, but their ends come one for each start.
fn assert_ended(end: &CompactionEnd, reason: Reason, outcome: OperationOutcome) {
    assert_eq!((end.reason, end.outcome), (reason, outcome), "{end:#?}");
}

/// Anything but the usual action is named by the test that expects it.
fn assert_summarised(end: &CompactionEnd, reason: Reason) {
    assert_ended(end, reason, OperationOutcome::Committed);
    assert_eq!(end.action, CompactionAction::ContextFull);
}
