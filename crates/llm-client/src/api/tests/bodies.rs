//! The bodies of requests as the model's server sees them.

use std::fmt::Write as _;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, ArgumentsState, AssistantBlock, CacheHint, CacheLifetime, Image, ImageInput, InputBlock, LlmRequest,
    MaxTokensField, MessageContent, ModelProfile, ModelRef, Origin, PromptCache, RawJson, ReasoningEffort,
    ReasoningStyle, RequestMessage, StopReason, SystemRole, ToolCall, ToolChoice, ToolOutcome, ToolSpec,
};
use serde_json::value::RawValue;

use crate::api::encode;

fn profile(api: Api) -> ModelProfile {
    let mut profile = ModelProfile::unknown(
        ModelRef {
            provider: "acme".to_owned(),
            id: "model-1".to_owned(),
        },
        api,
    );
    profile.max_output = Some(Tokens(32_000));
    profile.context_window = Some(Tokens(200_000));
    profile.capabilities.images = ImageInput::Yes;
    profile
}

fn origin(api: Api, model: &str) -> Origin {
    Origin {
        api,
        provider: "acme".to_owned(),
        model: model.to_owned(),
    }
}

fn message(content: MessageContent<'static>) -> RequestMessage<'static> {
    RequestMessage { entry: None, content }
}

fn assistant(
    origin: Origin,
    stop: StopReason,
    blocks: Vec<AssistantBlock<'static>>,
) -> RequestMessage<'static> {
    message(MessageContent::Assistant {
        origin: Some(origin),
        stop,
        blocks,
    })
}

fn text(text: &'static str) -> AssistantBlock<'static> {
    AssistantBlock::Text {
        text: text.into(),
        signature: None,
    }
}

fn thinking(text: &'static str, signature: Option<&'static str>) -> AssistantBlock<'static> {
    AssistantBlock::Thinking {
        text: text.into(),
        signature: signature.map(Into::into),
    }
}

fn call(id: &'static str, arguments: &str) -> AssistantBlock<'static> {
    AssistantBlock::ToolCall(ToolCall {
        id: id.into(),
        name: "read".into(),
        arguments: RawJson::parse(arguments.to_owned()).unwrap(),
        state: ArgumentsState::Whole,
    })
}

fn result(
    id: &'static str,
    blocks: Vec<InputBlock<'static>>,
    outcome: ToolOutcome,
) -> RequestMessage<'static> {
    message(MessageContent::ToolResult {
        call_id: id.into(),
        tool_name: "read".into(),
        blocks,
        outcome,
    })
}

fn image() -> InputBlock<'static> {
    InputBlock::Image(Image {
        mime_type: "image/png".into(),
        data: "aW1n".into(),
    })
}

fn signature_of(api: Api) -> &'static str {
    match api {
        Api::AnthropicMessages => "c2ln",
        Api::OpenAiCompletions => "reasoning_content",
        Api::OpenAiResponses => r#"{"id":"rs_1","type":"reasoning","encrypted_content":"x", "summary":[]}"#,
    }
}

/// A conversation with everything in it: text, pictures, thinking of the same and of another model, calls
/// whose ids no API takes, results together, and the repairs.
fn conversation(api: Api) -> LlmRequest<'static> {
    let same = origin(api, "model-1");
    let other = origin(api, "model-0");
    LlmRequest {
        system: vec!["You are careful.".into(), "Work in /repo.".into()],
        messages: vec![
            message(MessageContent::User {
                blocks: vec![InputBlock::Text("look".into()), image()],
            }),
            assistant(
                other,
                StopReason::ToolUse,
                vec![
                    thinking("old thoughts", Some("foreign")),
                    AssistantBlock::RedactedThinking {
                        data: "foreign".into(),
                    },
                    call("call:1|fc_1", r#"{"path": "a", "n": 1.0}"#),
                    call("call:2|fc_2", "{}"),
                ],
            ),
            result(
                "call:2|fc_2",
                vec![InputBlock::Text("two".into())],
                ToolOutcome::Success,
            ),
            result(
                "call:1|fc_1",
                vec![InputBlock::Text("one".into()), image()],
                ToolOutcome::Error,
            ),
            assistant(same.clone(), StopReason::Error, vec![text("broken off")]),
            assistant(
                same,
                StopReason::ToolUse,
                vec![
                    thinking("new thoughts", Some(signature_of(api))),
                    AssistantBlock::RedactedThinking { data: "b3du".into() },
                    text("I see."),
                    text("  "),
                    call("call_3|fc_3", r#"{"path":"b"}"#),
                ],
            ),
            result(
                "gone",
                vec![InputBlock::Text("late".into())],
                ToolOutcome::Success,
            ),
            RequestMessage::user("go on"),
        ],
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            parameters: RawJson::parse(r#"{"type":"object", "properties":{}}"#.to_owned()).unwrap(),
        }],
        tool_choice: ToolChoice::Auto,
        max_output: Some(Tokens(4000)),
        reasoning: ReasoningEffort::Medium,
        cache: CacheHint::Short,
        session_key: Some("session-1".into()),
    }
}

