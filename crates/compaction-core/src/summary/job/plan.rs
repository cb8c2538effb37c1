//! Which requests a summary needs, and what is in each.

use foldline_session_model::llm::{Around, LlmMessage, Wrappers};
use foldline_session_model::model_call::LlmRequest;
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryIx, Tokens};

use super::super::assemble::Dropped;
use super::super::bound::{Elision, bounded};
use super::super::chunk::{Fitted, fit};
use super::super::transcript::{Caps, safe, transcript};
use super::text::{Seen, prompt_text};
use super::{PlanError, Purpose, SummaryJob, SummaryRequest};
use crate::prompts::{Prompt, PromptError, Variables};
use crate::redact::redact;
use crate::settings::ShortSummary;
use crate::text::one_line;

/// The output of the line for user interfaces.
const SHORT_OUTPUT: Tokens = Tokens(512);
/// What a request costs besides its texts.
const FRAME: Tokens = Tokens(16);
/// Less room than this for the transcript is no room.
const LEAST_ROOM: Tokens = Tokens(64);
/// The longest line of context, in UTF-16 units.
const CONTEXT_LINE_UNITS: usize = 2_000;
/// The longest numbers of parts, to measure the instructions with.
const MOST_PARTS: usize = 16;

impl SummaryJob<'_, '_, '_> {
    pub(super) fn plan(&mut self, counter: &dyn TokenCounter) -> Result<(), PlanError> {
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
    pub(super) fn instruction_texts(&self) -> Vec<String> {
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
