//! The forms of native compaction, one after the other (spec "Compaction core", 12.5 and 13).

use std::fmt;

use foldline_session_model::model_call::{ErrorClass, LlmRequest};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{NativeCompaction, NativeHistory};
use crate::LlmError;

/// A form of native compaction that a server is known to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NativeForm {
    /// A live request that ends in a trigger.
    Streaming,
    /// `/responses/compact`.
    Plain,
}

impl NativeForm {
    /// The name in settings and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::Plain => "plain",
        }
    }
}

impl fmt::Display for NativeForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What came of the forms that were tried. Without a history the caller makes a text summary alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tried {
    /// The history, and the form that it came in.
    pub history: Option<(NativeForm, Box<NativeHistory>)>,
    /// The forms that failed before, in the order in which they were tried.
    pub failures: Vec<(NativeForm, LlmError)>,
}

impl NativeCompaction {
    /// Tries the forms in order until one gives a history.
    ///
    /// # Errors
    /// Only when the caller cancels; nothing more is then sent.
    pub async fn try_forms(
        &self,
        request: &LlmRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<Tried, LlmError> {
        let mut tried = Tried::default();
        for form in &self.forms {
            let outcome = match form {
                NativeForm::Streaming => self.compact_streaming(request, cancel).await,
                NativeForm::Plain => self.compact(request, cancel).await,
            };
            match outcome {
                Ok(history) => {
                    tried.history = Some((*form, Box::new(history)));
                    break;
                }
                Err(error) if error.class == ErrorClass::Cancelled => return Err(error),
                Err(error) => {
                    tracing::debug!(%form, class = %error.class, "native compaction failed");
                    tried.failures.push((*form, error));
                }
            }
        }
        Ok(tried)
    }
}
