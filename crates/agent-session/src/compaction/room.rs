//! How much a context may take whose request must fit (R01, R02; FB-005, FB-029).
//!
//! A recovery has one attempt, so what it plans is measured against the window that the server has, in tokens of the
//! estimator that plans.

use std::sync::Arc;

use foldline_compaction_core::accounting::{ContextSize, Limits, correction_ratio};
use foldline_compaction_core::decide::Reason;
use foldline_compaction_core::settings::CompactionSettings;
use foldline_llm_client::LanguageModel;
use foldline_session_model::fold::{Context, FoldError, Profile};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Message, StopReason};
use foldline_session_model::model_call::{ErrorClass, ModelProfile};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _, TokenSource};
use foldline_session_model::{EntryId, Tokens};
use tokio_util::sync::CancellationToken;

use super::{Ground, NotPlanned, Order, class_of_text, on_thread_until};
use crate::continuation::Headroom;
use crate::core::{Core, context};
use crate::event::Unpaid;

/// What is known about the request that a context makes.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its estimate, with everything that a request costs besides messages.
    estimate: Tokens,
    /// How many tokens the server counts for each of the estimate.
    density: f64,
    /// The window in tokens of the server, if one is known.
    window: Option<Tokens>,
    /// What the server said about the request.
    refusal: Refusal,
    /// The estimate of the newest part of it that was answered.
    answered: Tokens,
}

/// What a server said about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// It did not refuse it.
    None,
    /// It refused it and named its window.
    Named,
    /// It refused it without a number.
    Unnamed,
}

/// No guess is smaller: no model has less, and a context below it is not what is wrong.
const LEAST_GUESS: Tokens = Tokens(1_024);

/// The window in tokens of the estimator; `None` if nothing is known about it.
///
/// A refusal that names no window, and that the known one does not explain, says that it is smaller than what was
/// refused: half of that, if as much was answered before, and else as little as a quarter. The next refusal makes it
/// smaller again.
fn fitting(known: &Known) -> Option<Tokens> {
    let scaled = known.window.map(|window| divided(window, known.density));
    match known.refusal {
        Refusal::None => scaled,
        Refusal::Named if known.estimate < LEAST_GUESS => scaled,
        Refusal::Named => scaled.map(|window| window.min(known.estimate)),
        Refusal::Unnamed => {
            let explained = scaled.filter(|window| known.estimate.get() >= window.get() / 10 * 9);
            if explained.is_some() || known.estimate < LEAST_GUESS {
                return explained.or(scaled);
            }
            let half = Tokens(known.estimate.get() / 2);
            let quarter = Tokens(known.estimate.get() / 4);
            Some(known.answered.clamp(quarter, half).max(LEAST_GUESS))
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float casts saturate, and a share of a window fits it"
)]
fn divided(tokens: Tokens, by: f64) -> Tokens {
    Tokens((tokens.get() as f64 / by) as u64)
}

/// What the messages of a rebuilt context may take by their estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// The most that fits at all.
    most: Tokens,
    /// The most that leaves room for going on.
    roomy: Tokens,
    /// What they take now.
    now: Tokens,
}

impl Room {
    fn of(limits: &Limits, besides: Tokens, now: Tokens) -> Self {
        Self {
            now,
            most: limits.window().saturating_sub(besides),
            roomy: Headroom::most_for_a_retry(limits).saturating_sub(besides),
        }
    }

    /// Whether the context is too large for it as it is: then anything smaller is better than nothing.
    pub(super) fn is_exceeded(self) -> bool {
        self.now > self.roomy
    }

    /// Where the rest of a ladder stands by, a plan must leave room for going on; the last plan must fit.
    pub(super) fn takes(self, planned: Tokens, rest: Rest) -> bool {
        planned
            <= match rest {
                Rest::StandsBy => self.roomy,
                Rest::None => self.most,
            }
    }

    /// The most for the kept tail beside a summary of this size.
    pub(super) fn beside(self, summary: Tokens) -> Tokens {
        self.roomy.saturating_sub(summary)
    }

    /// The most for lines that are chosen without a model.
    pub(super) const fn for_lines(self) -> Tokens {
        self.roomy
    }

    /// That a plan does not make the context small enough (FB-029).
    pub(super) fn insufficient(self, before: Tokens, after: Tokens, rung: &'static str) -> NotPlanned {
        NotPlanned::Unpaid {
            reason: format!(
                "insufficient: the messages would take {after} tokens where {} fit, {} too many",
                self.most,
                after.saturating_sub(self.most)
            ),
            figures: Box::new(Unpaid {
                tokens_before: before,
                tokens_after: after,
                rung,
                extras: super::Extras::default(),
            }),
        }
    }
}

/// Whether something smaller can be planned if a plan does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It can.
    StandsBy,
    /// It cannot.
    None,
}

