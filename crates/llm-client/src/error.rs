//! How a call fails: a class to decide on, and what the provider said.

use std::time::Duration;

use foldline_session_model::model_call::{ErrorClass, LlmReply, OtherCause, StopReason, TransientCause};

/// A failed or cancelled call.
///
/// It holds no header, no request and no key: texts pass through `Scrubber`
/// before they come here.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{class}: {message}")]
#[non_exhaustive]
pub struct LlmError {
    /// What to decide on.
    pub class: ErrorClass,
    /// What happened, in the provider's words where it spoke.
    pub message: Box<str>,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// The provider's code for the failure.
    pub code: Option<Box<str>>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// What had arrived of the reply, with its usage; its stop reason is `Error` or `Aborted`.
    pub partial: Option<Box<LlmReply>>,
}

impl LlmError {
    /// An error of this class.
    pub fn new(class: ErrorClass, message: impl Into<Box<str>>) -> Self {
        Self {
            class,
            message: message.into(),
            status: None,
            code: None,
            retry_after: None,
            partial: None,
        }
    }

    /// The caller cancelled.
    pub fn cancelled() -> Self {
        Self::new(ErrorClass::Cancelled, "the request was cancelled")
    }

    pub(crate) fn transient(cause: TransientCause, message: impl Into<Box<str>>) -> Self {
        Self::new(ErrorClass::Transient(cause), message)
    }

    pub(crate) fn protocol(message: impl Into<Box<str>>) -> Self {
        Self::new(ErrorClass::Other(OtherCause::Protocol), message)
    }

    pub(crate) fn configuration(message: impl Into<Box<str>>) -> Self {
        Self::new(ErrorClass::Other(OtherCause::Configuration), message)
    }

    /// The message as a session records it: a wait that the provider asked for in a header stands behind it as
    /// ` retry-after-ms=…`, where [`retry_hint`](crate::classify::retry_hint) finds it again (spec "Orchestrator
    /// and clients", 8.3).
    pub fn recorded_message(&self) -> String {
        match self.retry_after {
            Some(wait) if !self.message.contains("retry-after-ms=") => {
                format!("{} retry-after-ms={}", self.message, wait.as_millis())
            }
            _ => self.message.to_string(),
        }
    }

    /// The stop reason under which a session records what had arrived.
    pub fn stop_reason(&self) -> StopReason {
        match self.class {
            ErrorClass::Cancelled => StopReason::Aborted,
            _ => StopReason::Error,
        }
    }
}
