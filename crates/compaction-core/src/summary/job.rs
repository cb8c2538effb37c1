//! The requests of a summary, and what becomes of their replies (DESIGN, rule 2; spec "Compaction core", 9 and 11).

mod budget;
mod plan;
mod text;

use foldline_session_model::model_call::{LlmReply, LlmRequest, ModelProfile, ReasoningEffort};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, Tokens};

use super::assemble::{self, CommitOptions, Dropped, Notes, SummaryCompaction, SummaryError};
use super::prepare::Preparation;
use super::reply::{checked, joined};
use crate::prompts::{PromptError, Prompts};

/// What the requests of a summary are made with.
#[derive(Clone, Copy, Debug)]
pub struct JobOptions<'o> {
    /// What the entry is made with.
    pub commit: CommitOptions<'o>,
    /// The model that summarises.
    pub model: &'o ModelProfile,
    /// The prompts.
    pub prompts: &'o Prompts,
    /// What the user asked for beside the usual.
    pub instructions: Option<&'o str>,
    /// A hook's prompt in place of the usual one; instructions still follow it.
    pub prompt_override: Option<&'o str>,
    /// Lines about the state of the session, from hooks and from the session itself.
    pub context_lines: &'o [String],
    /// How hard the model should think.
    pub reasoning: ReasoningEffort,
}

/// A summary by a model: requests now, the entry when the replies are there.
#[derive(Debug)]
#[must_use]
pub struct SummaryJob<'j, 'c, 'l> {
    preparation: &'j Preparation<'c, 'l>,
    options: JobOptions<'j>,
    requests: Vec<SummaryRequest>,
    dropped: Vec<Dropped>,
}

/// One request of a summary. All of them are independent: they can run side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRequest {
    /// What it is for.
    pub purpose: Purpose,
    /// The request.
    pub request: LlmRequest<'static>,
    /// The estimate of its prompt. With the output that it asks for it fits into the model's window.
    pub estimate: Tokens,
    /// The entries that it shows.
    pub entries: Vec<EntryId>,
}

/// What a request of a summary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The messages before the tail, or a part of them, counted from 1.
    History {
        /// Which part.
        part: usize,
        /// How many there are.
        of: usize,
    },
    /// The beginning of the turn whose end is kept, or a part of it.
    TurnPrefix {
        /// Which part.
        part: usize,
        /// How many there are.
        of: usize,
    },
    /// The line for user interfaces.
    Short,
}

/// Why no requests could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Not even the instructions fit.
    #[error("the window of {window} tokens is too small for a summary: its instructions alone take {fixed}")]
    WindowTooSmall {
        /// The model's window.
        window: Tokens,
        /// What every request takes at least.
        fixed: Tokens,
    },
    /// A prompt of the user is broken.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

impl<'j, 'c, 'l> SummaryJob<'j, 'c, 'l> {
    /// Plans the requests.
    ///
    /// # Errors
    /// [`PlanError`] if nothing can be asked.
    pub fn new(
        preparation: &'j Preparation<'c, 'l>,
        options: JobOptions<'j>,
        counter: &dyn TokenCounter,
    ) -> Result<Self, PlanError> {
        let mut job = Self {
            preparation,
            options,
            requests: Vec::new(),
            dropped: Vec::new(),
        };
        job.plan(counter)?;
        Ok(job)
    }

    /// The requests, in the order in which [`finish`](Self::finish) wants the replies.
    pub fn requests(&self) -> &[SummaryRequest] {
        &self.requests
    }

    /// Entries that are in no request, with the reason.
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Turns the replies into the entry.
    ///
    /// # Errors
    /// [`SummaryError`] if a reply is no summary, or if the compaction does not pay. The session is then left as it is.
    pub fn finish(
        &self,
        replies: &[LlmReply],
        counter: &dyn TokenCounter,
    ) -> Result<SummaryCompaction, SummaryError> {
        if replies.len() != self.requests.len() {
            return Err(SummaryError::ReplyCount {
                expected: self.requests.len(),
                got: replies.len(),
            });
        }
        let mut notes = Notes {
            dropped: self.dropped.clone(),
            planner: format!("{}/{}", self.options.model.provider, self.options.model.id),
            ..Notes::default()
        };
        let instructions = self.instruction_texts();
        for (request, reply) in self.requests.iter().zip(replies) {
            let (text, whole) = checked(request, reply, &instructions, counter)?;
            notes.cut_off |= !whole;
            match request.purpose {
                Purpose::History { of, .. } => joined(&mut notes.history, &text, of),
                Purpose::TurnPrefix { of, .. } => joined(&mut notes.prefix, &text, of),
                Purpose::Short => notes.short = Some(text),
            }
        }
        notes.parts = self
            .requests
            .iter()
            .filter(|r| r.purpose != Purpose::Short)
            .count();
        assemble::assemble(self.preparation, &self.options.commit, notes, counter)
    }
}
