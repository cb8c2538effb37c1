//! What follows a failed request of a turn, before maintenance is asked (spec "Orchestrator and clients", 8; R05, R12,
//! R16).
//!
//! Whether the same request may be sent again is the client's table, [`decide_retry`]; this one adds what only a
//! session can do: leave pictures out, move to another model, make the context smaller.

use std::time::Duration;

use foldline_llm_client::{
    EndpointPlace, LlmError, ReplaySafety, RetryDecision, RetryPolicy, decide_retry, retry_class_of,
};
use foldline_session_model::EntryId;
use foldline_session_model::model_call::ErrorClass;

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
    /// Retries of this request that failed before.
    pub retries: u32,
    /// Whether anything of the answer was shown.
    pub replay: ReplaySafety,
    /// Whether another model stands by.
    pub fallback: Fallback,
    /// Pictures.
    pub media: Media,
    /// Where the model is.
    pub place: EndpointPlace,
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
    /// The request is sent again without the pictures of an entry; `None`: the provider did not say which.
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
pub fn after_failure(error: &LlmError, facts: &Facts, policy: &RetryPolicy) -> AfterFailure {
    match &error.class {
        ErrorClass::Cancelled => return AfterFailure::Cancelled,
        // A body over the limit of a gateway is mostly pictures: those go first, then the context.
        ErrorClass::BodyTooLarge { .. } if facts.media == Media::Whole => return AfterFailure::LessMedia,
        class if class.wants_smaller_request() => return AfterFailure::Maintain,
        ErrorClass::MediaRejected { entry, .. } if facts.media == Media::Whole => {
            return AfterFailure::WithoutMedia(entry.clone());
        }
        _ => {}
    }
    let class = retry_class_of(error, facts.place);
    let decision = decide_retry(
        class,
        facts.replay,
        facts.retries,
        error.retry_after,
        policy,
        facts.random,
    );
    match decision {
        RetryDecision::Retry { attempt, delay } => AfterFailure::Retry { attempt, delay },
        RetryDecision::GiveUp(_)
            if facts.fallback == Fallback::Available && facts.replay == ReplaySafety::Safe =>
        {
            AfterFailure::NextModel
        }
        RetryDecision::GiveUp(_) => AfterFailure::GiveUp,
    }
}

#[cfg(test)]
mod tests;
