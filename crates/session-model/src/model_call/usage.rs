//! What a call used, and what that says about the size of the context.
//!
//! Providers count differently: some report the prompt without its cached part, some with it, and some
//! compatible endpoints report it twice. The constructors bring all of them into four parts that do
//! not overlap (spec "Orchestrator and clients", 14.5).

use serde::{Deserialize, Serialize};

use super::{Api, CacheHint, Prices, StopReason};
use crate::units::Tokens;

/// Tokens of one call, in parts that do not overlap; the names are those of session files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Prompt tokens that came from no cache.
    pub input: Tokens,
    /// Output tokens, reasoning included.
    pub output: Tokens,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: Tokens,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: Tokens,
    /// The provider's own total, or the sum of the parts.
    pub total_tokens: Tokens,
    /// The part of `output` that was reasoning, when the provider says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Tokens>,
    /// What the call cost; zero when the prices are unknown.
    pub cost: Cost,
}

/// The cost of a call in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// For `input`.
    pub input: f64,
    /// For `output`.
    pub output: f64,
    /// For `cache_read`.
    pub cache_read: f64,
    /// For `cache_write`.
    pub cache_write: f64,
    /// The sum.
    pub total: f64,
}

impl Usage {
    /// For APIs that report the parts of the prompt side by side (Anthropic Messages).
    pub fn from_parts(input: Tokens, output: Tokens, cache_read: Tokens, cache_write: Tokens) -> Self {
        Self {
            input,
            output,
            cache_read,
            cache_write,
            total_tokens: input + output + cache_read + cache_write,
            ..Self::default()
        }
    }

    /// For APIs whose prompt count includes what was cached (both OpenAI APIs).
    ///
    /// Cached parts larger than the prompt are a fault of the server; `input` is then 0, never negative.
    pub fn from_inclusive(prompt: Tokens, output: Tokens, cache_read: Tokens, cache_write: Tokens) -> Self {
        let input = prompt.saturating_sub(cache_read).saturating_sub(cache_write);
        Self::from_parts(input, output, cache_read, cache_write)
    }

    /// Everything that was sent: fresh, read from a cache and written to one.
    pub fn prompt(&self) -> Tokens {
        self.input + self.cache_read + self.cache_write
    }

    /// Whether this usage shows an overflow that the server did not report: a normal end whose prompt is
    /// larger than the window, or a cut reply without a token of output whose prompt fills the window to
    /// 99 % (spec "Orchestrator and clients", 4.3). A window of 0 is unknown and proves nothing.
    pub fn shows_overflow(&self, stop: StopReason, window: Tokens) -> bool {
        if window == Tokens::ZERO {
            return false;
        }
        let prompt = self.prompt();
        match stop {
            StopReason::Stop => prompt > window,
            StopReason::Length => {
                self.output == Tokens::ZERO && u128::from(prompt.get()) * 100 >= u128::from(window.get()) * 99
            }
            _ => false,
        }
    }

    /// The usage with its cost by these prices (US dollars per million tokens).
    #[must_use]
    pub fn priced(mut self, prices: &Prices, cache: CacheHint) -> Self {
        let per_token = |price: f64, tokens: Tokens| price / 1e6 * tokens.get() as f64;
        let write_price = match cache {
            CacheHint::Long => prices.cache_write_long.unwrap_or(prices.cache_write),
            CacheHint::Off | CacheHint::Short => prices.cache_write,
        };
        let mut cost = Cost {
            input: per_token(prices.input, self.input),
            output: per_token(prices.output, self.output),
            cache_read: per_token(prices.cache_read, self.cache_read),
            cache_write: per_token(write_price, self.cache_write),
            total: 0.0,
        };
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        self.cost = cost;
        self
    }

    /// Whether no part was counted.
    pub fn is_zero(&self) -> bool {
        [self.input, self.output, self.cache_read, self.cache_write]
            .iter()
            .all(|part| *part == Tokens::ZERO)
    }
}

/// The prompt tokens of a call, as the context holds them.
///
/// Guard against mirrored caches: some endpoints that imitate Anthropic Messages report the whole prompt
/// as `input` and again in the cache fields. When the two are within a tenth of each other the prompt is
/// counted once. Never for the OpenAI APIs, whose `input` was already reduced.
pub fn prompt_tokens(usage: &Usage, api: Api) -> Tokens {
    let cached = usage.cache_read + usage.cache_write;
    if api == Api::AnthropicMessages && usage.input > Tokens::ZERO && cached > Tokens::ZERO {
        // 0.9 * input <= cached <= 1.1 * input, in whole numbers.
        let (input, cached) = (u128::from(usage.input.get()), u128::from(cached.get()));
        if 9 * input <= 10 * cached && 10 * cached <= 11 * input {
            return usage.input;
        }
    }
    usage.input + cached
}

/// The size of the context right after a call: its prompt and its output.
///
/// The provider's total counts only when it gave nothing else: totals of proxies are often wrong.
pub fn context_tokens(usage: &Usage, api: Api) -> Tokens {
    if usage.is_zero() {
        return usage.total_tokens;
    }
    prompt_tokens(usage, api) + usage.output
}
