//! Properties of decoding and classifying.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use foldline_llm_client::classify::{TransportFacts, UserPatterns, classify_failure, retry_hint};
use foldline_llm_client::{Decoder, LlmEvent, decode_sse};
use foldline_session_model::model_call::{Api, ErrorClass, StopReason};
use futures::{StreamExt, stream};
use proptest::prelude::*;

const STREAMS: [(Api, &str); 3] = [
    (Api::AnthropicMessages, include_str!("../fixtures/anthropic.sse")),
    (
        Api::OpenAiCompletions,
        include_str!("../fixtures/completions.sse"),
    ),
    (Api::OpenAiResponses, include_str!("../fixtures/responses.sse")),
];

/// Events and whether the stream ended well.
fn run(api: Api, chunks: Vec<Bytes>) -> (Vec<LlmEvent>, bool) {
    let mut decoder = Decoder::new(api);
    let mut out = Vec::new();
    let events: Vec<_> =
        futures::executor::block_on(decode_sse(stream::iter(chunks.into_iter().map(Ok))).collect());
    for event in events {
        if event.and_then(|event| decoder.event(&event, &mut out)).is_err() {
            return (out, false);
        }
        if matches!(out.last(), Some(LlmEvent::End(_))) {
            return (out, true);
        }
    }
    let ended = decoder.end_of_body(&mut out).is_ok();
    // What arrived of a reply can be asked for at any time.
    let _partial = decoder.partial(StopReason::Error);
    (out, ended)
}

fn cut(body: &[u8], mut at: Vec<usize>) -> Vec<Bytes> {
    for cut in &mut at {
        *cut %= body.len() + 1;
    }
    at.sort_unstable();
    let mut chunks = Vec::new();
    let mut start = 0;
    for end in at.into_iter().chain([body.len()]) {
        chunks.push(Bytes::copy_from_slice(&body[start..end]));
        start = end;
    }
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn chunks_make_no_difference(which in 0..3_usize, cuts in prop::collection::vec(any::<usize>(), 0..40)) {
        let (api, body) = STREAMS[which];
        let whole = run(api, vec![Bytes::from_static(body.as_bytes())]);
        prop_assert_eq!(run(api, cut(body.as_bytes(), cuts)), whole);
    }

    #[test]
    fn damaged_bodies_never_panic(
        which in 0..3_usize,
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..20),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let (api, body) = STREAMS[which];
        let mut bytes = body.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let whole = run(api, vec![Bytes::from(bytes.clone())]);
        prop_assert_eq!(run(api, cut(&bytes, cuts)), whole);
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), which in 0..3_usize) {
        let (_, ended) = run(STREAMS[which].0, vec![Bytes::from(bytes)]);
        prop_assert!(!ended);
    }

    #[test]
    fn events_are_well_formed(which in 0..3_usize, keep in any::<usize>()) {
        let (api, body) = STREAMS[which];
        let events: Vec<&str> = body.split_inclusive("\n\n").collect();
        let kept: String = events.iter().take(keep % (events.len() + 1)).copied().collect();
        let (out, _) = run(api, vec![Bytes::from(kept)]);
        let mut open = Vec::new();
        for (position, event) in out.iter().enumerate() {
            match event {
                LlmEvent::Start { .. } => prop_assert_eq!(position, 0),
                LlmEvent::BlockStart { index, .. } => open.push(*index),
                LlmEvent::Text { index, .. } | LlmEvent::Thinking { index, .. } | LlmEvent::ToolArguments { index, .. } => {
                    prop_assert!(open.contains(index));
                }
                LlmEvent::BlockEnd { index, .. } => {
                    prop_assert!(open.contains(index));
                    open.retain(|known| known != index);
                }
                LlmEvent::End(_) => prop_assert_eq!(position, out.len() - 1),
                _ => {}
            }
        }
    }

    #[test]
    fn a_refused_key_never_starts_a_compaction(text in ".{0,200}", status in prop::sample::select(vec![401_u16, 407])) {
        let facts = TransportFacts { status: Some(status), codes: &[] };
        let class = classify_failure(&facts, Some(&text), &UserPatterns::default());
        prop_assert_eq!(class, ErrorClass::Auth);
    }

    #[test]
    fn rate_wording_beats_generic_overflow_wording(
        generic in prop::sample::select(vec!["too many tokens", "token limit exceeded", "context length exceeded"]),
        rate in prop::sample::select(vec!["rate limit", "too many requests", "tokens per minute", "429"]),
        first in any::<bool>(),
    ) {
        let text = if first { format!("{rate}: {generic}") } else { format!("{generic} ({rate})") };
        let class = classify_failure(&TransportFacts::default(), Some(&text), &UserPatterns::default());
        prop_assert!(!class.wants_smaller_request(), "{text}: {class:?}");
    }

    #[test]
    fn any_text_has_a_class(text in "\\PC{0,300}", status in prop::option::of(100_u16..600)) {
        let facts = TransportFacts { status, codes: &[&text] };
        let _class = classify_failure(&facts, Some(&text), &UserPatterns::default());
        let _hint = retry_hint(&text, std::time::SystemTime::UNIX_EPOCH);
    }
}
