//! Summaries that somebody else makes: the generic summary endpoint of the seeds, and the native
//! compaction of OpenAI Responses (spec "Compaction core", 11.1, 12 and 13).

mod native;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use foldline_session_model::model_call::{ErrorClass, TransientCause};
use futures::StreamExt;
use regex::Regex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::LlmError;
use crate::classify::UserPatterns;
use crate::endpoint::{Endpoint, Scrubber};
use crate::provider::status_error;
use crate::transport::{HttpRequest, HttpTransport, Transport};

pub use native::{NativeCompaction, NativeForm, NativeHistory, Tried};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(180);

/// The most bytes of an answer.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// An endpoint that takes a prompt and gives a summary (seed 000, "Remote summarization modes").
pub struct RemoteSummary {
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryBody<'a> {
    system_prompt: &'a str,
    prompt: &'a str,
}

#[derive(Deserialize)]
struct SummaryAnswer {
    summary: Option<String>,
}

impl RemoteSummary {
    /// An endpoint at exactly this address.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(endpoint: Endpoint) -> Result<Self, LlmError> {
        let transport = Arc::new(HttpTransport::new(&endpoint)?);
        Ok(Self::with_transport(endpoint, transport))
    }

    /// An endpoint over a given transport.
    pub fn with_transport(endpoint: Endpoint, transport: Arc<dyn Transport>) -> Self {
        Self { endpoint, transport }
    }

    /// Asks for a summary. One attempt.
    ///
    /// # Errors
    /// When the endpoint fails, does not answer in three minutes, or answers without a summary. The caller
    /// falls back to a model of its own.
    pub async fn summarize(
        &self,
        system_prompt: &str,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<String, LlmError> {
        let body = SummaryBody {
            system_prompt: &neutralise(system_prompt),
            prompt: &neutralise(prompt),
        };
        let request = HttpRequest {
            url: self.endpoint.exact_url(),
            headers: vec![("content-type", "application/json".to_owned())],
            secret_headers: self.endpoint.secret_headers(),
            body: crate::api::to_bytes(&body)?,
        };
        let answer = post(
            self.transport.as_ref(),
            request,
            &self.endpoint.scrubber(),
            cancel,
        )
        .await?;
        let answer: SummaryAnswer = serde_json::from_slice(&answer)
            .map_err(|error| LlmError::protocol(format!("the remote summary cannot be read: {error}")))?;
        match answer.summary {
            Some(summary) if !summary.trim().is_empty() => Ok(summary),
            _ => Err(LlmError::protocol(
                "the remote endpoint answered without a summary",
            )),
        }
    }
}

/// Sends a request whose answer is one JSON document.
async fn post(
    transport: &dyn Transport,
    request: HttpRequest,
    scrubber: &Scrubber,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, LlmError> {
    let exchange = async {
        let mut response = transport.send(request).await?;
        if !(200..300).contains(&response.status) {
            return Err(status_error(response, &UserPatterns::default(), scrubber).await);
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.body.next().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() > MAX_ANSWER {
                return Err(LlmError::protocol("the answer is larger than 64 MiB"));
            }
        }
        Ok(bytes)
    };
    let bounded = async {
        tokio::time::timeout(LIMIT, exchange).await.unwrap_or_else(|_| {
            Err(LlmError::new(
                ErrorClass::Transient(TransientCause::TotalTimeout),
                "the remote endpoint did not answer in time",
            ))
        })
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(LlmError::cancelled()),
        answer = bounded => answer,
    }
}

/// Control tokens of chat templates, as a transcript may contain them.
static CONTROL_TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    crate::classify::constant_pattern(
        r"<(\|(?:[a-z_][a-z0-9_]*|(?:system|developer|user|assistant|tool) to=[^|>\s]+)\|>)",
    )
});

/// Makes control tokens of chat templates inert: a zero-width space after their `<`. Other text is left
/// alone, and doing it twice changes nothing.
pub fn neutralise(text: &str) -> String {
    CONTROL_TOKEN.replace_all(text, "<\u{200b}$1").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_tokens_become_inert() {
        for (text, expected) in [
            ("a <|im_start|>system", "a <\u{200b}|im_start|>system"),
            ("<|assistant to=tool|>", "<\u{200b}|assistant to=tool|>"),
            ("a <| b |> c", "a <| b |> c"),
            ("x <|y", "x <|y"),
            ("plain", "plain"),
        ] {
            let once = neutralise(text);
            assert_eq!(once, expected);
            assert_eq!(neutralise(&once), once);
        }
    }
}
