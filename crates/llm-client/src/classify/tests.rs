mod facts;
mod usage;

use std::time::{Duration, SystemTime};

use foldline_session_model::model_call::ErrorClass::{
    self, Auth, Cancelled, Other, Quota, RateLimit, Transient,
};
use foldline_session_model::model_call::{OtherCause, StopReason, TransientCause, Usage};
use foldline_session_model::{ByteLen, Tokens};

use super::*;

const OVERFLOW: ErrorClass = ErrorClass::OVERFLOW;
const INVALID: ErrorClass = Other(OtherCause::InvalidRequest);
const UNKNOWN: ErrorClass = Other(OtherCause::Unknown);
const SERVER: ErrorClass = Transient(TransientCause::Server);
const OVERLOADED: ErrorClass = Transient(TransientCause::Overloaded);
const NETWORK: ErrorClass = Transient(TransientCause::Network);
const BODY: ErrorClass = ErrorClass::BodyTooLarge { limit: None };

fn overflow(limit: u64, input: u64, output: u64) -> ErrorClass {
    let some = |n: u64| (n > 0).then_some(Tokens(n));
    ErrorClass::Overflow {
        limit: some(limit),
        input: some(input),
        output: some(output),
    }
}

fn by_text(text: &str) -> ErrorClass {
    classify_failure(&TransportFacts::default(), Some(text), &UserPatterns::default())
}

