//! A provider model over replayed bodies and a clock that stands still unless it is waited for.

use std::sync::Arc;
use std::time::Duration;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, ErrorClass, Image, InputBlock, LlmRequest, MessageContent, ModelProfile, ModelRef, OtherCause,
    Prices, RequestMessage, StopReason, TransientCause,
};
use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::classify::{Content, MessageFields, TransportFacts};
use crate::endpoint::{Auth, PlainHttp};
use crate::testing::{Replay, ReplayEnd, ReplayTransport};
use crate::transport::RetryHeaders;
use crate::{EndpointPlace, LlmEvent, RetryClass, StreamLimits, TurnEnd, retry_class};

use super::*;

const STREAMS: [(Api, &str); 3] = [
    (
        Api::AnthropicMessages,
        include_str!("../../fixtures/anthropic.sse"),
    ),
    (
        Api::OpenAiCompletions,
        include_str!("../../fixtures/completions.sse"),
    ),
    (Api::OpenAiResponses, include_str!("../../fixtures/responses.sse")),
];

fn profile(api: Api) -> ModelProfile {
    ModelProfile::unknown(
        ModelRef {
            provider: "acme".to_owned(),
            id: "m".to_owned(),
        },
        api,
    )
}

fn model(api: Api, answers: Vec<Replay>) -> ProviderModel {
    let endpoint = Endpoint::new("https://api.example.com", Auth::None, PlainHttp::LoopbackOnly).unwrap();
    ProviderModel::with_transport(profile(api), endpoint, Arc::new(ReplayTransport::new(answers)))
}

fn request() -> LlmRequest<'static> {
    LlmRequest::from_prompt("s", "p")
}

