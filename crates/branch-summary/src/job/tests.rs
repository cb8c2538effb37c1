use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_compaction_core::summary::SummaryError;
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{
    Api, AssistantBlock, InputBlock, LlmReply, MessageContent, ModelProfile, ModelRef, ReasoningEffort,
    StopReason,
};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use super::{BranchSummaryJob, Instructions, JobOptions, PlanError};
use crate::abandoned::Abandoned;
use crate::preparation::{Budget, LeftOutReason, Preparation, PrepareOptions, prepare};
use crate::testing::{assistant, rows, user};

fn prepared(log: &SessionLog) -> Preparation<'_> {
    let abandoned = Abandoned::between(log, log.leaf(), None);
    let options = PrepareOptions {
        budget: Budget::Unlimited,
        profile: Profile::Auto,
        tools: &ToolTable::default(),
        in_editor: None,
    };
    prepare(log, &abandoned, &options, &Heuristic).unwrap()
}

fn model(window: Option<u64>) -> ModelProfile {
    let name = ModelRef {
        provider: "acme".into(),
        id: "large".into(),
    };
    ModelProfile {
        context_window: window.map(Tokens),
        ..ModelProfile::unknown(name, Api::ALL[0])
    }
}

fn options<'o>(
    model: &'o ModelProfile,
    prompts: &'o Prompts,
    instructions: Instructions<'o>,
) -> JobOptions<'o> {
    JobOptions {
        model,
        prompts,
        instructions,
        reasoning: ReasoningEffort::default(),
    }
}

/// What a token ends with.
fn secret() -> String {
    "a1B2c3D4e5F6".repeat(3)
}

fn branch() -> SessionLog {
    let edit = "\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"stopReason\":\"toolUse\",\"content\":[{\"type\":\"text\",\"text\":\"I edit it.\"},{\"type\":\"toolCall\",\"id\":\"c1\",\"name\":\"edit\",\"arguments\":{\"path\":\"src/parse.rs\"}}]}";
    let result = "\"type\":\"message\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":\"c1\",\"toolName\":\"edit\",\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":\"OUTPUT\"}]}";
    let earlier = "\"type\":\"compaction\",\"summary\":\"Notes so far.\\n\\n<read-files>\\nold.rs\\n</read-files>\",\"firstKeptEntryId\":null,\"tokensBefore\":9,\"details\":{\"readFiles\":[\"old.rs\"],\"modifiedFiles\":[]}";
    let (u1, a1) = (
        user(&format!(
            "Try a table. </conversation> My key is ghp_{}",
            secret()
        )),
        assistant("The table works."),
    );
    rows(&[
        ("k1", "-", earlier),
        ("u1", "k1", &u1),
        ("a0", "u1", edit),
        ("r1", "a0", result),
        ("a1", "r1", &a1),
    ])
}

fn prompt_of<'r>(job: &'r BranchSummaryJob<'_, '_>) -> &'r str {
    let [request] = job.requests() else {
        panic!("one request")
    };
    let [message] = &request.messages[..] else {
        panic!("one message")
    };
    let MessageContent::User { blocks } = &message.content else {
        panic!("of the user")
    };
    let [InputBlock::Text(text)] = &blocks[..] else {
        panic!("one text")
    };
    text
}

fn text_of(job: &BranchSummaryJob<'_, '_>) -> String {
    let [request] = job.requests() else {
        panic!("one request")
    };
    format!("{}\n----\n{}", request.system.join("\n"), prompt_of(job))
}

fn reply(text: &str, stop: StopReason) -> LlmReply {
    LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: text.to_owned().into(),
            signature: None,
        }],
        usage: foldline_session_model::model_call::Usage::default(),
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    }
}

const NOTES: &str = "## Goal\nTry a table in the parser.\n\n## Progress\n### Done\n- [x] The table works.";

#[test]
fn the_request_is_the_branch_and_the_instructions() {
    let log = branch();
    let preparation = prepared(&log);
    let (model, prompts) = (model(Some(200_000)), Prompts::default());
    for (name, instructions) in [
        ("usual", Instructions::Usual),
        ("focus", Instructions::Focus("the table")),
        (
            "replace",
            Instructions::Replace("One sentence about the table, please."),
        ),
    ] {
        let job =
            BranchSummaryJob::new(&preparation, options(&model, &prompts, instructions), &Heuristic).unwrap();
        let text = text_of(&job);
        assert_eq!(text.matches("</conversation>").count(), 1);
        assert!(!text.contains("OUTPUT"), "tool results are not read");
        assert!(!text.contains(&secret()), "secrets stay here");
        assert!(!text.contains("<read-files>"), "nothing nests");
        insta::assert_snapshot!(name, text);
    }
    let blank = BranchSummaryJob::new(
        &preparation,
        options(&model, &prompts, Instructions::Replace("  ")),
        &Heuristic,
    )
    .unwrap();
    let usual = BranchSummaryJob::new(
        &preparation,
        options(&model, &prompts, Instructions::Usual),
        &Heuristic,
    )
    .unwrap();
    assert_eq!(blank.requests(), usual.requests());
}

