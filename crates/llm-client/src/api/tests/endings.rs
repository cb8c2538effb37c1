//! Every way in which a stream can end, and odd servers.

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, ArgumentsState, AssistantBlock, ErrorClass, OtherCause, StopReason, TransientCause,
};

use super::{end_of, run_whole};

const REFUSED: ErrorClass = ErrorClass::Other(OtherCause::Refused);

fn anthropic(stop_reason: &str) -> String {
    format!(
        "data: {{\"type\":\"message_start\",\"message\":{{\"id\":\"m\",\"usage\":{{\"input_tokens\":5,\"output_tokens\":1}}}}}}\n\n\
         data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"text\",\"text\":\"hi\"}}}}\n\n\
         data: {{\"type\":\"content_block_stop\",\"index\":0}}\n\n\
         data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":{stop_reason}}},\"usage\":{{\"output_tokens\":2}}}}\n\n\
         data: {{\"type\":\"message_stop\"}}\n\n"
    )
}

fn completions(finish_reason: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"hi\"}},\"finish_reason\":{finish_reason}}}]}}\n\n\
         data: [DONE]\n\n"
    )
}

fn responses(event: &str, response: &str) -> String {
    format!(
        "data: {{\"type\":\"response.output_item.added\",\"item\":{{\"type\":\"message\",\"id\":\"m\"}}}}\n\n\
         data: {{\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}}\n\n\
         data: {{\"type\":\"{event}\",\"response\":{response}}}\n\n"
    )
}

fn ending(api: Api, body: &str) -> Result<StopReason, ErrorClass> {
    let (events, ended, _) = run_whole(api, body);
    ended.map(|()| end_of(&events).stop).map_err(|error| error.class)
}

#[test]
fn stop_reasons_of_anthropic() {
    for (reason, expected) in [
        ("\"end_turn\"", Ok(StopReason::Stop)),
        ("\"stop_sequence\"", Ok(StopReason::Stop)),
        ("\"pause_turn\"", Ok(StopReason::Stop)),
        ("\"max_tokens\"", Ok(StopReason::Length)),
        ("\"tool_use\"", Ok(StopReason::ToolUse)),
        ("\"refusal\"", Err(REFUSED)),
        ("\"sensitive\"", Err(REFUSED)),
        ("\"model_context_window_exceeded\"", Err(ErrorClass::OVERFLOW)),
        ("\"new_reason\"", Err(ErrorClass::Other(OtherCause::Unknown))),
        ("null", Err(ErrorClass::Transient(TransientCause::StreamEnded))),
    ] {
        assert_eq!(
            ending(Api::AnthropicMessages, &anthropic(reason)),
            expected,
            "{reason}"
        );
    }
}

#[test]
fn finish_reasons_of_completions() {
    for (reason, expected) in [
        ("\"stop\"", Ok(StopReason::Stop)),
        ("\"end\"", Ok(StopReason::Stop)),
        ("\"length\"", Ok(StopReason::Length)),
        ("\"tool_calls\"", Ok(StopReason::ToolUse)),
        ("\"function_call\"", Ok(StopReason::ToolUse)),
        ("\"content_filter\"", Err(REFUSED)),
        (
            "\"network_error\"",
            Err(ErrorClass::Transient(TransientCause::Network)),
        ),
        ("\"new_reason\"", Err(ErrorClass::Other(OtherCause::Unknown))),
        ("null", Err(ErrorClass::Transient(TransientCause::StreamEnded))),
    ] {
        assert_eq!(
            ending(Api::OpenAiCompletions, &completions(reason)),
            expected,
            "{reason}"
        );
    }
}

#[test]
fn ends_of_responses() {
    for (event, response, expected) in [
        (
            "response.completed",
            r#"{"status":"completed"}"#,
            Ok(StopReason::Stop),
        ),
        (
            "response.incomplete",
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}"#,
            Ok(StopReason::Length),
        ),
        (
            "response.completed",
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}"#,
            Ok(StopReason::Length),
        ),
        (
            "response.incomplete",
            r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}"#,
            Err(REFUSED),
        ),
        (
            "response.incomplete",
            r#"{"status":"incomplete","incomplete_details":null}"#,
            Err(ErrorClass::Other(OtherCause::Unknown)),
        ),
        (
            "response.failed",
            r#"{"status":"failed","error":{"code":"server_error","message":"oops"}}"#,
            Err(ErrorClass::Transient(TransientCause::Server)),
        ),
        (
            "response.failed",
            r#"{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}"#,
            Err(ErrorClass::OVERFLOW),
        ),
        (
            "response.failed",
            r#"{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}}"#,
            Err(ErrorClass::RateLimit),
        ),
        // What the event is called counts where the response does not say how it is.
        (
            "response.failed",
            r#"{"error":{"code":"server_error","message":"oops"}}"#,
            Err(ErrorClass::Transient(TransientCause::Server)),
        ),
        (
            "response.incomplete",
            r#"{"incomplete_details":{"reason":"max_output_tokens"}}"#,
            Ok(StopReason::Length),
        ),
        (
            "response.incomplete",
            "{}",
            Err(ErrorClass::Other(OtherCause::Unknown)),
        ),
        (
            "response.failed",
            r#"{"status":"cancelled","error":null}"#,
            Err(ErrorClass::Other(OtherCause::Unknown)),
        ),
    ] {
        assert_eq!(
            ending(Api::OpenAiResponses, &responses(event, response)),
            expected,
            "{event} {response}"
        );
    }
}

