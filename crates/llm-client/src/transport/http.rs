use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use foldline_session_model::model_call::TransientCause;
use futures::{StreamExt, TryStreamExt};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;

use super::{HttpRequest, HttpResponse, RetryHeaders, Transport};
use crate::LlmError;
use crate::classify::{retry_hint, until_http_date};
use crate::endpoint::Endpoint;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(15);

/// HTTP over sockets. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: reqwest::Client,
}

impl HttpTransport {
    /// A transport for endpoints like this one.
    ///
    /// Redirects are never followed: they would carry the transcript, and with some headers the key, to a
    /// host that the user did not name. Proxies of the environment are used, but not to this machine.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(endpoint: &Endpoint) -> Result<Self, LlmError> {
        #[cfg(feature = "rustls")]
        install_tls_provider();
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_nodelay(true)
            .user_agent(concat!("foldline/", env!("CARGO_PKG_VERSION")));
        if endpoint.is_loopback() {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| LlmError::configuration(describe(error)))?;
        Ok(Self { client })
    }
}

/// reqwest is built without a provider of cryptography; ring is ours unless the program chose another.
#[cfg(feature = "rustls")]
fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error only says that somebody else was faster, and theirs is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, LlmError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &request.headers {
            headers.insert(header_name(name)?, header_value(value)?);
        }
        for (name, value) in &request.secret_headers {
            let mut value = header_value(value.expose_secret())?;
            value.set_sensitive(true);
            headers.insert(header_name(name)?, value);
        }
        let response = self
            .client
            .post(request.url)
            .headers(headers)
            .body(request.body)
            .send()
            .await
            .map_err(|error| network_error(error, "no answer"))?;
        let status = response.status().as_u16();
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let retry = retry_headers(status, response.headers(), SystemTime::now());
        let body = response
            .bytes_stream()
            .map_err(|error| network_error(error, "the connection broke"))
            .boxed();
        Ok(HttpResponse {
            status,
            retry,
            content_type,
            body,
        })
    }
}

fn header_name(name: &str) -> Result<HeaderName, LlmError> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| LlmError::configuration(format!("{name:?} is not the name of a header")))
}

fn header_value(value: &str) -> Result<HeaderValue, LlmError> {
    HeaderValue::from_str(value.trim())
        .map_err(|_| LlmError::configuration("a key or header holds characters that a header cannot carry"))
}

fn network_error(error: reqwest::Error, what: &str) -> LlmError {
    LlmError::transient(TransientCause::Network, format!("{what}: {}", describe(error)))
}

/// The causes of an error in one line, without the address: it may hold a key.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

fn retry_headers(status: u16, headers: &HeaderMap, now: SystemTime) -> RetryHeaders {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let seconds = |value: &str| {
        value
            .parse::<f64>()
            .ok()
            .and_then(|n| Duration::try_from_secs_f64(n).ok())
    };
    let milliseconds = text("retry-after-ms")
        .and_then(|value| value.parse::<f64>().ok())
        .and_then(|n| Duration::try_from_secs_f64(n / 1000.0).ok());
    let after = text("retry-after").and_then(|value| seconds(value).or_else(|| until_http_date(value, now)));
    // Servers send these with every answer: they say how long to wait only when the rate was the reason.
    let resets = ["x-ratelimit-reset-ms", "x-ratelimit-reset"]
        .into_iter()
        .filter(|_| status == 429)
        .filter_map(|name| retry_hint(&format!("{name}={}", text(name)?), now))
        .max();
    let should_retry = match text("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    RetryHeaders {
        after: milliseconds.max(after).max(resets),
        should_retry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_headers() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for (rows, expected) in [
            (&[("retry-after", "7")][..], Some(7000)),
            (&[("retry-after-ms", "250")], Some(250)),
            (&[("retry-after-ms", "9000"), ("retry-after", "3")], Some(9000)),
            (&[("retry-after", "Fri, 15 Jan 2027 08:00:05 GMT")], Some(5000)),
            (&[("retry-after", "Fri, 15 Jan 2027 07:00:05 GMT")], Some(0)),
            (&[("retry-after", "-4")], None),
            (&[("retry-after", "soon")], None),
            (&[("x-ratelimit-reset", "12")], Some(12_000)),
            (&[("x-ratelimit-reset", "1800000009")], Some(9000)),
            (&[("x-ratelimit-reset", "1800000009000")], Some(9000)),
            (
                &[("x-ratelimit-reset-ms", "1800000002500"), ("retry-after", "1")],
                Some(2500),
            ),
            (&[("x-ratelimit-reset", "1h")], None),
            (&[], None),
        ] {
            let headers: HeaderMap = rows
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            assert_eq!(
                retry_headers(429, &headers, now).after,
                expected.map(Duration::from_millis),
                "{rows:?}"
            );
            let resets = rows.iter().any(|(name, _)| name.contains("reset"));
            if resets {
                let other = retry_headers(500, &headers, now).after;
                assert!(
                    other.is_none_or(|wait| wait == Duration::from_secs(1)),
                    "{rows:?}"
                );
            }
        }
    }
}
