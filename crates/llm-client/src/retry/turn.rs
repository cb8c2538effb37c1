//! Whether and when a failed turn of an agent is tried again, as plain functions (spec "Orchestrator and
//! clients", 8.1 and 8.2).
//!
//! [`RetryingModel`](crate::RetryingModel) repeats a request below the stream of events, for summaries and plans.
//! A turn is repeated by who runs the agent: it removes the failed reply, tells its listeners and can be
//! interrupted while it waits. These functions decide for it; they know no clock and no randomness.

use std::sync::LazyLock;
use std::time::Duration;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, LlmReply, OtherCause, StopReason, TransientCause};
use regex::{Regex, RegexSet};

use crate::LlmError;
use crate::classify::{
    Content, MessageFields, TransportFacts, UserPatterns, classify, constant_pattern, constant_patterns,
};
use crate::retry::{Jitter, RetryPolicy};

/// What a reply calls for, in the order in which the questions are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// It did not fail, or the caller cancelled, or nothing is known of the failure.
    None,
    /// The same request would fail again.
    Terminal,
    /// The model did not begin to answer in time.
    FirstEventTimeout,
    /// The request is too large: smaller it may pass, as it is never.
    Overflow,
    /// Nobody listens at an address on this machine: waiting does not start a server.
    LocalUnavailable,
    /// A plan or a budget is used up for now.
    UsageLimit,
    /// Likely to pass by itself.
    Transient,
    /// A failure that nothing recognises.
    Unknown,
}

impl RetryClass {
    /// Whether the same request may be sent again at all.
    pub const fn is_retried(self) -> bool {
        match self {
            Self::FirstEventTimeout | Self::UsageLimit | Self::Transient | Self::Unknown => true,
            Self::None | Self::Terminal | Self::Overflow | Self::LocalUnavailable => false,
        }
    }
}

/// Where the model is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndpointPlace {
    /// On another machine.
    #[default]
    Remote,
    /// On this machine.
    Local,
}

/// How a turn ended, as a session records it.
#[derive(Clone, Copy, Debug)]
pub struct TurnEnd<'a> {
    /// The fields of the assistant message.
    pub message: MessageFields<'a>,
    /// Status and codes, where they are known. The kind of error that a session records
    /// (`provider_safety_stop`, `stream_first_event_timeout`) is one of the codes.
    pub facts: TransportFacts<'a>,
    /// The window of the model, for overflows that only the usage shows.
    pub window: Option<Tokens>,
    /// Where the model is.
    pub place: EndpointPlace,
}

/// Codes of a reply that the provider stopped for safety.
const SAFETY_CODES: [&str; 6] = [
    "provider_safety_stop",
    "refusal",
    "sensitive",
    "content_filter",
    "content_policy_violation",
    "cyber_policy",
];

/// The code of a stream whose first event did not come in time.
pub const FIRST_EVENT_TIMEOUT: &str = "stream_first_event_timeout";

struct Texts {
    safety: RegexSet,
    unreachable: RegexSet,
    envelope: Regex,
    before_start: Regex,
    terminal: RegexSet,
    usage_limit: RegexSet,
    rate: RegexSet,
    first_event: RegexSet,
    transient: RegexSet,
}

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts {
    safety: constant_patterns(&[
        r"stopped the (?:reply|response) for safety",
        r"provider_safety_stop",
        r"(?:blocked|stopped|flagged) (?:by|for) (?:the |our )?(?:safety|usage policy|content policy)",
    ]),
    unreachable: constant_patterns(&[
        r"connection.?refused|econnrefused",
        r"connect(?:ion)? error|fetch failed|unable to connect",
    ]),
    envelope: constant_pattern(r"stream envelope|unexpected event order"),
    before_start: constant_pattern(r#"before\s+["']?message_start"#),
    terminal: constant_patterns(&[
        r"unauthorized|forbidden|authentication_error|permission_error|permission denied|invalid api key",
        r"invalid_request_error|invalid request|bad request|bad_request|validation_error|unprocessable",
        r"payload too large|payment required|insufficient_quota|insufficient credits",
        r"missing required (?:parameter|field)|invalid schema|invalid tool_choice",
        r"unsupported (?:parameter|value|model)|model_not_found|no such model|unknown model",
        r"does not (?:exist|support)|request was aborted|request aborted|the user aborted",
        // Spent for good, or until somebody pays.
        r"gousagelimiterror|freeusagelimiterror|monthly usage limit reached",
        r"available balance|out of budget|billing",
        // Not the API that was meant, or an answer without an end: our own words.
        r"not that of a model's api|does not come to its end",
    ]),
    usage_limit: constant_patterns(&[
        r"usage.?limit|usage_limit_reached|usage_not_included|limit_reached|model.?limit|message.?limit",
        r"limit for this model|weekly/monthly\s+limit\s+exhausted|quota.?exceeded|out_of_credits",
        r"request would exceed your account.?s rate limit",
        r"resource has been exhausted[^\n]*(?:quota|limit)",
    ]),
    rate: constant_patterns(&[r"rate.?limit|too many requests|throttl"]),
    first_event: constant_patterns(&[
        r"timed out while waiting for the first event",
        r"did not begin to answer in time",
    ]),
    transient: constant_patterns(&[
        r"overloaded|provider.?returned.?error|rate.?limit|too many requests|service.?unavailable",
        // A status, not a part of another number.
        r"(?:^|[^\w.,])(?:429|500|502|503|504|524)(?:$|[^\w.,]|[.,](?:$|\D))",
        r"server.?error|internal.?error|retry your request|try your request again",
        r"network.?error|connection.?(?:error|refused|lost)|getaddrinfo|enotfound|eai_again",
        r"other side closed|fetch failed|upstream.?connect|reset before headers|socket hang up",
        r"socket connection (?:was )?closed unexpectedly|websocket.?(?:closed|error)",
        r"timed? out|timeout|terminated|retry delay|stream stall|stream deadline exceeded|fell silent",
        r"no error details in response|gave no details|returned an empty completion",
        r"exceeded request buffer limit while retrying upstream|http2 request did not get a response",
        r"zlib|incorrect header check|decompress|library error|resourceexhausted",
        r"ended without|stream ended before|connection broke",
    ]),
});

