//! The layer below providers: one POST, one body of bytes. Tests put a body in place of a socket.

mod http;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use foldline_session_model::ByteLen;
use futures::stream::BoxStream;
use reqwest::Url;
use secrecy::SecretString;

use crate::LlmError;

pub use http::HttpTransport;

/// A request as bytes.
///
/// `Debug` shows the address without its query, and of headers and body only that they are there.
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

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.url.clone();
        shown.set_query(None);
        let names: Vec<&str> = self
            .secret_headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        f.debug_struct("HttpRequest")
            .field("url", &shown.as_str())
            .field("headers", &self.headers)
            .field("secret_headers", &names)
            .field(
                "body",
                &ByteLen(u64::try_from(self.body.len()).unwrap_or(u64::MAX)),
            )
            .finish()
    }
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
    /// `retry-after-ms`, `retry-after` (seconds or a date) and, where a rate was exceeded, when it starts anew:
    /// the longest.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_shows_nothing_private() {
        let request = HttpRequest {
            url: Url::parse("https://h/v1/x?api-key=querysecret").unwrap(),
            headers: vec![("accept", "x".to_owned())],
            secret_headers: vec![("x-api-key".to_owned(), SecretString::from("keysecret"))],
            body: b"the transcript".to_vec(),
        };
        let shown = format!("{request:?}");
        assert!(
            !shown.contains("secret\"") && !shown.contains("querysecret"),
            "{shown}"
        );
        assert!(
            !shown.contains("keysecret") && !shown.contains("transcript"),
            "{shown}"
        );
        assert!(
            shown.contains("https://h/v1/x") && shown.contains("x-api-key"),
            "{shown}"
        );
    }
}
