//! What a run begins with, and what it came to.

use foldline_session_model::EntryId;
use foldline_session_model::model_call::{InputBlock, StopReason, Usage};

use crate::event::{FailureKind, RunEnd};
use crate::message::Speaker;
use crate::queue::Queued;

/// Something to say to the model.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) speaker: Speaker,
    pub(crate) blocks: Vec<InputBlock<'static>>,
    /// The waiting message that it delivers.
    pub(crate) queued_id: Option<String>,
}

impl Input {
    pub(crate) fn user(blocks: Vec<InputBlock<'static>>) -> Self {
        Self {
            speaker: Speaker::User,
            blocks,
            queued_id: None,
        }
    }
}

impl From<Queued> for Input {
    fn from(message: Queued) -> Self {
        Self {
            queued_id: Some(message.id),
            ..Self::user(message.blocks)
        }
    }
}

/// What a run begins with.
#[derive(Debug)]
pub(crate) enum Start {
    /// A prompt.
    Prompt(Vec<InputBlock<'static>>),
    /// The context as it is.
    Continue,
    /// The messages that wait.
    Queue,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct RunReport {
    /// How.
    pub end: RunEnd,
    /// The last answer.
    pub answer: Option<FinalAnswer>,
    /// Why it failed.
    pub error: Option<String>,
    /// What kind of failure it was, if it failed.
    pub failure: Option<Box<FailureKind>>,
    /// How many requests it made, those of maintenance not counted.
    pub requests: u32,
}

/// The last answer of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalAnswer {
    /// Its entry.
    pub entry_id: EntryId,
    /// Its text.
    pub text: String,
    /// How it ended.
    pub stop: StopReason,
    /// What it cost.
    pub usage: Usage,
}