/// What a recorded reply calls for (spec "Orchestrator and clients", 8.1: the first question that fits).
///
/// A normal end without any content or output is a failure that may pass, unless its usage shows an overflow.
pub fn retry_class(turn: &TurnEnd<'_>, user: &UserPatterns) -> RetryClass {
    let TurnEnd { message, facts, .. } = turn;
    match message.stop {
        StopReason::Error => {}
        StopReason::Stop | StopReason::ToolUse
            if message.content == Content::Empty && message.usage.output == Tokens::ZERO =>
        {
            let class = classify(message, &TransportFacts::default(), turn.window, user);
            return match class {
                Some(class) if class.wants_smaller_request() => RetryClass::Overflow,
                _ => RetryClass::Transient,
            };
        }
        _ => return RetryClass::None,
    }
    if has_code(facts, &SAFETY_CODES) {
        return RetryClass::Terminal;
    }
    if has_code(facts, &[FIRST_EVENT_TIMEOUT]) {
        return RetryClass::FirstEventTimeout;
    }
    let Some(text) = message.error_message else {
        return RetryClass::None;
    };
    let texts = &*TEXTS;
    if texts.safety.is_match(text) {
        return RetryClass::Terminal;
    }
    let class = classify(message, facts, turn.window, user);
    if class.is_some_and(|class| class.wants_smaller_request()) {
        return RetryClass::Overflow;
    }
    if turn.place == EndpointPlace::Local && facts.status.is_none() && texts.unreachable.is_match(text) {
        return RetryClass::LocalUnavailable;
    }
    if texts.envelope.is_match(text) {
        return if texts.before_start.is_match(text) {
            RetryClass::Transient
        } else {
            RetryClass::Terminal
        };
    }
    if texts.terminal.is_match(text) {
        return RetryClass::Terminal;
    }
    if texts.usage_limit.is_match(text) {
        return RetryClass::UsageLimit;
    }
    let refused = matches!(facts.status, Some(400..=499)) && !matches!(facts.status, Some(408 | 425 | 429));
    // Proxies report exceeded rates under other statuses.
    if refused && !texts.rate.is_match(text) {
        return RetryClass::Terminal;
    }
    if texts.first_event.is_match(text) {
        return RetryClass::FirstEventTimeout;
    }
    let passing_status = matches!(facts.status, Some(408 | 425 | 429 | 500..=599));
    if passing_status || texts.transient.is_match(text) {
        RetryClass::Transient
    } else {
        RetryClass::Unknown
    }
}

fn has_code(facts: &TransportFacts<'_>, known: &[&str]) -> bool {
    facts
        .codes
        .iter()
        .any(|code| known.iter().any(|known| known.eq_ignore_ascii_case(code)))
}

/// What a failure calls for that is still at hand as an error: its class is known, so no text is read.
pub fn retry_class_of(error: &LlmError, place: EndpointPlace) -> RetryClass {
    match &error.class {
        ErrorClass::Cancelled => RetryClass::None,
        class if class.wants_smaller_request() => RetryClass::Overflow,
        ErrorClass::Quota => RetryClass::UsageLimit,
        ErrorClass::Transient(TransientCause::FirstEventTimeout) => RetryClass::FirstEventTimeout,
        ErrorClass::Transient(TransientCause::Network)
            if place == EndpointPlace::Local && TEXTS.unreachable.is_match(&error.message) =>
        {
            RetryClass::LocalUnavailable
        }
        ErrorClass::RateLimit | ErrorClass::Transient(_) => RetryClass::Transient,
        ErrorClass::Other(OtherCause::Unknown) => RetryClass::Unknown,
        _ => RetryClass::Terminal,
    }
}

