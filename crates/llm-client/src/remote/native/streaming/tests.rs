//! The streaming form over replayed bodies and a clock that stands still unless it is waited for.

use std::sync::Arc;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, CacheHint, InputBlock, ModelProfile, ModelRef, RequestMessage, ToolOutcome, ToolSpec,
};
use tokio::time::Instant;

use crate::endpoint::{Auth, Endpoint, PlainHttp};
use crate::testing::{Replay, ReplayEnd, ReplayTransport};

use super::*;

const STREAM: &str = include_str!("../../../../fixtures/compaction.sse");
const COMPACTION: &str = r#"{"type":"compaction","id":"cmp_1", "encrypted_content":"Q29t👍=="}"#;

fn native(answers: Vec<Replay>) -> (NativeCompaction, Arc<ReplayTransport>) {
    let transport = Arc::new(ReplayTransport::new(answers));
    let endpoint = Endpoint::new("https://api.example.com", Auth::None, PlainHttp::LoopbackOnly).unwrap();
    let name = ModelRef {
        provider: "openai".to_owned(),
        id: "m".to_owned(),
    };
    let profile = ModelProfile::unknown(name, Api::OpenAiResponses);
    let native = NativeCompaction::with_transport(profile, endpoint, transport.clone());
    (native, transport)
}

fn request() -> LlmRequest<'static> {
    let mut request = LlmRequest::from_prompt("Be short.", "Fix <|im_start|> it.");
    request.max_output = Some(Tokens(500));
    request.cache = CacheHint::Short;
    request.session_key = Some("s1".into());
    request.tools.push(ToolSpec {
        name: "read".into(),
        description: "Reads.".into(),
        parameters: RawJson::empty_object(),
    });
    request.messages.push(RequestMessage {
        entry: None,
        content: MessageContent::ToolResult {
            call_id: "gone".into(),
            tool_name: "read".into(),
            blocks: vec![InputBlock::Text("text of a file".into())],
            outcome: ToolOutcome::Success,
        },
    });
    request
}

async fn compact(answers: Vec<Replay>) -> (Result<NativeHistory, LlmError>, usize, u64) {
    let (native, transport) = native(answers);
    let started = Instant::now();
    let outcome = native
        .compact_streaming(&request(), &CancellationToken::new())
        .await;
    (outcome, transport.urls().len(), started.elapsed().as_secs())
}

