use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, AssistantBlock, ErrorClass, LlmReply, ModelProfile, ModelRef, StopReason, Usage,
};

use super::{diagnostic, recovery};
use crate::verbatim::{CallFailure, Category, FailedAttempt, Retries};

fn profile() -> ModelProfile {
    let mut profile = ModelProfile::unknown(ModelRef::parse("acme/large").unwrap(), Api::AnthropicMessages);
    profile.context_window = Some(Tokens(200_000));
    profile
}

fn reply(text: &str, stop: StopReason) -> LlmReply {
    LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: text.to_owned().into(),
            signature: None,
        }],
        usage: Usage {
            input: Tokens(900),
            output: Tokens(7),
            ..Usage::default()
        },
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    }
}

fn redact(text: &str) -> String {
    text.replace("sk-secret", "[redacted]")
}

#[test]
fn a_failed_attempt_is_told_without_request_and_secrets() {
    let attempt = FailedAttempt {
        candidate: 0,
        category: Category::MalformedOutput,
        message: "the model's answer is not a list of line ranges".to_owned(),
        retries: Retries::None,
    };
    let answer = Ok(reply("I see the key sk-secret in line 3", StopReason::Stop));
    let text = diagnostic(&attempt, &answer, &profile(), "2026-01-01T00:00:00.000Z", &redact);
    insta::assert_snapshot!(text);
    for word in [
        "apiKey",
        "headers",
        "systemPrompt",
        "\"prompt\"",
        "numbered-transcript",
        "sk-secret",
    ] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn a_limit_says_whether_waiting_was_tried() {
    let failure = CallFailure {
        class: ErrorClass::RateLimit,
        message: "429 for key sk-secret".to_owned(),
        retries: Retries::Exhausted,
    };
    let attempt = FailedAttempt {
        candidate: 0,
        category: Category::RateLimited,
        message: failure.message.clone(),
        retries: Retries::Exhausted,
    };
    insta::assert_snapshot!(diagnostic(
        &attempt,
        &Err(failure),
        &profile(),
        "2026-01-01T00:00:00.000Z",
        &redact
    ));
}

#[test]
fn a_recovery_counts_its_records() {
    let reply = reply("1,5\n6,", StopReason::Length);
    insta::assert_snapshot!(recovery(
        1,
        &reply,
        &profile(),
        "2026-01-01T00:00:00.000Z",
        &redact
    ));
}