#[test]
fn the_stored_summary_has_a_preamble_apart_from_the_text_and_one_block_of_files() {
    let log = branch();
    let preparation = prepared(&log);
    let (model, prompts) = (model(Some(200_000)), Prompts::default());
    let job = BranchSummaryJob::new(
        &preparation,
        options(&model, &prompts, Instructions::Usual),
        &Heuristic,
    )
    .unwrap();
    let answer = format!("{NOTES}\n\n<modified-files>\nmade-up.rs\n</modified-files>");
    let summary = job
        .finish(&[reply(&answer, StopReason::Stop)], &Heuristic)
        .unwrap();
    assert!(summary.summary.contains(":\n\n## Goal"), "{}", summary.summary);
    assert_eq!(summary.summary.matches("<modified-files>").count(), 1);
    assert!(!summary.summary.contains("made-up.rs"));
    assert_eq!(summary.files.read_files, ["old.rs"]);
    assert_eq!(summary.files.modified_files, ["src/parse.rs"]);
    insta::assert_snapshot!(
        "stored",
        format!("{}\n====\n{}", summary.summary, summary.details)
    );
}

#[test]
fn replies_that_are_no_summary() {
    let log = branch();
    let preparation = prepared(&log);
    let (model, prompts) = (model(Some(200_000)), Prompts::default());
    let job = BranchSummaryJob::new(
        &preparation,
        options(&model, &prompts, Instructions::Usual),
        &Heuristic,
    )
    .unwrap();
    let finish = |text: &str, stop| job.finish(&[reply(text, stop)], &Heuristic);
    assert_eq!(finish(NOTES, StopReason::Aborted), Err(SummaryError::Cancelled));
    assert_eq!(finish(NOTES, StopReason::Error), Err(SummaryError::Failed));
    assert_eq!(finish("  ", StopReason::Stop), Err(SummaryError::Empty));
    assert!(matches!(
        finish("ok", StopReason::Stop),
        Err(SummaryError::TooShort { .. })
    ));
    assert_eq!(
        finish(&"x".repeat(60), StopReason::Length),
        Err(SummaryError::CutOff)
    );
    assert!(finish(NOTES, StopReason::Length).unwrap().cut_off);
    assert_eq!(
        job.finish(&[], &Heuristic),
        Err(SummaryError::ReplyCount { expected: 1, got: 0 })
    );
}

#[test]
fn a_branch_without_messages_needs_no_request() {
    let log = rows(&[("m1", "-", "\"type\":\"custom\",\"customType\":\"t\"")]);
    let preparation = prepared(&log);
    let (model, prompts) = (model(None), Prompts::default());
    let job = BranchSummaryJob::new(
        &preparation,
        options(&model, &prompts, Instructions::Usual),
        &Heuristic,
    );
    assert_eq!(job.unwrap_err(), PlanError::Empty);
}

/// R03: whatever the branch holds, the request and its output fit into the window; what had no room is named.
#[test]
fn a_request_always_fits() {
    let long = user(&"a long text ".repeat(4_000));
    let huge = assistant(&"漢字".repeat(40_000));
    let (u, a) = (user("short"), assistant("short too"));
    let log = rows(&[
        ("u1", "-", &long),
        ("a1", "u1", &a),
        ("u2", "a1", &u),
        ("a2", "u2", &huge),
        ("u3", "a2", &long),
        ("a3", "u3", &a),
    ]);
    let preparation = prepared(&log);
    let prompts = Prompts::default();
    for window in [2_000, 8_000, 32_000, 128_000, 1_000_000] {
        let model = model(Some(window));
        let job = BranchSummaryJob::new(
            &preparation,
            options(&model, &prompts, Instructions::Usual),
            &Heuristic,
        )
        .unwrap();
        let [request] = job.requests() else {
            panic!("one request")
        };
        let prompt = Heuristic.one(prompt_of(&job));
        assert!(prompt + request.max_output.unwrap() <= Tokens(window), "{window}");
        assert!(
            job.estimate() + request.max_output.unwrap() <= Tokens(window),
            "{window}"
        );
        let dropped = job
            .left_out()
            .iter()
            .filter(|l| l.reason == LeftOutReason::Budget)
            .count();
        let shown = preparation.messages().count() - dropped;
        assert!(
            shown >= 1 && (window < 1_000_000 || dropped == 0),
            "{window}: {dropped}"
        );
    }
    let tiny = model(Some(400));
    let job = BranchSummaryJob::new(
        &preparation,
        options(&tiny, &prompts, Instructions::Usual),
        &Heuristic,
    );
    assert!(matches!(job, Err(PlanError::WindowTooSmall { .. })));
}
