//! What a session tells: core events, maintenance, retries, notices (spec "Orchestrator and clients", 10.3).
//!
//! Every `…Start` is followed by exactly one `…End`. Events reach each subscriber in the order in which they happened.

use std::sync::{Arc, Mutex, PoisonError};

use foldline_compaction_core::decide::Reason;
use foldline_session_model::model_call::{ErrorClass, RawJson, ToolOutcome, Usage};
use foldline_session_model::{EntryId, Tokens};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Something that happened. As JSON it is one event line of the RPC protocol.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// A run begins.
    AgentStart,
    /// A run, with all of its retries and continuations, has ended.
    AgentEnd {
        /// How.
        stop_reason: RunEnd,
    },
    /// Nothing is left to do for the operation that was asked for.
    AgentSettled,
    /// A request of a run is about to be made.
    TurnStart {
        /// Which one of the run, from 0.
        turn_index: usize,
    },
    /// The answer and the results of its calls are in the session.
    TurnEnd {
        /// Which one of the run, from 0.
        turn_index: usize,
        /// How many results.
        tool_results: usize,
    },
    /// A message begins.
    MessageStart {
        /// Whose it is.
        role: &'static str,
    },
    /// A message of the model grows.
    MessageUpdate {
        /// What came.
        assistant_message_event: Delta,
    },
    /// A message is whole and in the session, or lost, and why.
    MessageEnd {
        /// Whose it is.
        role: &'static str,
        /// Its entry; none if it could not be written.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry_id: Option<EntryId>,
        /// Its text, without thinking.
        text: String,
        /// What it cost, if a model wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A tool runs.
    ToolExecutionStart {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments.
        args: RawJson<'static>,
    },
    /// A tool says what it is doing.
    ToolExecutionUpdate {
        /// The call.
        tool_call_id: String,
        /// What it says.
        text: String,
    },
    /// A tool has answered.
    ToolExecutionEnd {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// Whether it succeeded.
        outcome: ToolOutcome,
    },
    /// A compaction begins.
    CompactionStart(CompactionStart),
    /// A compaction has ended.
    CompactionEnd(Box<CompactionEnd>),
    /// A compaction is prepared beside the agent.
    BackgroundCompactionStart {
        /// How the context will be made smaller.
        action: CompactionAction,
    },
    /// What was prepared beside the agent came to this.
    BackgroundCompactionEnd {
        /// What.
        outcome: AheadOutcome,
        /// Why it failed or was dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// Tool output was replaced by notices.
    Pruned {
        /// The entry that says so.
        entry_id: EntryId,
        /// How many results.
        results: usize,
        /// What that saves.
        tokens_saved: Tokens,
    },
    /// A request failed and is sent again after a wait.
    AutoRetryStart {
        /// Which retry, from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// The wait.
        delay_ms: u64,
        /// Why it failed.
        error_message: String,
    },
    /// The retries have ended.
    AutoRetryEnd {
        /// Whether the last one succeeded.
        success: bool,
        /// How many there were.
        attempt: u32,
        /// Why the last one failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<String>,
    },
    /// A summariser is asked again after a wait.
    SummarizationRetryScheduled {
        /// Which retry, from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// The wait.
        delay_ms: u64,
        /// Why it failed.
        error_message: String,
    },
    /// Another model takes over for the rest of the turn.
    ModelFallbackStart {
        /// The model that failed, `provider/id`.
        from: String,
        /// The model that takes over.
        to: String,
        /// Why.
        reason: String,
    },
    /// A model that took over has ended its part.
    ModelFallbackEnd {
        /// Whether it answered.
        success: bool,
        /// Why not.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<String>,
    },
    /// The session's model is another one.
    ModelChanged {
        /// `provider/id`.
        model: String,
        /// Whether the session returns to the model before it.
        temporary: bool,
    },
    /// A handoff document is being written.
    HandoffStart,
    /// A handoff has ended.
    HandoffEnd {
        /// How.
        outcome: OperationOutcome,
        /// The new session.
        #[serde(skip_serializing_if = "Option::is_none")]
        new_session: Option<String>,
        /// The address of a copy of the document, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        saved_path: Option<String>,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A branch is being summarised.
    BranchSummaryStart,
    /// A summary of a branch has ended.
    BranchSummaryEnd {
        /// How.
        outcome: OperationOutcome,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// The leaf stands elsewhere.
    Navigated {
        /// Where it stood.
        old_leaf_id: Option<EntryId>,
        /// Where it stands.
        new_leaf_id: Option<EntryId>,
    },
    /// The queues have changed.
    QueueUpdate {
        /// What steers the run, in order.
        steering: Vec<String>,
        /// What follows it, in order.
        follow_up: Vec<String>,
    },
    /// A continuation could not start.
    AgentContinueError {
        /// What wanted to continue.
        source: &'static str,
        /// Why it could not.
        error_message: String,
    },
    /// Something that a user should know.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// What.
        message: String,
        /// Who says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<&'static str>,
    },
    /// A hook failed. What it was asked about goes on without it.
    ExtensionError {
        /// The hook.
        extension_path: String,
        /// The event that it was told.
        event: String,
        /// What went wrong.
        error: String,
    },
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunEnd {
    /// The model was done.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// A request failed for good.
    Failed,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum OperationOutcome {
    /// It is in the session.
    Committed,
    /// There was nothing to do.
    Skipped,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed,
}

/// What became of a compaction that was prepared beside the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AheadOutcome {
    /// It was due, and the compaction that begins now takes it.
    Committed,
    /// It is not wanted any more.
    Dropped,
    /// No plan came of it.
    Failed,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something did not go as asked.
    Warning,
    /// Something failed.
    Error,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Delta {
    /// Text.
    TextDelta {
        /// The block.
        content_index: usize,
        /// What came.
        delta: String,
    },
    /// Thinking.
    ThinkingDelta {
        /// The block.
        content_index: usize,
        /// What came.
        delta: String,
    },
    /// Arguments of a call.
    ToolcallDelta {
        /// The block.
        content_index: usize,
        /// What came.
        delta: String,
    },
}

/// How a context is made smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompactionAction {
    /// By a summary.
    ContextFull,
    /// By deleting lines.
    VerbatimLines,
    /// By a new session.
    Handoff,
}

/// A compaction that begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionStart {
    /// Why.
    #[serde(with = "reason_name")]
    pub reason: Reason,
    /// How.
    pub action: CompactionAction,
    /// Whether it happens between two requests of a run.
    pub mid_turn: bool,
}

/// A compaction that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionEnd {
    /// Why it was due.
    #[serde(with = "reason_name")]
    pub reason: Reason,
    /// How it was done.
    pub action: CompactionAction,
    /// Whether it happened between two requests of a run.
    pub mid_turn: bool,
    /// What came of it.
    pub outcome: OperationOutcome,
    /// What was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<CompactionResult>,
    /// Whether it was cancelled, by a user or a hook.
    pub aborted: bool,
    /// Whether the failed request is sent again.
    pub will_retry: bool,
    /// Whether it was skipped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Why nothing goes on after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_skip_reason: Option<&'static str>,
    /// Whether a request still does not fit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unresolved_overflow: bool,
    /// Whether someone asked for a compaction by hand, which takes its place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manual_takeover_pending: bool,
    /// What kind of failure it was, if it failed.
    #[serde(skip)]
    pub failure: Option<FailureKind>,
    /// What it would have come to, if it was skipped because it does not pay.
    #[serde(skip)]
    pub unpaid: Option<Box<Unpaid>>,
}

/// What kind of failure ended an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The model, or the way to it.
    Provider(ErrorClass),
    /// The model answered with something that cannot be used.
    Answer,
    /// Another writer has the session.
    Busy,
    /// The system refused to write.
    System(std::io::ErrorKind),
    /// Anything else.
    Other,
}

