//! The requests of a summary, and what becomes of their replies (DESIGN, rule 2; spec "Compaction core", 9 and 11).

use foldline_session_model::llm::{Around, LlmMessage, Wrappers};
use foldline_session_model::model_call::{LlmReply, LlmRequest, ModelProfile, ReasoningEffort};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};

use super::assemble::{self, CommitOptions, Dropped, Notes, SummaryCompaction, SummaryError};
use super::bound::{Elision, bounded};
use super::chunk::{Fitted, fit};
use super::prepare::Preparation;
use super::reply::{checked, joined};
use super::transcript::{Caps, safe, transcript};
use crate::prompts::{Prompt, PromptError, Prompts, Variables};
use crate::redact::redact;
use crate::settings::{CompactionSettings, ShortSummary};
use crate::text::one_line;

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

/// The output limit for models of which none is known.
const UNKNOWN_OUTPUT: Tokens = Tokens(8_192);
/// Less output than this makes no summary.
const LEAST_OUTPUT: Tokens = Tokens(512);
/// A summary of a small part still gets this much, for models that think before they write.
const SMALL_OUTPUT: Tokens = Tokens(2_048);
/// The output of the line for user interfaces.
const SHORT_OUTPUT: Tokens = Tokens(512);
/// The share of the window without the output that a prompt may take by the estimate: estimates of dense text
/// are too low by up to a half.
const PROMPT_SHARE: f64 = 0.6;
/// What a request costs besides its texts.
const FRAME: Tokens = Tokens(16);
/// Less room than this for the transcript is no room.
const LEAST_ROOM: Tokens = Tokens(64);
/// The longest line of context, in UTF-16 units.
const CONTEXT_LINE_UNITS: usize = 2_000;

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

    fn plan(&mut self, counter: &dyn TokenCounter) -> Result<(), PlanError> {
        // The lines of a verbatim compaction are transcript like the rest.
        let wrappers = Wrappers {
            verbatim: Around::new("", ""),
            ..Wrappers::default()
        };
        let seen = Seen::new(self.preparation, &wrappers);
        let settings = self.options.commit.settings;
        let previous = self.preparation.previous_summary().map(|p| safe(p).into_owned());
        let (history, prefix) = (
            self.preparation.history().len(),
            self.preparation.turn_prefix().len(),
        );
        if history > 0 {
            let first = if previous.is_some() {
                Prompt::Update
            } else {
                Prompt::Summary
            };
            self.ask(
                &seen.history,
                &Ask::new(first, previous.as_deref(), 0.8),
                counter,
                |part, of| Purpose::History { part, of },
            )?;
        }
        if prefix > 0 {
            self.ask(
                &seen.prefix,
                &Ask::new(Prompt::TurnPrefix, None, 0.5),
                counter,
                |part, of| Purpose::TurnPrefix { part, of },
            )?;
        }
        if settings.short_summary == ShortSummary::Model {
            self.ask_short(&seen, previous.as_deref(), counter)?;
        }
        Ok(())
    }

    /// Plans the requests of one transcript.
    fn ask(
        &mut self,
        messages: &[LlmMessage<'_>],
        ask: &Ask<'_>,
        counter: &dyn TokenCounter,
        purpose: impl Fn(usize, usize) -> Purpose,
    ) -> Result<(), PlanError> {
        let output = self.output(ask.output_share);
        let system = self
            .options
            .prompts
            .render(Prompt::System, &Variables::default())?;
        let budget = self.budget(output);
        let mut previous = ask.previous.map(str::to_owned);
        let mut context = self.context_block();
        // What is there in any case, with the longest form of the instructions.
        let fixed = |previous: Option<&str>, context: &str, base: &str| {
            let text = prompt_text("", previous, context, base);
            counter.one(&system) + counter.one(&text) + FRAME
        };
        let longest = self.base(ask.prompt, Some((MOST_PARTS, MOST_PARTS)))?;
        let mut room = None;
        if let Some(budget) = budget {
            // The earlier summary and the context lines are bounded too (CD21).
            let bare = fixed(None, "", &longest);
            let spare = budget.saturating_sub(bare);
            if let Some(text) = &previous {
                previous = Some(bounded(text, Tokens(spare.get() / 2), Elision::STORED, counter).0);
            }
            if counter.one(&context) > Tokens(spare.get() / 8) {
                context.clear();
            }
            let taken = fixed(previous.as_deref(), &context, &longest);
            let left = budget.saturating_sub(taken);
            if left < LEAST_ROOM {
                return Err(PlanError::WindowTooSmall {
                    window: self.options.model.context_window.unwrap_or_default(),
                    fixed: bare,
                });
            }
            room = Some(left);
        }
        let Fitted { pieces, dropped } = fit(|caps| transcript(messages.iter(), caps), room, counter);
        let reason = if pieces.is_empty() {
            "it has no text"
        } else {
            "the requests had no room for it"
        };
        self.drop_entries(&dropped, reason);
        let of = pieces.len();
        for (i, piece) in pieces.into_iter().enumerate() {
            // Only the first part continues the earlier summary.
            let first = i == 0;
            let prompt = match ask.prompt {
                Prompt::Update if !first => Prompt::Summary,
                prompt => prompt,
            };
            let base = self.base(prompt, (of > 1).then_some((i + 1, of)))?;
            let previous = previous.as_deref().filter(|p| first && !p.is_empty());
            let text = prompt_text(&piece.text, previous, &context, &base);
            self.push(purpose(i + 1, of), &system, text, output, &piece.entries, counter);
        }
        Ok(())
    }

    fn ask_short(
        &mut self,
        seen: &Seen<'_>,
        previous: Option<&str>,
        counter: &dyn TokenCounter,
    ) -> Result<(), PlanError> {
        let system = self
            .options
            .prompts
            .render(Prompt::System, &Variables::default())?;
        let base = self
            .options
            .prompts
            .render(Prompt::Short, &Variables::default())?;
        let output = SHORT_OUTPUT.min(self.output(0.2));
        let mut text = transcript(seen.history.iter().chain(&seen.prefix), Caps::TIGHT).text();
        if let Some(previous) = previous.filter(|_| text.is_empty()) {
            text = previous.to_owned();
        }
        if let Some(budget) = self.budget(output) {
            let fixed = counter.one(&system) + counter.one(&prompt_text("", None, "", &base)) + FRAME;
            text = bounded(&text, budget.saturating_sub(fixed), Elision::TRANSCRIPT, counter).0;
        }
        let text = prompt_text(&text, None, "", &base);
        self.push(Purpose::Short, &system, text, output, &[], counter);
        Ok(())
    }

    fn push(
        &mut self,
        purpose: Purpose,
        system: &str,
        text: String,
        output: Tokens,
        entries: &[EntryIx],
        counter: &dyn TokenCounter,
    ) {
        let estimate = counter.one(system) + counter.one(&text) + FRAME;
        let mut request = LlmRequest::from_prompt(system.to_owned(), text);
        request.max_output = Some(output);
        request.reasoning = self.options.reasoning;
        let log = self.preparation.context().log;
        self.requests.push(SummaryRequest {
            purpose,
            request,
            estimate,
            entries: entries.iter().map(|ix| log.entry_id(*ix)).collect(),
        });
    }

    /// The output that a request asks for: its share of the reserve, within what the model can write, and no more than
    /// half of what it summarises (FB-031, FB-064).
    fn output(&self, share: f64) -> Tokens {
        let model = self.options.model;
        let reserve = reserve(self.options.commit.settings, model.context_window);
        let region = self.preparation.compacted_tokens().get() / 2;
        share_of(reserve, share)
            .min(Tokens(region).max(SMALL_OUTPUT))
            .max(LEAST_OUTPUT)
            .min(
                model
                    .max_output
                    .filter(|o| *o > Tokens::ZERO)
                    .unwrap_or(UNKNOWN_OUTPUT),
            )
            .min(
                model
                    .context_window
                    .map_or(Tokens(u64::MAX), |w| Tokens(w.get() / 2)),
            )
    }

    /// The estimate that a prompt may have; `None` if the window is unknown.
    fn budget(&self, output: Tokens) -> Option<Tokens> {
        let window = self.options.model.context_window.filter(|w| *w > Tokens::ZERO)?;
        Some(share_of(window.saturating_sub(output), PROMPT_SHARE))
    }

    fn base(&self, prompt: Prompt, part: Option<(usize, usize)>) -> Result<String, PromptError> {
        let instructions = self.options.instructions.map(redact);
        if let Some(text) = self
            .options
            .prompt_override
            .filter(|_| prompt != Prompt::TurnPrefix)
        {
            return Ok(match instructions {
                Some(focus) => format!("{text}\n\nAdditional focus: {focus}"),
                None => text.to_owned(),
            });
        }
        let variables = Variables {
            instructions: instructions.as_deref(),
            part: part.map(|(part, _)| part),
            parts: part.map(|(_, of)| of),
            ..Variables::default()
        };
        self.options.prompts.render(prompt, &variables)
    }

    /// Lines about the session, as data.
    fn context_block(&self) -> String {
        let mut block = String::new();
        for line in self.options.context_lines {
            let line = one_line(&safe(line), CONTEXT_LINE_UNITS);
            if !line.is_empty() {
                block.push_str("- ");
                block.push_str(&line);
                block.push('\n');
            }
        }
        block
    }

    fn drop_entries(&mut self, entries: &[EntryIx], reason: &'static str) {
        let log = self.preparation.context().log;
        self.dropped.extend(entries.iter().map(|ix| Dropped {
            entry_id: log.entry_id(*ix),
            reason,
        }));
    }

    /// Our own words, which have no place in a summary.
    fn instruction_texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for request in &self.requests {
            texts.extend(request.request.system.iter().map(ToString::to_string));
        }
        for prompt in [Prompt::Summary, Prompt::Update, Prompt::TurnPrefix, Prompt::Short] {
            texts.extend(self.base(prompt, None).ok());
        }
        texts.dedup();
        texts
    }
}

