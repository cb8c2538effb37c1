//! Reserve, threshold and keep window for one model.

use foldline_session_model::Tokens;
use serde::Serialize;

use crate::settings::{CompactionSettings, ThresholdRule};

/// Numbers that fit together: 0 < keep < threshold < window, whatever the settings say (D9, R07).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    window: Tokens,
    reserve: Tokens,
    threshold: Tokens,
    keep: Tokens,
    clamps: Vec<Clamp>,
}

/// A setting that could not be followed. Reported, never an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "setting")]
#[non_exhaustive]
pub enum Clamp {
    /// The reserve is at most half of the window.
    Reserve {
        /// What was asked for.
        asked: Tokens,
        /// What holds.
        used: Tokens,
    },
    /// The threshold lies above the kept tail and below the window.
    Threshold {
        /// What was asked for.
        asked: Tokens,
        /// What holds.
        used: Tokens,
    },
    /// The kept tail lies below the threshold and above 0.
    Keep {
        /// What was asked for.
        asked: Tokens,
        /// What holds.
        used: Tokens,
    },
}

/// Of a window smaller than this nothing can be kept.
const LEAST_WINDOW: u64 = 3;

impl Limits {
    /// The limits for a window. `None` if the window is unknown or not positive: then nothing is ever triggered by
    /// size, and nothing else is guessed (seed 000, "Settings and defaults"; FB-025).
    ///
    /// `reserved_output` is for callers that want a whole reply to fit above the threshold. Sessions pass zero: what
    /// a model can write is no reservation, and the reserve is there for it (D9).
    pub fn new(
        window: Option<Tokens>,
        settings: &CompactionSettings,
        reserved_output: Tokens,
    ) -> Option<Self> {
        let window = window.filter(|w| w.get() >= LEAST_WINDOW)?;
        let mut clamps = Vec::new();
        let reserve = reserve(window, settings, reserved_output, &mut clamps);
        let threshold = threshold(window, reserve, settings, &mut clamps);
        let keep = keep(window, reserve, threshold, settings, &mut clamps);
        Some(Self {
            window,
            reserve,
            threshold,
            keep,
            clamps,
        })
    }

    /// The context window.
    pub fn window(&self) -> Tokens {
        self.window
    }

    /// What stays free above the threshold when nothing overrides it; at most half of the window.
    pub fn reserve(&self) -> Tokens {
        self.reserve
    }

    /// A context above this is too large.
    pub fn threshold(&self) -> Tokens {
        self.threshold
    }

    /// The most that a kept tail is planned with.
    pub fn keep(&self) -> Tokens {
        self.keep
    }

    /// The settings that could not be followed.
    pub fn clamps(&self) -> &[Clamp] {
        &self.clamps
    }

    /// Whether a context of this size is over the threshold: strictly greater.
    pub fn exceeded_by(&self, context: Tokens) -> bool {
        context > self.threshold
    }

    /// The room of the keep window: up to the threshold without the reserve, and never below a tenth of the window or
    /// half of the threshold, whichever is less (CD10).
    pub(super) fn safe_keep(&self) -> Tokens {
        safe_keep(self.window, self.reserve, self.threshold)
    }
}

fn reserve(window: Tokens, settings: &CompactionSettings, output: Tokens, clamps: &mut Vec<Clamp>) -> Tokens {
    let set = tokens(settings.reserve_tokens);
    let share = match settings.threshold_rule {
        ThresholdRule::ShareAndReserve => percent_of(window, 15.0),
        ThresholdRule::ReserveOnly => Tokens::ZERO,
    };
    let asked = set.max(share).max(output);
    let used = asked.min(Tokens(window.get() / 2));
    if used != asked {
        clamps.push(Clamp::Reserve { asked, used });
    }
    used
}

fn threshold(
    window: Tokens,
    reserve: Tokens,
    settings: &CompactionSettings,
    clamps: &mut Vec<Clamp>,
) -> Tokens {
    let asked = if is_set(settings.threshold_tokens) {
        tokens(settings.threshold_tokens)
    } else if is_set(settings.threshold_percent) {
        percent_of(window, settings.threshold_percent.clamp(1.0, 99.0))
    } else {
        window.saturating_sub(reserve)
    };
    let used = asked.max(Tokens(2)).min(window.saturating_sub(Tokens(1)));
    if used != asked {
        clamps.push(Clamp::Threshold { asked, used });
    }
    used
}

fn keep(
    window: Tokens,
    reserve: Tokens,
    threshold: Tokens,
    settings: &CompactionSettings,
    clamps: &mut Vec<Clamp>,
) -> Tokens {
    let asked = tokens(settings.keep_recent_tokens);
    let used = asked
        .max(Tokens(1))
        .min(safe_keep(window, reserve, threshold))
        .min(threshold.saturating_sub(Tokens(1)));
    if used != asked {
        clamps.push(Clamp::Keep { asked, used });
    }
    used
}

fn safe_keep(window: Tokens, reserve: Tokens, threshold: Tokens) -> Tokens {
    let floor = Tokens(window.get() / 10).min(Tokens(threshold.get() / 2));
    threshold.saturating_sub(reserve).max(floor).max(Tokens(1))
}

