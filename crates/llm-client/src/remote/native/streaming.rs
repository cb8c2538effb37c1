//! The streaming form of native compaction: a live Responses request whose last item asks for a compaction,
//! and a stream that must hold exactly one (spec "Compaction core", 13).

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use foldline_session_model::model_call::{
    ErrorClass, LlmRequest, MessageContent, OtherCause, RawJson, TransientCause, Usage,
};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::retained::retain;
use super::{NativeCompaction, NativeHistory, OutputItem, inert};
use crate::LlmError;
use crate::api::responses::encode::{Item, compaction_body, items};
use crate::api::responses::whole_response;
use crate::api::{bad_event, stream_ended, stream_error};
use crate::classify::UserPatterns;
use crate::provider::status_error;
use crate::remote::LIMIT;
use crate::sse::{SseEvent, decode};
use crate::transport::HttpRequest;

/// Attempts after the first one, and the first wait between them; the second one is twice as long.
const EXTRA_ATTEMPTS: usize = 2;
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest wait that a provider may ask for before the next form is tried instead.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

impl NativeCompaction {
    /// Has the provider compact a conversation, in the streaming form: up to three attempts of three minutes
    /// each. The history is what users said, newest first within 64,000 tokens, and the compaction behind it.
    ///
    /// # Errors
    /// When the provider fails, the stream ends early, or it holds no or several compactions. A cancel is an
    /// error of its own class, so that it is not mistaken for a reason to summarise locally.
    pub async fn compact_streaming(
        &self,
        request: &LlmRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<NativeHistory, LlmError> {
        let (mut input, mut sources) = (Vec::new(), Vec::new());
        items(&self.profile, request, &mut input, &mut sources);
        // Texts that only stand in the user's place (results without a call) are not what users said.
        let said: Vec<_> = input
            .iter()
            .zip(&sources)
            .filter(|(_, source)| {
                let message = source.and_then(|source| request.messages.get(source));
                message.is_some_and(|message| {
                    matches!(
                        message.content,
                        MessageContent::User { .. } | MessageContent::Opaque { .. }
                    )
                })
            })
            .map(|(item, _)| item)
            .collect();
        let retained = retain(&said)?;
        let written = inert(&input)?;
        let input = written.iter().map(|item| Item::Raw(item)).collect();
        let body = compaction_body(&self.profile, request, input)?;

        let backoff = ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(FIRST_WAIT)
            .with_max_times(EXTRA_ATTEMPTS);
        let attempts = (|| self.bounded_attempt(&body))
            .retry(backoff)
            .sleep(tokio::time::sleep)
            .when(may_pass)
            .adjust(|error: &LlmError, chosen| {
                chosen.map(|chosen| error.retry_after.map_or(chosen, |asked| asked.max(chosen)))
            });
        let collected = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(LlmError::cancelled()),
            collected = attempts => collected?,
        };
        let mut items = retained;
        items.push(collected.compaction);
        Ok(NativeHistory {
            origin: self.origin(),
            compaction: items.len() - 1,
            items,
            summary: collected.summary,
            usage: collected.usage,
        })
    }

    async fn bounded_attempt(&self, body: &[u8]) -> Result<Collected, LlmError> {
        let attempt = tokio::time::timeout(LIMIT, self.attempt(body));
        let scrubber = self.endpoint.scrubber();
        match attempt.await {
            Ok(outcome) => outcome.map_err(|mut error| {
                error.message = scrubber.scrub(&error.message).into();
                error.code = error.code.map(|code| scrubber.scrub(&code).into());
                error
            }),
            Err(_) => Err(LlmError::transient(
                TransientCause::TotalTimeout,
                "the native compaction did not end in time",
            )),
        }
    }

    async fn attempt(&self, body: &[u8]) -> Result<Collected, LlmError> {
        let request = HttpRequest {
            url: self.endpoint.url(self.profile.api, "/responses"),
            headers: vec![
                ("content-type", "application/json".to_owned()),
                ("accept", "text/event-stream".to_owned()),
            ],
            secret_headers: self.endpoint.secret_headers(),
            body: body.to_vec(),
        };
        let response = self.transport.send(request).await?;
        let is_document = response
            .content_type
            .as_deref()
            .is_some_and(|kind| kind.starts_with("application/json"));
        if !(200..300).contains(&response.status) || is_document {
            let scrubber = self.endpoint.scrubber();
            return Err(status_error(response, &UserPatterns::default(), &scrubber).await);
        }
        let mut events = std::pin::pin!(decode(response.body));
        let mut collecting = Collecting::default();
        while let Some(event) = events.next().await {
            if let Some(collected) = collecting.event(&event?)? {
                return Ok(collected);
            }
        }
        Err(stream_ended(
            "the compaction stream ended before response.completed",
        ))
    }
}

/// Failures that a second attempt may not meet: what passes by itself, our own time limit, and streams that
/// were garbled on the way.
fn may_pass(error: &LlmError) -> bool {
    let passes = matches!(
        error.class,
        ErrorClass::Transient(_) | ErrorClass::RateLimit | ErrorClass::Other(OtherCause::Protocol)
    );
    passes && error.retry_after.is_none_or(|asked| asked <= LONGEST_WAIT)
}

/// The one compaction of a stream.
struct Collected {
    compaction: RawJson<'static>,
    summary: Option<String>,
    usage: Usage,
}

/// A stream while it is read.
#[derive(Default)]
struct Collecting {
    compactions: Vec<(RawJson<'static>, Option<String>)>,
    items: usize,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

impl Collecting {
    /// Takes one event; the result is there once the response is whole.
    fn event(&mut self, event: &SseEvent) -> Result<Option<Collected>, LlmError> {
        if event.data.trim() == "[DONE]" {
            return Ok(None);
        }
        let parsed: Event<'_> = serde_json::from_str(&event.data).map_err(|error| bad_event(&error))?;
        let kind = parsed.kind.as_deref().unwrap_or(&event.name);
        match kind {
            "response.output_item.done" => {
                if let Some(raw) = parsed.item {
                    self.items += 1;
                    let item = serde_json::from_str::<OutputItem<'_>>(raw.get());
                    if let Some(item) = item.ok().filter(OutputItem::is_compaction) {
                        self.compactions
                            .push((RawJson::from(raw.to_owned()), item.summary_text()));
                    }
                }
                Ok(None)
            }
            "response.completed" | "response.done" | "response.failed" | "response.incomplete" => {
                let raw = parsed.response.ok_or_else(|| {
                    LlmError::protocol("the final event of the compaction stream has no response")
                })?;
                let usage = whole_response(kind, raw)?;
                let found = self.compactions.len();
                let (Some((compaction, summary)), 1) = (self.compactions.pop(), found) else {
                    // The provider answered in full: asking again would give the same.
                    return Err(LlmError::new(
                        ErrorClass::Other(OtherCause::Unknown),
                        format!(
                            "the compaction stream holds {found} compactions among {} items, not one",
                            self.items
                        ),
                    ));
                };
                Ok(Some(Collected {
                    compaction,
                    summary,
                    usage,
                }))
            }
            "error" => Err(stream_error(&event.data)),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