#[tokio::test]
async fn a_live_request_that_ends_in_a_trigger() {
    let (native, transport) = native(vec![Replay::ok(STREAM)]);
    let history = native
        .compact_streaming(&request(), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(transport.urls(), ["https://api.example.com/v1/responses"]);
    insta::assert_snapshot!(transport.bodies()[0]);
    let items: Vec<&str> = history.items.iter().map(RawJson::get).collect();
    assert_eq!(
        items,
        [
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix <|im_start|> it."}]}"#,
            COMPACTION
        ],
        "what users said, and the compaction byte for byte"
    );
    assert_eq!((history.compaction, history.summary), (1, None));
    assert_eq!(
        (
            history.usage.input,
            history.usage.cache_read,
            history.usage.output
        ),
        (Tokens(200), Tokens(1000), Tokens(80))
    );
    assert_eq!(history.origin.model, "m");
}

#[tokio::test]
async fn the_same_history_however_the_stream_is_cut_into_chunks() {
    let whole = compact(vec![Replay::ok(STREAM)]).await.0.unwrap();
    for chunk in [1, 2, 7, 64] {
        let replay = Replay::trickle(STREAM.as_bytes(), chunk, Duration::ZERO);
        assert_eq!(compact(vec![replay]).await.0.unwrap(), whole, "{chunk}");
    }
    let odd = STREAM
        .replace('\n', "\r\n")
        .replace("\r\n\r\n", "\r\n\r\n: ping\r\n\r\n");
    assert_eq!(compact(vec![Replay::ok(odd)]).await.0.unwrap(), whole);
    // Data over several lines, the old name of the last event, no blank line behind it.
    let last = STREAM
        .replace(r#""output_index":1,"#, "\"output_index\":1,\ndata: ")
        .replace("response.completed", "response.done");
    assert_eq!(
        compact(vec![Replay::ok(last.trim_end().to_owned())])
            .await
            .0
            .unwrap(),
        whole
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_is_asked_for_again_and_then_given_up() {
    let events: Vec<&str> = STREAM.split_inclusive("\n\n").collect();
    for count in 0..events.len() {
        let cut: String = events[..count].concat();
        let (outcome, calls, seconds) = compact(vec![Replay::ok(cut.clone()); 3]).await;
        assert_eq!(
            outcome.unwrap_err().class,
            ErrorClass::Transient(TransientCause::StreamEnded),
            "{count}"
        );
        assert_eq!((calls, seconds), (3, 1 + 2), "{count}");
        // A second attempt that succeeds is enough.
        let broken = Replay::ok(cut).ending(ReplayEnd::Broken);
        let (outcome, calls, seconds) = compact(vec![broken, Replay::ok(STREAM)]).await;
        assert!(outcome.is_ok(), "{count}");
        assert_eq!((calls, seconds), (2, 1), "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn which_failures_are_asked_again() {
    use ErrorClass::{Auth, Other, RateLimit, Transient};
    let at = STREAM.find("event: response.output_item.added").unwrap();
    let mid = |event: &str| Replay::ok(format!("{}data: {event}\n\n", &STREAM[..at]));
    let rows = [
        (Replay::with_status(500, ""), Transient(TransientCause::Server), 3),
        (Replay::with_status(408, ""), Transient(TransientCause::Server), 3),
        (Replay::with_status(429, "{}"), RateLimit, 3),
        (Replay::with_status(401, "{}"), Auth, 1),
        (Replay::with_status(404, "{}"), Other(OtherCause::NotFound), 1),
        (mid("{not json"), Other(OtherCause::Protocol), 3),
        (
            mid(r#"{"type":"error","code":"server_error","message":"no"}"#),
            Transient(TransientCause::Server),
            3,
        ),
        (
            mid(
                r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too much"}}}"#,
            ),
            ErrorClass::OVERFLOW,
            1,
        ),
        (
            mid(
                r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}"#,
            ),
            Transient(TransientCause::Server),
            3,
        ),
        (
            mid(
                r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#,
            ),
            Other(OtherCause::Refused),
            1,
        ),
        (
            mid(r#"{"type":"response.completed","response":{"status":"completed"}}"#),
            Other(OtherCause::Unknown),
            1,
        ),
    ];
    for (replay, class, calls) in rows {
        let (outcome, called, _) = compact(vec![replay; 3]).await;
        assert_eq!(outcome.unwrap_err().class, class);
        assert_eq!(called, calls, "{class:?}");
    }
}

#[tokio::test]
async fn one_compaction_exactly() {
    let done = STREAM
        .split_inclusive("\n\n")
        .find(|event| event.contains("Q29t"))
        .unwrap();
    for (body, count) in [
        (STREAM.replace(done, ""), "0 compactions among 1 items"),
        (
            STREAM.replace(done, &done.repeat(2)),
            "2 compactions among 3 items",
        ),
        (
            STREAM.replace("encrypted_content", "other"),
            "0 compactions among 2 items",
        ),
    ] {
        let error = compact(vec![Replay::ok(body)]).await.0.unwrap_err();
        assert!(error.message.contains(count), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_bounded_and_a_cancel_ends_it() {
    let silent = Replay::ok("").ending(ReplayEnd::Open);
    let (outcome, calls, seconds) = compact(vec![silent.clone(); 3]).await;
    assert_eq!(
        outcome.unwrap_err().class,
        ErrorClass::Transient(TransientCause::TotalTimeout)
    );
    assert_eq!((calls, seconds), (3, 3 * 180 + 3));

    // While the stream is silent, and while the next attempt is waited for.
    for answer in [silent, Replay::with_status(500, "")] {
        let (native, transport) = native(vec![answer; 3]);
        let cancel = CancellationToken::new();
        let asked = request();
        let abort = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            cancel.cancel();
            Instant::now()
        };
        let (outcome, at) = tokio::join!(native.compact_streaming(&asked, &cancel), abort);
        assert_eq!(outcome.unwrap_err().class, ErrorClass::Cancelled);
        assert!(at.elapsed() < Duration::from_millis(200));
        assert_eq!(transport.urls().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_may_ask_for_a_short_wait_only() {
    for (asked, calls, seconds) in [(5, 2, 5), (31, 1, 0)] {
        let mut later = Replay::with_status(429, "{}");
        later.retry.after = Some(Duration::from_secs(asked));
        let (_, called, waited) = compact(vec![later, Replay::ok(STREAM)]).await;
        assert_eq!((called, waited), (calls, seconds), "{asked}");
    }
}

#[tokio::test]
async fn no_key_shows_in_a_failure() {
    let key = "sk-0123456789abcdef";
    let stream =
        format!("data: {{\"type\":\"error\",\"code\":\"invalid_prompt\",\"message\":\"bad key {key}\"}}\n\n");
    let refusal = format!("{{\"error\":{{\"code\":\"bad {key}\",\"message\":\"bad key {key}\"}}}}");
    for answer in [Replay::ok(stream), Replay::with_status(401, refusal)] {
        let auth = Auth::Bearer(secrecy::SecretString::from(key));
        let (mut native, _) = native(vec![answer]);
        native.endpoint = Endpoint::new("https://api.example.com", auth, PlainHttp::LoopbackOnly).unwrap();
        let error = native
            .compact_streaming(&request(), &CancellationToken::new())
            .await
            .unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(key) && shown.contains("[redacted]"), "{shown}");
    }
}
