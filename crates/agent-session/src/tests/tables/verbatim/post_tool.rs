//! Between two requests of a run: the gate behind a compaction, and what failures there never lead to (spec "Verbatim",
//! 17 and 21, post-tool; D16).

use async_trait::async_trait;
use foldline_compaction_core::settings::{Fallback, ThresholdRule};
use foldline_session_model::model_call::{
    AssistantBlock, MessageContent, RawJson, RequestMessage, TransientCause,
};

use super::super::midrun::Fills;
use super::hooked::Writes;
use super::*;
use crate::PlannerChoice;
use crate::hooks::{
    BeforeCompactAnswer, ContextAnswer, ContextEvent, HookContext, HookError, HookEvent, HookRunner, Hooks,
};
use crate::tool::AfterTool;

fn call() -> Script {
    Script::tool_use("c1", "fill", "{}", used(100_000))
}

/// A session whose tool answers with this many words; of twenty turns of two messages.
async fn filling(play: Play, words: usize, change: impl FnOnce(&mut SessionOptions)) -> Rig {
    play.rig_with(|options| {
        by_lines(options);
        options.tools = vec![Arc::new(Fills(words, AfterTool::Continue))];
        change(options);
    })
    .filled(20, 2_000)
    .await
}

const GATE: &str = "Post-tool context remains over the provider hard input limit after compaction (";

fn assert_gate(text: &str) {
    let rest = text.strip_prefix(GATE).unwrap_or_else(|| panic!("{text}"));
    let (figures, rest) = rest.split_once(" tokens)").unwrap();
    let (projected, limit) = figures.split_once(" > ").unwrap();
    assert!(projected.parse::<u64>().unwrap() > 200_000, "{text}");
    assert_eq!(limit, "200000");
    assert_eq!(rest, "; the next provider request was not sent.");
}

