//! The request for a branch summary, and what becomes of its reply (DESIGN, rule 2; seed 000, "Summary generation and
//! persistence"; spec "Compaction core", 15.4).

use std::borrow::Cow;

use foldline_compaction_core::prompts::{PROMPT_VERSION, Prompt, PromptError, Prompts, Variables};
use foldline_compaction_core::redact::redact;
use foldline_compaction_core::summary::{
    Caps, Elision, Part, SummaryError, Transcript, bounded, checked_notes, handed_on, transcript,
};
use foldline_session_model::fold::Context;
use foldline_session_model::llm::{Around, Wrappers};
use foldline_session_model::message::Message;
use foldline_session_model::model_call::{LlmReply, LlmRequest, ModelProfile, ReasoningEffort};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryIx, Tokens};

use crate::preparation::{LeftOut, LeftOutReason, Preparation};
use crate::stored::{self, BranchSummary, Written};

#[cfg(test)]
mod tests;

/// What the user asks of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instructions<'i> {
    /// Nothing special.
    #[default]
    Usual,
    /// What to look at above all: appended to the structured prompt (D20).
    Focus(&'i str),
    /// A prompt in place of the structured one, as in seed 000.
    Replace(&'i str),
}

/// What the request is made with.
#[derive(Clone, Copy, Debug)]
pub struct JobOptions<'o> {
    /// The model that summarises.
    pub model: &'o ModelProfile,
    /// The prompts.
    pub prompts: &'o Prompts,
    /// What the user asks for.
    pub instructions: Instructions<'o>,
    /// How hard the model should think.
    pub reasoning: ReasoningEffort,
}

/// A branch summary by a model: a request now, the text when the reply is there.
#[derive(Debug)]
#[must_use]
pub struct BranchSummaryJob<'j, 'l> {
    preparation: &'j Preparation<'l>,
    options: JobOptions<'j>,
    requests: Vec<LlmRequest<'static>>,
    estimate: Tokens,
    /// Chosen messages for which the request had no room.
    dropped: Vec<EntryIx>,
}

/// Why there is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The branch holds nothing that could be summarised: the move goes on without a summary.
    #[error("the branch has no messages to summarize")]
    Empty,
    /// Not even the instructions fit.
    #[error("the window of {window} tokens is too small for a summary: its instructions alone take {fixed}")]
    WindowTooSmall {
        /// The model's window.
        window: Tokens,
        /// What the request takes at least.
        fixed: Tokens,
    },
    /// A prompt of the user is broken.
    #[error(transparent)]
    Prompt(#[from] PromptError),
}

/// The output that is asked for.
const OUTPUT: Tokens = Tokens(2_048);
/// What a request costs besides its texts.
const FRAME: Tokens = Tokens(16);
/// Less room than this for the transcript is no room.
const LEAST_ROOM: u64 = 64;

impl<'j, 'l> BranchSummaryJob<'j, 'l> {
    /// Plans the request.
    ///
    /// # Errors
    /// [`PlanError`] if nothing can be asked.
    pub fn new(
        preparation: &'j Preparation<'l>,
        options: JobOptions<'j>,
        counter: &dyn TokenCounter,
    ) -> Result<Self, PlanError> {
        if preparation.is_empty() {
            return Err(PlanError::Empty);
        }
        let system = options.prompts.render(Prompt::System, &Variables::default())?;
        let base = base(&options)?;
        let window = options
            .model
            .context_window
            .filter(|window| *window > Tokens::ZERO);
        let output = output(options.model, window);
        let fixed = counter.one(&system) + counter.one(&prompt_text("", &base)) + FRAME;
        let room = match window {
            None => None,
            Some(window) => {
                // Estimates of dense text are too low by up to a half: as compactions, a request takes 60 % of the
                // window at most.
                let budget = Tokens(window.saturating_sub(output).get() * 6 / 10);
                let room = budget.saturating_sub(fixed);
                if room.get() < LEAST_ROOM {
                    return Err(PlanError::WindowTooSmall { window, fixed });
                }
                Some(room)
            }
        };
        let (conversation, dropped) = conversation(preparation, room, counter);
        let text = prompt_text(&conversation, &base);
        let estimate = counter.one(&system) + counter.one(&text) + FRAME;
        let mut request = LlmRequest::from_prompt(system, text);
        request.max_output = Some(output);
        request.reasoning = options.reasoning;
        Ok(Self {
            preparation,
            options,
            requests: vec![request],
            estimate,
            dropped,
        })
    }

    /// The requests: one. It fits into the model's window.
    pub fn requests(&self) -> &[LlmRequest<'static>] {
        &self.requests
    }

    /// The estimate of the request.
    pub fn estimate(&self) -> Tokens {
        self.estimate
    }

