//! A model behind one of the three wire formats.

mod reading;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use foldline_session_model::model_call::{
    Api, ErrorClass, LlmRequest, ModelProfile, ReasoningStyle, TransientCause,
};
use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use reading::EMPTY_COMPLETION;

use crate::api::{WireRequest, anthropic, encode, error_from_body};
use crate::classify::{ErrorBody, UserPatterns, retry_hint};
use crate::endpoint::{Endpoint, Scrubber};
use crate::text::clip;
use crate::transport::{HttpRequest, HttpResponse, HttpTransport, Transport};
use crate::{EventStream, LanguageModel, LlmError, NativeCompaction, NativeForm};

/// How long a stream may be silent. `None` switches a limit off.
///
/// Only events that carry something count: keep-alives do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Until the first event, the sending of the request included.
    pub first_event: Option<Duration>,
    /// Between two events.
    pub idle: Option<Duration>,
    /// For the whole call.
    pub total: Option<Duration>,
}

impl StreamLimits {
    /// For turns of an agent: models may think for long.
    pub const TURN: Self = Self {
        first_event: Some(Duration::from_secs(100)),
        idle: Some(Duration::from_secs(120)),
        total: None,
    };

    /// For summaries and plans: somebody waits for them (requirement R12).
    pub const MAINTENANCE: Self = Self {
        first_event: Some(Duration::from_secs(60)),
        idle: Some(Duration::from_secs(60)),
        total: Some(Duration::from_secs(300)),
    };

    /// No limit.
    pub const NONE: Self = Self {
        first_event: None,
        idle: None,
        total: None,
    };
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self::TURN
    }
}

/// A model of a provider.
pub struct ProviderModel {
    profile: ModelProfile,
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
    limits: StreamLimits,
    patterns: UserPatterns,
    native: Option<NativeCompaction>,
}

impl ProviderModel {
    /// A model at this endpoint.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(profile: ModelProfile, endpoint: Endpoint) -> Result<Self, LlmError> {
        let transport = Arc::new(HttpTransport::new(&endpoint)?);
        Ok(Self::with_transport(profile, endpoint, transport))
    }

    /// A model over a given transport: to share connections, or to test without sockets.
    pub fn with_transport(profile: ModelProfile, endpoint: Endpoint, transport: Arc<dyn Transport>) -> Self {
        Self {
            profile,
            endpoint,
            transport,
            limits: StreamLimits::default(),
            patterns: UserPatterns::default(),
            native: None,
        }
    }

    /// The model with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: StreamLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The model with the user's overflow patterns.
    #[must_use]
    pub fn with_patterns(mut self, patterns: UserPatterns) -> Self {
        self.patterns = patterns;
        self
    }

    /// The model with the compaction of its provider, in these forms. Only Responses has any.
    #[must_use]
    pub fn with_native_compaction(mut self, forms: &[NativeForm]) -> Self {
        let speaks = self.profile.api == Api::OpenAiResponses && !forms.is_empty();
        self.native = speaks.then(|| {
            let (profile, endpoint) = (self.profile.clone(), self.endpoint.clone());
            NativeCompaction::with_transport(profile, endpoint, Arc::clone(&self.transport)).with_forms(forms)
        });
        self
    }

    fn http_request(&self, request: &LlmRequest<'_>, body: Vec<u8>) -> HttpRequest {
        let (path, mut headers) = match self.profile.api {
            Api::AnthropicMessages => (
                "/messages",
                vec![("anthropic-version", anthropic::VERSION.to_owned())],
            ),
            Api::OpenAiCompletions => ("/chat/completions", Vec::new()),
            Api::OpenAiResponses => ("/responses", Vec::new()),
        };
        if self.profile.api == Api::AnthropicMessages
            && self.profile.capabilities.reasoning == ReasoningStyle::Budget
            && !request.tools.is_empty()
        {
            headers.push(("anthropic-beta", anthropic::INTERLEAVED_THINKING.to_owned()));
        }
        headers.push(("content-type", "application/json".to_owned()));
        headers.push(("accept", "text/event-stream".to_owned()));
        HttpRequest {
            url: self.endpoint.url(self.profile.api, path),
            headers,
            secret_headers: self.endpoint.secret_headers(),
            body,
        }
    }

    /// Waits for the head of the answer and turns a bad status into an error.
    async fn open(
        &self,
        request: &LlmRequest<'_>,
        wire: WireRequest,
    ) -> Result<(HttpResponse, Vec<Option<usize>>), LlmError> {
        let WireRequest { body, sources } = wire;
        tracing::debug!(model = %self.profile.id, api = %self.profile.api, bytes = body.len(), "sending a request");
        let response = self.transport.send(self.http_request(request, body)).await?;
        // Some proxies report failures under 200, as one JSON document in place of a stream.
        let is_document = response
            .content_type
            .as_deref()
            .is_some_and(|kind| kind.starts_with("application/json"));
        if (200..300).contains(&response.status) && !is_document {
            return match page(&response) {
                Some(kind) => Err(not_the_api(response.status, &format!("a page ({kind})"))),
                None => Ok((response, sources)),
            };
        }
        let mut error = status_error(response, &self.patterns, &self.endpoint.scrubber()).await;
        name_entry(&mut error, request, &sources);
        Err(error)
    }
}

