//! A run of the agent, and what keeps it going: retries, maintenance, waiting messages (spec "Orchestrator and clients",
//! 1.3, 1.5 and 2).
//!
//! Everything happens in one task, one step after the other: when [`Core::drive`] returns, nothing is left to happen.

mod report;
mod trouble;

use foldline_compaction_core::decide::{Boundary, Guard};
use foldline_llm_client::{LlmError, ReplaySafety};
use foldline_session_model::{Display, EntryDraft, Tokens};

use crate::ask::{Answer, estimate};
use crate::continuation::Continuation;
use crate::core::{Core, MidTurn};
use crate::event::{Event, FailureKind, NoticeLevel, RunEnd};
use crate::hooks::{AgentEndEvent, AgentSettledEvent, BeforeAgentStartEvent, HookEvent};
use crate::journal::{CommitError, now_ms};
use crate::maintenance::{Maintained, auto_continue};
use crate::message::{self, Speaker};
use crate::queue::Delivery;
use crate::retry::{AfterFailure, Facts, Media, after_failure};
use crate::shared::Lease;
use crate::tool_calls::AfterCalls;
pub use report::{FinalAnswer, RunReport};
pub(crate) use report::{Input, Start};
use trouble::random;

/// What one pass of requests and tools came to.
enum Ran {
    Done,
    /// A tool ended the run: nothing follows, no maintenance either.
    Ended,
    Failed {
        error: LlmError,
        replay: ReplaySafety,
    },
    Cancelled,
    /// A request that cannot be made, or was not, and why.
    Refused(String),
}

/// What follows a pass.
enum Next {
    Again(Vec<Input>),
    End(RunEnd, Option<String>),
}

/// A run in progress.
struct Driving {
    retries: u32,
    /// A retry was announced and its end was not.
    retrying: bool,
    media: Media,
    answer: Option<FinalAnswer>,
    /// What the newest failed request failed of.
    failure: Option<FailureKind>,
    requests: u32,
    /// Messages of hooks that follow the prompt.
    extra: Vec<EntryDraft>,
    /// What the run began with.
    prompt: PromptState,
}

/// Where the prompt of a run is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptState {
    /// In the session, or there is none that is not there.
    Written,
    /// With its caller only.
    NotWritten,
}

/// Whether a request follows an answer of the same pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterAnswer {
    Yes,
    No,
}

/// A request and what followed from it.
enum Turned {
    /// The pass ends with it.
    Ends(Ran),
    /// An answer, and the results of its calls.
    Answered { calls: usize, results: AfterCalls },
}

impl Core {
    /// Runs the agent until nothing is left to do.
    ///
    /// # Errors
    /// The prompt that it was to begin with could not be written: it is not in the session. What goes wrong later is in
    /// the report.
    pub(crate) async fn drive(&mut self, lease: &Lease, start: Start) -> Result<RunReport, CommitError> {
        self.shared.emit(Event::AgentStart);
        let mut not_accepted = None;
        let mut driving = Driving {
            prompt: match &start {
                Start::Prompt(_) => PromptState::NotWritten,
                Start::Continue | Start::Queue => PromptState::Written,
            },
            retries: 0,
            retrying: false,
            media: Media::Whole,
            answer: None,
            failure: None,
            requests: 0,
            extra: Vec::new(),
        };
        let (end, error) = match self.steps(lease, start, &mut driving).await {
            Ok(end) => end,
            Err(error) => {
                let text = error.to_string();
                self.shared.events.notice(
                    NoticeLevel::Error,
                    Some("session"),
                    format!("The session could not be written: {text}"),
                );
                driving.failure = Some(if error.is_busy() {
                    FailureKind::Busy
                } else {
                    FailureKind::Other
                });
                if driving.prompt == PromptState::NotWritten {
                    not_accepted = Some(error);
                }
                (RunEnd::Failed, Some(text))
            }
        };
        self.end_retry(&mut driving, end == RunEnd::Completed, error.clone());
        self.end_fallback(end == RunEnd::Completed, error.clone());
        self.live.system = None;
        self.shared.emit(Event::AgentEnd { stop_reason: end });
        let cx = self.hook_context(&lease.cancel);
        self.options
            .hooks
            .agent_end(&cx, || AgentEndEvent {
                messages: Vec::new(),
                stop_reason: Some(match end {
                    RunEnd::Cancelled => "cancelled",
                    RunEnd::Completed | RunEnd::Failed => "completed",
                }),
            })
            .await;
        self.options
            .hooks
            .agent_settled(&cx, || AgentSettledEvent {})
            .await;
        self.shared.emit(Event::AgentSettled);
        match not_accepted {
            Some(error) => Err(error),
            None => Ok(RunReport {
                end,
                answer: driving.answer,
                failure: error
                    .is_some()
                    .then(|| Box::new(driving.failure.unwrap_or(FailureKind::Other))),
                error,
                requests: driving.requests,
            }),
        }
    }

