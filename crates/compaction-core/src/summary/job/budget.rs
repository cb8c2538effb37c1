//! How large a request and its reply may be (R03).

use foldline_session_model::Tokens;

use super::SummaryJob;
use crate::settings::CompactionSettings;

/// The output limit for models of which none is known.
const UNKNOWN_OUTPUT: Tokens = Tokens(8_192);
/// Less output than this makes no summary.
const LEAST_OUTPUT: Tokens = Tokens(512);
/// A summary of a small part still gets this much, for models that think before they write.
const SMALL_OUTPUT: Tokens = Tokens(2_048);
/// The share of the window without the output that a prompt may take by the estimate: estimates of dense text
/// are too low by up to a half.
const PROMPT_SHARE: f64 = 0.6;

impl SummaryJob<'_, '_, '_> {
    /// The output that a request asks for: its share of the reserve, within what the model can write, and no more than
    /// half of what it summarises (FB-031, FB-064).
    pub(super) fn output(&self, share: f64) -> Tokens {
        let model = self.options.model;
        let reserve = reserve(self.options.commit.settings, model.context_window);
        let region = self.preparation.compacted_tokens().get() / 2;
        share_of(reserve, share)
            .min(Tokens(region).max(SMALL_OUTPUT))
            .max(LEAST_OUTPUT)
            .min(
                model
                    .max_output
                    .filter(|o| *o > Tokens::ZERO)
                    .unwrap_or(UNKNOWN_OUTPUT),
            )
            .min(
                model
                    .context_window
                    .map_or(Tokens(u64::MAX), |w| Tokens(w.get() / 2)),
            )
    }

    /// The estimate that a prompt may have; `None` if the window is unknown.
    pub(super) fn budget(&self, output: Tokens) -> Option<Tokens> {
        let window = self.options.model.context_window.filter(|w| *w > Tokens::ZERO)?;
        Some(share_of(window.saturating_sub(output), PROMPT_SHARE))
    }
}

/// The reserve that outputs are shares of: the setting, at most half of the model's window.
fn reserve(settings: &CompactionSettings, window: Option<Tokens>) -> Tokens {
    let default = CompactionSettings::default().reserve_tokens;
    let set = settings.reserve_tokens;
    let reserve = if set.is_finite() && set > 0.0 {
        set
    } else {
        default
    };
    let reserve = share_of(Tokens(1), reserve);
    match window.filter(|w| *w > Tokens::ZERO) {
        Some(window) => reserve.min(Tokens(window.get() / 2)),
        None => reserve,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and shares are positive"
)]
fn share_of(whole: Tokens, share: f64) -> Tokens {
    Tokens((whole.get() as f64 * share).floor() as u64)
}
