//! Heads: what is sent, bad statuses, headers about waits, redirects.

use std::sync::Arc;
use std::time::Duration;

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::{
    Jitter, LanguageModel, NativeCompaction, ProviderModel, RemoteSummary, RetryPolicy, RetryingModel,
};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Api, ErrorClass, OtherCause, TransientCause};
use secrecy::SecretString;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wiremock::matchers::{body_string_contains, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{STREAMS, model, profile, request};

const PATHS: [&str; 3] = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];

fn stream(body: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

#[tokio::test]
async fn each_api_gets_its_path_and_its_key() {
    let rows = [
        ("x-api-key", "test-key-1"),
        ("authorization", "Bearer test-key-1"),
        ("authorization", "Bearer test-key-1"),
    ];
    for (((api, body), path_of), (name, value)) in STREAMS.into_iter().zip(PATHS).zip(rows) {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path(path_of))
            .and(header(name, value))
            .and(header("content-type", "application/json"))
            .and(header("x-extra", "more"))
            .and(body_string_contains("\"stream\":true"))
            .respond_with(stream(body))
            .expect(1)
            .mount(&server)
            .await;
        let endpoint = Endpoint::new(
            &server.uri(),
            Auth::for_api(api, SecretString::from("test-key-1")),
            PlainHttp::LoopbackOnly,
        )
        .unwrap()
        .with_header("x-extra", SecretString::from("more"));
        let model = ProviderModel::new(profile(api), endpoint).unwrap();
        model
            .complete(&request(), CancellationToken::new())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn bad_statuses_through_every_api() {
    let rows = [
        (429, ErrorClass::RateLimit),
        (529, ErrorClass::Transient(TransientCause::Overloaded)),
        (500, ErrorClass::Transient(TransientCause::Server)),
        (401, ErrorClass::Auth),
        (413, ErrorClass::BodyTooLarge { limit: None }),
        (404, ErrorClass::Other(OtherCause::NotFound)),
        (422, ErrorClass::Other(OtherCause::InvalidRequest)),
    ];
    for (api, _) in STREAMS {
        for (status, expected) in &rows {
            let server = MockServer::start().await;
            let answer = ResponseTemplate::new(*status)
                .insert_header("retry-after", "3")
                .set_body_string(r#"{"error":{"message":"no"}}"#);
            Mock::given(method("POST"))
                .respond_with(answer)
                .expect(1)
                .mount(&server)
                .await;
            let error = model(api, &server.uri())
                .complete(&request(), CancellationToken::new())
                .await
                .unwrap_err();
            assert_eq!(&error.class, expected, "{api} {status}");
            assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
        }
    }
}

#[tokio::test]
async fn a_real_overflow_is_one_with_its_numbers() {
    let body = r#"{"error":{"code":400,"message":"request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9031,"n_ctx":8192}}"#;
    for (api, _) in STREAMS {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(400).set_body_string(body))
            .mount(&server)
            .await;
        let error = model(api, &server.uri())
            .complete(&request(), CancellationToken::new())
            .await
            .unwrap_err();
        let expected = ErrorClass::Overflow {
            limit: Some(Tokens(8192)),
            input: Some(Tokens(9031)),
            output: None,
        };
        assert_eq!(error.class, expected, "{api}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_wait_is_waited_for() {
    let (api, body) = STREAMS[1];
    let server = MockServer::start().await;
    let later = ResponseTemplate::new(429)
        .insert_header("retry-after-ms", "300")
        .set_body_string("{}");
    Mock::given(method("POST"))
        .respond_with(later)
        .up_to_n_times(1)
        .expect(1)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .respond_with(stream(body))
        .expect(1)
        .mount(&server)
        .await;
    let policy = RetryPolicy {
        base_delay: Duration::from_millis(1),
        jitter: Jitter::None,
        ..RetryPolicy::TURN
    };
    let retrying = RetryingModel::new(Arc::new(model(api, &server.uri())), policy);
    let started = Instant::now();
    retrying
        .complete(&request(), CancellationToken::new())
        .await
        .unwrap();
    assert!(
        started.elapsed() >= Duration::from_millis(300),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn redirects_carry_nothing_to_another_host() {
    for (api, _) in STREAMS {
        let other = MockServer::start().await;
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(200))
            .expect(0)
            .mount(&other)
            .await;
        Mock::given(method("GET"))
            .respond_with(ResponseTemplate::new(200))
            .expect(0)
            .mount(&other)
            .await;
        for status in [301, 302, 303, 307, 308] {
            let server = MockServer::start().await;
            let away =
                ResponseTemplate::new(status).insert_header("location", format!("{}/v1/x", other.uri()));
            Mock::given(method("POST"))
                .respond_with(away)
                .expect(1)
                .mount(&server)
                .await;
            let endpoint = Endpoint::new(
                &server.uri(),
                Auth::for_api(api, SecretString::from("test-key-1")),
                PlainHttp::LoopbackOnly,
            )
            .unwrap();
            let model = ProviderModel::new(profile(api), endpoint).unwrap();
            let error = model
                .complete(&request(), CancellationToken::new())
                .await
                .unwrap_err();
            assert_eq!(
                error.class,
                ErrorClass::Other(OtherCause::Configuration),
                "{api} {status}"
            );
        }
    }
}

#[tokio::test]
async fn the_remote_summary_endpoint() {
    let cancel = CancellationToken::new();
    let endpoint = |server: &MockServer| {
        Endpoint::new(
            &format!("{}/summarize?v=1", server.uri()),
            Auth::None,
            PlainHttp::LoopbackOnly,
        )
        .unwrap()
    };
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/summarize"))
        .and(body_string_contains(
            "{\"systemPrompt\":\"s\",\"prompt\":\"a <\u{200b}|im_end|>\"}",
        ))
        .respond_with(
            ResponseTemplate::new(200).set_body_string(r#"{"summary":"It went well.","shortSummary":"ok"}"#),
        )
        .expect(1)
        .mount(&server)
        .await;
    let remote = RemoteSummary::new(endpoint(&server)).unwrap();
    assert_eq!(
        remote.summarize("s", "a <|im_end|>", &cancel).await.unwrap(),
        "It went well."
    );

    for (status, body, expected) in [
        (500, "", ErrorClass::Transient(TransientCause::Server)),
        (200, "{}", ErrorClass::Other(OtherCause::Protocol)),
        (
            200,
            r#"{"summary":"  "}"#,
            ErrorClass::Other(OtherCause::Protocol),
        ),
        (200, r#"{"summary":7}"#, ErrorClass::Other(OtherCause::Protocol)),
        (200, "<html>", ErrorClass::Other(OtherCause::Protocol)),
    ] {
        let server = MockServer::start().await;
        // One attempt, whatever the failure.
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(status).set_body_string(body))
            .expect(1)
            .mount(&server)
            .await;
        let remote = RemoteSummary::new(endpoint(&server)).unwrap();
        assert_eq!(
            remote.summarize("s", "p", &cancel).await.unwrap_err().class,
            expected,
            "{status} {body}"
        );
    }
}

#[tokio::test]
async fn native_compaction_speaks_to_its_own_path() {
    let server = MockServer::start().await;
    let answer =
        r#"{"output":[{"type":"compaction","encrypted_content":"Q29t"}],"usage":{"input_tokens":9}}"#;
    Mock::given(method("POST"))
        .and(path("/v1/responses/compact"))
        .and(body_string_contains(r#""instructions":"Be short.""#))
        .and(body_string_contains(r#""input":[{"role":"user""#))
        .respond_with(ResponseTemplate::new(200).set_body_string(answer))
        .expect(1)
        .mount(&server)
        .await;
    let endpoint = Endpoint::new(&server.uri(), Auth::None, PlainHttp::LoopbackOnly).unwrap();
    let native = NativeCompaction::new(profile(Api::OpenAiResponses), endpoint).unwrap();
    let history = native
        .compact(&request(), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(history.items.len(), 1);
    assert_eq!(history.origin.model, "m");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert_eq!(
        native.compact(&request(), &cancelled).await.unwrap_err().class,
        ErrorClass::Cancelled
    );
}