    async fn steps(
        &mut self,
        lease: &Lease,
        start: Start,
        driving: &mut Driving,
    ) -> Result<(RunEnd, Option<String>), CommitError> {
        let mut inputs = match start {
            Start::Prompt(blocks) => vec![Input::user(blocks)],
            Start::Continue => Vec::new(),
            Start::Queue => match self.waiting() {
                // They were taken back meanwhile.
                waiting if waiting.is_empty() => return Ok((RunEnd::Completed, None)),
                waiting => waiting,
            },
        };
        self.new_turn(&inputs);
        self.before_prompt(lease, &inputs).await;
        let prompt: Vec<String> = inputs
            .iter()
            .map(|input| message::text_of(&input.blocks))
            .collect();
        driving.extra = self.before_start(&prompt.join("\n"), &inputs, lease).await;
        loop {
            let ran = self.pass(lease, std::mem::take(&mut inputs), driving).await?;
            match self.after_pass(lease, ran, driving).await? {
                Next::Again(next) => {
                    self.new_turn(&next);
                    self.before_prompt(lease, &next).await;
                    inputs = next;
                }
                Next::End(end, error) => return Ok((end, error)),
            }
        }
    }

    /// Makes room for what a user is about to say. Words of the program's own come right after a compaction.
    async fn before_prompt(&mut self, lease: &Lease, inputs: &[Input]) {
        if inputs.iter().any(|input| input.speaker == Speaker::User) {
            let pending: Tokens = inputs.iter().map(|input| estimate(&input.blocks)).sum();
            // What goes wrong here never blocks the prompt: the request itself will tell.
            drop(self.maintain(lease, Boundary::BeforePrompt, pending).await);
        }
    }

    /// Asks the hooks before a run: messages to add, and the system text of this run.
    async fn before_start(&mut self, prompt: &str, inputs: &[Input], lease: &Lease) -> Vec<EntryDraft> {
        if inputs.is_empty() || !self.options.hooks.wants(HookEvent::BeforeAgentStart) {
            return Vec::new();
        }
        let cx = self.hook_context(&lease.cancel);
        let system = self.options.system.join("\n\n");
        let changes = self
            .options
            .hooks
            .before_agent_start(&cx, || BeforeAgentStartEvent {
                prompt,
                images: Vec::new(),
                system_prompt: system,
            })
            .await;
        self.live.system = changes.system_prompt;
        changes
            .messages
            .iter()
            .map(|added| {
                let text = message::blocks_of_json(&added.content).map_or_else(
                    || added.content.get().to_owned(),
                    |blocks| message::text_of(&blocks),
                );
                let display = if added.display {
                    Display::Shown
                } else {
                    Display::Hidden
                };
                EntryDraft::custom_message(&added.custom_type, &text, display)
            })
            .collect()
    }

    /// A user's message begins a turn: it has its own recovery, and the model that the user chose.
    fn new_turn(&mut self, inputs: &[Input]) {
        if inputs.iter().any(|input| input.speaker == Speaker::User) {
            self.live.overflow_guard = Guard::Armed;
            self.live.length_guard = Guard::Armed;
            self.live.length_continuations = 0;
            self.live.media_budget = None;
            self.end_fallback(true, None);
        }
    }