/// Whether a setting that may be absent is set.
fn is_set(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// A number of a settings file as tokens: what is not positive or no number counts as none.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and NaN becomes 0"
)]
pub(super) fn tokens(number: f64) -> Tokens {
    Tokens(number as u64)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the window fits it"
)]
fn percent_of(window: Tokens, percent: f64) -> Tokens {
    Tokens((window.get() as f64 * percent / 100.0).floor() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(window: u64, settings: &CompactionSettings) -> Limits {
        Limits::new(Some(Tokens(window)), settings, Tokens::ZERO).unwrap()
    }

    fn with(f: impl FnOnce(&mut CompactionSettings)) -> CompactionSettings {
        let mut settings = CompactionSettings::default();
        f(&mut settings);
        settings
    }

    #[test]
    fn defaults_by_window() {
        // Reserve and threshold; below 32,768 the reserve is clamped to half of the window.
        let table = [
            (8_000, 4_000, 4_000),
            (16_384, 8_192, 8_192),
            (32_000, 16_000, 16_000),
            (40_000, 16_384, 23_616),
            (100_000, 16_384, 83_616),
            (128_000, 19_200, 108_800),
            (200_000, 30_000, 170_000),
            (400_000, 60_000, 340_000),
            (1_000_000, 150_000, 850_000),
        ];
        for (window, reserve, threshold) in table {
            let limits = limits(window, &CompactionSettings::default());
            assert_eq!(
                (limits.reserve().get(), limits.threshold().get()),
                (reserve, threshold),
                "{window}"
            );
        }
    }

    #[test]
    fn overrides_of_the_threshold() {
        for (percent, threshold) in [
            (0.5, 1_000),
            (1.0, 1_000),
            (50.0, 50_000),
            (99.0, 99_000),
            (250.0, 99_000),
            (f64::NAN, 83_617),
            (f64::INFINITY, 83_617),
            (-1.0, 83_617),
            (0.0, 83_617),
        ] {
            let settings = with(|s| s.threshold_percent = percent);
            assert_eq!(
                limits(100_001, &settings).threshold().get(),
                threshold,
                "{percent}"
            );
        }
        for (tokens, threshold) in [
            (150_000.0, 99_999),
            (50_000.0, 50_000),
            (0.5, 2),
            (f64::NAN, 83_616),
        ] {
            let settings = with(|s| s.threshold_tokens = tokens);
            assert_eq!(
                limits(100_000, &settings).threshold().get(),
                threshold,
                "{tokens}"
            );
        }
    }

    #[test]
    fn a_context_at_the_threshold_is_not_over_it() {
        let settings = with(|s| s.threshold_percent = 90.0);
        let limits = limits(100_000, &settings);
        assert!(!limits.exceeded_by(Tokens(90_000)));
        assert!(limits.exceeded_by(Tokens(90_001)));
    }

    #[test]
    fn reserved_output_counts_only_when_a_caller_asks_for_it() {
        let settings = CompactionSettings::default();
        let with_output = |window, output| {
            Limits::new(Some(Tokens(window)), &settings, Tokens(output))
                .unwrap()
                .threshold()
                .get()
        };
        assert_eq!(with_output(400_000, 128_000), 272_000);
        assert_eq!(with_output(100_000, 8_000), 83_616);
    }

    #[test]
    fn the_other_threshold_rule_takes_the_reserve_alone() {
        let settings = with(|s| s.threshold_rule = ThresholdRule::ReserveOnly);
        assert_eq!(limits(200_000, &settings).threshold().get(), 183_616);
    }

    #[test]
    fn fb_025_every_usable_window_has_room_and_an_unknown_one_no_trigger() {
        let settings = CompactionSettings::default();
        let new = |window, output| Limits::new(window, &settings, Tokens(output));
        assert!(new(None, 0).is_none());
        assert!(new(Some(Tokens(0)), 0).is_none());
        let usable = |window, output| new(Some(Tokens(window)), output).unwrap().threshold().get();
        assert!((4_096..16_384).contains(&usable(16_384, 0)));
        assert!(usable(32_000, 32_000) >= 8_000);
        assert!(usable(8_192, 8_192) >= 2_048);
        for window in [2_048, 8_192, 16_384, 32_000] {
            assert!(usable(window, window) > 0);
        }
        assert!(!new(Some(Tokens(16_384)), 0).unwrap().exceeded_by(Tokens(1_500)));
    }

    #[test]
    fn clamps_are_reported() {
        assert_eq!(limits(200_000, &CompactionSettings::default()).clamps(), []);
        let small = limits(8_000, &CompactionSettings::default());
        let expected = [
            Clamp::Reserve {
                asked: Tokens(16_384),
                used: Tokens(4_000),
            },
            Clamp::Keep {
                asked: Tokens(20_000),
                used: Tokens(800),
            },
        ];
        assert_eq!(small.clamps(), expected);
    }

    #[test]
    fn the_invariant_holds_on_the_whole_grid() {
        let numbers = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -1.0,
            0.0,
            0.5,
            1.0,
            2.0,
            99.5,
            5_000.0,
            1e6,
            1e300,
        ];
        let windows = [3, 4, 5, 10, 100, 2_048, 8_192, 32_000, 200_000, u64::MAX];
        for window in windows {
            for reserve in numbers {
                for keep in numbers {
                    for percent in numbers {
                        for threshold in numbers {
                            for rule in [ThresholdRule::ShareAndReserve, ThresholdRule::ReserveOnly] {
                                let settings = with(|s| {
                                    s.reserve_tokens = reserve;
                                    s.keep_recent_tokens = keep;
                                    s.threshold_percent = percent;
                                    s.threshold_tokens = threshold;
                                    s.threshold_rule = rule;
                                });
                                let l = limits(window, &settings);
                                assert!(
                                    Tokens::ZERO < l.keep()
                                        && l.keep() < l.threshold()
                                        && l.threshold() < l.window(),
                                    "{settings:?} {l:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
