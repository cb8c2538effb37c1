//! How long a planner may be silent (R12): slowness is no failure, silence is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use foldline_llm_client::{EventStream, LanguageModel, LlmError, LlmEvent};
use foldline_session_model::model_call::{ErrorClass, LlmRequest, ModelProfile, TransientCause};
use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

/// The longest silence of a model that another one can replace.
const REPLACEABLE: Duration = Duration::from_secs(30);
/// The longest silence of the last one.
const LAST: Duration = Duration::from_secs(60);

/// The same models, none of which is silent for too long.
pub(crate) fn watched(models: Vec<Arc<dyn LanguageModel>>) -> Vec<Arc<dyn LanguageModel>> {
    let count = models.len();
    let watch = |(at, inner)| -> Arc<dyn LanguageModel> {
        Arc::new(Watched {
            inner,
            silence: if at + 1 < count { REPLACEABLE } else { LAST },
        })
    };
    models.into_iter().enumerate().map(watch).collect()
}

struct Watched {
    inner: Arc<dyn LanguageModel>,
    silence: Duration,
}

#[async_trait]
impl LanguageModel for Watched {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let silence = self.silence;
        let opened = tokio::time::timeout(silence, self.inner.stream(request, cancel)).await;
        let events = opened.unwrap_or_else(|_| Err(silent(TransientCause::FirstEventTimeout, silence)))?;
        let watched = stream::unfold(
            Some((events, TransientCause::FirstEventTimeout)),
            move |state| async move {
                let (mut events, cause) = state?;
                match tokio::time::timeout(silence, events.next()).await {
                    Ok(event) => {
                        let event: Result<LlmEvent, LlmError> = event?;
                        Some((event, Some((events, TransientCause::IdleTimeout))))
                    }
                    Err(_) => Some((Err(silent(cause, silence)), None)),
                }
            },
        );
        Ok(watched.boxed())
    }
}

fn silent(cause: TransientCause, silence: Duration) -> LlmError {
    LlmError::new(
        ErrorClass::Transient(cause),
        format!("nothing came for {} seconds", silence.as_secs()),
    )
}
