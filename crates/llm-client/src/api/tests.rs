//! The decoders over whole streams, in every way in which bytes can arrive, and the bodies of requests.

mod bodies;
mod endings;

use bytes::Bytes;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Api, ErrorClass, LlmReply, StopReason, TransientCause};
use futures::{StreamExt, stream};

use crate::sse::decode;
use crate::{Decoder, LlmError, LlmEvent};

pub(super) const STREAMS: [(Api, &str); 3] = [
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

/// Runs a body through a decoder: its events, and the error that ended it, if one did.
pub(super) fn run(api: Api, chunks: Vec<Bytes>) -> (Vec<LlmEvent>, Result<(), LlmError>, LlmReply) {
    let mut decoder = Decoder::new(api);
    let mut out = Vec::new();
    let body = stream::iter(chunks.into_iter().map(Ok));
    let events = futures::executor::block_on(decode(body).collect::<Vec<_>>());
    for event in events {
        if let Err(error) = event.and_then(|event| decoder.event(&event, &mut out)) {
            let partial = decoder.partial(StopReason::Error);
            return (out, Err(error), partial);
        }
        if matches!(out.last(), Some(LlmEvent::End(_))) {
            return (out, Ok(()), decoder.partial(StopReason::Stop));
        }
    }
    let ended = decoder.end_of_body(&mut out);
    (out, ended, decoder.partial(StopReason::Error))
}

pub(super) fn run_whole(api: Api, body: &str) -> (Vec<LlmEvent>, Result<(), LlmError>, LlmReply) {
    run(api, vec![Bytes::copy_from_slice(body.as_bytes())])
}

/// The reply at the end of a whole stream.
fn end_of(events: &[LlmEvent]) -> &LlmReply {
    match events.last() {
        Some(LlmEvent::End(reply)) => reply,
        other => panic!("no end but {other:?}"),
    }
}

#[test]
fn whole_streams() {
    for (api, body) in STREAMS {
        let (events, ended, _) = run_whole(api, body);
        ended.unwrap();
        let shown: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
        insta::assert_snapshot!(format!("whole_{api}"), shown.join("\n"));
    }
}

#[test]
fn the_same_conversation_counts_the_same_in_every_api() {
    for (api, body) in STREAMS {
        let (events, _, _) = run_whole(api, body);
        let usage = end_of(&events).usage;
        assert_eq!(
            (usage.cache_read, usage.output, usage.total_tokens.get()),
            (Tokens(900), Tokens(77), 1029),
            "{api}"
        );
    }
}

#[test]
fn a_cut_between_any_two_bytes_changes_nothing() {
    for (api, body) in STREAMS {
        let bytes = Bytes::from_static(body.as_bytes());
        let (expected, _, _) = run_whole(api, body);
        for cut in 0..bytes.len() {
            let (events, ended, _) = run(api, vec![bytes.slice(..cut), bytes.slice(cut..)]);
            ended.unwrap();
            assert_eq!(events, expected, "{api} cut at {cut}");
        }
        let single = (0..bytes.len()).map(|at| bytes.slice(at..=at)).collect();
        assert_eq!(run(api, single).0, expected, "{api} byte by byte");
    }
}

#[test]
fn line_ends_comments_and_several_data_lines_change_nothing() {
    for (api, body) in STREAMS {
        let (expected, _, _) = run_whole(api, body);
        let crlf = body.replace('\n', "\r\n");
        let comments = body
            .replace("\n\n", "\n\n: keep-alive\n\n")
            .replace("data: ", ": note\ndata: ");
        // JSON may break after a comma between members; the data lines are joined by newlines.
        let several = body.replace(",\"", ",\ndata: \"");
        let bom = format!("\u{feff}{body}");
        let unterminated = body.trim_end().to_owned();
        for (name, variant) in [
            ("crlf", crlf),
            ("comments", comments),
            ("several", several),
            ("bom", bom),
            ("unterminated", unterminated),
        ] {
            let (events, ended, _) = run_whole(api, &variant);
            ended.unwrap_or_else(|error| panic!("{api} {name}: {error}"));
            if name == "several" {
                // Raw items keep their bytes, newlines included: only texts and calls are compared.
                assert_eq!(end_of(&events).text(), end_of(&expected).text(), "{api} {name}");
            } else {
                assert_eq!(events, expected, "{api} {name}");
            }
        }
    }
}

#[test]
fn a_stream_that_is_cut_is_an_error_with_what_had_arrived() {
    for (api, body) in STREAMS {
        let whole = end_of(&run_whole(api, body).0).clone();
        let events: Vec<&str> = body.split_inclusive("\n\n").collect();
        // Without its last event; Chat Completions may lack `[DONE]` and then ends with its finish reason.
        let needed = match api {
            Api::OpenAiCompletions => events.len() - 2,
            _ => events.len(),
        };
        for count in 0..needed {
            let cut: String = events.iter().take(count).copied().collect();
            let (_, ended, partial) = run_whole(api, &cut);
            let ended = match ended {
                Err(error) => error,
                Ok(()) if api == Api::OpenAiCompletions && count == needed - 1 => continue,
                Ok(()) => panic!("{api}: {count} events are no whole stream"),
            };
            assert_eq!(
                ended.class,
                ErrorClass::Transient(TransientCause::StreamEnded),
                "{api} {count}: {ended}"
            );
            assert!(whole.text().starts_with(&partial.text()), "{api} {count}");
        }
    }
}

#[test]
fn a_cut_inside_any_event_is_an_error_too() {
    for (api, body) in STREAMS {
        let last_event = body.trim_end().rfind("\n\n").unwrap();
        let finish = match api {
            Api::OpenAiCompletions => body.find("\"finish_reason\":\"tool_calls\"").unwrap(),
            _ => last_event,
        };
        for cut in 0..finish {
            let (_, ended, _) = run(api, vec![Bytes::copy_from_slice(&body.as_bytes()[..cut])]);
            let error = ended.expect_err("cut streams are errors");
            assert_eq!(
                error.class,
                ErrorClass::Transient(TransientCause::StreamEnded),
                "{api} at {cut}: {error}"
            );
        }
    }
}
