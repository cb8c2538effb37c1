//! The one boundary between Foldline and models.

use std::pin::Pin;

use async_trait::async_trait;
use foldline_session_model::model_call::{LlmReply, LlmRequest, ModelProfile};
use futures::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::{LlmError, LlmEvent, NativeCompaction};

/// The events of one call. It ends after the first `Err` or after [`LlmEvent::End`].
pub type EventStream = Pin<Box<dyn Stream<Item = Result<LlmEvent, LlmError>> + Send>>;

/// Something that answers requests: a provider, a chain of them, a script.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// What is known about the model.
    fn profile(&self) -> &ModelProfile;

    /// The compaction that the model's provider makes itself, if it is known to have one.
    fn native_compaction(&self) -> Option<&NativeCompaction> {
        None
    }

    /// Sends a request and gives the events of the answer.
    ///
    /// Once `cancel` is cancelled the stream ends with [`ErrorClass::Cancelled`] without waiting for the
    /// provider, and the connection is closed. Dropping the stream closes it too.
    ///
    /// # Errors
    /// When the request fails before an answer begins; later failures are the last item of the stream.
    ///
    /// [`ErrorClass::Cancelled`]: foldline_session_model::model_call::ErrorClass::Cancelled
    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError>;

    /// Sends a request and waits for the whole reply.
    ///
    /// # Errors
    /// As [`stream`](Self::stream); what had arrived is in [`LlmError::partial`].
    async fn complete(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<LlmReply, LlmError> {
        let mut events = self.stream(request, cancel).await?;
        while let Some(event) = events.next().await {
            if let LlmEvent::End(reply) = event? {
                return Ok(*reply);
            }
        }
        Err(LlmError::protocol("the stream of events ended without an end"))
    }
}
