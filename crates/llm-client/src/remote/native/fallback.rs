//! Native first, text when that fails (spec "Compaction core", 12.5 and 13).

use foldline_session_model::model_call::{ErrorClass, LlmReply, LlmRequest};
use tokio_util::sync::CancellationToken;

use super::{NativeCompaction, NativeHistory};
use crate::{LanguageModel, LlmError};

/// A form of native compaction that a server is known to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeForm {
    /// A live request that ends in a trigger; tried first where the model has it.
    Streaming,
    /// `/responses/compact`.
    Plain,
}

/// How a history became smaller, and what was tried in vain before.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    /// What came out.
    pub by: CompactedBy,
    /// The native forms that failed, in the order in which they were tried.
    pub failures: Vec<(NativeForm, LlmError)>,
}

/// Who made a history smaller.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactedBy {
    /// The provider, into items that only its model can read.
    Native(Box<NativeHistory>),
    /// A model, into text.
    Text(Box<LlmReply>),
}

/// Tries the native forms in order, and then has `model` answer the request for a summary in text.
///
/// # Errors
/// When the caller cancels (nothing more is then sent), or when the text summary fails as well.
pub async fn compact_or_summarise(
    native: &NativeCompaction,
    forms: &[NativeForm],
    history: &LlmRequest<'_>,
    model: &dyn LanguageModel,
    summary: &LlmRequest<'_>,
    cancel: &CancellationToken,
) -> Result<Compacted, LlmError> {
    let mut failures = Vec::new();
    for form in forms {
        let outcome = match form {
            NativeForm::Streaming => native.compact_streaming(history, cancel).await,
            NativeForm::Plain => native.compact(history, cancel).await,
        };
        match outcome {
            Ok(history) => {
                let by = CompactedBy::Native(Box::new(history));
                return Ok(Compacted { by, failures });
            }
            Err(error) if error.class == ErrorClass::Cancelled => return Err(error),
            Err(error) => {
                tracing::debug!(?form, class = %error.class, "native compaction failed");
                failures.push((*form, error));
            }
        }
    }
    let reply = model.complete(summary, cancel.clone()).await?;
    let by = CompactedBy::Text(Box::new(reply));
    Ok(Compacted { by, failures })
}