async fn complete(model: &ProviderModel) -> Result<foldline_session_model::model_call::LlmReply, LlmError> {
    model.complete(&request(), CancellationToken::new()).await
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_first_event_is_bounded() {
    for (api, _) in STREAMS {
        let replay = Replay::ok("").ending(ReplayEnd::Open);
        let started = Instant::now();
        let error = complete(&model(api, vec![replay])).await.unwrap_err();
        assert_eq!(
            error.class,
            ErrorClass::Transient(TransientCause::FirstEventTimeout),
            "{api}"
        );
        assert_eq!(started.elapsed().as_secs(), 100, "{api}");
        assert_eq!(error.partial, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_is_an_error_with_what_had_arrived() {
    for (api, body) in STREAMS {
        let cut = body.find("Second line").unwrap();
        let cut = body[..cut].rfind("\n\n").unwrap() + 2;
        let replay = Replay::ok(body[..cut].to_owned()).ending(ReplayEnd::Open);
        let started = Instant::now();
        let error = complete(&model(api, vec![replay])).await.unwrap_err();
        assert_eq!(
            error.class,
            ErrorClass::Transient(TransientCause::IdleTimeout),
            "{api}"
        );
        assert_eq!(started.elapsed().as_secs(), 120, "{api}");
        let partial = error.partial.unwrap();
        assert_eq!(
            (partial.text().as_str(), partial.stop),
            ("I read 👍 it", StopReason::Error),
            "{api}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn slowness_is_no_silence() {
    for (api, body) in STREAMS {
        // Every event after half of the limit: minutes in all, and never a failure.
        let events: Vec<_> = body
            .split_inclusive("\n\n")
            .map(|event| {
                (
                    Duration::from_secs(50),
                    bytes::Bytes::copy_from_slice(event.as_bytes()),
                )
            })
            .collect();
        let replay = Replay {
            chunks: events,
            ..Replay::ok("")
        };
        let started = Instant::now();
        complete(&model(api, vec![replay])).await.unwrap();
        assert!(started.elapsed() > Duration::from_secs(500), "{api}");
    }
}

#[tokio::test(start_paused = true)]
async fn keep_alives_do_not_hide_silence() {
    for (api, body) in STREAMS {
        let first = body.find("\n\n").unwrap() + 2;
        let ping = match api {
            Api::AnthropicMessages => "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            Api::OpenAiCompletions => ": ping\n\n",
            Api::OpenAiResponses => "data: {\"type\":\"response.in_progress\",\"response\":{}}\n\n",
        };
        let mut chunks = vec![(
            Duration::ZERO,
            bytes::Bytes::copy_from_slice(&body.as_bytes()[..first]),
        )];
        chunks
            .extend((0..1000).map(|_| (Duration::from_secs(5), bytes::Bytes::from_static(ping.as_bytes()))));
        let started = Instant::now();
        let error = complete(&model(
            api,
            vec![Replay {
                chunks,
                ..Replay::ok("")
            }],
        ))
        .await
        .unwrap_err();
        assert_eq!(
            error.class,
            ErrorClass::Transient(TransientCause::IdleTimeout),
            "{api}"
        );
        assert!(
            started.elapsed() <= Duration::from_secs(126),
            "{api} {:?}",
            started.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_trickle_is_bounded_by_the_total() {
    let (api, body) = STREAMS[0];
    let limits = StreamLimits {
        total: Some(Duration::from_secs(60)),
        ..StreamLimits::TURN
    };
    let replay = Replay::trickle(body.as_bytes(), 64, Duration::from_secs(4));
    let model = model(api, vec![replay]).with_limits(limits);
    let started = Instant::now();
    let error = complete(&model).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient(TransientCause::TotalTimeout));
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_is_no_stall() {
    let (api, body) = STREAMS[0];
    let replay = Replay::trickle(body.as_bytes(), 400, Duration::from_secs(30));
    let mut events = model(api, vec![replay])
        .stream(&request(), CancellationToken::new())
        .await
        .unwrap();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.unwrap());
        tokio::time::sleep(Duration::from_secs(300)).await;
    }
    assert!(matches!(last, Some(LlmEvent::End(_))));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_call_at_any_moment() {
    for (api, body) in STREAMS {
        // While waiting for the head, for the first byte, between events, and in the middle of one.
        let mut cuts: Vec<usize> = (0..body.len())
            .step_by(97)
            .filter(|cut| body.is_char_boundary(*cut))
            .collect();
        cuts.push(0);
        for cut in cuts {
            let finished = body[..cut].contains("message_stop") || body[..cut].contains("response.completed");
            if finished {
                continue;
            }
            let replay = Replay::ok(body[..cut].to_owned()).ending(ReplayEnd::Open);
            let cancel = CancellationToken::new();
            let model = model(api, vec![replay]).with_limits(StreamLimits::NONE);
            let asked = request();
            let call = model.complete(&asked, cancel.clone());
            let abort = async {
                tokio::time::sleep(Duration::from_secs(9)).await;
                let at = Instant::now();
                cancel.cancel();
                at
            };
            let (reply, at) = tokio::join!(call, abort);
            let error = reply.unwrap_err();
            assert_eq!(error.class, ErrorClass::Cancelled, "{api} {cut}");
            assert!(at.elapsed() < Duration::from_millis(200), "{api} {cut}");
            if let Some(partial) = error.partial {
                assert_eq!(partial.stop, StopReason::Aborted, "{api} {cut}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_wins_over_events_that_are_already_here() {
    let (api, body) = STREAMS[0];
    let cancel = CancellationToken::new();
    let mut events = model(api, vec![Replay::ok(body)])
        .stream(&request(), cancel.clone())
        .await
        .unwrap();
    assert!(matches!(events.next().await, Some(Ok(LlmEvent::Start { .. }))));
    cancel.cancel();
    assert_eq!(
        events.next().await.unwrap().unwrap_err().class,
        ErrorClass::Cancelled
    );
    assert!(events.next().await.is_none(), "one terminal item");
    // A finished answer stays finished.
    let mut events = model(api, vec![Replay::ok(body)])
        .stream(&request(), CancellationToken::new())
        .await
        .unwrap();
    let mut count = 0;
    while let Some(event) = events.next().await {
        event.unwrap();
        count += 1;
    }
    assert!(count > 10);
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_transient_and_keeps_the_usage() {
    let (api, body) = STREAMS[0];
    let cut = body.find("event: content_block_stop").unwrap();
    let replay = Replay::ok(body[..cut].to_owned()).ending(ReplayEnd::Broken);
    let error = complete(&model(api, vec![replay])).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient(TransientCause::Network));
    assert_eq!(error.partial.unwrap().usage.cache_read, Tokens(900));
}

#[tokio::test]
async fn statuses_and_their_classes() {
    let anthropic_overflow = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201 tokens > 200 maximum"}}"#;
    let rows: &[(u16, &str, ErrorClass)] = &[
        (
            429,
            r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#,
            ErrorClass::RateLimit,
        ),
        (
            529,
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            ErrorClass::Transient(TransientCause::Overloaded),
        ),
        (500, "", ErrorClass::Transient(TransientCause::Server)),
        (
            401,
            r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            ErrorClass::Auth,
        ),
        (
            413,
            r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ErrorClass::BodyTooLarge { limit: None },
        ),
        (
            400,
            anthropic_overflow,
            ErrorClass::Overflow {
                limit: Some(Tokens(200)),
                input: Some(Tokens(201)),
                output: None,
            },
        ),
        (302, "", ErrorClass::Other(OtherCause::Configuration)),
    ];
    for (status, body, expected) in rows {
        let mut replay = Replay::with_status(*status, (*body).to_owned());
        replay.retry = RetryHeaders {
            after: Some(Duration::from_secs(7)),
            should_retry: None,
        };
        let error = complete(&model(Api::AnthropicMessages, vec![replay]))
            .await
            .unwrap_err();
        assert_eq!(&error.class, expected, "{status} {error}");
        assert_eq!(
            (error.status, error.retry_after),
            (Some(*status), Some(Duration::from_secs(7)))
        );
    }
}

#[tokio::test]
async fn a_server_may_overrule_the_status() {
    for (should_retry, status, expected) in [
        (Some(false), 500, ErrorClass::Other(OtherCause::Unknown)),
        (Some(true), 400, ErrorClass::Transient(TransientCause::Server)),
        (None, 500, ErrorClass::Transient(TransientCause::Server)),
    ] {
        let mut replay = Replay::with_status(status, "oops");
        replay.retry.should_retry = should_retry;
        let error = complete(&model(Api::OpenAiCompletions, vec![replay]))
            .await
            .unwrap_err();
        assert_eq!(error.class, expected, "{should_retry:?} {status}");
    }
}

#[tokio::test]
async fn fb_084_a_refused_picture_names_its_entry() {
    let mut asked = request();
    asked.messages.push(RequestMessage {
        entry: Some("e7".into()),
        content: MessageContent::User {
            blocks: vec![InputBlock::Image(Image {
                mime_type: "image/png".into(),
                data: "AA==".into(),
            })],
        },
    });
    for (api, text) in [
        (
            Api::AnthropicMessages,
            "messages.1.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
        ),
        (
            Api::OpenAiCompletions,
            "Invalid image data at messages[2].content",
        ),
        (Api::OpenAiResponses, "could not process image input[2]"),
    ] {
        let body = format!("{{\"error\":{{\"type\":\"invalid_request_error\",\"message\":\"{text}\"}}}}");
        let model = model(api, vec![Replay::with_status(400, body)]);
        let error = model
            .complete(&asked, CancellationToken::new())
            .await
            .unwrap_err();
        assert_eq!(
            error.class,
            ErrorClass::MediaRejected {
                message: Some(1),
                entry: Some("e7".into())
            },
            "{api}"
        );
    }
}

#[tokio::test]
async fn costs_come_from_the_profile() {
    for (api, body) in STREAMS {
        let mut model = model(api, vec![Replay::ok(body)]);
        model.profile.prices = Some(Prices {
            input: 1.0,
            output: 10.0,
            cache_read: 0.1,
            cache_write: 1.25,
            cache_write_long: None,
        });
        let reply = complete(&model).await.unwrap();
        let written = reply.usage.cache_write.get() as f64 * 1.25;
        let expected = (reply.usage.input.get() as f64 + 770.0 + 90.0 + written) / 1e6;
        assert!(
            (reply.usage.cost.total - expected).abs() < 1e-12,
            "{api} {:?}",
            reply.usage
        );
    }
}

#[tokio::test]
async fn an_empty_reply_is_a_failure() {
    let body = |usage: &str| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}\n\n"
        )
    };
    for (usage, expected) in [
        // LiteLLM hides an upstream refusal so.
        (
            r#"{"prompt_tokens":0,"completion_tokens":0}"#,
            ErrorClass::OVERFLOW,
        ),
        (
            r#"{"prompt_tokens":900,"completion_tokens":0}"#,
            ErrorClass::Transient(TransientCause::EmptyReply),
        ),
    ] {
        let error = complete(&model(Api::OpenAiCompletions, vec![Replay::ok(body(usage))]))
            .await
            .unwrap_err();
        assert_eq!(error.class, expected, "{usage}");
        let is_empty = expected == ErrorClass::Transient(TransientCause::EmptyReply);
        assert_eq!(
            &*error.message == "Provider returned an empty completion",
            is_empty
        );
    }
    // A reply that is only long, not empty, is delivered even when its usage is above the window.
    let full = body(r#"{"prompt_tokens":900,"completion_tokens":3}"#).replace("{}", "{\"content\":\"x\"}");
    let mut small = model(Api::OpenAiCompletions, vec![Replay::ok(full)]);
    small.profile.context_window = Some(Tokens(500));
    assert_eq!(complete(&small).await.unwrap().text(), "x");
}

#[tokio::test]
async fn requests_go_where_their_api_is() {
    for (api, expected) in [
        (Api::AnthropicMessages, "https://api.example.com/v1/messages"),
        (
            Api::OpenAiCompletions,
            "https://api.example.com/v1/chat/completions",
        ),
        (Api::OpenAiResponses, "https://api.example.com/v1/responses"),
    ] {
        let transport = Arc::new(ReplayTransport::new([Replay::ok("")]));
        let endpoint = Endpoint::new("https://api.example.com", Auth::None, PlainHttp::LoopbackOnly).unwrap();
        let model = ProviderModel::with_transport(profile(api), endpoint, transport.clone());
        complete(&model).await.unwrap_err();
        assert_eq!(transport.urls(), [expected]);
    }
}

/// What answers under 200 without being the API: a wrong base URL, which no second request makes right.
#[tokio::test(start_paused = true)]
async fn another_server_under_the_base_url_is_told_and_not_asked_again() {
    let rows = [
        (
            "text/html; charset=utf-8",
            "<!doctype html><title>Hello</title>",
            "a page (text/html)",
        ),
        ("TEXT/HTML", "", "a page (text/html)"),
        ("application/json", "", "empty"),
        ("application/json", " \n", "empty"),
        ("application/json", r#"{"service":"up"}"#, "some other document"),
    ];
    for (kind, body, what) in rows {
        for (api, _) in STREAMS {
            let replay = Replay::ok(body).with_content_type(kind);
            let error = complete(&model(api, vec![replay])).await.unwrap_err();
            assert_eq!(
                error.class,
                ErrorClass::Other(OtherCause::Configuration),
                "{kind}"
            );
            assert_eq!(error.status, Some(200));
            assert_eq!(
                &*error.message,
                format!("HTTP 200: the answer is {what}, and not that of a model's API")
            );
            assert!(!error.class.may_retry());
            assert_eq!(recorded(&error), RetryClass::Terminal);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_an_end_is_stopped() {
    let piece = |text: &str| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        )
    };
    let replay = Replay::ok(piece(&"x".repeat(1 << 20)).repeat(20));
    let error = complete(&model(Api::OpenAiCompletions, vec![replay]))
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Other(OtherCause::Protocol));
    assert_eq!(
        &*error.message,
        "the answer does not come to its end: 16 MiB are far more than was asked for"
    );
    assert_eq!(recorded(&error), RetryClass::Terminal);
    let kept = error.partial.unwrap().text().len();
    assert!(kept <= 17 << 20, "{kept}");

    // Whoever asks for more gets more.
    let replay = Replay::ok(piece(&"x".repeat(1 << 20)).repeat(20));
    let mut large = request();
    large.max_output = Some(Tokens(1 << 20));
    let error = model(Api::OpenAiCompletions, vec![replay])
        .complete(&large, CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient(TransientCause::StreamEnded));
}

/// What the agent loop makes of the failure once it is a message of a session.
fn recorded(error: &LlmError) -> RetryClass {
    retry_class(
        &TurnEnd {
            message: MessageFields {
                stop: error.stop_reason(),
                error_message: Some(&error.recorded_message()),
                usage: foldline_session_model::model_call::Usage::default(),
                content: Content::Empty,
            },
            facts: TransportFacts {
                status: error.status,
                codes: &[],
            },
            window: None,
            place: EndpointPlace::Remote,
        },
        &UserPatterns::default(),
    )
}
