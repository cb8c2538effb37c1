//! Bodies without sockets.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use foldline_session_model::model_call::TransientCause;
use futures::{StreamExt, stream};

use super::locked;
use crate::LlmError;
use crate::transport::{HttpRequest, HttpResponse, RetryHeaders, Transport};

/// One answer of a [`ReplayTransport`].
#[derive(Clone, Debug)]
pub struct Replay {
    /// The status.
    pub status: u16,
    /// What the headers ask for.
    pub retry: RetryHeaders,
    /// The content type, if the answer has one.
    pub content_type: Option<String>,
    /// The body in chunks, each after a wait.
    pub chunks: Vec<(Duration, Bytes)>,
    /// Whether the body ends after the last chunk.
    pub end: ReplayEnd,
}

/// How a replayed body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayEnd {
    /// It is closed.
    #[default]
    Closed,
    /// It stays open and silent.
    Open,
    /// The connection breaks.
    Broken,
}

impl Replay {
    /// A body that arrives at once.
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::with_status(200, body)
    }

    /// A body under a status.
    pub fn with_status(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            retry: RetryHeaders::default(),
            content_type: Some("text/event-stream".to_owned()),
            chunks: vec![(Duration::ZERO, body.into())],
            end: ReplayEnd::Closed,
        }
    }

    /// A body in chunks, each after the same wait.
    pub fn trickle(body: &[u8], chunk: usize, wait: Duration) -> Self {
        let chunks = body
            .chunks(chunk.max(1))
            .map(|bytes| (wait, Bytes::copy_from_slice(bytes)));
        Self {
            chunks: chunks.collect(),
            ..Self::ok(Bytes::new())
        }
    }

    /// The same answer with a content type.
    #[must_use]
    pub fn with_content_type(mut self, kind: &str) -> Self {
        self.content_type = Some(kind.to_owned());
        self
    }

    /// The same answer with another end.
    #[must_use]
    pub fn ending(mut self, end: ReplayEnd) -> Self {
        self.end = end;
        self
    }
}

/// A transport that plays answers and remembers requests.
#[derive(Default)]
pub struct ReplayTransport {
    answers: Mutex<VecDeque<Replay>>,
    requests: Mutex<Vec<HttpRequest>>,
}

impl ReplayTransport {
    /// A transport that plays these answers in order.
    pub fn new(answers: impl IntoIterator<Item = Replay>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
        }
    }

    /// The bodies that were sent.
    pub fn bodies(&self) -> Vec<String> {
        locked(&self.requests)
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect()
    }

    /// The addresses that were asked.
    pub fn urls(&self) -> Vec<String> {
        locked(&self.requests)
            .iter()
            .map(|request| request.url.to_string())
            .collect()
    }
}

#[async_trait]
impl Transport for ReplayTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, LlmError> {
        locked(&self.requests).push(request);
        let answer = locked(&self.answers).pop_front();
        let Some(answer) = answer else {
            return Err(LlmError::protocol("the transport has no answer left"));
        };
        let chunks = stream::iter(answer.chunks).then(|(wait, bytes)| async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(bytes)
        });
        let end = answer.end;
        let tail = stream::once(async move {
            match end {
                ReplayEnd::Closed => None,
                ReplayEnd::Open => std::future::pending().await,
                ReplayEnd::Broken => Some(Err(LlmError::transient(
                    TransientCause::Network,
                    "the connection broke",
                ))),
            }
        })
        .filter_map(futures::future::ready);
        Ok(HttpResponse {
            status: answer.status,
            retry: answer.retry,
            content_type: answer.content_type,
            body: chunks.chain(tail).boxed(),
        })
    }
}
