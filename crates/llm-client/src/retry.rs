//! When the same request is sent again, and when it is not.
//!
//! Only failures that are likely to pass are retried, and only while nothing of an answer was shown: a
//! repeated answer would differ from the one that the user saw begin. An overflow is never sent again as it
//! is, and a model that timed out is not asked again but replaced (field case FB-060).

pub(crate) mod turn;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder, Retryable};
use foldline_session_model::model_call::{ErrorClass, LlmRequest, ModelProfile, TransientCause};
use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use crate::{EventStream, LanguageModel, LlmError, LlmEvent, NativeCompaction};

/// How often and how long to try again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Retries after the first attempt.
    pub max_retries: usize,
    /// The first wait; each further one doubles.
    pub base_delay: Duration,
    /// The longest wait that is chosen here.
    pub max_delay: Duration,
    /// The longest wait that a provider may ask for; a longer one ends the attempts.
    pub max_server_delay: Duration,
    /// For all attempts and waits together.
    pub total: Option<Duration>,
    /// Whether waits are spread, so that many clients do not come back at the same moment.
    pub jitter: Jitter,
}

/// Whether waits are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Each wait grows by a random part of itself.
    #[default]
    Full,
    /// Waits are exact, for tests.
    None,
}

impl RetryPolicy {
    /// For turns of an agent.
    pub const TURN: Self = Self {
        max_retries: 3,
        base_delay: Duration::from_secs(2),
        max_delay: Duration::from_secs(300),
        max_server_delay: Duration::from_secs(300),
        total: None,
        jitter: Jitter::Full,
    };

    /// For summaries and plans, where another candidate may stand ready.
    pub const MAINTENANCE: Self = Self {
        max_retries: 1,
        base_delay: Duration::from_secs(2),
        max_delay: Duration::from_secs(30),
        max_server_delay: Duration::from_secs(120),
        total: Some(Duration::from_secs(180)),
        jitter: Jitter::Full,
    };

    fn backoff(&self) -> ExponentialBuilder {
        let builder = ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(self.base_delay)
            .with_max_delay(self.max_delay)
            .with_max_times(self.max_retries);
        match self.jitter {
            Jitter::Full => builder.with_jitter(),
            Jitter::None => builder,
        }
    }

    /// Whether a failure may be tried again at all.
    fn allows(&self, error: &LlmError) -> bool {
        error.class.may_retry() && error.retry_after.is_none_or(|wait| wait <= self.max_server_delay)
    }

    /// The wait before the next attempt: what was chosen here, or more when the provider asks for more.
    fn wait(error: &LlmError, chosen: Option<Duration>) -> Option<Duration> {
        chosen.map(|chosen| error.retry_after.map_or(chosen, |asked| asked.max(chosen)))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::TURN
    }
}

/// Is told of each wait: which attempt failed (from 1), why, and how long the wait is.
pub type RetryObserver = Arc<dyn Fn(u32, &LlmError, Duration) + Send + Sync>;

/// A model that tries again.
pub struct RetryingModel {
    inner: Arc<dyn LanguageModel>,
    policy: RetryPolicy,
    observer: Option<RetryObserver>,
}

impl RetryingModel {
    /// Wraps a model.
    pub fn new(inner: Arc<dyn LanguageModel>, policy: RetryPolicy) -> Self {
        Self {
            inner,
            policy,
            observer: None,
        }
    }

    /// The model with somebody who is told of waits.
    #[must_use]
    pub fn with_observer(mut self, observer: RetryObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// One attempt: up to the first event with content, which stands before the rest of the stream.
    async fn attempt(
        &self,
        request: &LlmRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let mut events = self.inner.stream(request, cancel.clone()).await?;
        let mut head: Vec<LlmEvent> = Vec::new();
        while let Some(event) = events.next().await {
            let event = event?;
            let is_content = event.is_content();
            head.push(event);
            if is_content {
                return Ok(stream::iter(head.into_iter().map(Ok)).chain(events).boxed());
            }
        }
        Err(LlmError::protocol("the stream of events ended without an end"))
    }
}

#[async_trait]
impl LanguageModel for RetryingModel {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    fn native_compaction(&self) -> Option<&NativeCompaction> {
        self.inner.native_compaction()
    }

    /// The stream begins with the first content: until then a failure still leads to another attempt.
    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let mut attempt = 0_u32;
        let attempts = (|| self.attempt(request, &cancel))
            .retry(self.policy.backoff())
            .sleep(tokio::time::sleep)
            .when(|error: &LlmError| self.policy.allows(error))
            .adjust(RetryPolicy::wait)
            .notify(|error: &LlmError, wait: Duration| {
                attempt += 1;
                tracing::debug!(attempt, class = %error.class, ?wait, "trying again");
                if let Some(observer) = &self.observer {
                    observer(attempt, error, wait);
                }
            });
        let bounded = async {
            match self.policy.total {
                Some(total) => tokio::time::timeout(total, attempts).await.unwrap_or_else(|_| {
                    Err(LlmError::new(
                        ErrorClass::Transient(TransientCause::TotalTimeout),
                        "the attempts took longer than their budget",
                    ))
                }),
                None => attempts.await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(LlmError::cancelled()),
            stream = bounded => stream,
        }
    }
}

/// The waits that a policy chooses when a provider asks for none.
pub fn planned_waits(policy: &RetryPolicy) -> Vec<Duration> {
    policy.backoff().build().collect()
}

#[cfg(test)]
mod tests;