    /// The messages whose turn it is, in the order in which they were accepted.
    fn waiting(&self) -> Vec<Input> {
        let messages = self.shared.queues().next_any();
        messages.into_iter().map(Input::from).collect()
    }

    fn steering(&self) -> Vec<Input> {
        let messages = self.shared.queues().next(Delivery::Steer);
        messages.into_iter().map(Input::from).collect()
    }

    /// Requests and tools until the model is done and nothing waits.
    async fn pass(
        &mut self,
        lease: &Lease,
        mut inputs: Vec<Input>,
        driving: &mut Driving,
    ) -> Result<Ran, CommitError> {
        let mut after_answer = AfterAnswer::No;
        let mut turn_index = 0;
        loop {
            self.shared.emit(Event::TurnStart { turn_index });
            let turned = self
                .turn(lease, std::mem::take(&mut inputs), after_answer, driving)
                .await;
            self.shared.emit(Event::TurnEnd {
                turn_index,
                tool_results: match &turned {
                    Ok(Turned::Answered { calls, .. }) => *calls,
                    _ => 0,
                },
            });
            let (calls, results) = match turned? {
                Turned::Ends(ran) => return Ok(ran),
                Turned::Answered { calls, results } => (calls, results),
            };
            after_answer = AfterAnswer::Yes;
            if lease.is_cancelled() {
                return Ok(Ran::Cancelled);
            }
            inputs = self.steering();
            let asks_again = calls > 0 && results == AfterCalls::Continue;
            if !asks_again && inputs.is_empty() {
                inputs = self.waiting();
                if inputs.is_empty() {
                    return Ok(if calls > 0 { Ran::Ended } else { Ran::Done });
                }
            }
            turn_index += 1;
        }
    }

    /// One request with the messages before it and the results after it.
    async fn turn(
        &mut self,
        lease: &Lease,
        inputs: Vec<Input>,
        after_answer: AfterAnswer,
        driving: &mut Driving,
    ) -> Result<Turned, CommitError> {
        if after_answer == AfterAnswer::Yes {
            self.new_turn(&inputs);
        }
        for input in inputs {
            self.deliver(input).await?;
            driving.prompt = PromptState::Written;
        }
        for draft in std::mem::take(&mut driving.extra) {
            self.append(draft).await?;
        }
        if lease.is_cancelled() {
            return Ok(Turned::Ends(Ran::Cancelled));
        }
        if after_answer == AfterAnswer::Yes && self.options.settings.mid_turn == MidTurn::On {
            match self
                .maintain(lease, Boundary::BetweenRequests, Tokens::ZERO)
                .await
            {
                Maintained::Stop(text) => return Ok(Turned::Ends(Ran::Refused(text))),
                Maintained::Cancelled => return Ok(Turned::Ends(Ran::Cancelled)),
                Maintained::Nothing | Maintained::Compacted(_) => {}
            }
            // What was compacted stays so; nothing follows it.
            if lease.is_cancelled() {
                return Ok(Turned::Ends(Ran::Cancelled));
            }
        }
        let answer = self.ask(&lease.cancel).await;
        if !matches!(answer, Ok(Answer::Impossible(_))) {
            driving.requests += 1;
        }
        Ok(match answer? {
            Answer::Impossible(text) => Turned::Ends(Ran::Refused(text)),
            Answer::Cancelled => Turned::Ends(Ran::Cancelled),
            Answer::Failed { error, replay } => Turned::Ends(Ran::Failed { error, replay }),
            Answer::Whole {
                entry,
                stop,
                calls,
                text,
                usage,
            } => {
                driving.answer = Some(FinalAnswer {
                    entry_id: entry,
                    text,
                    stop,
                    usage,
                });
                self.end_retry(driving, true, None);
                driving.failure = None;
                let results = self.run_calls(&calls, &lease.cancel).await?;
                Turned::Answered {
                    calls: calls.len(),
                    results,
                }
            }
        })
    }

