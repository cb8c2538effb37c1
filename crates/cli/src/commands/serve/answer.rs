//! Answers: JSON in every case, errors in the form that all commands use.

use foldline_session_model::model_call::ErrorClass;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::summarizer::Failure;

pub(super) type Answer = Response<Full<Bytes>>;

#[derive(Serialize)]
struct Summary<'s> {
    summary: &'s str,
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct ErrorDocument<'e> {
    error: ErrorFields<'e>,
}

#[derive(Serialize)]
struct ErrorFields<'e> {
    kind: &'static str,
    message: &'e str,
    hint: Option<&'static str>,
}

/// Why a request got no summary.
#[derive(Debug)]
pub(super) enum Refusal {
    WrongHost,
    NotFound,
    WrongMethod { allowed: &'static str },
    NotJson,
    TooLarge { limit: usize },
    TooSlow,
    Unreadable,
    Malformed(&'static str),
    Busy,
    Failed(Failure),
}

pub(super) fn summary(text: &str) -> Answer {
    json(StatusCode::OK, &Summary { summary: text })
}

pub(super) fn health() -> Answer {
    json(
        StatusCode::OK,
        &Health {
            status: "ok",
            version: env!("CARGO_PKG_VERSION"),
        },
    )
}

pub(super) fn refusal(refusal: &Refusal) -> Answer {
    let text;
    let (status, kind, message, hint) = match refusal {
        Refusal::WrongHost => (
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "this server is not known by that name",
            Some("call it by its address, or allow the name with --allow-host"),
        ),
        Refusal::NotFound => (
            StatusCode::NOT_FOUND,
            "not_found",
            "there is nothing at this address",
            Some("POST /summarize or GET /health"),
        ),
        Refusal::WrongMethod { allowed } => {
            text = format!("this address takes {allowed} only");
            (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &*text, None)
        }
        Refusal::NotJson => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body must be of type application/json",
            None,
        ),
        Refusal::TooLarge { limit } => {
            text = format!("the body is larger than {} MiB", limit >> 20);
            (StatusCode::PAYLOAD_TOO_LARGE, "too_large", &*text, None)
        }
        Refusal::TooSlow => (
            StatusCode::REQUEST_TIMEOUT,
            "timeout",
            "the body did not arrive in time",
            None,
        ),
        Refusal::Unreadable => (StatusCode::BAD_REQUEST, "bad_request", "the body broke off", None),
        Refusal::Malformed(what) => (StatusCode::BAD_REQUEST, "bad_request", *what, None),
        Refusal::Busy => (
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "too many requests are waiting",
            Some("try again later"),
        ),
        Refusal::Failed(failure) => failed(failure),
    };
    let mut answer = json(
        status,
        &ErrorDocument {
            error: ErrorFields { kind, message, hint },
        },
    );
    let headers = answer.headers_mut();
    match refusal {
        Refusal::WrongMethod { allowed } => {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        // What is left of the body is not read.
        Refusal::TooLarge { .. } | Refusal::TooSlow | Refusal::Unreadable => {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    answer
}

fn failed(failure: &Failure) -> (StatusCode, &'static str, &str, Option<&'static str>) {
    match failure {
        Failure::NoConversation => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "no_conversation",
            "the prompt has no <conversation> block, and no model is there to read anything else",
            Some("start the server with --model"),
        ),
        Failure::Model(error) if error.class.wants_smaller_request() => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "too_long_for_model",
            &error.message,
            Some("the extractive summariser has no such limit"),
        ),
        Failure::Model(error) => {
            let hint = match error.class {
                ErrorClass::Auth => Some("check the key of the server's model"),
                ErrorClass::RateLimit | ErrorClass::Transient(_) => Some("try again later"),
                _ => None,
            };
            (StatusCode::BAD_GATEWAY, "provider", &error.message, hint)
        }
        Failure::Timeout => (
            StatusCode::GATEWAY_TIMEOUT,
            "timeout",
            "there was no summary in time",
            Some("try again later"),
        ),
        Failure::Stopping => (
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "the server is about to end",
            None,
        ),
        Failure::Broken => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "failed",
            "the summary could not be made",
            None,
        ),
    }
}

fn json(status: StatusCode, document: &impl Serialize) -> Answer {
    // Plain data with string keys always serialises.
    let body = serde_json::to_vec(document).unwrap_or_default();
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
