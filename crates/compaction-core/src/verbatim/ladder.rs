//! Who plans the deletions, and what comes when that fails (spec "Verbatim", section 12; D6).
//!
//! A [`Ladder`] is a state machine without I/O: [`Ladder::step`] says which model to ask what, the caller runs the
//! request and hands the answer to [`Ladder::answer`]. Someone who asked for a compaction gets one request and an
//! honest failure. When the context must shrink, every rung is strictly smaller than the one before: a view of half
//! the lines after an overflow, each fallback model once, and in the end the planner that needs no model.

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{InputBlock, MessageContent};
use foldline_session_model::model_call::{
    LlmReply, LlmRequest, ModelProfile, ReasoningEffort, RequestMessage,
};
use foldline_session_model::tokens::TokenCounter;

use super::finish::{Planner, RangePlan, Rung, TailFate};
use super::model_free;
use super::outcome::{CallFailure, Category, Outcome, Retries, answer_text, outcome};
use super::prepare::{MIN_REGION_LINES, Preparation};
use super::request::{RangePrompts, request};
use super::view::View;

/// A model that may plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The model.
    pub profile: ModelProfile,
    /// How hard it should think.
    pub reasoning: ReasoningEffort,
    /// Whether it can be asked at all.
    pub credentials: Credentials,
}

/// Whether there are credentials for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// There are.
    Present,
    /// There are none; what the caller would say about it.
    Missing(String),
}

/// How far a ladder goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Climb {
    /// One request to the first model (seed 002).
    OneRequest,
    /// Smaller views and all models, each once.
    AllModels,
}

/// What stands at the end of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastRung {
    /// An error. Nothing is written.
    Fail,
    /// The planner without a model, within this many tokens for the whole context; `None`: no limit is known.
    ModelFree {
        /// The hard limit of the context.
        limit: Option<Tokens>,
    },
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Ask this candidate and hand the answer to [`Ladder::answer`].
    Ask {
        /// Its position among the candidates.
        candidate: usize,
        /// What to ask.
        request: Box<LlmRequest<'static>>,
    },
    /// The plan.
    Done(RangePlan),
    /// There is none.
    Failed(RangePlanError),
}

/// Why there is no plan. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RangePlanError {
    /// What went wrong, for people.
    pub message: String,
    /// What kind of failure; the last one if there were several. A candidate without credentials is passed over and
    /// hides no failure of another.
    pub category: Category,
    /// How many requests were sent.
    pub attempts: u32,
    /// The beginning of the last answer.
    pub excerpt: Option<String>,
}

/// A failed attempt, for a diagnostic.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedAttempt {
    /// Which candidate was asked.
    pub candidate: usize,
    /// What kind of failure.
    pub category: Category,
    /// What went wrong, for people.
    pub message: String,
    /// Whether waiting was tried.
    pub retries: Retries,
}

/// What an answer led to, for sidecars.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// A plan from a whole answer.
    Planned,
    /// A plan from an answer that was cut off.
    Recovered {
        /// How many records were whole.
        records: usize,
    },
    /// No plan.
    Failed(FailedAttempt),
}

/// The state of a plan in progress.
#[derive(Debug)]
pub struct Ladder<'p, 'c, 'l> {
    preparation: &'p Preparation<'c, 'l>,
    prompts: &'p RangePrompts,
    candidates: Vec<Candidate>,
    climb: Climb,
    last: LastRung,
    at: usize,
    view: View<'p>,
    tried: Vec<String>,
    attempts: u32,
    failure: Option<(Category, String)>,
    excerpt: Option<String>,
    plan: Option<RangePlan>,
}

impl<'p, 'c, 'l> Ladder<'p, 'c, 'l> {
    /// A ladder over candidates in order of preference; the first one is the session's own model.
    pub fn new(
        preparation: &'p Preparation<'c, 'l>,
        prompts: &'p RangePrompts,
        candidates: Vec<Candidate>,
        climb: Climb,
        last: LastRung,
    ) -> Self {
        Self {
            preparation,
            prompts,
            candidates,
            climb,
            last,
            at: 0,
            view: View::whole(preparation.region()),
            tried: Vec::new(),
            attempts: 0,
            failure: None,
            excerpt: None,
            plan: None,
        }
    }

    /// What to do next. After [`Step::Ask`] call [`Ladder::answer`] first.
    pub fn step(&mut self, counter: &dyn TokenCounter) -> Step {
        if let Some(plan) = self.plan.take() {
            return Step::Done(plan);
        }
        if self.preparation.region().line_count() < MIN_REGION_LINES {
            self.failure.get_or_insert_with(|| {
                (
                    Category::NoUsableRanges,
                    "the compactable part is too small to plan deletions in".to_owned(),
                )
            });
            return self.exhausted(counter);
        }
        while let Some(candidate) = self.candidates.get(self.at) {
            let key = format!("{}:{:?}", candidate.profile.model_ref(), candidate.reasoning);
            let first_ask_of_it = self.view.withheld() == 0;
            if first_ask_of_it && self.tried.contains(&key) {
                self.next_candidate();
                continue;
            }
            if let Credentials::Missing(message) = &candidate.credentials {
                self.failure
                    .get_or_insert_with(|| (Category::Unauthenticated, message.clone()));
                self.tried.push(key);
                if self.climb == Climb::OneRequest {
                    break;
                }
                self.next_candidate();
                continue;
            }
            let ask = request(
                &self.view,
                self.preparation.parameters(),
                self.prompts,
                candidate.reasoning,
            );
            if !fits(&ask, &candidate.profile, counter) {
                // Measured before it leaves (R03): a request that cannot fit is never sent.
                match self.view.smaller() {
                    Some(smaller) => self.view = smaller,
                    None => {
                        let message = "the request does not fit the model's context window, however small";
                        self.failure = Some((Category::ContextOverflow, message.to_owned()));
                        if self.climb == Climb::OneRequest {
                            break;
                        }
                        self.next_candidate();
                    }
                }
                continue;
            }
            self.tried.push(key);
            self.attempts += 1;
            return Step::Ask {
                candidate: self.at,
                request: Box::new(ask),
            };
        }
        self.exhausted(counter)
    }