/// A compaction that was planned and does not pay (D11).
#[derive(Clone, Debug, PartialEq)]
pub struct Unpaid {
    /// The estimate of the context.
    pub tokens_before: Tokens,
    /// What it would have been, by the same estimator.
    pub tokens_after: Tokens,
    /// Which rung of the ladder planned it.
    pub rung: &'static str,
    /// What the planner says.
    pub extras: crate::compaction::Extras,
}

impl CompactionEnd {
    /// An end of which only reason, way and outcome are known.
    pub(crate) const fn new(reason: Reason, action: CompactionAction, outcome: OperationOutcome) -> Self {
        Self {
            reason,
            action,
            mid_turn: false,
            outcome,
            result: None,
            aborted: matches!(outcome, OperationOutcome::Cancelled),
            will_retry: false,
            skipped: matches!(outcome, OperationOutcome::Skipped),
            error_message: None,
            continuation_skip_reason: None,
            unresolved_overflow: false,
            manual_takeover_pending: false,
            failure: None,
            unpaid: None,
        }
    }
}

/// What a compaction put into the session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// The entry.
    pub entry_id: EntryId,
    /// Where the kept tail begins.
    pub first_kept_entry_id: Option<EntryId>,
    /// The estimate of the context before.
    pub tokens_before: Tokens,
    /// The estimate after, by the same estimator.
    pub tokens_after: Tokens,
    /// Prose, or the lines that stay.
    pub summary: String,
    /// A line for user interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_summary: Option<String>,
    /// Who planned it: `provider/model`, `extractive`, or `extension`.
    pub planner: String,
    /// Which rung of the ladder gave it.
    pub rung: &'static str,
    /// The form in which the provider compacted the history itself, if that stands beside the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<&'static str>,
    /// `background` if the plan was made beside the agent, before it was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<&'static str>,
    /// Failures before it, each with the model that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback_reasons: Vec<String>,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// The copy of the session from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_path: Option<std::path::PathBuf>,
    /// What the planner says beside the entry.
    #[serde(skip)]
    pub extras: crate::compaction::Extras,
}

