//! What a run does about a failed request: it waits, leaves pictures out, or moves to another model (spec "Orchestrator and
//! clients", 8).

use std::time::Duration;

use foldline_llm_client::LlmError;
use foldline_session_model::EntryId;

use super::{Driving, Next};
use crate::ask::{media_bytes, newest_picture};
use crate::core::{Core, context};
use crate::event::{Event, RunEnd};
use crate::journal::CommitError;
use crate::retry::Fallback;
use crate::shared::{Lease, Part};

impl Core {
    pub(super) async fn wait_and_retry(
        &mut self,
        lease: &Lease,
        error: &LlmError,
        attempt: u32,
        delay: Duration,
        driving: &mut Driving,
    ) -> Result<Next, CommitError> {
        driving.retries = attempt;
        driving.retrying = true;
        self.shared.emit(Event::AutoRetryStart {
            attempt,
            max_attempts: u32::try_from(self.options.settings.retry.max_retries).unwrap_or(u32::MAX),
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: error.to_string(),
        });
        let part = lease.part(Part::Retry);
        let cancelled = tokio::select! {
            biased;
            () = part.token.cancelled() => true,
            () = tokio::time::sleep(delay) => false,
        };
        drop(part);
        if !cancelled {
            return Ok(Next::Again(Vec::new()));
        }
        self.end_retry(driving, false, Some("Retry cancelled".to_owned()));
        Ok(if lease.is_cancelled() {
            Next::End(RunEnd::Cancelled, None)
        } else {
            Next::End(RunEnd::Failed, Some(error.to_string()))
        })
    }

    /// Says how retries ended, if any was announced.
    pub(super) fn end_retry(&self, driving: &mut Driving, success: bool, final_error: Option<String>) {
        if std::mem::take(&mut driving.retrying) {
            self.shared.emit(Event::AutoRetryEnd {
                success,
                attempt: driving.retries,
                final_error: if success { None } else { final_error },
            });
        }
        // Whatever is asked next is another request.
        driving.retries = 0;
    }

    pub(crate) fn fallback(&self) -> Fallback {
        if self.live.fallback < self.options.models.fallbacks.len() {
            Fallback::Available
        } else {
            Fallback::None
        }
    }

    /// Moves to the next model for the rest of the turn.
    pub(crate) fn next_model(&mut self, reason: &str) {
        let from = self.model_ref();
        if self.live.fallback > 0 {
            self.shared.emit(Event::ModelFallbackEnd {
                success: false,
                final_error: Some(reason.to_owned()),
            });
        }
        self.live.fallback += 1;
        self.shared.emit(Event::ModelFallbackStart {
            from: from.map(|model| model.to_string()).unwrap_or_default(),
            to: self
                .model_ref()
                .map(|model| model.to_string())
                .unwrap_or_default(),
            reason: reason.to_owned(),
        });
    }

    /// Returns to the model that the user chose.
    pub(super) fn end_fallback(&mut self, success: bool, final_error: Option<String>) {
        if std::mem::take(&mut self.live.fallback) > 0 {
            self.shared.emit(Event::ModelFallbackEnd {
                success,
                final_error: if success { None } else { final_error },
            });
        }
    }

    /// Leaves the pictures of an entry out from now on; of the newest one with pictures, if the provider did not say
    /// which it was. Says whether that changes anything.
    pub(super) fn leave_media_out(&mut self, entry: Option<EntryId>) -> bool {
        let found = entry.or_else(|| newest_picture(&context(&self.log, self.options.profile).ok()?));
        found.is_some_and(|entry| self.live.without_media.insert(entry))
    }

    /// Halves what pictures may take. Says whether there are any.
    pub(super) fn halve_media(&mut self) -> bool {
        let bytes = context(&self.log, self.options.profile).map_or(0, |context| media_bytes(&context));
        self.live.media_budget = Some(bytes / 2);
        bytes > 0
    }
}

/// A random number, at least 0 and below 1.
pub(super) fn random() -> f64 {
    let bits = u32::try_from(uuid::Uuid::new_v4().as_u128() >> 96).unwrap_or(0);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}
