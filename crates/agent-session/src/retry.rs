//! What follows a failed request of a turn, before maintenance is asked (spec "Orchestrator and clients", 8; R05, R12,
//! R16).

use std::time::Duration;

use foldline_llm_client::LlmError;
use foldline_session_model::EntryId;
use foldline_session_model::model_call::{ErrorClass, TransientCause};

/// `retry.*` of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Whether anything is tried again.
    pub enabled: bool,
    /// Retries after the first attempt.
    pub max_retries: u32,
    /// The first wait; each further one doubles.
    pub base_delay: Duration,
    /// The longest wait; zero: no limit.
    pub max_delay: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_retries: 3,
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(300),
        }
    }
}

/// Whether anything of an answer had arrived when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    /// Nothing: the request can be sent again unseen.
    Nothing,
    /// Something: a second answer would differ from the one that was seen to begin.
    Something,
}

/// Whether another model stands by for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// One does.
    Available,
    /// None does.
    None,
}

/// Whether pictures were already left out of this turn's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    /// They are all in.
    Whole,
    /// Some were left out.
    Reduced,
}

/// What is known beside the failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Retries of this request so far.
    pub retries: u32,
    /// Whether anything of the answer was shown.
    pub shown: Shown,
    /// Whether another model stands by.
    pub fallback: Fallback,
    /// Pictures.
    pub media: Media,
    /// A random number, at least 0 and below 1.
    pub random: f64,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// The request is sent again after a wait.
    Retry {
        /// Which retry, from 1.
        attempt: u32,
        /// The wait.
        delay: Duration,
    },
    /// The request is sent again without the pictures of an entry.
    WithoutMedia(Option<EntryId>),
    /// The request is sent again with fewer pictures.
    LessMedia,
    /// Another model takes over for this turn.
    NextModel,
    /// Only a smaller request can succeed: maintenance decides.
    Maintain,
    /// The run was cancelled.
    Cancelled,
    /// Nothing.
    GiveUp,
}

/// Decides what follows a failure. The first row that matches wins.
pub fn after_failure(error: &LlmError, facts: &Facts, settings: &RetrySettings) -> AfterFailure {
    match &error.class {
        ErrorClass::Cancelled => AfterFailure::Cancelled,
        // A body over the limit of a gateway is mostly pictures: those go first, then the context.
        ErrorClass::BodyTooLarge { .. } if facts.media == Media::Whole => AfterFailure::LessMedia,
        class if class.wants_smaller_request() => AfterFailure::Maintain,
        ErrorClass::MediaRejected { entry, .. } => match facts.media {
            Media::Whole => AfterFailure::WithoutMedia(entry.clone()),
            Media::Reduced => AfterFailure::GiveUp,
        },
        class => {
            let passes = class.may_retry()
                || matches!(
                    class,
                    ErrorClass::Transient(TransientCause::FirstEventTimeout | TransientCause::IdleTimeout)
                );
            let replayable = facts.shown == Shown::Nothing;
            let wait = wait(error, facts, settings);
            match wait {
                Some(delay)
                    if passes && replayable && settings.enabled && facts.retries < settings.max_retries =>
                {
                    AfterFailure::Retry {
                        attempt: facts.retries + 1,
                        delay,
                    }
                }
                _ if facts.fallback == Fallback::Available && replayable => AfterFailure::NextModel,
                _ => AfterFailure::GiveUp,
            }
        }
    }
}

/// The wait before the next attempt: what the provider asks for, or a random part of a delay that doubles (full
/// jitter). `None`: the provider asks for longer than the settings allow.
fn wait(error: &LlmError, facts: &Facts, settings: &RetrySettings) -> Option<Duration> {
    let cap = if settings.max_delay.is_zero() {
        Duration::MAX
    } else {
        settings.max_delay
    };
    if let Some(asked) = error.retry_after {
        return Some(asked.min(cap));
    }
    let doubled = 2_u32
        .checked_pow(facts.retries)
        .and_then(|factor| settings.base_delay.checked_mul(factor))
        .unwrap_or(cap)
        .min(cap);
    Some(doubled.mul_f64(facts.random.clamp(0.0, 1.0)))
}
