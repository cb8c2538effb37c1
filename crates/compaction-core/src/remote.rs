//! Compaction by a service: requests and responses as plain data (seed 000, "Summary generation"; spec "Compaction core",
//! 11.1 and 12).
//!
//! A service may write the summary ([`SummarizeRequest`]), or keep the history in a form that only its provider can
//! read ([`openai`]). The second never stands alone: a text summary goes with it, so that every other model can go on.

pub mod openai;

use std::borrow::Cow;
use std::sync::LazyLock;

use foldline_session_model::model_call::{InputBlock, LlmRequest, MessageContent};
use regex::Regex;
use serde::{Deserialize, Serialize};

/// After this many seconds a remote call counts as failed (CD14).
pub const TIMEOUT_SECONDS: u64 = 180;

/// The body that a remote summariser gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummarizeRequest {
    /// The system text.
    pub system_prompt: String,
    /// Transcript and instructions.
    pub prompt: String,
}

/// The body that it returns; anything else in it is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummarizeResponse {
    /// The summary.
    pub summary: String,
}

/// Why a remote compaction gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The service refused.
    #[error("remote compaction failed ({status} {reason})")]
    Status {
        /// The HTTP status.
        status: u16,
        /// Its text.
        reason: String,
    },
    /// The answer is no JSON of the expected form.
    #[error("the remote compaction returned something unreadable: {0}")]
    Malformed(String),
    /// The answer has no summary.
    #[error("the remote compaction returned no summary")]
    MissingSummary,
    /// The answer has no item that stands for the history.
    #[error(
        "the remote compaction returned no compaction item among {outputs} (kept {kept} of types {})",
        types.join(", ")
    )]
    MissingItem {
        /// How many items there were.
        outputs: usize,
        /// How many could be kept.
        kept: usize,
        /// Their types.
        types: Vec<String>,
    },
    /// The history does not fit, even without what can be left out.
    #[error("the history is too large for the service: {tokens} tokens, {budget} fit")]
    TooLarge {
        /// Its estimate.
        tokens: u64,
        /// What fits.
        budget: u64,
    },
    /// There is nothing to send.
    #[error("there is no history to compact")]
    Empty,
}

impl SummarizeRequest {
    /// The same question as a request to a model.
    pub fn of(request: &LlmRequest<'_>) -> Self {
        let texts = request
            .messages
            .iter()
            .flat_map(|message| match &message.content {
                MessageContent::User { blocks } => blocks.as_slice(),
                _ => &[],
            });
        let prompt: Vec<&str> = texts
            .filter_map(|block| match block {
                InputBlock::Text(text) => Some(&**text),
                InputBlock::Image(_) => None,
            })
            .collect();
        let system: Vec<&str> = request.system.iter().map(|text| &**text).collect();
        Self {
            system_prompt: without_control_tokens(&system.join("\n\n")).into_owned(),
            prompt: without_control_tokens(&prompt.join("\n")).into_owned(),
        }
    }
}

/// The summary in a response.
///
/// # Errors
/// [`RemoteError`] for a refusal, and for anything but an object with a summary.
pub fn summary_of(status: u16, reason: &str, body: &str) -> Result<String, RemoteError> {
    if !(200..300).contains(&status) {
        return Err(RemoteError::Status {
            status,
            reason: reason.to_owned(),
        });
    }
    let body: Body<'_> = serde_json::from_str(body).map_err(|e| RemoteError::Malformed(e.to_string()))?;
    let summary = body
        .summary
        .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    summary.ok_or(RemoteError::MissingSummary)
}

#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    summary: Option<&'b serde_json::value::RawValue>,
}

/// Names between `<|` and `|>` that some models read as control tokens.
static CONTROL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"<(\|(?:[A-Za-z_][A-Za-z0-9_]*|(?:system|developer|user|assistant|tool)(?: to=[A-Za-z0-9_.]+)?)\|>)",
    )
    .ok()
});

/// The text with a zero-width space in each control token, so that no model takes it for one.
pub fn without_control_tokens(text: &str) -> Cow<'_, str> {
    match CONTROL.as_ref() {
        Some(control) if text.contains("<|") => control.replace_all(text, "<\u{200B}$1"),
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_the_form_of_the_service() {
        let request = LlmRequest::from_prompt("be brief", "text <|channel|> and <| x |> a<|b");
        let json = serde_json::to_string(&SummarizeRequest::of(&request)).unwrap();
        assert_eq!(
            json,
            "{\"systemPrompt\":\"be brief\",\"prompt\":\"text <\u{200B}|channel|> and <| x |> a<|b\"}"
        );
        let twice = without_control_tokens("<|tool to=a.b|>").into_owned();
        assert_eq!(twice, "<\u{200B}|tool to=a.b|>");
        assert_eq!(without_control_tokens(&twice), twice);
    }

    #[test]
    fn responses_give_a_summary_or_say_why_not() {
        assert_eq!(
            summary_of(200, "OK", r#"{"summary":"s","shortSummary":1}"#),
            Ok("s".to_owned())
        );
        let status = summary_of(400, "Bad Request", "").unwrap_err();
        assert_eq!(status.to_string(), "remote compaction failed (400 Bad Request)");
        assert!(matches!(
            summary_of(200, "", "<html>"),
            Err(RemoteError::Malformed(_))
        ));
        for body in ["{}", r#"{"summary":1}"#, r#"{"summary":null}"#] {
            assert_eq!(
                summary_of(200, "", body),
                Err(RemoteError::MissingSummary),
                "{body}"
            );
        }
    }
}