/// Spec "Verbatim", 21, post-tool: "context grown by … 10 000-char override -> gate error, entry stays"; 17: "end event
/// with result *and* error".
#[tokio::test(start_paused = true)]
async fn post_tool_an_override_that_does_not_fit_is_in_the_session_and_nothing_is_sent() {
    let hook = Writes::text("word ".repeat(105_600));
    let mut rig = Play::turns([Script::tool_use("c1", "fill", "{}", used(150_000)), done()])
        .rig_with(|options| {
            by_lines(options);
            options.tools = vec![Arc::new(Fills(60_000, AfterTool::Continue))];
            options.hooks = hook.runner();
        })
        // 150,000 tokens: below the threshold before the prompt, and over the window with the result.
        .filled(60, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    let end = told.end();
    assert_ended(end, Reason::Threshold, OperationOutcome::Committed);
    assert!(end.mid_turn && end.result.is_some());
    let text = end.error_message.as_deref().unwrap();
    assert_gate(text);
    assert_eq!(report.error.as_deref(), Some(text));
    assert_eq!((rig.compactions(), rig.turns()), (1, 1));
    assert_eq!(told.count("auto_retry_start"), 0);
    assert!(entries(&rig)[0].from_extension);
}

/// Spec "Verbatim", 21, post-tool: "cancel/blank override -> 1 call, error message, no entry" (over the hard window;
/// below it the request is sent all the same, D16).
#[tokio::test(start_paused = true)]
async fn post_tool_a_blank_override_or_a_veto_sends_nothing_that_does_not_fit() {
    let blank = BeforeCompactAnswer {
        compacted_text: Some(" \n".to_owned()),
        ..BeforeCompactAnswer::default()
    };
    let veto = BeforeCompactAnswer {
        cancel: true,
        ..BeforeCompactAnswer::default()
    };
    let failed = "Post-tool context compaction failed before the next provider request: ";
    for (answer, cause) in [(blank, "No compacted text provided by extension"), (veto, "")] {
        for (words, requests, end) in [(60_000, 2, RunEnd::Completed), (90_000, 1, RunEnd::Failed)] {
            let hook = Writes::answering(answer.clone());
            let play = Play::turns([call(), done()]);
            let mut rig = filling(play, words, |options| options.hooks = hook.runner()).await;
            let (report, told) = rig.run("go").await;
            assert_eq!((report.end, report.requests), (end, requests), "{words} {cause}");
            assert_eq!((rig.compactions(), rig.turns()), (0, requests as usize));
            assert_eq!(rig.asked(Kind::Summary).len(), 0);
            let first = told.ends()[0];
            assert!(first.mid_turn && first.result.is_none());
            if end == RunEnd::Failed {
                let text = report.error.unwrap();
                assert!(text.starts_with(failed) && text.ends_with(cause), "{text}");
                assert_eq!(first.error_message.as_deref(), Some(&*text));
            }
        }
    }
}

/// Spec "Verbatim", 21, post-tool: "retryable failure text not retried"; 17.8: "not admitted to retry, model fallback or
/// a new compaction".
#[tokio::test(start_paused = true)]
async fn post_tool_a_failure_that_reads_like_a_passing_one_is_not_retried() {
    let passing = [
        Script::failure(
            ErrorClass::Transient(TransientCause::Overloaded),
            "529 overloaded",
        ),
        Script::failure(
            ErrorClass::Transient(TransientCause::Server),
            "503 service unavailable",
        ),
        Script::failure(ErrorClass::RateLimit, "429 Too Many Requests"),
    ];
    for script in passing {
        let other = standby(done());
        // The planner's request is sent again once, as every request of maintenance.
        let play = Play::turns([call(), done()]).summaries([script.clone(), script]);
        let mut rig = filling(play, 90_000, |options| {
            options.settings.compaction.fallback = Fallback::None;
            options.models.fallbacks = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
            options.work = unfinished();
        })
        .await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
        let text = report.error.unwrap();
        assert!(
            text.starts_with("Post-tool context compaction failed before the next provider request: "),
            "{text}"
        );
        assert_ended(told.end(), Reason::Threshold, OperationOutcome::Failed);
        for event in ["auto_retry_start", "model_fallback_start", "model_changed"] {
            assert_eq!(told.count(event), 0, "{event}");
        }
        assert_eq!((rig.turns(), rig.compactions(), other.calls()), (1, 0, 0));
        assert_eq!(rig.told_to_go_on(), 0);
    }
}

/// Spec "Verbatim", 21, post-tool: "window 1000, reserve 200, usage 720 + 480-char result -> one mid-turn compaction, 2
/// provider calls, no continue; usage 570 -> none".
#[tokio::test(start_paused = true)]
async fn post_tool_the_result_of_a_tool_counts_for_the_threshold() {
    // An answer has 50 tokens of output.
    for (prompt, compactions) in [(670, 1), (520, 0)] {
        let turns = [
            Script::tool_use("c1", "fill", "{}", used(prompt)),
            Script::reply("done", used(300)),
        ];
        let mut rig = Rig::on(Play::turns(turns).model("one", 1_000), |options| {
            by_lines(options);
            options.settings.planner = PlannerChoice::Extractive;
            options.settings.compaction.threshold_rule = ThresholdRule::ReserveOnly;
            options.settings.compaction.reserve_tokens = 200.0;
            options.tools = vec![Arc::new(Fills(96, AfterTool::Continue))];
        })
        .filled(12, 30)
        .await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Completed, 2), "{prompt}");
        let ends = told.ends();
        assert_eq!((ends.len(), rig.compactions()), (compactions, compactions));
        if let Some(end) = ends.first() {
            assert_ended(end, Reason::Threshold, OperationOutcome::Committed);
            assert!(end.mid_turn && !end.will_retry);
        }
        assert_eq!((rig.model.calls(), rig.told_to_go_on()), (2, 0));
    }
}

