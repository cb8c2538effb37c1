//! What is written beside a session about a plan that failed, or that was read from a cut answer (spec "Verbatim",
//! section 13).
//!
//! Never a key, a header, the prompt or the transcript; the answer is redacted, because a model may have repeated
//! what it read. Writing is the caller's part, and a failed write changes nothing.

use std::borrow::Cow;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{LlmReply, ModelProfile, StopReason, Usage};
use serde::Serialize;

use super::ladder::FailedAttempt;
use super::outcome::{CallFailure, Retries, answer_text};

/// Which kind of sidecar; a part of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidecarKind {
    /// A failed attempt.
    Diagnostic,
    /// A plan from an answer that was cut off.
    Recovery,
}

impl SidecarKind {
    /// The word in the file's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Diagnostic => "diagnostic",
            Self::Recovery => "recovery",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d> {
    version: u32,
    timestamp: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_category: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_message: Option<Cow<'d, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_category: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered_range_count: Option<usize>,
    raw_response: Cow<'d, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_error: Option<Cow<'d, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit_exhausted: Option<bool>,
    model: Model<'d>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Model<'d> {
    provider: &'d str,
    id: &'d str,
    api: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<Tokens>,
}

/// The content of a `diagnostic` sidecar. `timestamp` is ISO 8601; `redact` hides secrets.
pub fn diagnostic(
    attempt: &FailedAttempt,
    answer: &Result<LlmReply, CallFailure>,
    profile: &ModelProfile,
    timestamp: &str,
    redact: &dyn Fn(&str) -> String,
) -> String {
    let mut document = base(answer, profile, timestamp, redact);
    document.failure_category = Some(attempt.category.name());
    document.failure_message = Some(Cow::Owned(redact(&attempt.message)));
    document.provider_error = answer.as_ref().err().map(|e| Cow::Owned(redact(&e.message)));
    if attempt.category.is_limit() {
        document.rate_limit_exhausted = Some(attempt.retries == Retries::Exhausted);
    }
    print(&document)
}

/// The content of a `recovery` sidecar.
pub fn recovery(
    records: usize,
    reply: &LlmReply,
    profile: &ModelProfile,
    timestamp: &str,
    redact: &dyn Fn(&str) -> String,
) -> String {
    let answer = Ok(reply.clone());
    let mut document = base(&answer, profile, timestamp, redact);
    document.recovery_category = Some("partial_length_recovery");
    document.recovered_range_count = Some(records);
    print(&document)
}

fn base<'d>(
    answer: &Result<LlmReply, CallFailure>,
    profile: &'d ModelProfile,
    timestamp: &'d str,
    redact: &dyn Fn(&str) -> String,
) -> Document<'d> {
    let reply = answer.as_ref().ok();
    Document {
        version: 1,
        timestamp,
        failure_category: None,
        failure_message: None,
        recovery_category: None,
        recovered_range_count: None,
        raw_response: Cow::Owned(reply.map(|r| redact(&answer_text(r))).unwrap_or_default()),
        stop_reason: reply.map(|r| r.stop),
        provider_error: None,
        usage: reply.map(|r| r.usage),
        rate_limit_exhausted: None,
        model: Model {
            provider: &profile.provider,
            id: &profile.id,
            api: profile.api.name(),
            context_window: profile.context_window,
            max_tokens: profile.max_output,
        },
    }
}

fn print(document: &Document<'_>) -> String {
    // Plain data with string keys always serialises.
    serde_json::to_string_pretty(document).unwrap_or_default()
}

#[cfg(test)]
mod tests;