#[test]
fn errors_inside_a_stream() {
    let anthropic = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let completions = "data: {\"error\":{\"message\":\"Provider returned error\",\"code\":502}}\n\n";
    let responses = "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached\",\"param\":null}\n\n";
    for (api, error, expected) in [
        (
            Api::AnthropicMessages,
            anthropic,
            ErrorClass::Transient(TransientCause::Overloaded),
        ),
        (
            Api::OpenAiCompletions,
            completions,
            ErrorClass::Transient(TransientCause::Server),
        ),
        (Api::OpenAiResponses, responses, ErrorClass::RateLimit),
    ] {
        let (_, body) = super::STREAMS
            .into_iter()
            .find(|(known, _)| *known == api)
            .unwrap();
        let events: Vec<&str> = body.split_inclusive("\n\n").collect();
        for before in [0, events.len() / 2] {
            let cut: String = events.iter().take(before).copied().chain([error]).collect();
            let (_, ended, partial) = run_whole(api, &cut);
            assert_eq!(ended.unwrap_err().class, expected, "{api}");
            assert_eq!(partial.blocks.is_empty(), before == 0, "{api}");
        }
    }
}

#[test]
fn calls_that_were_cut_must_not_run() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"w\",\"arguments\":\"{\\\"p\\\":1}\"}},{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"w\",\"arguments\":\"{\\\"p\\\":\"}}]},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let (events, ended, _) = run_whole(Api::OpenAiCompletions, body);
    ended.unwrap();
    let states: Vec<(&str, ArgumentsState, &str)> = end_of(&events)
        .blocks
        .iter()
        .filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some((call.id.as_ref(), call.state, call.arguments.get())),
            _ => None,
        })
        .collect();
    assert_eq!(
        states,
        [
            ("a", ArgumentsState::Unusable, "{\"p\":1}"),
            ("b", ArgumentsState::Unusable, "{}")
        ]
    );
}

#[test]
fn usage_in_odd_places() {
    // Moonshot: inside the choice. DeepSeek: hit and miss. OpenRouter: cache writes. Negative counts.
    for (usage, expected) in [
        (
            r#"{"prompt_tokens":100,"completion_tokens":5,"cached_tokens":60}"#,
            (40, 5, 60, 0),
        ),
        (
            r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":90,"prompt_cache_miss_tokens":10}"#,
            (10, 5, 90, 0),
        ),
        (
            r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}"#,
            (10, 5, 60, 30),
        ),
        (
            r#"{"prompt_tokens":10,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":60}}"#,
            (0, 0, 60, 0),
        ),
        (r#"{"prompt_tokens":null,"completion_tokens":5.0}"#, (0, 5, 0, 0)),
    ] {
        let body = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"hi\"}},\"finish_reason\":\"stop\",\"usage\":{usage}}}]}}\n\n"
        );
        let (events, ended, _) = run_whole(Api::OpenAiCompletions, &body);
        ended.unwrap();
        let usage = end_of(&events).usage;
        let parts = (usage.input, usage.output, usage.cache_read, usage.cache_write);
        let (input, output, read, write) = expected;
        assert_eq!(
            parts,
            (Tokens(input), Tokens(output), Tokens(read), Tokens(write)),
            "{usage:?}"
        );
    }
}

#[test]
fn servers_without_indices() {
    // llama.cpp gives Responses items without `output_index`.
    let body = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n\
        data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"id\":\"a\"}}\n\n\
        data: {\"type\":\"response.output_text.delta\",\"item_id\":\"a\",\"delta\":\"x\"}\n\n\
        data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":\"\"}}\n\n\
        data: {\"type\":\"response.output_text.delta\",\"item_id\":\"a\",\"delta\":\"y\"}\n\n\
        data: {\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"f\",\"delta\":\"{}\"}\n\n\
        data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
    let (events, ended, _) = run_whole(Api::OpenAiResponses, body);
    ended.unwrap();
    let reply = end_of(&events);
    assert_eq!((reply.text().as_str(), reply.stop), ("xy", StopReason::ToolUse));
    // Calls told apart by id, and a fragment without any name belongs to the newest.
    let body = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":\"{\\\"x\\\":\"}}]}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":\"stop\"}]}\n\n";
    let (events, ended, _) = run_whole(Api::OpenAiCompletions, body);
    ended.unwrap();
    let reply = end_of(&events);
    assert_eq!(reply.stop, StopReason::ToolUse);
    match reply.blocks.as_slice() {
        [AssistantBlock::ToolCall(call)] => assert_eq!(call.arguments.get(), "{\"x\":1}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn half_an_emoji_does_not_stop_a_stream() {
    let body = completions("\"stop\"").replace("hi", "a\\ud83d");
    let (events, ended, _) = run_whole(Api::OpenAiCompletions, &body);
    ended.unwrap();
    assert_eq!(end_of(&events).text(), "a\u{fffd}");
}

#[test]
fn what_is_no_json_is_an_error_of_the_protocol() {
    for (api, _) in super::STREAMS {
        let (_, ended, _) = run_whole(api, "data: <html>\n\n");
        assert_eq!(
            ended.unwrap_err().class,
            ErrorClass::Other(OtherCause::Protocol),
            "{api}"
        );
    }
}