/// The ids of calls in a request, and those of results.
fn call_ids(asked: &Asked) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for message in &asked.request.messages {
        match &message.content {
            MessageContent::Assistant { blocks, .. } => {
                calls.extend(blocks.iter().filter_map(|block| match block {
                    AssistantBlock::ToolCall(call) => Some(call.id.to_string()),
                    _ => None,
                }));
            }
            MessageContent::ToolResult { call_id, .. } => results.push(call_id.to_string()),
            _ => {}
        }
    }
    (calls, results)
}

/// Spec "Verbatim", 21, post-tool: "parallel tools later turns have unique ids"; 17.7: "returning the live array once
/// doubled every later message".
#[tokio::test(start_paused = true)]
async fn post_tool_calls_side_by_side_in_later_turns_have_ids_of_their_own() {
    let calls = |ids: [&str; 2], prompt| {
        Script::new()
            .call(ids[0], "fill", "{}")
            .call(ids[1], "fill", "{}")
            .usage(used(prompt))
            .stop(StopReason::ToolUse)
    };
    let turns = [
        calls(["a1", "a2"], 120_000),
        calls(["b1", "b2"], 60_000),
        calls(["c1", "c2"], 60_000),
        done(),
        done(),
    ];
    let play = Play::turns(turns).summaries([ranges()]);
    let mut rig = filling(play, 25_000, |_| {}).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 4));
    assert_ended(told.end(), Reason::Threshold, OperationOutcome::Committed);
    assert!(told.end().mid_turn);
    let (report, _) = rig.run("and now?").await;
    assert_eq!(report.end, RunEnd::Completed);

    let asked = rig.asked(Kind::Turn);
    assert_eq!(asked.len(), 5);
    for asked in &asked {
        let (calls, results) = call_ids(asked);
        let unique: std::collections::BTreeSet<&String> = calls.iter().collect();
        assert_eq!(unique.len(), calls.len(), "{calls:?}");
        assert_eq!(calls, results, "each call has its result");
    }
    let (calls, _) = call_ids(&asked[4]);
    assert!(
        calls.ends_with(&["b1", "b2", "c1", "c2"].map(str::to_owned)),
        "{calls:?}"
    );
    let all = serde_json::to_string(&asked[4].request).unwrap();
    assert_eq!(all.matches("\"and now?\"").count(), 1);
}

/// Adds this many words to the newest message of every request.
struct Adds(usize);

#[async_trait]
impl Hooks for Adds {
    fn path(&self) -> &'static str {
        "adds"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::Context]
    }

    async fn context(&self, event: &ContextEvent<'_>, _: &HookContext) -> Result<ContextAnswer, HookError> {
        let mut messages: Vec<RawJson<'static>> = event
            .messages
            .iter()
            .map(|message| message.clone().into_owned())
            .collect();
        let added = RequestMessage::user("word ".repeat(self.0));
        messages.extend(RawJson::parse(serde_json::to_string(&added).unwrap()));
        Ok(ContextAnswer {
            messages: Some(messages),
        })
    }
}

/// Spec "Verbatim", 21, post-tool: "context grown by extension … -> gate error, entry stays".
#[tokio::test(start_paused = true)]
async fn post_tool_a_context_that_a_hook_makes_too_large_again_is_not_sent() {
    for (words, requests, end) in [(1_000, 2, RunEnd::Completed), (200_000, 1, RunEnd::Failed)] {
        let play = Play::turns([call(), done()]).summaries([ranges()]);
        let mut rig = filling(play, 60_000, |options| {
            options.hooks = HookRunner::new(vec![Arc::new(Adds(words))]);
        })
        .await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (end, requests), "{words}");
        let first = told.ends()[0];
        assert_ended(first, Reason::Threshold, OperationOutcome::Committed);
        assert!(first.mid_turn && first.error_message.is_none());
        assert_eq!(rig.compactions(), 1);
        assert_eq!(told.count("auto_retry_start"), 0);
        if end == RunEnd::Failed {
            assert_gate(&report.error.unwrap());
        }
    }
}