/// What a look at a context is made with. It owns everything that a thread of its own needs.
pub(super) struct Look {
    pub(super) log: Arc<SessionLog>,
    profile: Profile,
    settings: CompactionSettings,
    reason: Reason,
    fits: Fits,
    pending: Tokens,
    overhead: Tokens,
    /// The window that triggers, and the one that no request is larger than.
    windows: Option<(Option<Tokens>, Option<Tokens>)>,
    last_failure: Option<(EntryId, ErrorClass)>,
    density: Option<f64>,
}

/// Whether what a compaction leaves must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fits {
    Must,
    May,
}

/// What a look at a context shows.
pub(super) struct Seen {
    pub(super) size: Tokens,
    /// The limits that a compaction plans with.
    pub(super) limits: Option<Limits>,
    /// What its result must fit into, if it must. Then the limits are in tokens of the estimator too.
    pub(super) room: Option<Room>,
    /// How much more a provider counts than the estimator, where the limits do not say so already.
    pub(super) ratio: Option<f64>,
    /// The same, if it was measured.
    pub(super) density: Option<f64>,
    pub(super) last_user_text: Option<String>,
}

/// Why there is nothing to plan on.
pub(super) enum Unseen {
    /// The log was only believed to be whole.
    Unreadable,
    Not(NotPlanned),
}

impl Core {
    /// Looks at the context that an order is about, on a thread of its own.
    pub(super) async fn look(
        &mut self,
        order: &Order,
        token: &CancellationToken,
    ) -> Result<Seen, NotPlanned> {
        for _ in 0..2 {
            let look = self.look_of(order);
            match on_thread_until(token, move || look.seen()).await? {
                Ok(seen) => {
                    if let (Some(model), Some(density)) = (self.model_ref(), seen.density) {
                        self.live.density = Some((model, density));
                    }
                    return Ok(seen);
                }
                Err(Unseen::Unreadable) => {
                    self.reload()
                        .map_err(|error| NotPlanned::Failed(error.to_string()))?;
                }
                Err(Unseen::Not(not)) => return Err(not),
            }
        }
        Err(NotPlanned::Failed("the session cannot be read".to_owned()))
    }

    fn look_of(&self, order: &Order) -> Look {
        let remembered = || {
            let (model, density) = self.live.density.as_ref()?;
            (Some(model) == self.model_ref().as_ref()).then_some(*density)
        };
        let windows = |model: &Arc<dyn LanguageModel>| {
            let profile = model.profile();
            (self.window(profile), self.hard_window(profile))
        };
        Look {
            log: Arc::clone(&self.log),
            profile: self.options.profile,
            settings: self.options.settings.compaction.clone(),
            reason: order.reason,
            fits: if order.is_load_bearing() {
                Fits::Must
            } else {
                Fits::May
            },
            pending: order.pending,
            overhead: self.overhead(),
            windows: self.model().map(windows),
            last_failure: self.live.last_failure.clone(),
            density: remembered(),
        }
    }

    /// What is known about a model that plans. Of the one whose request must fit it is known what it counts.
    pub(super) fn known_for(&self, ground: &Ground, profile: &ModelProfile) -> ModelProfile {
        let mut known = self.known(profile);
        let counts = ground.room.is_some() && self.model_ref() == Some(profile.model_ref());
        if let (Some(limits), true) = (&ground.limits, counts) {
            let window = known.context_window.unwrap_or(limits.window());
            known.context_window = Some(window.min(limits.window()));
        }
        known
    }
}

impl Look {
    fn seen(&self) -> Result<Seen, Unseen> {
        let context = context(&self.log, self.profile).map_err(|error| match error {
            FoldError::Unreadable { .. } => Unseen::Unreadable,
            error => Unseen::Not(NotPlanned::Failed(error.to_string())),
        })?;
        let size = ContextSize::of(&context, self.overhead, Tokens::ZERO, &Heuristic).tokens;
        let last_user_text = context.last_user_text();
        let measured = correction_ratio(&context, self.overhead, &Heuristic);
        let Some((window, hard)) = self.windows.filter(|_| self.fits == Fits::Must) else {
            let window = self.windows.and_then(|(window, _)| window);
            return Ok(Seen {
                size,
                limits: Limits::new(window, &self.settings, Tokens::ZERO),
                room: None,
                ratio: measured,
                density: measured,
                last_user_text,
            });
        };
        let known = self.known(&context, measured, hard.or(window));
        let limits = Limits::new(fitting(&known), &self.settings, Tokens::ZERO);
        let messages = known.estimate.saturating_sub(self.overhead);
        let room = limits
            .as_ref()
            .map(|limits| Room::of(limits, self.overhead + self.pending, messages));
        if let (Some(room), Some(question)) = (room, self.question(&context))
            && !room.takes(question, Rest::None)
        {
            return Err(Unseen::Not(room.insufficient(messages, question, "none")));
        }
        Ok(Seen {
            size,
            ratio: if room.is_some() { None } else { measured },
            limits,
            room,
            density: Some(known.density),
            last_user_text,
        })
    }

