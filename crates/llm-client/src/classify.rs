//! From what a provider said to one of the ten error classes (requirement R05).
//!
//! Typed facts (HTTP status, error codes) decide before prose, because prose can mislead: a refused key
//! whose message speaks of the context must not start a compaction. Among texts, rate and quota wording
//! beats generic overflow wording. A reply that ended normally can still be an overflow; its usage tells.
//! Text of tools and of models never comes here.

mod body;
mod hint;
mod numbers;
mod patterns;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, OtherCause, StopReason, TransientCause, Usage};
use regex::RegexSet;

pub use body::ErrorBody;
pub use hint::retry_hint;
pub(crate) use hint::until_http_date;
pub(crate) use patterns::{all as constant_patterns, one as constant_pattern};

use patterns::{Strength, TextKind};

/// Only this much of a message is looked at: providers put the reason first, proxies send whole pages.
const MAX_TEXT: usize = 8 * 1024;

/// What is known about a failed request besides its text.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransportFacts<'a> {
    /// The HTTP status.
    pub status: Option<u16>,
    /// Every code or type that the provider gave, in any order.
    pub codes: &'a [&'a str],
}

impl TransportFacts<'_> {
    /// Whether nothing is known.
    pub const fn is_empty(&self) -> bool {
        self.status.is_none() && self.codes.is_empty()
    }
}

/// The fields of an assistant message that say how it ended.
#[derive(Clone, Copy, Debug)]
pub struct MessageFields<'a> {
    /// Why it ended.
    pub stop: StopReason,
    /// The text of the failure.
    pub error_message: Option<&'a str>,
    /// What the provider counted.
    pub usage: Usage,
    /// Whether anything was answered.
    pub content: Content,
}

/// Whether a message has any block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No block at all.
    Empty,
    /// At least one block.
    Present,
}

/// Patterns of the user that name further overflow texts, for providers that this crate does not know.
#[derive(Clone, Debug, Default)]
pub struct UserPatterns(Option<RegexSet>);

impl UserPatterns {
    /// Compiles the patterns; letters match in both cases.
    ///
    /// # Errors
    /// When one of them is no regular expression.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, regex::Error> {
        if patterns.is_empty() {
            return Ok(Self::default());
        }
        regex::RegexSetBuilder::new(patterns)
            .case_insensitive(true)
            .build()
            .map(|set| Self(Some(set)))
    }

    fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|set| set.is_match(text))
    }
}

/// The class of an assistant message; `None` when it is a good reply.
///
/// A reply that was cut by the output limit is good here, unless its usage shows that the prompt left no
/// room for output.
pub fn classify(
    message: &MessageFields<'_>,
    facts: &TransportFacts<'_>,
    window: Option<Tokens>,
    user: &UserPatterns,
) -> Option<ErrorClass> {
    match message.stop {
        StopReason::Error => Some(classify_failure(facts, message.error_message, user)),
        StopReason::Aborted => Some(ErrorClass::Cancelled),
        // A request that failed although its message does not say so: the typed facts alone decide.
        _ if !facts.is_empty() => match classify_failure(facts, None, user) {
            ErrorClass::Other(OtherCause::Unknown) => silent_overflow(message, window),
            class => Some(class),
        },
        _ => silent_overflow(message, window),
    }
}

/// An overflow that the provider did not report but that the usage of the reply shows.
///
/// Three forms (spec "Orchestrator and clients", 4.3): a normal end whose prompt is larger than the
/// window; a cut reply without a token of output whose prompt fills the window to 99 %; an empty normal
/// end with almost no usage at all, which is how LiteLLM shows an upstream refusal. A window that is
/// unknown or 0 proves nothing.
pub fn silent_overflow(message: &MessageFields<'_>, window: Option<Tokens>) -> Option<ErrorClass> {
    let usage = &message.usage;
    if let Some(window) = window.filter(|window| usage.shows_overflow(message.stop, *window)) {
        return Some(ErrorClass::Overflow {
            limit: Some(window),
            input: Some(usage.prompt()),
            output: None,
        });
    }
    let empty = message.stop == StopReason::Stop
        && message.content == Content::Empty
        && usage.prompt() + usage.output <= Tokens(5)
        && usage.cache_read + usage.cache_write == Tokens::ZERO;
    empty.then_some(ErrorClass::OVERFLOW)
}

/// Whether a reply was cut although it had not used the output that was asked for: it was not the caller's
/// limit that ended it but what the window had left (spec "Orchestrator and clients", 3.2, T9).
///
/// Such a reply is good; it tells that the next request needs a smaller prompt.
pub fn cut_below_cap(message: &MessageFields<'_>, asked: Tokens) -> bool {
    message.stop == StopReason::Length && message.usage.output < asked
}

