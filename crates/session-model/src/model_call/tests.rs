use super::*;
use crate::units::Tokens;

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64, total: u64) -> Usage {
    Usage {
        total_tokens: Tokens(total),
        ..Usage::from_parts(
            Tokens(input),
            Tokens(output),
            Tokens(cache_read),
            Tokens(cache_write),
        )
    }
}

#[test]
fn context_tokens_by_api() {
    use Api::{AnthropicMessages as A, OpenAiCompletions as C, OpenAiResponses as R};
    // (input, output, cache read, cache write, total) -> context tokens
    let rows = [
        (C, (1000, 500, 200, 100, 999_999), 1800),
        (A, (116_000, 500, 116_000, 0, 0), 116_500),
        (R, (7907, 7, 7936, 0, 0), 15_850),
        (A, (35_000, 500, 81_000, 0, 0), 116_500),
        (A, (0, 0, 0, 0, 1234), 1234),
        (C, (0, 0, 0, 0, 0), 0),
        (R, (2344, 100, 171_520, 0, 0), 173_964),
        (A, (2, 50, 349_801, 975, 0), 350_828),
        (A, (50_000, 100, 50_000, 0, 50_100), 50_100),
        // The edges of the guard: 90 % and 110 % are a mirror, one token outside is not.
        (A, (1000, 0, 900, 0, 0), 1000),
        (A, (1000, 0, 899, 0, 0), 1899),
        (A, (1000, 0, 600, 500, 0), 1000),
        (A, (1000, 0, 1101, 0, 0), 2101),
        (C, (1000, 0, 1000, 0, 0), 2000),
        (A, (u64::MAX, u64::MAX, u64::MAX, u64::MAX, 0), u64::MAX),
    ];
    for (api, (input, output, read, write, total), expected) in rows {
        let usage = usage(input, output, read, write, total);
        assert_eq!(context_tokens(&usage, api), Tokens(expected), "{api} {usage:?}");
    }
}

#[test]
fn inclusive_counts_never_go_negative() {
    let plain = Usage::from_inclusive(Tokens(100), Tokens(7), Tokens(60), Tokens(10));
    assert_eq!((plain.input, plain.total_tokens), (Tokens(30), Tokens(107)));
    let broken = Usage::from_inclusive(Tokens(50), Tokens(7), Tokens(60), Tokens(0));
    assert_eq!(broken.input, Tokens::ZERO);
}

#[test]
fn cost_follows_the_prices() {
    let prices = Prices {
        input: 3.0,
        output: 15.0,
        cache_read: 0.3,
        cache_write: 3.75,
        cache_write_long: Some(6.0),
    };
    let used = Usage::from_parts(
        Tokens(1_000_000),
        Tokens(100_000),
        Tokens(2_000_000),
        Tokens(400_000),
    );
    let short = used.priced(&prices, CacheHint::Short).cost;
    assert!((short.total - (3.0 + 1.5 + 0.6 + 1.5)).abs() < 1e-9, "{short:?}");
    let long = used.priced(&prices, CacheHint::Long).cost;
    assert!((long.cache_write - 2.4).abs() < 1e-9, "{long:?}");
}

#[test]
fn usage_has_the_field_names_of_session_files() {
    let text = r#"{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0.5,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}}"#;
    let read: Usage = serde_json::from_str(text).unwrap();
    assert_eq!(read.cache_write, Tokens(4));
    let partial: Usage = serde_json::from_str(r#"{"input":9}"#).unwrap();
    assert_eq!(partial.input, Tokens(9));
}

#[test]
fn a_request_survives_serialisation_with_its_raw_arguments() {
    let arguments = r#"{"b": 1.0, "a":[1e-7,  "é"]}"#;
    let request = LlmRequest {
        system: vec!["be short".into()],
        messages: vec![
            RequestMessage::user("go"),
            RequestMessage {
                entry: Some("a1b2c3d4".into()),
                content: MessageContent::Assistant {
                    origin: Some(Origin {
                        api: Api::AnthropicMessages,
                        provider: "anthropic".to_owned(),
                        model: "m".to_owned(),
                    }),
                    stop: StopReason::ToolUse,
                    blocks: vec![
                        AssistantBlock::Thinking {
                            text: "hm".into(),
                            signature: Some("sig".into()),
                        },
                        AssistantBlock::ToolCall(ToolCall {
                            id: "c1".into(),
                            name: "read".into(),
                            arguments: RawJson::parse(arguments.to_owned()).unwrap(),
                            state: ArgumentsState::Whole,
                        }),
                    ],
                },
            },
            RequestMessage {
                entry: None,
                content: MessageContent::ToolResult {
                    call_id: "c1".into(),
                    tool_name: "read".into(),
                    blocks: vec![InputBlock::Image(Image {
                        mime_type: "image/png".into(),
                        data: "AA==".into(),
                    })],
                    outcome: ToolOutcome::Error,
                },
            },
        ],
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "reads".into(),
            parameters: RawJson::parse(r#"{"type":"object"}"#.to_owned()).unwrap(),
        }],
        tool_choice: ToolChoice::Tool("read".to_owned()),
        max_output: Some(Tokens(7)),
        reasoning: ReasoningEffort::High,
        cache: CacheHint::Short,
        session_key: Some("s".into()),
    };
    let text = serde_json::to_string(&request).unwrap();
    assert!(
        text.contains(arguments),
        "raw arguments must stay as they are: {text}"
    );
    let read: LlmRequest<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, request);
}

#[test]
fn only_size_classes_want_a_smaller_request() {
    assert!(ErrorClass::OVERFLOW.wants_smaller_request());
    assert!(ErrorClass::BodyTooLarge { limit: None }.wants_smaller_request());
    for class in [
        ErrorClass::RateLimit,
        ErrorClass::Quota,
        ErrorClass::Auth,
        ErrorClass::Cancelled,
        ErrorClass::Transient(TransientCause::Server),
        ErrorClass::Other(OtherCause::Unknown),
        ErrorClass::MediaRejected {
            message: None,
            entry: None,
        },
    ] {
        assert!(!class.wants_smaller_request(), "{class}");
    }
}

#[test]
fn a_timed_out_model_is_not_asked_again() {
    assert!(ErrorClass::Transient(TransientCause::Overloaded).may_retry());
    assert!(ErrorClass::RateLimit.may_retry());
    assert!(!ErrorClass::Transient(TransientCause::IdleTimeout).may_retry());
    assert!(!ErrorClass::OVERFLOW.may_retry());
}

#[test]
fn model_names_split_at_the_first_slash() {
    let model = ModelRef::parse("openrouter/anthropic/claude").unwrap();
    assert_eq!(
        (model.provider.as_str(), model.id.as_str()),
        ("openrouter", "anthropic/claude")
    );
    assert_eq!(ModelRef::parse("noslash"), None);
    assert_eq!(ModelRef::parse("/x"), None);
}

#[test]
fn a_reply_is_empty_without_text_and_calls() {
    let mut reply = LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: " \n".into(),
            signature: None,
        }],
        usage: Usage::default(),
        stop: StopReason::Stop,
        raw_stop: None,
        model: None,
        response_id: None,
    };
    assert!(reply.is_empty());
    reply.blocks.push(AssistantBlock::Text {
        text: "x".into(),
        signature: None,
    });
    assert!(!reply.is_empty());
    assert_eq!(reply.text(), " \n\nx");
}
