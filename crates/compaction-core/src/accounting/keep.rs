//! The keep window of one compaction: the limits, adapted to what is there (spec "Compaction core", 4).

use foldline_session_model::Tokens;

use super::limits::{Limits, tokens};
use crate::settings::CompactionSettings;

/// From this window on, the kept tail may take 30 % of it.
const LARGE_WINDOW: u64 = 66_000;

/// How a measured ratio of real to estimated tokens is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RatioUse {
    /// There is none.
    None,
    /// As it is: someone asked for the compaction.
    Manual(f64),
    /// Only to keep less: nobody asked.
    Automatic(f64),
}

/// How much of the newest messages a compaction keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeepWindow {
    /// The estimated tokens to keep; at least 1.
    pub tokens: Tokens,
    /// The ratio that was applied; 1 if there was none.
    pub ratio: f64,
}

impl KeepWindow {
    /// The keep window over a history of this estimated size. Without limits (unknown window) the setting holds.
    pub fn new(
        settings: &CompactionSettings,
        limits: Option<&Limits>,
        history: Tokens,
        ratio: RatioUse,
    ) -> Self {
        let set = tokens(settings.keep_recent_tokens).max(Tokens(1));
        let safe = limits.map_or(set, Limits::safe_keep);
        let capped = set.min(safe);
        let scaled = match limits.map(Limits::window) {
            Some(window) if window.get() >= LARGE_WINDOW => {
                safe.min(capped.max(Tokens(window.get() / 10 * 3 + window.get() % 10 * 3 / 10)))
            }
            _ => capped,
        };
        // A setting that covers everything is respected: then there is nothing to do. A scaled window that covers
        // everything is not.
        let chosen = if set > history {
            set
        } else if scaled > capped && scaled > history {
            capped
        } else {
            scaled
        };
        let ratio = match ratio {
            RatioUse::None => 1.0,
            RatioUse::Manual(r) => usable(r),
            RatioUse::Automatic(r) => usable(r).max(1.0),
        };
        Self {
            tokens: tokens((chosen.get() as f64 / ratio).round()).max(Tokens(1)),
            ratio,
        }
    }
}

/// A ratio within 0.5 to 2; what is no positive number is 1.
fn usable(ratio: f64) -> f64 {
    if ratio.is_finite() && ratio > 0.0 {
        ratio.clamp(0.5, 2.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(
        window: Option<u64>,
        history: u64,
        ratio: RatioUse,
        f: impl FnOnce(&mut CompactionSettings),
    ) -> u64 {
        let mut settings = CompactionSettings::default();
        f(&mut settings);
        let limits = Limits::new(window.map(Tokens), &settings, Tokens::ZERO);
        KeepWindow::new(&settings, limits.as_ref(), Tokens(history), ratio)
            .tokens
            .get()
    }

    #[test]
    fn windows_scale_the_kept_tail() {
        let long = 10_000_000;
        let table = [
            (None, long, 20_000),
            (Some(200_000), long, 60_000),
            (Some(128_000), long, 38_400),
            // 30 % would cover the whole history.
            (Some(1_000_000), 120_000, 20_000),
            (Some(66_000), long, 20_000),
            (Some(65_000), long, 20_000),
            (Some(40_000), long, 7_232),
            // Small windows keep a tenth.
            (Some(32_000), long, 3_200),
            (Some(8_000), long, 800),
            // The setting covers everything.
            (Some(200_000), 19_999, 20_000),
        ];
        for (window, history, expected) in table {
            assert_eq!(
                keep(window, history, RatioUse::None, |_| {}),
                expected,
                "{window:?} {history}"
            );
        }
    }

    #[test]
    fn a_low_threshold_lowers_the_kept_tail() {
        let low = |s: &mut CompactionSettings| {
            s.keep_recent_tokens = 40_000.0;
            s.threshold_tokens = 50_000.0;
        };
        assert_eq!(keep(Some(200_000), 1_000_000, RatioUse::None, low), 20_000);
        let lowest = |s: &mut CompactionSettings| s.threshold_percent = 10.0;
        assert_eq!(keep(Some(200_000), 1_000_000, RatioUse::None, lowest), 10_000);
    }

    #[test]
    fn ratios_are_clamped_and_automatic_ones_only_shrink() {
        let set = |s: &mut CompactionSettings| s.keep_recent_tokens = 100.0;
        let manual = |r| keep(None, 10_000, RatioUse::Manual(r), set);
        for (ratio, expected) in [
            (2.0, 50),
            (0.5, 200),
            (10.0, 50),
            (0.01, 200),
            (0.0, 100),
            (-1.0, 100),
            (f64::NAN, 100),
            (f64::INFINITY, 100),
        ] {
            assert_eq!(manual(ratio), expected, "{ratio}");
        }
        assert_eq!(keep(None, 10_000, RatioUse::Automatic(0.5), set), 100);
        assert_eq!(keep(None, 10_000, RatioUse::Automatic(2.0), set), 50);
        assert_eq!(keep(None, 10_000, RatioUse::None, set), 100);
    }
}