    /// Takes the answer to the last request.
    pub fn answer(&mut self, answer: &Result<LlmReply, CallFailure>) -> Attempt {
        let asked = self.at;
        let window = self.candidates.get(asked).and_then(|c| c.profile.context_window);
        if let Ok(reply) = answer {
            let text = answer_text(reply);
            self.excerpt = Some(text.chars().take(500).collect()).filter(|t: &String| !t.is_empty());
        }
        let (category, message, retries) = match outcome(&self.view, answer, window) {
            Outcome::Ranked { ranges, recovered } => {
                let planner = self
                    .candidates
                    .get(self.at)
                    .filter(|_| self.at > 0)
                    .map(|c| Planner {
                        provider: c.profile.provider.clone(),
                        id: c.profile.id.clone(),
                        thinking_level: c.reasoning,
                    });
                self.plan = Some(RangePlan {
                    ranges,
                    rung: Rung::Planned,
                    planner,
                    withheld: self.view.withheld(),
                    dropped: Vec::new(),
                    tail: TailFate::Kept,
                });
                return match recovered {
                    Some(records) => Attempt::Recovered { records },
                    None => Attempt::Planned,
                };
            }
            Outcome::Overflowed { message } => {
                let smaller = self.view.smaller().filter(|_| self.climb == Climb::AllModels);
                let message =
                    message.unwrap_or_else(|| "the prompt was longer than the context window".to_owned());
                match smaller {
                    Some(smaller) => self.view = smaller,
                    None => self.next_candidate(),
                }
                (Category::ContextOverflow, message, Retries::None)
            }
            Outcome::Limited {
                category,
                message,
                retries,
            } => {
                self.next_candidate();
                (category, message, retries)
            }
            Outcome::Unusable { category } => {
                self.next_candidate();
                (category, unusable(category).to_owned(), Retries::None)
            }
            Outcome::ProviderError { message, category } => {
                self.next_candidate();
                (category, message, Retries::None)
            }
        };
        self.failure = Some((category, message.clone()));
        Attempt::Failed(FailedAttempt {
            candidate: asked,
            category,
            message,
            retries,
        })
    }

    fn next_candidate(&mut self) {
        self.at = match self.climb {
            Climb::OneRequest => self.candidates.len(),
            Climb::AllModels => self.at + 1,
        };
        self.view = View::whole(self.preparation.region());
    }

    fn exhausted(&mut self, counter: &dyn TokenCounter) -> Step {
        match self.last {
            LastRung::ModelFree { limit } => Step::Done(model_free::plan(self.preparation, limit, counter)),
            LastRung::Fail => {
                let (category, message) = self.failure.take().unwrap_or_else(|| {
                    (
                        Category::Unauthenticated,
                        "there is no model to plan with".to_owned(),
                    )
                });
                Step::Failed(RangePlanError {
                    message,
                    category,
                    attempts: self.attempts,
                    excerpt: self.excerpt.take(),
                })
            }
        }
    }
}

const fn unusable(category: Category) -> &'static str {
    match category {
        Category::Starved => "the model used up its output for reasoning before it named any range",
        Category::NoUsableRanges => "the model's answer names no line that may be deleted",
        _ => "the model's answer is not a list of line ranges",
    }
}

/// The estimate of a request's texts.
pub fn estimate(request: &LlmRequest<'_>, counter: &dyn TokenCounter) -> Tokens {
    let mut texts = request
        .messages
        .iter()
        .flat_map(message_texts)
        .chain(request.system.iter().map(|s| &**s));
    counter.text(&mut texts)
}

/// The share of a window that the answer gets if the model's own limit is not known or larger.
const ANSWER_SHARE: u64 = 4;

/// Whether a request and its answer fit a model's window. A window that is not known is no limit.
fn fits(request: &LlmRequest<'_>, profile: &ModelProfile, counter: &dyn TokenCounter) -> bool {
    let Some(window) = profile.context_window.filter(|w| *w > Tokens::ZERO) else {
        return true;
    };
    let quarter = Tokens(window.get() / ANSWER_SHARE);
    let answer = profile
        .max_output
        .filter(|max| *max > Tokens::ZERO)
        .map_or(quarter, |max| max.min(quarter));
    estimate(request, counter) + answer <= window
}

fn message_texts<'r>(message: &'r RequestMessage<'_>) -> impl Iterator<Item = &'r str> {
    let blocks: &[InputBlock<'_>] = match &message.content {
        MessageContent::User { blocks } => blocks,
        _ => &[],
    };
    blocks.iter().filter_map(|block| match block {
        InputBlock::Text(text) => Some(&**text),
        InputBlock::Image(_) => None,
    })
}

#[cfg(test)]
mod tests;
