//! What a prune costs and gains (seed 000; R20).
//!
//! Providers keep the beginning of a request that they have seen. A prune changes it, so everything from the first notice
//! on is paid in full once; from then on each request is smaller.

use foldline_session_model::Tokens;
use foldline_session_model::tokens::TokenCounter;

use crate::plan::Plan;
use crate::view::View;

/// Requests over which a prune may earn what it costs.
pub const DEFAULT_HORIZON: u32 = 10;

/// Prices of a model in dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Input that comes from no cache.
    pub input: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache; 0 where a provider asks nothing extra for that.
    pub cache_write: f64,
}

/// Whether the provider still has the beginning of the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// It probably has.
    Warm,
    /// It has been too long since the last request, or there was none.
    Expired,
}

/// When a context that needs no room is pruned: `pruning.belowThreshold`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BelowThreshold {
    /// Never: what was sent stays as it was sent.
    #[default]
    Never,
    /// When the prune earns more than it costs.
    WhenItPays,
    /// Whenever there is a plan.
    Always,
}

/// The two sides of a prune.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Tokens from the first notice to the end, as they will be: what has to be sent anew.
    pub sent_anew: Tokens,
    /// Tokens that each later request is smaller by.
    pub saved: Tokens,
    /// What sending anew costs over reading from the cache, in dollars. `None`: the prices are unknown.
    pub now: Option<f64>,
    /// What each later request costs less, in dollars. `None`: the prices are unknown.
    pub gain_per_request: Option<f64>,
}

impl Plan {
    /// What the plan costs and gains. `None` for prices: they are unknown.
    pub fn cost(&self, view: &View<'_>, prices: Option<Prices>, counter: &dyn TokenCounter) -> Cost {
        let first = self
            .replacements
            .iter()
            .map(|replacement| replacement.position)
            .min();
        let suffix = first
            .and_then(|first| view.items.get(first..))
            .unwrap_or_default();
        let before: Tokens = suffix.iter().map(|item| counter.message(item.message)).sum();
        Cost::of(
            before.saturating_sub(self.tokens_saved),
            self.tokens_saved,
            prices,
        )
    }
}

impl Cost {
    /// The two sides of a prune after which `sent_anew` tokens follow its first notice.
    pub fn of(sent_anew: Tokens, saved: Tokens, prices: Option<Prices>) -> Self {
        let prices = prices.filter(Prices::are_known);
        let dollars = |tokens: Tokens, price: f64| tokens.get() as f64 * price / 1e6;
        Self {
            sent_anew,
            saved,
            now: prices.map(|prices| dollars(sent_anew, (prices.written() - prices.cache_read).max(0.0))),
            gain_per_request: prices.map(|prices| dollars(saved, prices.cache_read)),
        }
    }

    /// Whether the prune earns more than it costs within this many requests. An expired cache costs nothing to give up.
    /// With unknown prices nothing is known to pay.
    pub fn pays(&self, horizon: u32, cache: Cache) -> bool {
        let (Some(now), Some(gain)) = (self.now, self.gain_per_request) else {
            return false;
        };
        match cache {
            Cache::Expired => self.saved > Tokens::ZERO,
            Cache::Warm => gain * f64::from(horizon) > now,
        }
    }
}

impl Prices {
    fn are_known(&self) -> bool {
        let all = [self.input, self.cache_read, self.cache_write];
        self.input > 0.0 && all.iter().all(|price| price.is_finite() && *price >= 0.0)
    }

    /// What a token costs that the cache does not have yet.
    fn written(&self) -> f64 {
        if self.cache_write > 0.0 {
            self.cache_write
        } else {
            self.input
        }
    }
}

impl BelowThreshold {
    /// Whether a plan is carried out although the context needs no room.
    pub fn allows(self, cost: &Cost, horizon: u32, cache: Cache) -> bool {
        match self {
            Self::Never => false,
            Self::WhenItPays => cost.pays(horizon, cache),
            Self::Always => cost.saved > Tokens::ZERO,
        }
    }

    /// The rule in tokens, for sessions whose prices nobody knows but whose cache use was measured: at least `minimum`,
    /// and more than the tokens of the last request that the cache held or took (spec "Pruning", 11).
    pub fn allows_by_tokens(self, saved: Tokens, minimum: Tokens, cached: Tokens) -> bool {
        self != Self::Never && saved >= minimum && saved > cached
    }
}

#[cfg(test)]
mod tests {
    use super::{BelowThreshold, Cache, Cost, Prices, Tokens};

    const PRICES: Prices = Prices {
        input: 3.0,
        cache_read: 0.3,
        cache_write: 3.75,
    };

    #[test]
    fn what_a_prune_costs_and_gains() {
        let cost = Cost::of(Tokens(100_000), Tokens(50_000), Some(PRICES));
        assert!((cost.now.unwrap() - 0.345).abs() < 1e-9);
        assert!((cost.gain_per_request.unwrap() - 0.015).abs() < 1e-9);
        let no_write = Prices {
            cache_write: 0.0,
            ..PRICES
        };
        let cost = Cost::of(Tokens(100_000), Tokens(50_000), Some(no_write));
        assert!((cost.now.unwrap() - 0.27).abs() < 1e-9);
    }

    #[test]
    fn when_a_context_that_needs_no_room_is_pruned() {
        use BelowThreshold::{Always, Never, WhenItPays};
        let unknown = Prices { input: 0.0, ..PRICES };
        // Setting, tokens after the first notice, tokens saved, prices, horizon, cache, expected.
        let table = [
            (Never, 0, 50_000, Some(PRICES), 10, Cache::Expired, false),
            (WhenItPays, 100_000, 50_000, Some(PRICES), 10, Cache::Warm, false),
            (WhenItPays, 100_000, 50_000, Some(PRICES), 24, Cache::Warm, true),
            // Exactly even does not pay.
            (WhenItPays, 100_000, 50_000, Some(PRICES), 23, Cache::Warm, false),
            (WhenItPays, 10_000, 50_000, Some(PRICES), 10, Cache::Warm, true),
            (
                WhenItPays,
                100_000,
                50_000,
                Some(PRICES),
                10,
                Cache::Expired,
                true,
            ),
            (WhenItPays, 100_000, 0, Some(PRICES), 10, Cache::Expired, false),
            (WhenItPays, 0, 50_000, None, 10, Cache::Expired, false),
            (WhenItPays, 0, 50_000, Some(unknown), 10, Cache::Expired, false),
            (Always, 100_000, 1, None, 10, Cache::Warm, true),
            (Always, 100_000, 0, None, 10, Cache::Warm, false),
        ];
        for (setting, anew, saved, prices, horizon, cache, expected) in table {
            let cost = Cost::of(Tokens(anew), Tokens(saved), prices);
            assert_eq!(
                setting.allows(&cost, horizon, cache),
                expected,
                "{setting:?} {anew} {saved} {horizon} {cache:?}"
            );
        }
    }
}