#[test]
fn texts_by_class() {
    let rows: &[(&str, ErrorClass)] = &[
        // Providers' overflow texts (spec 4.2).
        ("PROMPT IS TOO LONG", OVERFLOW),
        (
            "prompt is too long: 285744 tokens > 200000 maximum",
            overflow(200_000, 285_744, 0),
        ),
        ("Input is too long for requested model.", OVERFLOW),
        (
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            OVERFLOW,
        ),
        (
            "exceeds maximum context length of 1,000 tokens",
            overflow(1000, 0, 0),
        ),
        (
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
            overflow(1_048_575, 1_196_265, 0),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            overflow(131_072, 537_812, 0),
        ),
        (
            "Please reduce the length of the messages or completion.",
            OVERFLOW,
        ),
        (
            "This endpoint's maximum context length is 65536 tokens. However, you requested about 70123 tokens.",
            overflow(65_536, 70_123, 0),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
            overflow(8192, 8000, 1000),
        ),
        (
            "Input length 9000 exceeds the maximum allowed input length of 8,192 tokens.",
            overflow(8192, 9000, 0),
        ),
        (
            "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
            overflow(262_144, 516_368, 0),
        ),
        (
            "prompt token count of 175000 exceeds the limit of 168000",
            overflow(168_000, 175_000, 0),
        ),
        (
            "the request exceeds the available context size, try increasing it",
            OVERFLOW,
        ),
        (
            "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
            overflow(8192, 9031, 0),
        ),
        (
            "tokens to keep from the initial prompt is greater than the context length",
            OVERFLOW,
        ),
        ("invalid params, context window exceeds limit (2013)", OVERFLOW),
        (
            "Your request exceeded model token limit: 262144 (requested: 291351)",
            overflow(262_144, 291_351, 0),
        ),
        (
            "Prompt contains 130000 tokens, too large for model with 128000 maximum context length",
            overflow(128_000, 130_000, 0),
        ),
        (
            "Prompt has 120,000 tokens, but the configured context size is 100,000 tokens",
            overflow(100_000, 120_000, 0),
        ),
        (
            "prompt too long; exceeded max context length by 1200 tokens",
            OVERFLOW,
        ),
        ("Range of input length should be [1, 98304]", OVERFLOW),
        ("Unhandled stop reason: model_context_window_exceeded", OVERFLOW),
        (
            "requested tokens (4321) exceed context window of 4096",
            overflow(4096, 4321, 0),
        ),
        ("context size overflow detected", OVERFLOW),
        ("context length is too small", OVERFLOW),
        ("input too long for context", OVERFLOW),
        ("context length exceeded", OVERFLOW),
        ("too many tokens in request", OVERFLOW),
        ("token limit exceeded", OVERFLOW),
        ("400 status code (no body)", OVERFLOW),
        ("Error: 413 (no body)", OVERFLOW),
        ("502 Bad Gateway: context length exceeded upstream", OVERFLOW),
        // FB-072: prefixes of wrappers.
        (
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
            overflow(131_040, 131_393, 0),
        ),
        (
            "400 `prompt too long; exceeded max context length by 100918 tokens`",
            OVERFLOW,
        ),
        (
            "400 Input length (265330) exceeds model's maximum context length (262144).",
            overflow(262_144, 265_330, 0),
        ),
        (
            "503 litellm.ServiceUnavailableError: litellm.MidStreamFallbackError: litellm.APIConnectionError: APIConnectionError: OpenAIException - Requested token count exceeds the model's maximum context length of 131072 tokens.",
            overflow(131_072, 0, 0),
        ),
        // FB-078: prompt and reserved output together.
        (
            "input length and `max_tokens` exceed context limit: 196758 + 8192 > 200000, decrease input length or `max_tokens` and try again",
            overflow(200_000, 196_758, 8192),
        ),
        (
            "This endpoint's maximum context length is 256000 tokens. However, you requested about 256493 tokens (194895 of text input, 10398 of tool input, 51200 in the output).",
            overflow(256_000, 205_293, 51_200),
        ),
        // FB-076: one request above the rate.
        (
            "Request too large for model `m` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 21894, please reduce your message size and try again.",
            ErrorClass::RequestTooLarge {
                limit: Some(Tokens(8000)),
                requested: Some(Tokens(21_894)),
            },
        ),
        (
            "Request too large for model `m` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 6000, please reduce your message size and try again.",
            RateLimit,
        ),
        // FB-074: rate and quota wording wins.
        (
            "Too many tokens per day, please wait before trying again.",
            RateLimit,
        ),
        (
            "Tokens per minute limit exceeded - too many tokens processed.",
            RateLimit,
        ),
        ("Too many tokens per minute", RateLimit),
        (
            "This request exceeds the limit of 30000 tokens per minute",
            RateLimit,
        ),
        ("429 status code (no body)", RateLimit),
        (
            "429 Too Many Requests: exceeds the limit of 500 requests",
            RateLimit,
        ),
        (
            "Throttling error: Too many tokens, please wait before trying again.",
            RateLimit,
        ),
        (
            "ThrottlingException: Too many tokens, please wait before trying again.",
            RateLimit,
        ),
        ("429: token limit exceeded", RateLimit),
        ("rate limit reached: too many tokens per minute", RateLimit),
        ("Too many requests", RateLimit),
        ("This request would exceed your account's rate limit", RateLimit),
        (
            "prompt is too long: 429 tokens > 400 maximum",
            overflow(400, 429, 0),
        ),
        ("Service unavailable: prompt is too long", OVERLOADED),
        ("insufficient_quota: you exceeded your current quota", Quota),
        ("quota exceeded for this billing period", Quota),
        ("GoUsageLimitError: limit", Quota),
        ("The usage limit has been reached", Quota),
        ("Codex error: The usage limit has been reached", Quota),
        ("out of budget", Quota),
        ("Your credit balance is too low to access the API", Quota),
        ("available balance is 0", Quota),
        // Bytes, not tokens.
        ("Request exceeds the maximum size", BODY),
        ("Payload Too Large", BODY),
        ("413 Request Entity Too Large", BODY),
        (
            "body too large: 40000000 bytes, the limit is 33554432 bytes",
            ErrorClass::BodyTooLarge {
                limit: Some(ByteLen(33_554_432)),
            },
        ),
        // FB-084: media with its place.
        (
            "messages.14.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
            ErrorClass::MediaRejected {
                message: Some(14),
                entry: None,
            },
        ),
        (
            "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
            ErrorClass::MediaRejected {
                message: Some(2),
                entry: None,
            },
        ),
        (
            "Could not process image",
            ErrorClass::MediaRejected {
                message: None,
                entry: None,
            },
        ),
        // Credentials.
        ("401 Unauthorized", Auth),
        ("Incorrect API key provided", Auth),
        ("invalid x-api-key", Auth),
        ("auth_unavailable: no auth available", Auth),
        // Passing failures.
        ("529 Overloaded", OVERLOADED),
        ("overloaded_error", OVERLOADED),
        ("internal error, please retry", SERVER),
        ("501 Not Implemented", SERVER),
        ("code 504.", SERVER),
        ("522", SERVER),
        // Spec "Verbatim", 21, outcomes: "500/501/599 rate, 499/600/`model 5000` provider". A status of the server
        // passes; a number beside the range, or a longer one, says nothing.
        ("500", SERVER),
        ("599", SERVER),
        ("HTTP 500", SERVER),
        ("status 599", SERVER),
        ("ECONNRESET", NETWORK),
        ("fetch failed", NETWORK),
        (crate::EMPTY_COMPLETION, Transient(TransientCause::EmptyReply)),
        ("Anthropic stream ended before message_stop", NETWORK),
        // Everything else, near misses among them.
        ("exceeds the limit of requests", UNKNOWN),
        ("Context-length-exceeded", UNKNOWN),
        ("the context window of your IDE is closed", UNKNOWN),
        ("version 1.503", UNKNOWN),
        ("499", UNKNOWN),
        ("600", UNKNOWN),
        ("model 5000", UNKNOWN),
        ("error 5000", UNKNOWN),
        ("HTTP 4130 request too large", UNKNOWN),
        ("prompt\nis too long", UNKNOWN),
        ("reduce the length of the message", UNKNOWN),
        ("maximum prompt length is x", UNKNOWN),
        ("tool_use ids were found without tool_result blocks", INVALID),
        ("Invalid value for max_tokens: exceeds the maximum", INVALID),
        ("", UNKNOWN),
    ];
    for (text, expected) in rows {
        assert_eq!(&by_text(text), expected, "{text}");
    }
}