    /// Puts a message into the session. From then on it does not wait any more.
    async fn deliver(&mut self, input: Input) -> Result<(), CommitError> {
        let role = input.speaker.role();
        let draft = message::input(input.speaker, &input.blocks, input.queued_id.as_deref(), now_ms());
        let entry_id = self.append(draft).await?;
        if let Some(id) = &input.queued_id {
            self.shared.queues().delivered(id);
            self.shared.emit_queues();
        }
        self.shared.emit(Event::MessageStart { role });
        self.shared.emit(Event::MessageEnd {
            role,
            entry_id: Some(entry_id),
            text: message::text_of(&input.blocks),
            usage: None,
            error_message: None,
        });
        Ok(())
    }

    /// What follows a pass: nothing, the same request again, maintenance, waiting messages.
    async fn after_pass(
        &mut self,
        lease: &Lease,
        ran: Ran,
        driving: &mut Driving,
    ) -> Result<Next, CommitError> {
        let failed = match ran {
            Ran::Cancelled => return Ok(Next::End(RunEnd::Cancelled, None)),
            Ran::Refused(text) => return Ok(Next::End(RunEnd::Failed, Some(text))),
            Ran::Ended => return Ok(Next::End(RunEnd::Completed, None)),
            Ran::Done => None,
            Ran::Failed { error, replay } => {
                driving.failure = Some(FailureKind::Provider(error.class.clone()));
                let facts = Facts {
                    retries: driving.retries,
                    replay,
                    place: self.options.models.place,
                    fallback: self.fallback(),
                    media: driving.media,
                    random: random(),
                };
                match after_failure(&error, &facts, &self.options.settings.retry) {
                    AfterFailure::Cancelled => return Ok(Next::End(RunEnd::Cancelled, None)),
                    AfterFailure::Retry { attempt, delay } => {
                        return self.wait_and_retry(lease, &error, attempt, delay, driving).await;
                    }
                    AfterFailure::WithoutMedia(entry) => {
                        driving.media = Media::Reduced;
                        if self.leave_media_out(entry) {
                            return Ok(Next::Again(Vec::new()));
                        }
                    }
                    AfterFailure::LessMedia => {
                        driving.media = Media::Reduced;
                        if self.halve_media() {
                            return Ok(Next::Again(Vec::new()));
                        }
                    }
                    AfterFailure::NextModel => {
                        self.next_model(&error.to_string());
                        driving.retries = 0;
                        return Ok(Next::Again(Vec::new()));
                    }
                    AfterFailure::Maintain | AfterFailure::GiveUp => {}
                }
                Some(error.to_string())
            }
        };
        self.end_retry(driving, failed.is_none(), failed.clone());
        let ended = |failed: Option<String>| match failed {
            None => Next::End(RunEnd::Completed, None),
            Some(error) => Next::End(RunEnd::Failed, Some(error)),
        };
        match self.maintain(lease, Boundary::AfterRun, Tokens::ZERO).await {
            Maintained::Cancelled if lease.is_cancelled() => Ok(Next::End(RunEnd::Cancelled, None)),
            Maintained::Stop(text) => Ok(Next::End(RunEnd::Failed, Some(text))),
            Maintained::Nothing | Maintained::Cancelled => Ok(match self.waiting() {
                waiting if failed.is_none() && !waiting.is_empty() => Next::Again(waiting),
                _ => ended(failed),
            }),
            Maintained::Compacted(follow) => match follow {
                Continuation::Retry => Ok(Next::Again(Vec::new())),
                Continuation::Deliver => Ok(match self.waiting() {
                    waiting if waiting.is_empty() => ended(failed),
                    waiting => Next::Again(waiting),
                }),
                Continuation::AutoContinue => {
                    Ok(auto_continue().map_or_else(|| ended(failed), |input| Next::Again(vec![input])))
                }
                Continuation::Stop(_) => Ok(ended(failed)),
            },
        }
    }
}