fn pretty(body: &[u8]) -> String {
    // One member per line is enough to review; the bytes themselves are what is compared.
    let text = String::from_utf8(body.to_vec()).unwrap();
    let raw: Box<RawValue> = serde_json::from_str(&text).expect("the body is JSON");
    raw.get()
        .replace("{\"role\"", "\n  {\"role\"")
        .replace(",{\"type\"", ",\n    {\"type\"")
        .replace("],\"", "],\n\"")
}

fn body(profile: &ModelProfile, request: &LlmRequest<'_>) -> String {
    pretty(&encode(profile, request).unwrap().body)
}

#[test]
fn whole_conversations() {
    for api in Api::ALL {
        insta::assert_snapshot!(
            format!("conversation_{api}"),
            body(&profile(api), &conversation(api))
        );
    }
}

#[test]
fn every_wire_message_knows_where_it_came_from() {
    let expected: [(Api, &[Option<usize>]); 3] = [
        (
            Api::AnthropicMessages,
            &[Some(0), Some(1), Some(2), Some(5), None, Some(6), Some(7)],
        ),
        (
            Api::OpenAiCompletions,
            &[
                None,
                Some(0),
                Some(1),
                Some(2),
                Some(3),
                Some(3),
                Some(5),
                None,
                Some(6),
                Some(7),
            ],
        ),
        (
            Api::OpenAiResponses,
            &[
                None,
                Some(0),
                Some(1),
                Some(1),
                Some(1),
                Some(2),
                Some(3),
                Some(5),
                Some(5),
                Some(5),
                None,
                Some(6),
                Some(7),
            ],
        ),
    ];
    for (api, sources) in expected {
        assert_eq!(
            encode(&profile(api), &conversation(api)).unwrap().sources,
            sources,
            "{api}"
        );
    }
}

#[test]
fn a_summary_request_is_plain() {
    for api in Api::ALL {
        let mut request = LlmRequest::from_prompt("Summarise.", "<conversation>…</conversation>");
        request.max_output = Some(Tokens(13_107));
        request.reasoning = ReasoningEffort::High;
        insta::assert_snapshot!(format!("summary_{api}"), body(&profile(api), &request));
    }
}

#[test]
fn thinking_is_asked_for_as_the_model_wants_it() {
    let rows = [
        (
            Api::AnthropicMessages,
            ReasoningStyle::Budget,
            ReasoningEffort::Medium,
        ),
        (
            Api::AnthropicMessages,
            ReasoningStyle::Budget,
            ReasoningEffort::Off,
        ),
        (
            Api::AnthropicMessages,
            ReasoningStyle::Adaptive,
            ReasoningEffort::Max,
        ),
        (
            Api::OpenAiCompletions,
            ReasoningStyle::Effort,
            ReasoningEffort::Low,
        ),
        (
            Api::OpenAiCompletions,
            ReasoningStyle::Switch,
            ReasoningEffort::Off,
        ),
        (
            Api::OpenAiResponses,
            ReasoningStyle::Effort,
            ReasoningEffort::High,
        ),
        (Api::OpenAiResponses, ReasoningStyle::None, ReasoningEffort::High),
    ];
    let mut shown = String::new();
    for (api, style, level) in rows {
        let mut profile = profile(api);
        profile.capabilities.reasoning = style;
        let mut request = LlmRequest::from_prompt("s", "p");
        request.max_output = Some(Tokens(4000));
        request.reasoning = level;
        let sent = body(&profile, &request);
        writeln!(shown, "{api} {style:?} {level:?}\n{sent}\n").unwrap();
    }
    insta::assert_snapshot!("thinking", shown);
}

