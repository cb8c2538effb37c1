//! What a tool is: something that the model may call and that answers exactly once (spec "Orchestrator and clients",
//! 1.3).

use std::path::Path;

use async_trait::async_trait;
use foldline_session_model::model_call::{InputBlock, RawJson, ToolOutcome, ToolSpec};
use tokio_util::sync::CancellationToken;

/// Something that the model may call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description and arguments, as the model sees them.
    fn spec(&self) -> ToolSpec<'static>;

    /// What a call may do. Tools that only read are offered by default, others when the user allows them.
    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    /// Whether a call may run beside other calls of the same answer.
    fn concurrency(&self) -> Concurrency {
        Concurrency::Parallel
    }

    /// Answers a call. Never panics: wrong arguments, failures and a cancel are outputs too.
    ///
    /// Once the token is cancelled it returns soon, and leaves no process behind.
    async fn run(&self, call: ToolRun<'_>) -> ToolOutput;
}

/// What a call of a tool may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It reads files of the project, or only touches state of the session.
    ReadOnly,
    /// It changes files or runs programs.
    Changes,
}

/// Whether a call may run beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Concurrency {
    /// It may.
    Parallel,
    /// It waits for the calls before it, and those after it wait.
    Exclusive,
}

/// One call.
pub struct ToolRun<'r> {
    /// The call's id.
    pub call_id: &'r str,
    /// The arguments: one JSON object, whole. Checking them against the schema is the tool's part.
    pub arguments: &'r RawJson<'r>,
    /// The working folder of the session.
    pub cwd: &'r Path,
    /// Cancelled when the run is.
    pub cancel: CancellationToken,
    /// Keeps output that is too long for an answer.
    pub spill: &'r dyn Spill,
    /// Shows the user what the tool is doing; the model does not see it.
    pub progress: &'r (dyn Fn(&str) + Send + Sync),
}

/// Keeps output that is too long for an answer.
pub trait Spill: Send + Sync {
    /// Stores a text and returns how it is read again (`artifact://…`); `None` if it could not be stored.
    fn spill(&self, tool: &str, text: &str) -> Option<String>;
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub blocks: Vec<InputBlock<'static>>,
    /// Whether the tool succeeded.
    pub outcome: ToolOutcome,
    /// The tool's own data, kept in the session: one JSON object.
    pub details: Option<RawJson<'static>>,
    /// Whether the run goes on.
    pub then: AfterTool,
}

/// Whether a run goes on after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterTool {
    /// The model reads the answer.
    #[default]
    Continue,
    /// The run ends, if all calls of the answer say so.
    EndRun,
}

impl ToolOutput {
    /// A text as the answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            blocks: vec![InputBlock::Text(text.into().into())],
            outcome: ToolOutcome::Success,
            details: None,
            then: AfterTool::Continue,
        }
    }

    /// A failure, and why.
    pub fn error(why: impl Into<String>) -> Self {
        Self {
            outcome: ToolOutcome::Error,
            ..Self::text(why)
        }
    }

    /// The same answer with data of the tool beside it.
    #[must_use]
    pub fn with_details(mut self, details: RawJson<'static>) -> Self {
        self.details = Some(details);
        self
    }
}