/// The class of a failed request.
pub fn classify_failure(
    facts: &TransportFacts<'_>,
    message: Option<&str>,
    user: &UserPatterns,
) -> ErrorClass {
    let text = clip(message.unwrap_or_default().trim());
    let codes = patterns::CodeKinds::of(facts.codes);
    let unauthorised = matches!(facts.status, Some(401 | 407));

    // "Limit 8000, Requested 21894": one request that no waiting can fit.
    if !unauthorised && let Some((limit, requested)) = numbers::rate_window(text) {
        return if requested > limit {
            ErrorClass::RequestTooLarge {
                limit: Some(limit),
                requested: Some(requested),
            }
        } else {
            ErrorClass::RateLimit
        };
    }
    if facts.status == Some(429) {
        return if codes.quota || patterns::is_quota(text) {
            ErrorClass::Quota
        } else {
            ErrorClass::RateLimit
        };
    }
    if codes.overflow {
        return overflow_of(text);
    }
    if codes.body_too_large {
        return ErrorClass::BodyTooLarge {
            limit: numbers::byte_limit(text),
        };
    }
    if codes.auth || unauthorised {
        return ErrorClass::Auth;
    }
    if codes.quota || facts.status == Some(402) {
        return ErrorClass::Quota;
    }
    if codes.rate_limit {
        return ErrorClass::RateLimit;
    }
    if facts.status == Some(403) {
        return if patterns::is_quota(text) {
            ErrorClass::Quota
        } else {
            ErrorClass::Auth
        };
    }
    if user.is_match(text) {
        return overflow_of(text);
    }
    let bare = text.is_empty() || patterns::says_no_body(text);
    if bare && matches!(facts.status, Some(400 | 413)) {
        return ErrorClass::OVERFLOW;
    }
    by_text(text, facts, &codes)
}

fn by_text(text: &str, facts: &TransportFacts<'_>, codes: &patterns::CodeKinds) -> ErrorClass {
    match patterns::excluded(text) {
        Some(TextKind::Quota) => return ErrorClass::Quota,
        Some(TextKind::RateLimit) => return ErrorClass::RateLimit,
        Some(TextKind::Overloaded) => return ErrorClass::Transient(TransientCause::Overloaded),
        _ => {}
    }
    if patterns::is_media(text) {
        return ErrorClass::MediaRejected {
            message: numbers::message_index(text),
            entry: None,
        };
    }
    match patterns::overflow(text) {
        // A provider that calls the request invalid must name the context in its own known words: generic
        // wording may come from anywhere.
        Some(Strength::Generic) if codes.invalid_request => {}
        Some(_) => return overflow_of(text),
        None => {}
    }
    if patterns::is_body_too_large(text) || facts.status == Some(413) {
        return ErrorClass::BodyTooLarge {
            limit: numbers::byte_limit(text),
        };
    }
    if codes.overloaded {
        return ErrorClass::Transient(TransientCause::Overloaded);
    }
    if codes.invalid_request {
        return ErrorClass::Other(OtherCause::InvalidRequest);
    }
    if codes.refused {
        return ErrorClass::Other(OtherCause::Refused);
    }
    match facts.status {
        Some(404 | 405 | 410) => return ErrorClass::Other(OtherCause::NotFound),
        Some(529) => return ErrorClass::Transient(TransientCause::Overloaded),
        Some(408 | 409 | 425 | 500..=599) => return ErrorClass::Transient(TransientCause::Server),
        Some(400..=499) => return ErrorClass::Other(OtherCause::InvalidRequest),
        _ => {}
    }
    if codes.server {
        return ErrorClass::Transient(TransientCause::Server);
    }
    match patterns::plain_kind(text) {
        Some(TextKind::Quota) => ErrorClass::Quota,
        Some(TextKind::RateLimit) => ErrorClass::RateLimit,
        Some(TextKind::Auth) => ErrorClass::Auth,
        Some(TextKind::Invalid) => ErrorClass::Other(OtherCause::InvalidRequest),
        Some(TextKind::Overloaded) => ErrorClass::Transient(TransientCause::Overloaded),
        Some(TextKind::Server) => ErrorClass::Transient(TransientCause::Server),
        Some(TextKind::Network) => ErrorClass::Transient(TransientCause::Network),
        Some(TextKind::Empty) => ErrorClass::Transient(TransientCause::EmptyReply),
        None => ErrorClass::Other(OtherCause::Unknown),
    }
}

fn overflow_of(text: &str) -> ErrorClass {
    let numbers = numbers::overflow(text);
    ErrorClass::Overflow {
        limit: numbers.limit,
        input: numbers.input,
        output: numbers.output,
    }
}

fn clip(text: &str) -> &str {
    crate::text::clip(text, MAX_TEXT)
}

#[cfg(test)]
mod tests;