/// The longest numbers of parts, to measure the instructions with.
const MOST_PARTS: usize = 16;

struct Ask<'p> {
    prompt: Prompt,
    previous: Option<&'p str>,
    output_share: f64,
}

impl<'p> Ask<'p> {
    const fn new(prompt: Prompt, previous: Option<&'p str>, output_share: f64) -> Self {
        Self {
            prompt,
            previous,
            output_share,
        }
    }
}

/// The messages of a preparation as a model sees them; those that it does not see are missing.
struct Seen<'s> {
    history: Vec<LlmMessage<'s>>,
    prefix: Vec<LlmMessage<'s>>,
}

impl<'s> Seen<'s> {
    fn new(preparation: &'s Preparation<'_, '_>, wrappers: &'s Wrappers) -> Self {
        let context = preparation.context();
        let visible = (0..)
            .zip(&context.items)
            .filter(|(_, item)| item.message.is_visible());
        let mut seen = Self {
            history: Vec::new(),
            prefix: Vec::new(),
        };
        for ((at, _), message) in visible.zip(context.converted(wrappers)) {
            if preparation.history_range().contains(&at) {
                seen.history.push(message);
            } else if preparation.prefix_range().contains(&at) {
                seen.prefix.push(message);
            }
        }
        seen
    }
}

