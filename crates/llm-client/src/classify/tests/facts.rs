//! Statuses, codes and bodies.

use super::*;

#[test]
fn typed_facts_beat_prose() {
    let rows: &[(Option<u16>, &[&str], &str, ErrorClass)] = &[
        // FB-080.
        (Some(401), &["invalid_api_key"], "context_length_exceeded", Auth),
        (
            Some(400),
            &["invalid_request_error"],
            "context window exceeded",
            INVALID,
        ),
        (Some(400), &["context_length_exceeded"], "", OVERFLOW),
        (None, &["model_context_window_exceeded"], "", OVERFLOW),
        // Anthropic reports a real overflow as an invalid request; its own words are known.
        (
            Some(400),
            &["invalid_request_error"],
            "prompt is too long: 285744 tokens > 200000 maximum",
            overflow(200_000, 285_744, 0),
        ),
        (
            Some(400),
            &["invalid_request_error", "context_length_exceeded"],
            "x",
            OVERFLOW,
        ),
        (
            Some(429),
            &["context_length_exceeded"],
            "prompt is too long",
            RateLimit,
        ),
        (
            Some(429),
            &["insufficient_quota"],
            "You exceeded your current quota",
            Quota,
        ),
        (
            Some(413),
            &["request_too_large"],
            "Request exceeds the maximum size",
            BODY,
        ),
        (Some(413), &[], "something else", BODY),
        (Some(413), &[], "", OVERFLOW),
        (Some(400), &[], "400 status code (no body)", OVERFLOW),
        (
            Some(400),
            &["INSUFFICIENT_QUOTA"],
            "400 status code (no body)",
            Quota,
        ),
        (Some(401), &[], "prompt is too long", Auth),
        (Some(402), &[], "", Quota),
        (Some(403), &[], "your plan's usage limit", Quota),
        (Some(403), &[], "context length exceeded", Auth),
        (Some(404), &[], "model not here", Other(OtherCause::NotFound)),
        (Some(500), &[], "", SERVER),
        (Some(500), &[], "context_length_exceeded", OVERFLOW),
        (Some(529), &["overloaded_error"], "Overloaded", OVERLOADED),
        (None, &["overloaded_error"], "Overloaded", OVERLOADED),
        (None, &["api_error"], "Internal server error", SERVER),
        (Some(503), &[], "try later", SERVER),
        // Spec "Verbatim", 21: "500/501/599 rate, 499/600 provider".
        (Some(501), &[], "", SERVER),
        (Some(599), &[], "", SERVER),
        (Some(499), &[], "", INVALID),
        (Some(600), &[], "", UNKNOWN),
        (Some(400), &[], "no idea", INVALID),
        (None, &["rate_limit_error"], "prompt is too long", RateLimit),
        (
            Some(413),
            &["rate_limit_exceeded"],
            "Request too large on tokens per minute (TPM): Limit 8000, Requested 21894",
            ErrorClass::RequestTooLarge {
                limit: Some(Tokens(8000)),
                requested: Some(Tokens(21_894)),
            },
        ),
    ];
    for (status, codes, text, expected) in rows {
        let facts = TransportFacts {
            status: *status,
            codes,
        };
        let class = classify_failure(&facts, Some(text), &UserPatterns::default());
        assert_eq!(&class, expected, "{status:?} {codes:?} {text}");
    }
}

#[test]
fn error_bodies_of_many_shapes() {
    let user = UserPatterns::default();
    let rows: &[(u16, &str, ErrorClass)] = &[
        (
            400,
            r#"{"error":{"code":400,"message":"request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9031,"n_ctx":8192}}"#,
            overflow(8192, 9031, 0),
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201 tokens > 200 maximum"},"request_id":"r"}"#,
            overflow(200, 201, 0),
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            overflow(8192, 0, 0),
        ),
        (
            429,
            r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#,
            RateLimit,
        ),
        (
            200,
            r#"{"error":{"code":502,"message":"Provider returned error"}}"#,
            SERVER,
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"prompt is too long: 9 tokens > 8 maximum","provider_name":"X"}}}"#,
            overflow(8, 9, 0),
        ),
        (500, r#"{"error":"boom"}"#, SERVER),
        (404, r#"{"detail":"Not Found"}"#, Other(OtherCause::NotFound)),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (5) exceeds the maximum number of tokens allowed (4)","status":"INVALID_ARGUMENT"}}]"#,
            overflow(4, 5, 0),
        ),
        (503, "<html>upstream connect error</html>", SERVER),
        (400, "", OVERFLOW),
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-x","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Auth,
        ),
    ];
    for (status, body, expected) in rows {
        let parsed = ErrorBody::parse(body.as_bytes());
        let status = (*status != 200).then_some(*status);
        assert_eq!(&parsed.classify(status, &user), expected, "{body}");
    }
    // Nesting without end does not recurse without end.
    let deep = format!(
        "{}{}",
        r#"{"error":"#.repeat(500),
        "1".to_owned() + &"}".repeat(500)
    );
    assert_eq!(
        ErrorBody::parse(deep.as_bytes()).classify(Some(500), &user),
        SERVER
    );
}
