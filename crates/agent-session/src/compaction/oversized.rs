//! Requests that are not sent twice.

use std::hash::{Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use foldline_session_model::model_call::{LlmRequest, ModelProfile};
use rustc_hash::{FxHashSet, FxHasher};

/// Maintenance requests that did not fit. The same request is not sent to the same model again (R03); a commit changes
/// every request.
#[derive(Debug, Default)]
pub(crate) struct Oversized(Mutex<FxHashSet<u64>>);

impl Oversized {
    pub(super) fn mark(model: &ModelProfile, requests: &[LlmRequest<'_>]) -> u64 {
        let mut hasher = FxHasher::default();
        model.model_ref().to_string().hash(&mut hasher);
        for request in requests {
            serde_json::to_string(request)
                .unwrap_or_default()
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(super) fn holds(&self, mark: u64) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&mark)
    }

    pub(super) fn remember(&self, mark: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(mark);
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Why such a request is not sent.
pub(super) const UNCHANGED: &str = "previous unchanged maintenance request exceeded the model context window; change or reduce the \
                         conversation before retrying maintenance.";
