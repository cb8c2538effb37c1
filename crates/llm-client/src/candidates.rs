//! Several models for one job: the next one takes over when one cannot do it.

use std::sync::Arc;
use std::time::Duration;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    ErrorClass, LlmReply, LlmRequest, ModelProfile, ModelRef, TransientCause,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::retry::{RetryPolicy, RetryingModel};
use crate::{LanguageModel, LlmError};

/// A provider that asks for a longer wait than this is passed over while another candidate is left.
pub const LONG_WAIT: Duration = Duration::from_secs(30);

/// Which failures lead to the next candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Only refused or missing credentials: the user chose the model and wants to know what it said.
    OnAuth,
    /// Every failure but a cancel and a request that is too large.
    OnFailure,
}

/// Which models a maintenance call tries, in order: the session's own, those that the user gave roles, and then
/// the one with the largest window among the other models of the session's provider (spec "Orchestrator and
/// clients", 7). Never a model of another provider that nobody named.
pub fn candidate_order(
    current: &ModelRef,
    roles: &[ModelRef],
    available: &[(ModelRef, Option<Tokens>)],
) -> Vec<ModelRef> {
    let largest = available
        .iter()
        .filter(|(model, window)| model.provider == current.provider && window.is_some())
        // The first one of several that are equal.
        .rev()
        .max_by_key(|(_, window)| *window)
        .map(|(model, _)| model);
    let mut order: Vec<ModelRef> = Vec::new();
    for model in std::iter::once(current).chain(roles).chain(largest) {
        if !order.contains(model) {
            order.push(model.clone());
        }
    }
    order
}

/// Models in the order in which they are tried.
pub struct Candidates {
    models: Vec<Arc<dyn LanguageModel>>,
    retry: RetryPolicy,
    advance: Advance,
}

/// A reply, the model that gave it, and the failures before it.
#[derive(Debug)]
pub struct CandidateReply {
    /// The reply.
    pub reply: LlmReply,
    /// The model that gave it.
    pub model: ModelRef,
    /// The models that failed before, with their last error.
    pub failed: Vec<(ModelRef, LlmError)>,
}

/// No candidate gave a reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CandidatesError {
    /// There was none.
    #[error("no model is available")]
    NoModel,
    /// All that were tried failed; the last error decides what it means.
    #[error("{}", describe(failed))]
    Failed {
        /// The models in the order in which they were tried, with their last error.
        failed: Vec<(ModelRef, LlmError)>,
    },
}

impl CandidatesError {
    /// The error of the model that was tried last.
    pub fn last(&self) -> Option<&LlmError> {
        match self {
            Self::NoModel => None,
            Self::Failed { failed } => failed.last().map(|(_, error)| error),
        }
    }

    /// Whether every model refused its credentials.
    pub fn is_auth(&self) -> bool {
        match self {
            Self::NoModel => false,
            Self::Failed { failed } => {
                !failed.is_empty() && failed.iter().all(|(_, error)| error.class == ErrorClass::Auth)
            }
        }
    }
}

impl Candidates {
    /// Candidates in order; a model that is named twice is tried once.
    pub fn new(models: Vec<Arc<dyn LanguageModel>>, retry: RetryPolicy, advance: Advance) -> Self {
        let mut unique: Vec<Arc<dyn LanguageModel>> = Vec::with_capacity(models.len());
        for model in models {
            let name = model.profile().model_ref();
            if unique.iter().all(|known| known.profile().model_ref() != name) {
                unique.push(model);
            }
        }
        Self {
            models: unique,
            retry,
            advance,
        }
    }

    /// The profiles in the order in which they are tried.
    pub fn profiles(&self) -> impl Iterator<Item = &ModelProfile> {
        self.models.iter().map(|model| model.profile())
    }

    /// Asks one candidate after the other. `build` makes the request for a model, so that it fits each
    /// one's window.
    ///
    /// The policy's total budget covers all candidates.
    ///
    /// # Errors
    /// When there is no candidate, or none that was tried gave a reply. A request that is too large for a
    /// model ends the attempts: only the caller can make it smaller.
    pub async fn complete<'r>(
        &self,
        build: &(dyn Fn(&ModelProfile) -> LlmRequest<'r> + Sync),
        cancel: &CancellationToken,
    ) -> Result<CandidateReply, CandidatesError> {
        let started = Instant::now();
        let mut failed: Vec<(ModelRef, LlmError)> = Vec::new();
        for (index, model) in self.models.iter().enumerate() {
            let is_last = index + 1 == self.models.len();
            let mut policy = self.retry;
            if !is_last {
                policy.max_server_delay = policy.max_server_delay.min(LONG_WAIT);
                policy.max_delay = policy.max_delay.min(LONG_WAIT);
            }
            policy.total = policy.total.map(|total| total.saturating_sub(started.elapsed()));
            let request = build(model.profile());
            let outcome = self.ask(model, policy, &request, cancel).await;
            let name = model.profile().model_ref();
            match outcome {
                Ok(reply) => {
                    return Ok(CandidateReply {
                        reply,
                        model: name,
                        failed,
                    });
                }
                Err(error) => {
                    let advances = self.advances(&error, policy);
                    tracing::debug!(model = %name, class = %error.class, advances, "a candidate failed");
                    failed.push((name, error));
                    if !advances {
                        break;
                    }
                }
            }
        }
        if failed.is_empty() {
            Err(CandidatesError::NoModel)
        } else {
            Err(CandidatesError::Failed { failed })
        }
    }

    async fn ask(
        &self,
        model: &Arc<dyn LanguageModel>,
        policy: RetryPolicy,
        request: &LlmRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<LlmReply, LlmError> {
        let retrying = RetryingModel::new(Arc::clone(model), policy);
        let call = retrying.complete(request, cancel.clone());
        match policy.total {
            Some(total) => tokio::time::timeout(total, call).await.unwrap_or_else(|_| {
                Err(LlmError::transient(
                    TransientCause::TotalTimeout,
                    "the budget of the call is used up",
                ))
            }),
            None => call.await,
        }
    }

    fn advances(&self, error: &LlmError, policy: RetryPolicy) -> bool {
        let exhausted = policy.total.is_some_and(|total| total.is_zero())
            || error.class == ErrorClass::Transient(TransientCause::TotalTimeout);
        match self.advance {
            Advance::OnAuth => error.class == ErrorClass::Auth,
            Advance::OnFailure => {
                !exhausted && error.class != ErrorClass::Cancelled && !error.class.wants_smaller_request()
            }
        }
    }
}

fn describe(failed: &[(ModelRef, LlmError)]) -> String {
    match failed {
        [(model, error)] => format!("{model}: {error}"),
        many => {
            let each: Vec<String> = many
                .iter()
                .map(|(model, error)| format!("{model}: {error}"))
                .collect();
            format!("all {} models failed: {}", many.len(), each.join("; "))
        }
    }
}

#[cfg(test)]
mod tests;