    /// Turns the reply into the text and the details of the entry.
    ///
    /// # Errors
    /// [`SummaryError`] if the reply is no summary. The session is then left as it is.
    pub fn finish(
        &self,
        replies: &[LlmReply],
        counter: &dyn TokenCounter,
    ) -> Result<BranchSummary, SummaryError> {
        let [reply] = replies else {
            return Err(SummaryError::ReplyCount {
                expected: 1,
                got: replies.len(),
            });
        };
        let notes = checked_notes(reply, self.estimate, &self.own_words(), counter)?;
        let written = Written {
            notes: notes.text,
            planner: format!("{}/{}", self.options.model.provider, self.options.model.id),
            rung: "model",
            prompt_version: Some(PROMPT_VERSION),
            cut_off: notes.cut_off,
        };
        let preamble = self
            .options
            .prompts
            .render(Prompt::BranchPreamble, &Variables::default())
            .unwrap_or_default();
        Ok(stored::assemble(
            self.preparation,
            &preamble,
            &written,
            self.left_out(),
            self.options.model.context_window,
            counter,
        ))
    }

    /// What the summary is not made from: what the preparation left out, and what the request had no room for.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let log = self.preparation.branch().log;
        let dropped = self.dropped.iter().map(|ix| LeftOut {
            entry_id: log.entry_id(*ix),
            reason: LeftOutReason::Budget,
        });
        self.preparation
            .left_out()
            .iter()
            .cloned()
            .chain(dropped)
            .collect()
    }

    /// Our own words, which have no place in a summary.
    fn own_words(&self) -> Vec<String> {
        let mut words: Vec<String> = self
            .requests
            .iter()
            .flat_map(|request| request.system.iter().map(ToString::to_string))
            .collect();
        words.extend(base(&self.options).ok());
        words
    }
}

fn base(options: &JobOptions<'_>) -> Result<String, PromptError> {
    let focus = match options.instructions {
        Instructions::Replace(text) if !text.trim().is_empty() => return Ok(redact(text.trim()).into_owned()),
        Instructions::Focus(text) if !text.trim().is_empty() => Some(redact(text.trim())),
        _ => None,
    };
    options.prompts.render(
        Prompt::Branch,
        &Variables {
            instructions: focus.as_deref(),
            ..Variables::default()
        },
    )
}

fn output(model: &ModelProfile, window: Option<Tokens>) -> Tokens {
    let ceiling = model
        .max_output
        .filter(|most| *most > Tokens::ZERO)
        .unwrap_or(OUTPUT);
    let half = window.map_or(OUTPUT, |window| Tokens(window.get() / 2));
    OUTPUT.min(ceiling).min(half)
}

fn prompt_text(conversation: &str, base: &str) -> String {
    format!("<conversation>\n{conversation}\n</conversation>\n\n{base}")
}

/// The chosen messages as text in at most `room` tokens. Steps, each only if the one before was not enough: shorter
/// calls, the newest messages, the newest one without its middle (R03).
fn conversation(
    preparation: &Preparation<'_>,
    room: Option<Tokens>,
    counter: &dyn TokenCounter,
) -> (String, Vec<EntryIx>) {
    let branch = without_blocks(preparation);
    let wrappers = Wrappers {
        verbatim: Around::new("", ""),
        ..Wrappers::default()
    };
    let messages = branch.converted(&wrappers);
    let whole = transcript(messages.iter(), Caps::USUAL);
    let Some(room) = room else {
        return (whole.text(), Vec::new());
    };
    let text = whole.text();
    if counter.one(&text) <= room {
        return (text, Vec::new());
    }
    let tight = transcript(messages.iter(), Caps::TIGHT);
    let mut used = Tokens::ZERO;
    let mut kept: Vec<Part> = Vec::new();
    let mut dropped = Vec::new();
    for part in tight.parts.into_iter().rev() {
        // One more for the blank line.
        let size = counter.one(&part.text) + Tokens(1);
        if !dropped.is_empty() || (used + size > room && !kept.is_empty()) {
            dropped.push(part.source);
            continue;
        }
        used += size;
        kept.push(part);
    }
    kept.reverse();
    dropped.reverse();
    let text = Transcript { parts: kept }.text();
    (bounded(&text, room, Elision::TRANSCRIPT, counter).0, dropped)
}

/// The chosen part of the branch. Of earlier summaries only the notes are handed on, so that nothing nests (D19).
fn without_blocks<'l>(preparation: &Preparation<'l>) -> Context<'l> {
    let mut branch = Context {
        items: preparation.messages().cloned().collect(),
        ..preparation.branch().clone()
    };
    for item in &mut branch.items {
        if let Message::CompactionSummary(text) | Message::BranchSummary(text) = &mut item.message {
            text.summary = Cow::Owned(handed_on(&text.summary));
        }
    }
    branch
}