/// Transcript, earlier summary, context, instructions: in this order, apart by blank lines.
fn prompt_text(conversation: &str, previous: Option<&str>, context: &str, base: &str) -> String {
    let mut text = String::with_capacity(conversation.len() + base.len() + 256);
    text.push_str("<conversation>\n");
    text.push_str(conversation);
    text.push_str("\n</conversation>\n\n");
    if let Some(previous) = previous.filter(|p| !p.is_empty()) {
        text.push_str("<previous-summary>\n");
        text.push_str(previous);
        text.push_str("\n</previous-summary>\n\n");
    }
    if !context.is_empty() {
        text.push_str("<additional-context>\n");
        text.push_str(context);
        text.push_str("</additional-context>\n\n");
    }
    text.push_str(base);
    text
}

/// The reserve that outputs are shares of: the setting, at most half of the model's window.
fn reserve(settings: &CompactionSettings, window: Option<Tokens>) -> Tokens {
    let default = CompactionSettings::default().reserve_tokens;
    let set = settings.reserve_tokens;
    let reserve = if set.is_finite() && set > 0.0 {
        set
    } else {
        default
    };
    let reserve = share_of(Tokens(1), reserve);
    match window.filter(|w| *w > Tokens::ZERO) {
        Some(window) => reserve.min(Tokens(window.get() / 2)),
        None => reserve,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and shares are positive"
)]
fn share_of(whole: Tokens, share: f64) -> Tokens {
    Tokens((whole.get() as f64 * share).floor() as u64)
}