/// Whether a turn can be repeated without taking back what was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaySafety {
    /// Nothing of substance arrived.
    Safe,
    /// Text, thinking or a call arrived: a second answer would differ from it.
    ContentShown,
}

/// Whether a turn can be repeated, going by what had arrived of its reply.
pub fn replay_safety(arrived: Option<&LlmReply>) -> ReplaySafety {
    match arrived {
        Some(reply) if !reply.is_empty() => ReplaySafety::ContentShown,
        _ => ReplaySafety::Safe,
    }
}

/// What to do about a failed turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Send the request again.
    Retry {
        /// Which retry this is, from 1.
        attempt: u32,
        /// How long to wait before it.
        delay: Duration,
    },
    /// Leave it.
    GiveUp(GiveUp),
}

/// Why a failed turn is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// Its class is never retried.
    NotRetried,
    /// Something of the answer was shown.
    ContentShown,
    /// As many retries as allowed have failed.
    Exhausted,
}

/// Decides about a failed turn.
///
/// `failed_retries` counts the retries that failed before; `hint` is the wait that the provider asks for;
/// `random` is a number from 0 (inclusive) to 1 (exclusive).
pub fn decide_retry(
    class: RetryClass,
    replay: ReplaySafety,
    failed_retries: u32,
    hint: Option<Duration>,
    policy: &RetryPolicy,
    random: f64,
) -> RetryDecision {
    let limit = u32::try_from(policy.max_retries).unwrap_or(u32::MAX);
    if !class.is_retried() {
        RetryDecision::GiveUp(GiveUp::NotRetried)
    } else if replay == ReplaySafety::ContentShown {
        RetryDecision::GiveUp(GiveUp::ContentShown)
    } else if failed_retries >= limit {
        RetryDecision::GiveUp(GiveUp::Exhausted)
    } else {
        let attempt = failed_retries + 1;
        RetryDecision::Retry {
            attempt,
            delay: retry_delay(policy, attempt, hint, random),
        }
    }
}

/// The wait before a retry (from 1) of a turn: what the provider asks for, but at most the policy's
/// `max_delay`; without such a hint a random part of the doubling delay, in whole milliseconds.
///
/// `Duration::MAX` as `max_delay` means no cap. `random` is as for [`decide_retry`]; other numbers are brought
/// into that range. Without jitter the delay is exact.
pub fn retry_delay(policy: &RetryPolicy, attempt: u32, hint: Option<Duration>, random: f64) -> Duration {
    if let Some(hint) = hint {
        return hint.min(policy.max_delay);
    }
    jittered(
        policy,
        doubled(policy, attempt.saturating_sub(1)).min(policy.max_delay),
        random,
    )
}

/// The wait before a retry (from 0) of a maintenance call: the doubling delay or what the provider asks for,
/// whichever is longer, capped (spec "Orchestrator and clients", 7). No jitter: one caller, one summary.
pub fn maintenance_delay(policy: &RetryPolicy, attempt: u32, hint: Option<Duration>) -> Duration {
    doubled(policy, attempt)
        .max(hint.unwrap_or_default())
        .min(policy.max_delay)
}

/// The wait before a retry (from 1) inside a chain of models: the random part of the doubling delay, or what
/// the provider asks for when that is longer, without a cap (spec "Orchestrator and clients", 8.4). The step to
/// another model and one with new credentials do not wait.
pub fn fallback_delay(policy: &RetryPolicy, attempt: u32, hint: Option<Duration>, random: f64) -> Duration {
    retry_delay(policy, attempt, None, random).max(hint.unwrap_or_default())
}

fn doubled(policy: &RetryPolicy, doublings: u32) -> Duration {
    match 1_u32.checked_shl(doublings) {
        Some(factor) => policy.base_delay.saturating_mul(factor),
        None => Duration::MAX,
    }
}

fn jittered(policy: &RetryPolicy, delay: Duration, random: f64) -> Duration {
    match policy.jitter {
        Jitter::None => delay,
        Jitter::Full => {
            // No number at all counts as 0.
            let part = if random > 0.0 { random.min(1.0) } else { 0.0 };
            let millis = (delay.as_secs_f64() * 1000.0 * part).floor();
            Duration::try_from_secs_f64(millis / 1000.0).map_or(delay, |wait| wait.min(delay))
        }
    }
}

#[cfg(test)]
mod tests;
