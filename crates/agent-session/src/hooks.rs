//! Hooks: what others may see, change and stop at events of a session (seeds 000 and 002, "Hooks"; spec
//! "Orchestrator and clients", 13.1 and 13.2).
//!
//! A [`HookRunner`] asks [`Hooks`] one after the other, in the order in which they were loaded, and only those that
//! want the event. One that fails, panics or takes too long is reported and changes nothing; only a tool call
//! is blocked by that. [`CommandHook`] is a hook that is a program.

mod answer;
mod command;
mod event;
mod payload;
mod process;
mod runner;

pub use answer::{
    AgentStartAnswer, BeforeCompactAnswer, BeforeSwitchAnswer, BeforeTreeAnswer, CompactingAnswer,
    ContextAnswer, HookCompaction, HookMessage, HookTreeSummary, InputAction, InputAnswer, ToolCallAnswer,
    ToolResultAnswer,
};
pub use command::{CommandHook, command_hooks};
pub use event::HookEvent;
pub use payload::{
    AgentEndEvent, AgentSettledEvent, BeforeAgentStartEvent, BeforeCompactEvent, BeforeSwitchEvent,
    BeforeTreeEvent, CompactingEvent, CompactionPreparation, ContextEvent, FileOpsLists, InputEvent,
    RegionLines, SessionCompactEvent, SessionShutdownEvent, SessionStartEvent, SessionSwitchEvent,
    SessionTreeEvent, ToolCallEvent, ToolResultEvent, TreePreparation,
};
pub use runner::{
    AgentStartChanges, HookFailure, HookReporter, HookRunner, InputFate, SwitchVerdict, ToolVerdict,
};

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