#[test]
fn users_can_add_patterns() {
    let text = "Der Prompt ist zu lang";
    assert_eq!(by_text(text), UNKNOWN);
    let user = UserPatterns::new(&["prompt ist zu lang"]).unwrap();
    assert_eq!(
        classify_failure(&TransportFacts::default(), Some(text), &user),
        OVERFLOW
    );
    // Not even they turn a refused key into an overflow.
    let facts = TransportFacts {
        status: Some(401),
        codes: &[],
    };
    assert_eq!(classify_failure(&facts, Some(text), &user), Auth);
    assert!(UserPatterns::new(&["("]).is_err());
}

#[test]
fn waits_in_prose() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let rows: &[(&str, Option<u64>)] = &[
        ("x retry-after-ms=1500", Some(1500)),
        ("retry-after: 7", Some(7000)),
        ("Retry-After: Fri, 15 Jan 2027 08:00:05 GMT", Some(5000)),
        ("quota will reset after 1h2m3.5s", Some(3_723_500)),
        ("Please retry in 250ms", Some(250)),
        (r#"{"retryDelay": "12s"}"#, Some(12_000)),
        ("Please try again in 6.25s.", Some(6250)),
        ("x-ratelimit-reset-ms: 1800000002000", Some(2000)),
        ("x-ratelimit-reset=30", Some(30_000)),
        ("x-ratelimit-reset=1800000009", Some(9000)),
        ("x-ratelimit-reset=1800000009000", Some(9000)),
        // The first form that is there counts.
        ("try again in 9s retry-after-ms=10", Some(10)),
        ("nothing", None),
        ("retry-after: soon", None),
    ];
    for (text, expected) in rows {
        assert_eq!(
            retry_hint(text, now),
            expected.map(Duration::from_millis),
            "{text}"
        );
    }
}

#[test]
fn long_pages_are_cut_at_a_character() {
    let page = "é".repeat(MAX_TEXT) + "prompt is too long";
    assert_eq!(by_text(&page), UNKNOWN);
}