#[async_trait]
impl LanguageModel for ProviderModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn native_compaction(&self) -> Option<&NativeCompaction> {
        self.native.as_ref()
    }

    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let wire = encode(&self.profile, request)?;
        let started = Instant::now();
        let deadline = self.limits.first_event.map(|limit| started + limit);
        let opened = async {
            match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, self.open(request, wire))
                    .await
                    .unwrap_or_else(|_| Err(reading::timeout(TransientCause::FirstEventTimeout))),
                None => self.open(request, wire).await,
            }
        };
        let (response, sources) = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(LlmError::cancelled()),
            opened = opened => opened?,
        };
        let entries = request
            .messages
            .iter()
            .map(|message| message.entry.clone())
            .collect();
        let reading = reading::Reading::new(reading::Setup {
            profile: &self.profile,
            cache: request.cache,
            limits: self.limits,
            started,
            scrubber: self.endpoint.scrubber(),
            body: response.body,
            cancel,
            sources,
            entries,
            room: reading::Room::of(request, &self.profile),
        });
        Ok(reading.into_stream())
    }
}

/// The most bytes of an error body that are read.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// The most of an error's text that is kept: pages of proxies are long, and the reason is at their beginning.
const MAX_MESSAGE: usize = 2000;

/// The kind of an answer that is meant for browsers.
fn page(response: &HttpResponse) -> Option<&str> {
    let kind = response.content_type.as_deref()?.split(';').next()?.trim();
    let pages = ["text/html", "application/xhtml+xml"];
    pages.into_iter().find(|page| kind.eq_ignore_ascii_case(page))
}

/// Somebody answers where the API should be. Asking again would give the same.
fn not_the_api(status: u16, what: &str) -> LlmError {
    LlmError {
        status: Some(status),
        ..LlmError::configuration(format!(
            "HTTP {status}: the answer is {what}, and not that of a model's API"
        ))
    }
}

/// The error that a bad status stands for.
pub(crate) async fn status_error(
    mut response: HttpResponse,
    patterns: &UserPatterns,
    scrubber: &Scrubber,
) -> LlmError {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_ERROR_BODY {
        match response.body.next().await {
            Some(Ok(chunk)) => bytes.extend_from_slice(&chunk),
            // What arrived is enough to go by.
            Some(Err(_)) | None => break,
        }
    }
    bytes.truncate(MAX_ERROR_BODY);
    let status = response.status;
    let body = ErrorBody::parse(&bytes);
    if (200..300).contains(&status) && body.message.is_none() && body.codes.is_empty() {
        return not_the_api(
            status,
            if bytes.trim_ascii().is_empty() {
                "empty"
            } else {
                "some other document"
            },
        );
    }
    let class = if (300..400).contains(&status) {
        LlmError::configuration("").class
    } else {
        match (body.classify(Some(status), patterns), response.retry.should_retry) {
            (class @ ErrorClass::Transient(_), Some(false)) => {
                tracing::debug!(%class, "the server asks not to retry");
                ErrorClass::Other(foldline_session_model::model_call::OtherCause::Unknown)
            }
            (ErrorClass::Other(_), Some(true)) => ErrorClass::Transient(TransientCause::Server),
            (class, _) => class,
        }
    };
    let hint = retry_hint(body.message.as_deref().unwrap_or_default(), SystemTime::now());
    let mut error = error_from_body(class, body);
    error.status = Some(status);
    error.retry_after = response.retry.after.max(hint);
    if (300..400).contains(&status) {
        error.message =
            format!("the server redirects (HTTP {status}); set the base URL to where it is").into();
    } else {
        error.message = format!(
            "HTTP {status}: {}",
            clip(&scrubber.scrub(&error.message), MAX_MESSAGE)
        )
        .into();
    }
    error.code = error.code.map(|code| scrubber.scrub(&code).into());
    error
}

/// Turns the wire position of a refused picture into the request's message and its entry.
fn name_entry(error: &mut LlmError, request: &LlmRequest<'_>, sources: &[Option<usize>]) {
    if let ErrorClass::MediaRejected { message, entry } = &mut error.class {
        *message = message.and_then(|wire| sources.get(wire).copied().flatten());
        *entry = message.and_then(|index| request.messages.get(index)?.entry.clone());
    }
}

#[cfg(test)]
mod tests;
