//! Native compaction in its streaming form as sockets deliver it, and what takes over when it fails.

use std::sync::Arc;

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::{
    LanguageModel, NativeCompaction, NativeForm, NativeHistory, ProviderModel, RetryPolicy, RetryingModel,
    Tried,
};
use foldline_session_model::model_call::{Api, ErrorClass, TransientCause};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::{body_string_contains, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::server::{Server, Step, chunk, chunked_head, head};
use crate::{profile, request};

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

/// A server with these two native forms.
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
    server
}

async fn tried(server: &MockServer, forms: &[NativeForm]) -> Tried {
    let native = native(&server.uri()).with_forms(forms);
    native
        .try_forms(&request(), &CancellationToken::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn the_plain_form_takes_over() {
    const BOTH: [NativeForm; 2] = [NativeForm::Streaming, NativeForm::Plain];
    let refused = || ResponseTemplate::new(404).set_body_string("{}");
    let broken = r#"data: {"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}"#;
    let broken = || ResponseTemplate::new(200).set_body_raw(format!("{broken}\n\n"), "text/event-stream");
    let good_plain = r#"{"output":[{"type":"compaction","encrypted_content":"Q29t"}]}"#;
    let good_plain = ResponseTemplate::new(200).set_body_string(good_plain);
    let failed = |tried: &Tried| tried.failures.iter().map(|(form, _)| *form).collect::<Vec<_>>();

    let server = failing_server(broken(), good_plain).await;
    let outcome = tried(&server, &BOTH).await;
    let form = outcome.history.as_ref().map(|(form, _)| *form);
    assert_eq!(form, Some(NativeForm::Plain), "{outcome:?}");
    assert_eq!(failed(&outcome), [NativeForm::Streaming]);

    for streamed in [refused(), broken()] {
        let server = failing_server(streamed, refused()).await;
        let outcome = tried(&server, &BOTH).await;
        assert!(outcome.history.is_none(), "{outcome:?}");
        assert_eq!(failed(&outcome), BOTH);
    }

    let server = failing_server(refused(), refused()).await;
    assert_eq!(tried(&server, &[]).await, Tried::default());
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_cancel_asks_nobody_else() {
    let refused = || ResponseTemplate::new(500);
    let server = failing_server(refused(), refused()).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let native = native(&server.uri()).with_forms(&[NativeForm::Streaming, NativeForm::Plain]);
    let outcome = native.try_forms(&request(), &cancel).await;
    assert_eq!(outcome.unwrap_err().class, ErrorClass::Cancelled);
    assert!(server.received_requests().await.unwrap().is_empty());
}

/// A model has the forms that it is given, if its API has any, and a wrapper shows them.
#[tokio::test]
async fn a_model_shows_the_compaction_of_its_provider() {
    let answer = r#"{"output":[{"type":"compaction","encrypted_content":"Q29t"}]}"#;
    let plain = ResponseTemplate::new(200).set_body_string(answer);
    let server = failing_server(ResponseTemplate::new(500), plain).await;
    let with = |api, forms: &[NativeForm]| {
        let endpoint = Endpoint::new(&server.uri(), Auth::None, PlainHttp::LoopbackOnly).unwrap();
        let model = ProviderModel::new(profile(api), endpoint).unwrap();
        let model = Arc::new(model.with_native_compaction(forms));
        RetryingModel::new(model, RetryPolicy::MAINTENANCE)
    };
    let model = with(Api::OpenAiResponses, &[NativeForm::Plain]);
    let native = model.native_compaction().unwrap();
    let tried = native.try_forms(&request(), &CancellationToken::new()).await;
    assert!(tried.unwrap().history.is_some());
    assert!(with(Api::OpenAiResponses, &[]).native_compaction().is_none());
    assert!(
        with(Api::OpenAiCompletions, &[NativeForm::Plain])
            .native_compaction()
            .is_none()
    );
}