    fn known(&self, context: &Context<'_>, measured: Option<f64>, window: Option<Tokens>) -> Known {
        let sizes = context.items.iter().map(|item| Heuristic.message(&item.message));
        let estimate = sizes.clone().sum::<Tokens>() + self.overhead;
        let answered = match context.tokens(&Heuristic).source {
            TokenSource::Measured { item, .. } => sizes.take(item + 1).sum::<Tokens>() + self.overhead,
            TokenSource::Estimated => Tokens::ZERO,
        };
        let refusal = match self.reason {
            Reason::Overflow => self.refusal(context),
            _ => None,
        };
        let (named, counted) = match &refusal {
            Some(ErrorClass::Overflow { limit, input, .. }) => (*limit, *input),
            Some(ErrorClass::RequestTooLarge { limit, requested }) => (*limit, *requested),
            _ => (None, None),
        };
        let window = match (window, named) {
            (Some(window), Some(named)) => Some(window.min(named)),
            (window, named) => window.or(named),
        };
        let by_count = counted
            .filter(|_| estimate > Tokens::ZERO)
            .map(|counted| ratio(counted, estimate));
        let density = by_count.or(measured).or(self.density).unwrap_or(1.0);
        Known {
            estimate,
            // Nobody asked: a measurement only makes the room smaller.
            density: density.clamp(1.0, 4.0),
            window,
            refusal: match (refusal, named) {
                (None, _) => Refusal::None,
                (Some(_), Some(_)) => Refusal::Named,
                (Some(_), None) => Refusal::Unnamed,
            },
            answered,
        }
    }

    /// What the server said about the request that this context made.
    fn refusal(&self, context: &Context<'_>) -> Option<ErrorClass> {
        let (entry, message) = context.items.iter().rev().find_map(|item| match &item.message {
            Message::Assistant(message) => Some((context.log.id(item.source), message)),
            _ => None,
        })?;
        if message.stop_reason != StopReason::Error {
            return None;
        }
        let class = match &self.last_failure {
            Some((failed, class)) if failed.as_str() == entry => class.clone(),
            _ => class_of_text(message.error_message.as_deref()?),
        };
        class.wants_smaller_request().then_some(class)
    }

    /// What is asked last, if nobody has answered it: a recovery without it would be none.
    fn question(&self, context: &Context<'_>) -> Option<Tokens> {
        if self.pending > Tokens::ZERO {
            // What is about to be sent is asked last.
            return None;
        }
        let last = context.items.iter().rev().find(|item| match &item.message {
            Message::Assistant(answer) => {
                !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                    && answer.content.is_visible()
            }
            message => message.is_visible(),
        })?;
        matches!(last.message, Message::User(_)).then(|| Heuristic.message(&last.message))
    }
}

#[allow(clippy::cast_precision_loss, reason = "a ratio needs no more precision")]
fn ratio(real: Tokens, estimate: Tokens) -> f64 {
    real.get() as f64 / estimate.get() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r01_the_window_that_a_recovery_plans_for() {
        let known = |estimate, density, window: Option<u64>, refusal, answered| Known {
            estimate: Tokens(estimate),
            density,
            window: window.map(Tokens),
            refusal,
            answered: Tokens(answered),
        };
        let table = [
            // Nothing was refused: the window that is known, in tokens of the estimator.
            (
                known(250_000, 1.0, Some(200_000), Refusal::None, 0),
                Some(200_000),
            ),
            (
                known(250_000, 1.25, Some(200_000), Refusal::None, 0),
                Some(160_000),
            ),
            (known(250_000, 1.0, None, Refusal::None, 0), None),
            // The server named it; never more than what it refused.
            (known(4_000, 1.0, Some(2_048), Refusal::Named, 0), Some(2_048)),
            (known(4_000, 2.0, Some(2_048), Refusal::Named, 0), Some(1_024)),
            (known(1_500, 1.0, Some(2_048), Refusal::Named, 0), Some(1_500)),
            // It did not, and the known window explains the refusal.
            (
                known(190_000, 1.0, Some(200_000), Refusal::Unnamed, 0),
                Some(200_000),
            ),
            (
                known(150_000, 1.3, Some(200_000), Refusal::Unnamed, 0),
                Some(153_846),
            ),
            // It does not explain it: ever smaller.
            (
                known(8_000, 1.0, Some(200_000), Refusal::Unnamed, 7_000),
                Some(4_000),
            ),
            (
                known(8_000, 1.0, Some(200_000), Refusal::Unnamed, 3_000),
                Some(3_000),
            ),
            (known(8_000, 1.0, Some(200_000), Refusal::Unnamed, 0), Some(2_000)),
            (known(4_000, 1.0, Some(200_000), Refusal::Unnamed, 0), Some(1_024)),
            (known(8_000, 1.0, None, Refusal::Unnamed, 0), Some(2_000)),
            // What is this small is not what is wrong.
            (known(1_000, 1.0, Some(200_000), Refusal::Named, 0), Some(200_000)),
            (
                known(1_000, 1.0, Some(200_000), Refusal::Unnamed, 0),
                Some(200_000),
            ),
            (known(1_000, 1.0, None, Refusal::Unnamed, 0), None),
        ];
        for (known, expected) in table {
            assert_eq!(fitting(&known), expected.map(Tokens), "{known:?}");
        }
    }
}