/// Something that is asked at events. Every method has a default that changes nothing.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Who it is, in reports.
    fn path(&self) -> &str;

    /// The events that it wants; at no other it is asked.
    fn events(&self) -> &[HookEvent];

    /// How long it may take; `None`: until the work is cancelled.
    fn time_limit(&self, event: HookEvent) -> Option<Duration> {
        event.time_limit()
    }

    /// A session begins to be used.
    async fn session_start(&self, event: &SessionStartEvent<'_>, cx: &HookContext) -> Result<(), HookError> {
        let _ = (event, cx);
        Ok(())
    }

    /// Another session is about to take the place of this one: it may be kept.
    async fn session_before_switch(
        &self,
        event: &BeforeSwitchEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeSwitchAnswer, HookError> {
        let _ = (event, cx);
        Ok(BeforeSwitchAnswer::default())
    }

    /// Another session took the place of the one before.
    async fn session_switch(
        &self,
        event: &SessionSwitchEvent<'_>,
        cx: &HookContext,
    ) -> Result<(), HookError> {
        let _ = (event, cx);
        Ok(())
    }

    /// The session is left.
    async fn session_shutdown(
        &self,
        event: &SessionShutdownEvent<'_>,
        cx: &HookContext,
    ) -> Result<(), HookError> {
        let _ = (event, cx);
        Ok(())
    }

    /// The user typed something: it may be changed, or answered for.
    async fn input(&self, event: &InputEvent<'_>, cx: &HookContext) -> Result<InputAnswer, HookError> {
        let _ = (event, cx);
        Ok(InputAnswer::default())
    }

    /// A prompt is about to run: a message may be added, and the system prompt replaced for this run.
    async fn before_agent_start(
        &self,
        event: &BeforeAgentStartEvent<'_>,
        cx: &HookContext,
    ) -> Result<AgentStartAnswer, HookError> {
        let _ = (event, cx);
        Ok(AgentStartAnswer::default())
    }

    /// A request to the model is made: its messages may be replaced, for this request only.
    async fn context(&self, event: &ContextEvent<'_>, cx: &HookContext) -> Result<ContextAnswer, HookError> {
        let _ = (event, cx);
        Ok(ContextAnswer::default())
    }

    /// The model wants to call a tool: it may be kept from it. An error does that too.
    async fn tool_call(
        &self,
        event: &ToolCallEvent<'_>,
        cx: &HookContext,
    ) -> Result<ToolCallAnswer, HookError> {
        let _ = (event, cx);
        Ok(ToolCallAnswer::default())
    }

    /// A tool has answered: the answer may be changed before anybody sees it.
    async fn tool_result(
        &self,
        event: &ToolResultEvent<'_>,
        cx: &HookContext,
    ) -> Result<ToolResultAnswer, HookError> {
        let _ = (event, cx);
        Ok(ToolResultAnswer::default())
    }

    /// A run has ended.
    async fn agent_end(&self, event: &AgentEndEvent<'_>, cx: &HookContext) -> Result<(), HookError> {
        let _ = (event, cx);
        Ok(())
    }

    /// Nothing is left to do.
    async fn agent_settled(&self, event: &AgentSettledEvent, cx: &HookContext) -> Result<(), HookError> {
        let _ = (event, cx);
        Ok(())
    }

    /// A compaction is planned: it may be cancelled, or made here.
    async fn session_before_compact(
        &self,
        event: &BeforeCompactEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        let _ = (event, cx);
        Ok(BeforeCompactAnswer::default())
    }

    /// The request for a summary is made: context may be added, and the prompt replaced.
    async fn session_compacting(
        &self,
        event: &CompactingEvent<'_>,
        cx: &HookContext,
    ) -> Result<CompactingAnswer, HookError> {
        let _ = (event, cx);
        Ok(CompactingAnswer::default())
    }

    /// A compaction is in the session, whatever is answered.
    async fn session_compact(
        &self,
        event: &SessionCompactEvent<'_>,
        cx: &HookContext,
    ) -> Result<(), HookError> {
        let _ = (event, cx);
        Ok(())
    }

    /// A move in the tree is planned: it may be cancelled, and its summary made here.
    async fn session_before_tree(
        &self,
        event: &BeforeTreeEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeTreeAnswer, HookError> {
        let _ = (event, cx);
        Ok(BeforeTreeAnswer::default())
    }

    /// A move in the tree was made, whatever is answered.
    async fn session_tree(&self, event: &SessionTreeEvent<'_>, cx: &HookContext) -> Result<(), HookError> {
        let _ = (event, cx);
        Ok(())
    }
}

/// What a hook knows beside its event.
#[derive(Clone)]
pub struct HookContext {
    /// The session.
    pub session_id: Arc<str>,
    /// Its working folder.
    pub cwd: Arc<Path>,
    /// Cancelled when the work is, or when the hook has taken too long. An answer that comes later is discarded.
    pub signal: CancellationToken,
    /// What a hook may ask of the session.
    pub actions: Arc<dyn HookActions>,
}

/// What a hook may ask of the session.
pub trait HookActions: Send + Sync {
    /// Compacts the session as soon as it may be, with instructions if there are any. Does not wait for it.
    fn compact(&self, instructions: Option<String>);
}

/// Nothing may be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoActions;

impl HookActions for NoActions {
    fn compact(&self, _instructions: Option<String>) {}
}

/// Why a hook has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// It says so itself.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("handler timed out after {}ms", .0.as_millis())]
    TimedOut(Duration),
    /// It panicked.
    #[error("handler panicked: {0}")]
    Panicked(String),
    /// Its program could not be started.
    #[error("{command} cannot be started: {source}")]
    Spawn {
        /// The program.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// Its program could not be waited for.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its program failed.
    #[error("{status}{}{stderr}", if stderr.is_empty() { "" } else { ": " })]
    Exit {
        /// How it ended.
        status: ExitStatus,
        /// What it said, with secrets removed and cut.
        stderr: String,
    },
    /// Its program wrote more than is read.
    #[error("the output is longer than {limit} bytes")]
    OutputTooLong {
        /// How much is read.
        limit: usize,
    },
    /// Its program wrote something else than one JSON object with the fields of an answer.
    #[error("the output is no answer: {0}")]
    Output(String),
}

impl From<String> for HookError {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl From<&str> for HookError {
    fn from(message: &str) -> Self {
        Self::Failed(message.to_owned())
    }
}

#[cfg(test)]
mod tests;