#[test]
fn a_small_model_leaves_room_beside_the_budget() {
    let mut small = profile(Api::AnthropicMessages);
    small.capabilities.reasoning = ReasoningStyle::Budget;
    small.max_output = Some(Tokens(8192));
    let mut request = LlmRequest::from_prompt("s", "p");
    request.max_output = Some(Tokens(4000));
    request.reasoning = ReasoningEffort::High;
    let shown = body(&small, &request);
    assert!(
        shown.contains(r#""max_tokens":8192"#) && shown.contains(r#""budget_tokens":7168"#),
        "{shown}"
    );
}

#[test]
fn output_limits_stay_below_what_the_model_can() {
    // (limit of the model, window, wanted) -> asked for
    let rows = [
        (Some(65_536), Some(1_048_576), Some(339_835), "65536"),
        (None, Some(1_048_576), Some(339_835), "8192"),
        (Some(65_536), Some(1000), Some(4000), "1000"),
        (Some(65_536), None, Some(4000), "4000"),
        (Some(65_536), Some(0), Some(4000), "4000"),
    ];
    for (limit, window, wanted, expected) in rows {
        for (api, field) in [
            (Api::AnthropicMessages, "max_tokens"),
            (Api::OpenAiCompletions, "max_tokens"),
            (Api::OpenAiResponses, "max_output_tokens"),
        ] {
            let mut profile = profile(api);
            profile.max_output = limit.map(Tokens);
            profile.context_window = window.map(Tokens);
            let mut request = LlmRequest::from_prompt("s", "p");
            request.max_output = wanted.map(Tokens);
            let shown = body(&profile, &request);
            assert!(
                shown.contains(&format!("\"{field}\":{expected},"))
                    || shown.contains(&format!("\"{field}\":{expected}}}")),
                "{api}: {shown}"
            );
        }
    }
}

#[test]
fn what_servers_differ_in_is_a_capability() {
    let mut openai = profile(Api::OpenAiCompletions);
    openai.capabilities.system_role = SystemRole::Developer;
    openai.capabilities.max_tokens_field = MaxTokensField::MaxCompletionTokens;
    openai.capabilities.prompt_cache = PromptCache::Marked;
    openai.capabilities.images = ImageInput::No;
    let mut request = conversation(Api::OpenAiCompletions);
    request.tool_choice = ToolChoice::Required;
    insta::assert_snapshot!("capabilities", body(&openai, &request));
}

#[test]
fn the_long_cache_is_asked_for_only_where_there_is_one() {
    let mut profile = profile(Api::AnthropicMessages);
    let mut request = LlmRequest::from_prompt("s", "p");
    request.cache = CacheHint::Long;
    assert!(!body(&profile, &request).contains("ttl"));
    profile.cache_lifetime = CacheLifetime {
        short_seconds: Some(300),
        long_seconds: Some(3600),
    };
    assert_eq!(body(&profile, &request).matches(r#""ttl":"1h""#).count(), 2);
    request.cache = CacheHint::Off;
    assert!(!body(&profile, &request).contains("cache_control"));
}

/// Opaque blocks go byte for byte to the model that made them, and to no other.
#[test]
fn fb_108_fb_110_fb_112_opaque_blocks_go_home_or_nowhere() {
    for api in Api::ALL {
        let signature = signature_of(api);
        let mut request = LlmRequest::from_prompt("s", "p");
        request.messages.push(assistant(
            origin(api, "model-1"),
            StopReason::Stop,
            vec![
                thinking("secret thoughts", Some(signature)),
                AssistantBlock::RedactedThinking { data: "b3du".into() },
                text("done"),
            ],
        ));
        request.messages.push(RequestMessage::user("next"));
        let mine = profile(api);
        let sent = String::from_utf8(encode(&mine, &request).unwrap().body).unwrap();
        assert!(sent.contains(signature), "{api}: {sent}");
        for changed in [
            ModelProfile {
                id: "model-2".to_owned(),
                ..mine.clone()
            },
            ModelProfile {
                provider: "other".to_owned(),
                ..mine.clone()
            },
        ] {
            let sent = String::from_utf8(encode(&changed, &request).unwrap().body).unwrap();
            assert!(
                !sent.contains("rs_1") && !sent.contains("c2ln") && !sent.contains("b3du"),
                "{api}: {sent}"
            );
            assert!(
                !sent.contains("\"thinking\":\"secret") && !sent.contains("reasoning_content"),
                "{api}: {sent}"
            );
            assert!(sent.contains("secret thoughts"), "as plain text, {api}: {sent}");
        }
    }
}

#[test]
fn a_native_history_is_read_by_its_own_model_only() {
    let item = r#"{"type":"compaction","encrypted_content":"Q29t", "id":"c1"}"#;
    let mut request = LlmRequest::from_prompt("s", "p");
    request.messages.insert(
        0,
        message(MessageContent::Opaque {
            origin: origin(Api::OpenAiResponses, "model-1"),
            items: vec![RawJson::parse(item.to_owned()).unwrap()],
            fallback: "What happened so far: nothing.".into(),
        }),
    );
    let mine = body(&profile(Api::OpenAiResponses), &request);
    assert!(mine.contains(item) && !mine.contains("so far"), "{mine}");
    let mut moved = profile(Api::OpenAiResponses);
    moved.id = "model-2".to_owned();
    for other in [
        moved,
        profile(Api::AnthropicMessages),
        profile(Api::OpenAiCompletions),
    ] {
        let sent = body(&other, &request);
        assert!(!sent.contains("Q29t") && sent.contains("so far"), "{sent}");
    }
}

#[test]
fn ids_of_calls_fit_every_api_and_stay_apart() {
    let long_a: &'static str = "x123456789012345678901234567890123456789012345678901234567890123456789-a";
    let long_b: &'static str = "x123456789012345678901234567890123456789012345678901234567890123456789-b";
    for api in Api::ALL {
        let mut request = LlmRequest::from_prompt("s", "p");
        request.messages.push(assistant(
            origin(api, "model-0"),
            StopReason::ToolUse,
            vec![call(long_a, "{}"), call(long_b, "{}")],
        ));
        request.messages.push(result(
            long_a,
            vec![InputBlock::Text("A".into())],
            ToolOutcome::Success,
        ));
        request.messages.push(result(
            long_b,
            vec![InputBlock::Text("B".into())],
            ToolOutcome::Success,
        ));
        insta::assert_snapshot!(format!("long_ids_{api}"), body(&profile(api), &request));
    }
}
