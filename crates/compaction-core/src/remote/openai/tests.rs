use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::model_call::Api;

use super::*;
use crate::testing::{Rows, context};

fn target() -> Origin {
    Origin {
        api: Api::OpenAiResponses,
        provider: "openai".into(),
        model: "m".into(),
    }
}

fn built(rows: &Rows, earlier: Option<&RemoteHistory>, window: Option<u64>) -> Result<String, RemoteError> {
    let log = rows.log();
    let context = context(&log);
    let wrappers = Wrappers::default();
    let view = context.llm_view(&wrappers, TrailingCalls::Answer);
    let request = request(
        &target(),
        &view,
        earlier,
        ImageInput::Yes,
        "be brief",
        window.map(Tokens),
    )?;
    Ok(serde_json::to_string(&request).unwrap())
}

const COMPACTED: &str = r#"{"output":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]},{"type":"reasoning","id":"r"},{"type":"message","role":"user","content":[{"type":"input_text","text":"<System-Reminder>x"}]},{"type":"message","role":"developer","content":[]},{"type":"compaction","encrypted_content":"b64=="}]}"#;

#[test]
fn history_becomes_items() {
    let rows = Rows::new()
        .user("u1", "Fix <|channel|> it")
        .answer(
            "a1",
            "I look.",
            &[("c1|fc_1", "read", r#"{"path":"a"}"#)],
            None,
            "toolUse",
        )
        .result("t1", "c1|fc_1", "read", "text")
        .message("d1", r#"{"role":"developer","content":"note"}"#)
        .message(
            "u2",
            r#"{"role":"user","content":[{"type":"image","data":"QQ==","mimeType":"image/png"}]}"#,
        );
    insta::assert_snapshot!(built(&rows, None, None).unwrap());
    assert_eq!(built(&Rows::new(), None, None), Err(RemoteError::Empty));
}

#[test]
fn r15_signed_reasoning_goes_back_whole_to_its_own_model_or_not_at_all() {
    let item = r#"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"<|x|>\"}"#;
    let rows = |model: &str| {
        Rows::new().message(
            "a1",
            &format!(
                "{{\"role\":\"assistant\",\"api\":\"openai-responses\",\"provider\":\"openai\",\"model\":\"{model}\",\"content\":[{{\"type\":\"thinking\",\"thinking\":\"hm\",\"thinkingSignature\":\"{item}\"}},{{\"type\":\"text\",\"text\":\"x\"}}],\"stopReason\":\"stop\"}}"
            ),
        )
    };
    let own = built(&rows("m"), None, None).unwrap();
    assert!(
        own.contains(r#"{"type":"reasoning","id":"rs_1","encrypted_content":"<|x|>"}"#),
        "{own}"
    );
    assert!(!built(&rows("other"), None, None).unwrap().contains("rs_1"));
}

#[test]
fn responses_keep_what_stands_for_the_history() {
    let history = response(&target(), COMPACTED).unwrap();
    assert_eq!(history.replacement_history.len(), 2);
    let data = history.to_preserve_data();
    let read = RemoteHistory::read(&data).unwrap();
    assert_eq!(read.to_preserve_data(), data);
    assert_eq!(
        read.compaction_item.get(),
        r#"{"type":"compaction","encrypted_content":"b64=="}"#
    );
    let malformed = [r#"{"output":{}}"#, "{}", "x"];
    for body in malformed {
        assert!(
            matches!(response(&target(), body), Err(RemoteError::Malformed(_))),
            "{body}"
        );
    }
    let error = response(
        &target(),
        r#"{"output":[{"type":"reasoning"},{"type":"compaction"}]}"#,
    )
    .unwrap_err();
    assert!(
        matches!(error, RemoteError::MissingItem { outputs: 2, .. }),
        "{error}"
    );
}

#[test]
fn fb_112_a_history_goes_only_to_the_model_that_it_is_from() {
    let history = response(&target(), COMPACTED).unwrap();
    assert!(history.is_for(&target()));
    let other = Origin {
        provider: "p2".into(),
        ..target()
    };
    assert!(!history.is_for(&other));
    let rows = Rows::new().user("u1", "more");
    let with = built(&rows, Some(&history), None).unwrap();
    assert!(with.contains("b64==") && with.find("b64==") < with.find("more"));
    let foreign = RemoteHistory {
        provider: "p2".into(),
        ..history
    };
    assert!(!built(&rows, Some(&foreign), None).unwrap().contains("b64=="));
    // Older entries do not say which model.
    let old = RemoteHistory::read(
        r#"{"openaiRemoteCompaction":{"provider":"openai","replacementHistory":[],"compactionItem":{"type":"compaction_summary"}}}"#,
    );
    assert!(old.unwrap().is_for(&target()));
    assert!(RemoteHistory::read(r#"{"openaiRemoteCompaction":{"provider":"openai"}}"#).is_none());
}

#[test]
fn budgets_of_the_input() {
    let budget = |window, output| input_budget(Tokens(window), Tokens(output)).get();
    let table = [
        (100, 0, 85),
        (100, 20, 80),
        (2, 0, 1),
        (1, 0, 1),
        (10, 20, 1),
        (0, 0, 0),
    ];
    for (window, output, expected) in table {
        assert_eq!(budget(window, output), expected);
    }
}

#[test]
fn cd15_newest_results_go_with_their_calls_and_what_still_does_not_fit_is_not_sent() {
    let rows = Rows::new()
        .user("u1", "short")
        .call(
            "a1",
            "c1",
            "read",
            &format!("{{\"path\":\"{}\"}}", "p".repeat(4_000)),
        )
        .result("t1", "c1", "read", &"r".repeat(4_000));
    let trimmed = built(&rows, None, Some(200)).unwrap();
    assert!(
        trimmed.contains("short") && !trimmed.contains("function_call"),
        "{trimmed}"
    );
    let big = Rows::new().user("u1", &"u".repeat(8_000));
    assert!(matches!(
        built(&big, None, Some(200)),
        Err(RemoteError::TooLarge { budget: 170, .. })
    ));
}
