//! `*.context_overflow`: what a failed, cut or empty reply says about the size of its request.

use foldline_compaction_core::verbatim::{CallFailure, Outcome as Planned, Region, Retries, View, outcome};
use foldline_llm_client::classify::{
    Content, MessageFields, TransportFacts, UserPatterns, classify, cut_below_cap,
};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, StopReason, Usage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::session::Sessions;
use super::{Case, Outcome, field};

/// The fields of a recorded assistant message that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    stop_reason: StopReason,
    error_message: Option<String>,
    content: Vec<IgnoredAny>,
    #[serde(default)]
    usage: Usage,
}

/// What the recorded transport knew of a failed request.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transport {
    status: Option<u16>,
    provider_code: Option<String>,
    anthropic_error_type: Option<String>,
    openai_error_code: Option<String>,
}

/// The systems that tell an overflow from everything else.
pub(super) fn is_overflow(_: &Sessions, case: &Case) -> Outcome {
    let message = Recorded::deserialize(field(&case.input, "message")?)?;
    let class = class_of(case, &message)?;
    Ok(json!({ "overflow": wants_smaller_request(class.as_ref()) }))
}

/// The system that also names the other failures of a planner, and knows replies that the window cut.
pub(super) fn atomic(_: &Sessions, case: &Case) -> Outcome {
    let message = Recorded::deserialize(field(&case.input, "message")?)?;
    let class = class_of(case, &message)?;
    let cap: Option<Tokens> = optional(&case.params, "desiredMaxOutput")?;
    Ok(json!({
        "overflow": wants_smaller_request(class.as_ref()),
        "recoverableLength": cap.map(|cap| cut_below_cap(&fields(&message), cap)),
        "failureClass": match (message.stop_reason, class) {
            (StopReason::Error, Some(class)) => Some(planner_failure(class)?),
            _ => None,
        },
    }))
}

fn wants_smaller_request(class: Option<&ErrorClass>) -> bool {
    class.is_some_and(ErrorClass::wants_smaller_request)
}

fn class_of(case: &Case, message: &Recorded) -> anyhow::Result<Option<ErrorClass>> {
    let window: Option<Tokens> = optional(&case.params, "contextWindow")?;
    let transport: Transport = optional(&case.params, "transportFailure")?.unwrap_or_default();
    let codes = [
        &transport.provider_code,
        &transport.anthropic_error_type,
        &transport.openai_error_code,
    ];
    let codes: Vec<&str> = codes.into_iter().flatten().map(String::as_str).collect();
    let facts = TransportFacts {
        status: transport.status,
        codes: &codes,
    };
    Ok(classify(
        &fields(message),
        &facts,
        window,
        &UserPatterns::default(),
    ))
}

fn fields(message: &Recorded) -> MessageFields<'_> {
    MessageFields {
        stop: message.stop_reason,
        error_message: message.error_message.as_deref(),
        usage: message.usage,
        content: if message.content.is_empty() {
            Content::Empty
        } else {
            Content::Present
        },
    }
}

/// What a planner's ladder makes of a failed request.
fn planner_failure(class: ErrorClass) -> anyhow::Result<&'static str> {
    let region = Region::guessed_from_text("a line")?;
    let failure = CallFailure {
        class,
        message: String::new(),
        retries: Retries::None,
    };
    Ok(match outcome(&View::whole(&region), &Err(failure), None) {
        Planned::Overflowed { .. } => "overflow",
        Planned::ProviderError { .. } => "provider_error",
        Planned::Limited { category, .. } | Planned::Unusable { category } => category.name(),
        Planned::Ranked { .. } => "ranked",
    })
}

/// A parameter that may be absent or null.
fn optional<T: for<'de> Deserialize<'de>>(params: &Value, name: &str) -> anyhow::Result<Option<T>> {
    let value = params.get(name).unwrap_or(&Value::Null);
    Ok(Option::deserialize(value)?)
}
