//! Native compaction in its streaming form as sockets deliver it, and what takes over when it fails.

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::{
    Compacted, CompactedBy, NativeCompaction, NativeForm, NativeHistory, compact_or_summarise,
};
use foldline_session_model::model_call::{Api, ErrorClass, LlmRequest, TransientCause};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::{body_string_contains, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::server::{Server, Step, chunk, chunked_head, head};
use crate::{STREAMS, model, profile, request};

const STREAM: &str = include_str!("../../fixtures/compaction.sse");

fn native(base: &str) -> NativeCompaction {
    let endpoint = Endpoint::new(base, Auth::None, PlainHttp::LoopbackOnly).unwrap();
    NativeCompaction::new(profile(Api::OpenAiResponses), endpoint).unwrap()
}

async fn compact(steps: Vec<Step>) -> Result<NativeHistory, ErrorClass> {
    let server = Server::start(steps).await;
    native(&server.base)
        .compact_streaming(&request(), &CancellationToken::new())
        .await
        .map_err(|error| error.class)
}

#[tokio::test]
async fn the_same_history_however_it_is_sent() {
    let whole = compact(vec![Step::Send(head()), Step::Send(STREAM.as_bytes().to_vec())])
        .await
        .unwrap();
    assert_eq!(whole.items.len(), 2, "{whole:?}");
    let bytes = STREAM.bytes().map(|byte| Step::Send(vec![byte]));
    let single = [Step::Send(head())].into_iter().chain(bytes).collect();
    assert_eq!(compact(single).await.as_ref(), Ok(&whole), "byte by byte");
    let chunks = STREAM.as_bytes().chunks(7).map(|bytes| Step::Send(chunk(bytes)));
    let framed = [Step::Send(chunked_head())]
        .into_iter()
        .chain(chunks)
        .chain([Step::Send(chunk(b""))])
        .collect();
    assert_eq!(compact(framed).await.as_ref(), Ok(&whole), "in HTTP chunks");
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_event_is_an_error() {
    let events: Vec<&str> = STREAM.split_inclusive("\n\n").collect();
    // Each one waits between its attempts, so they run side by side.
    let all = (0..events.len()).flat_map(|count| {
        let cut = events[..count].concat();
        [
            (
                vec![Step::Send(head()), Step::Send(cut.clone().into_bytes())],
                TransientCause::StreamEnded,
            ),
            (
                vec![
                    Step::Send(chunked_head()),
                    Step::Send(chunk(format!(": x\n{cut}").as_bytes())),
                ],
                TransientCause::Network,
            ),
        ]
    });
    let all = all.map(|(steps, cause)| async move {
        assert_eq!(compact(steps).await, Err(ErrorClass::Transient(cause)));
    });
    futures::future::join_all(all).await;
}

/// A server whose two native forms fail and whose model answers in text.
async fn failing_server(streamed: ResponseTemplate, plain: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/responses"))
        .and(body_string_contains("compaction_trigger"))
        .respond_with(streamed)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/v1/responses/compact"))
        .respond_with(plain)
        .mount(&server)
        .await;
    let (_, text) = STREAMS[2];
    Mock::given(method("POST"))
        .and(path("/v1/responses"))
        .and(body_string_contains("Summarise it."))
        .respond_with(ResponseTemplate::new(200).set_body_raw(text, "text/event-stream"))
        .mount(&server)
        .await;
    server
}

async fn compact_or_text(server: &MockServer, forms: &[NativeForm]) -> Compacted {
    let text_model = model(Api::OpenAiResponses, &server.uri());
    compact_or_summarise(
        &native(&server.uri()),
        forms,
        &request(),
        &text_model,
        &LlmRequest::from_prompt("You summarise.", "Summarise it."),
        &CancellationToken::new(),
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn the_plain_form_and_then_a_text_summary_take_over() {
    const BOTH: [NativeForm; 2] = [NativeForm::Streaming, NativeForm::Plain];
    let refused = || ResponseTemplate::new(404).set_body_string("{}");
    let broken = r#"data: {"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}"#;
    let broken = || ResponseTemplate::new(200).set_body_raw(format!("{broken}\n\n"), "text/event-stream");
    let good_plain = r#"{"output":[{"type":"compaction","encrypted_content":"Q29t"}]}"#;
    let good_plain = ResponseTemplate::new(200).set_body_string(good_plain);

    let server = failing_server(broken(), good_plain).await;
    let compacted = compact_or_text(&server, &BOTH).await;
    assert!(matches!(compacted.by, CompactedBy::Native(_)), "{compacted:?}");
    let failed: Vec<NativeForm> = compacted.failures.iter().map(|(form, _)| *form).collect();
    assert_eq!(failed, [NativeForm::Streaming]);

    for streamed in [refused(), broken()] {
        let server = failing_server(streamed, refused()).await;
        let compacted = compact_or_text(&server, &BOTH).await;
        let CompactedBy::Text(reply) = &compacted.by else {
            panic!("{compacted:?}");
        };
        assert!(reply.text().contains("👍"), "{reply:?}");
        let failed: Vec<NativeForm> = compacted.failures.iter().map(|(form, _)| *form).collect();
        assert_eq!(failed, BOTH);
    }

    let server = failing_server(refused(), refused()).await;
    assert!(compact_or_text(&server, &[]).await.failures.is_empty());
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_cancel_asks_nobody_else() {
    let refused = || ResponseTemplate::new(500);
    let server = failing_server(refused(), refused()).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let text_model = model(Api::OpenAiResponses, &server.uri());
    let outcome = compact_or_summarise(
        &native(&server.uri()),
        &[NativeForm::Streaming, NativeForm::Plain],
        &request(),
        &text_model,
        &request(),
        &cancel,
    )
    .await;
    assert_eq!(outcome.unwrap_err().class, ErrorClass::Cancelled);
    assert!(server.received_requests().await.unwrap().is_empty());
}