/// The names of reasons on the wire.
pub(crate) mod reason_name {
    use super::Reason;

    pub(crate) const fn name(reason: Reason) -> &'static str {
        match reason {
            Reason::Manual => "manual",
            Reason::Overflow => "overflow",
            Reason::Threshold => "threshold",
            Reason::Idle => "idle",
        }
    }

    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    pub(crate) fn serialize<S: serde::Serializer>(reason: &Reason, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name(*reason))
    }
}

impl Event {
    /// The same event under the name that older clients listen for: `auto_compaction_start` and `auto_compaction_end`.
    /// Compactions that someone asked for have none.
    pub fn alias(&self) -> Option<&'static str> {
        match self {
            Self::CompactionStart(start) if start.reason != Reason::Manual => Some("auto_compaction_start"),
            Self::CompactionEnd(end) if end.reason != Reason::Manual => Some("auto_compaction_end"),
            _ => None,
        }
    }
}

/// Where events go.
#[derive(Debug, Default)]
pub(crate) struct Events {
    subscribers: Mutex<Vec<UnboundedSender<Arc<Event>>>>,
}

impl Events {
    pub(crate) fn subscribe(&self) -> UnboundedReceiver<Arc<Event>> {
        let (sender, receiver) = unbounded_channel();
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sender);
        receiver
    }

    /// Tells every subscriber; one that is gone is forgotten.
    pub(crate) fn emit(&self, event: Event) {
        let event = Arc::new(event);
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|subscriber| subscriber.send(Arc::clone(&event)).is_ok());
    }

    pub(crate) fn notice(
        &self,
        level: NoticeLevel,
        source: Option<&'static str>,
        message: impl Into<String>,
    ) {
        self.emit(Event::Notice {
            level,
            message: message.into(),
            source,
        });
    }
}
