//! Streams as sockets deliver them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use foldline_llm_client::{LanguageModel, LlmEvent, StreamLimits};
use foldline_session_model::model_call::{ErrorClass, LlmReply, TransientCause};
use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, Step, chunk, chunked_head, head};
use crate::{STREAMS, model, request};

async fn complete(api: foldline_session_model::model_call::Api, steps: Vec<Step>) -> LlmReply {
    let server = Server::start(steps).await;
    model(api, &server.base)
        .complete(&request(), CancellationToken::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn the_same_reply_however_it_is_sent() {
    for (api, body) in STREAMS {
        let whole = complete(
            api,
            vec![Step::Send(head()), Step::Send(body.as_bytes().to_vec())],
        )
        .await;
        assert!(
            whole.text().contains("👍") && whole.usage.total_tokens.get() == 1029,
            "{api} {whole:?}"
        );

        let bytes = body.bytes().map(|byte| Step::Send(vec![byte]));
        let single = [Step::Send(head())].into_iter().chain(bytes).collect();
        assert_eq!(complete(api, single).await, whole, "{api} byte by byte");

        let chunks = body.as_bytes().chunks(7).map(|bytes| Step::Send(chunk(bytes)));
        let framed = [Step::Send(chunked_head())]
            .into_iter()
            .chain(chunks)
            .chain([Step::Send(chunk(b""))])
            .collect();
        assert_eq!(complete(api, framed).await, whole, "{api} in HTTP chunks");

        let crlf = body
            .replace('\n', "\r\n")
            .replace("\r\n\r\n", "\r\n\r\n: keep-alive\r\n\r\n");
        let crlf = vec![Step::Send(head()), Step::Send(crlf.into_bytes())];
        assert_eq!(complete(api, crlf).await, whole, "{api} with CRLF and comments");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_event_is_an_error() {
    for (api, body) in STREAMS {
        let events: Vec<&str> = body.split_inclusive("\n\n").collect();
        for count in 1..events.len() - 2 {
            let cut: String = events.iter().take(count).copied().collect();
            for framed in [false, true] {
                let steps = if framed {
                    // The connection closes in the middle of the HTTP framing.
                    vec![Step::Send(chunked_head()), Step::Send(chunk(cut.as_bytes()))]
                } else {
                    vec![Step::Send(head()), Step::Send(cut.clone().into_bytes())]
                };
                let server = Server::start(steps).await;
                let error = model(api, &server.base)
                    .complete(&request(), CancellationToken::new())
                    .await
                    .unwrap_err();
                let cause = if framed {
                    TransientCause::Network
                } else {
                    TransientCause::StreamEnded
                };
                assert_eq!(
                    error.class,
                    ErrorClass::Transient(cause),
                    "{api} {count} {framed}: {error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_cancel_is_quick_and_closes_the_connection() {
    for (api, body) in STREAMS {
        let first = body.find("\n\n").unwrap() + 2;
        let middle = body.len() / 2;
        let middle = body[..middle].rfind("\n\n").unwrap() + 2;
        for (name, steps) in [
            ("before the head", vec![Step::Hang]),
            ("before the first event", vec![Step::Send(head()), Step::Hang]),
            (
                "after the first event",
                vec![
                    Step::Send(head()),
                    Step::Send(body.as_bytes()[..first].to_vec()),
                    Step::Hang,
                ],
            ),
            (
                "in the middle",
                vec![
                    Step::Send(head()),
                    Step::Send(body.as_bytes()[..middle].to_vec()),
                    Step::Hang,
                ],
            ),
        ] {
            let server = Server::start(steps).await;
            let model = model(api, &server.base);
            let cancel = CancellationToken::new();
            let asked = request();
            let call = model.complete(&asked, cancel.clone());
            let abort = async {
                tokio::time::sleep(Duration::from_millis(60)).await;
                cancel.cancel();
                Instant::now()
            };
            let (reply, cancelled_at) = tokio::join!(call, abort);
            assert_eq!(reply.unwrap_err().class, ErrorClass::Cancelled, "{api} {name}");
            assert!(
                cancelled_at.elapsed() < Duration::from_millis(200),
                "{api} {name}"
            );
            tokio::time::timeout(Duration::from_secs(5), server.on_hang_up.notified())
                .await
                .unwrap_or_else(|_| panic!("{api} {name}: the connection stayed open"));
            assert_eq!(server.hung_up.load(Ordering::SeqCst), 1, "{api} {name}");
        }
    }
}

#[tokio::test]
async fn dropping_a_stream_closes_the_connection() {
    let (api, body) = STREAMS[0];
    let first = body.find("\n\n").unwrap() + 2;
    let server = Server::start(vec![
        Step::Send(head()),
        Step::Send(body.as_bytes()[..first].to_vec()),
        Step::Hang,
    ])
    .await;
    let mut events = model(api, &server.base)
        .stream(&request(), CancellationToken::new())
        .await
        .unwrap();
    assert!(matches!(events.next().await, Some(Ok(LlmEvent::Start { .. }))));
    drop(events);
    tokio::time::timeout(Duration::from_secs(5), server.on_hang_up.notified())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_trickle_passes_and_a_hang_does_not() {
    // Long against the pauses of the trickle, so that a busy machine does not turn one into the other.
    let limit = Some(Duration::from_millis(1500));
    let limits = StreamLimits {
        first_event: limit,
        idle: limit,
        total: None,
    };
    let each = STREAMS.map(|(api, body)| async move {
        let mut steps = vec![Step::Send(head())];
        for event in body.split_inclusive("\n\n") {
            steps.push(Step::Wait(Duration::from_millis(60)));
            steps.push(Step::Send(event.as_bytes().to_vec()));
        }
        let trickle = async {
            let server = Server::start(steps.clone()).await;
            let slow = model(api, &server.base).with_limits(limits);
            slow.complete(&request(), CancellationToken::new()).await.unwrap();
        };
        let hang = |steps: Vec<Step>, cause: TransientCause| async move {
            let server = Server::start(steps).await;
            let hanging = model(api, &server.base).with_limits(limits);
            let error = hanging
                .complete(&request(), CancellationToken::new())
                .await
                .unwrap_err();
            assert_eq!(error.class, ErrorClass::Transient(cause), "{api}");
            tokio::time::timeout(Duration::from_secs(5), server.on_hang_up.notified())
                .await
                .unwrap();
        };
        let first = hang(
            vec![Step::Send(head()), Step::Hang],
            TransientCause::FirstEventTimeout,
        );
        let middle = steps.iter().take(9).cloned().chain([Step::Hang]).collect();
        let idle = hang(middle, TransientCause::IdleTimeout);
        tokio::join!(trickle, first, idle);
    });
    futures::future::join_all(each).await;
}

#[tokio::test]
async fn a_failure_under_200_is_a_failure() {
    let body = r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    for (api, _) in STREAMS {
        let steps = vec![
            Step::Send(head.clone().into_bytes()),
            Step::Send(body.as_bytes().to_vec()),
        ];
        let server = Server::start(steps).await;
        let error = model(api, &server.base)
            .complete(&request(), CancellationToken::new())
            .await
            .unwrap_err();
        assert!(error.class.wants_smaller_request(), "{api}: {error}");
    }
}

#[cfg(feature = "rustls")]
#[tokio::test]
async fn tls_is_set_up_and_plain_servers_do_not_pass_for_it() {
    let server = Server::start(vec![Step::Send(head())]).await;
    let base = server.base.replace("http://", "https://");
    let error = model(STREAMS[0].0, &base)
        .complete(&request(), CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(
        error.class,
        ErrorClass::Transient(TransientCause::Network),
        "{error}"
    );
}

#[tokio::test]
async fn nobody_at_the_address_is_a_network_failure() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = model(STREAMS[0].0, &base)
        .complete(&request(), CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient(TransientCause::Network));
    assert!(
        !error.message.contains(&base),
        "addresses stay out of errors: {error}"
    );
}

#[tokio::test]
async fn fb_062_every_call_ends_once_whatever_the_server_does() {
    let idle = Some(Duration::from_millis(500));
    let limits = StreamLimits {
        first_event: idle,
        idle,
        total: None,
    };
    for (api, body) in STREAMS {
        let events: Vec<&str> = body.split_inclusive("\n\n").collect();
        let half: String = events.iter().take(events.len() / 2).copied().collect();
        let end: String = events.iter().skip(events.len() - 3).copied().collect();
        let whole = |text: String| vec![Step::Send(head()), Step::Send(text.into_bytes())];
        let stops_twice = whole(format!("{body}{end}"));
        let never_stops = whole(half.clone());
        let mut never_closes = whole(half);
        never_closes.push(Step::Hang);
        for (name, steps, good) in [
            ("stops twice", stops_twice, 1),
            ("never stops", never_stops, 0),
            ("never closes", never_closes, 0),
        ] {
            let server = Server::start(steps).await;
            let model = model(api, &server.base).with_limits(limits);
            let mut events = model.stream(&request(), CancellationToken::new()).await.unwrap();
            let (mut ends, mut failures, mut after) = (0, 0, 0);
            while let Some(event) = events.next().await {
                match event {
                    _ if ends + failures > 0 => after += 1,
                    Ok(LlmEvent::End(_)) => ends += 1,
                    Err(_) => failures += 1,
                    Ok(_) => {}
                }
            }
            assert_eq!((ends, failures, after), (good, 1 - good, 0), "{api} {name}");
        }
    }
}
