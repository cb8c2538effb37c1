//! The layer below providers: one POST, one body of bytes. Tests put a body in place of a socket.

mod http;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use reqwest::Url;
use secrecy::SecretString;

use crate::LlmError;

pub use http::HttpTransport;

/// A request as bytes.
#[derive(Debug)]
pub struct HttpRequest {
    /// Where to.
    pub url: Url,
    /// Headers without secrets.
    pub headers: Vec<(&'static str, String)>,
    /// Headers whose values must never be shown.
    pub secret_headers: Vec<(String, SecretString)>,
    /// JSON.
    pub body: Vec<u8>,
}

/// The head of an answer and its body.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// What the server wants clients to do about failures.
    pub retry: RetryHeaders,
    /// The content type, if given.
    pub content_type: Option<String>,
    /// The bytes as they arrive; dropping it closes the connection.
    pub body: BoxStream<'static, Result<Bytes, LlmError>>,
}

/// The headers that are kept of a failed answer; no others are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryHeaders {
    /// `retry-after-ms`, `retry-after` (seconds or a date) and the reset times of rate limits: the longest.
    pub after: Option<Duration>,
    /// `x-should-retry`, which overrides the status.
    pub should_retry: Option<bool>,
}

/// Sends requests.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends one request and waits for the head of the answer.
    ///
    /// # Errors
    /// When no answer came. An answer with a bad status is no error here.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, LlmError>;
}
