//! Field cases about turns and messages around maintenance, each by its number.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use foldline_llm_client::LanguageModel;
use foldline_session_model::model_call::{RawJson, ReasoningEffort, StopReason, ToolSpec, Usage};

use super::field_sizes::{answer, filler, result, user, write};
use super::*;
use crate::testing::slow_summary;
use crate::tool::{Tool, ToolOutput, ToolRun};
use crate::{CompactOptions, HandoffOptions, SessionError};

async fn by_hand(rig: &Rig) -> CompactionEnd {
    rig.session.compact(CompactOptions::default()).await.unwrap()
}

/// A tool that counts how often it ran.
#[derive(Default)]
struct Counts(AtomicUsize);

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> ToolSpec<'static> {
        ToolSpec {
            name: "send".into(),
            description: "Sends.".into(),
            parameters: RawJson::empty_object(),
        }
    }

    async fn run(&self, _: ToolRun<'_>) -> ToolOutput {
        self.0.fetch_add(1, Ordering::Relaxed);
        ToolOutput::text("sent ".repeat(200))
    }
}

#[tokio::test(start_paused = true)]
async fn fb_035_a_prompt_during_a_compaction_is_answered_once_after_it() {
    let failing = Script::new()
        .wait(Duration::from_secs(3))
        .fail(foldline_llm_client::LlmError::new(ErrorClass::Auth, "no key"));
    for (script, commits) in [(slow_summary(), 1), (failing, 0)] {
        let rig = Play::turns([done()])
            .summaries([script])
            .rig()
            .filled(20, 2_000)
            .await;
        let session = rig.session.clone();
        let compacting = tokio::spawn(async move { session.compact(CompactOptions::default()).await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(rig.session.prompt("PROBE-1").await.unwrap(), Prompted::Queued);
        drop(compacting.await.unwrap().unwrap());
        rig.session.wait_for_idle().await;
        let context = rig.context();
        let probes = context.iter().filter(|line| *line == "user: PROBE-1").count();
        assert_eq!((probes, rig.compactions()), (1, commits));
        assert_eq!(context[context.len() - 2..], ["user: PROBE-1", "assistant: done"]);
        assert_eq!(rig.turns(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn fb_037_what_was_queued_is_delivered_in_order_after_an_automatic_compaction() {
    let mut rig = Play::turns([over(), done(), done()])
        .summaries([slow_summary()])
        .rig()
        .filled(20, 2_000)
        .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    rig.until_compacting().await;
    rig.session.follow_up("q1").await.unwrap();
    rig.session.follow_up("q2").await.unwrap();
    drop(run.await.unwrap().unwrap());
    rig.session.wait_for_idle().await;
    let context = rig.context();
    assert_eq!(
        context[context.len() - 4..],
        ["user: q1", "assistant: done", "user: q2", "assistant: done"]
    );
    assert_eq!(
        (rig.compactions(), rig.session.state().pending_message_count),
        (1, 0)
    );
    assert_eq!(Told(rig.events()).ends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fb_039_a_compaction_by_hand_during_a_reply_commits_once() {
    let slow = Script::new()
        .wait(Duration::from_secs(1))
        .text("so far")
        .usage(used(180_000))
        .stop(StopReason::Stop);
    let mut rig = Play::turns([slow]).rig().filled(20, 2_000).await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
    drop(run.await.unwrap().unwrap());
    rig.session.wait_for_idle().await;
    let told = Told(rig.events());
    assert_eq!((rig.compactions(), told.ends().len()), (1, 1));
    // Who asks again is told that there is nothing to do, and that is no failure.
    assert_ended(&by_hand(&rig).await, Reason::Manual, OperationOutcome::Skipped);
}

#[tokio::test(start_paused = true)]
async fn fb_043_what_was_answered_is_neither_asked_nor_done_again() {
    let tool = Arc::new(Counts::default());
    let call = Script::tool_use("k1", "send", "{}", used(1_000));
    let mut rig = Play::turns([call, done()])
        .rig_with(|options| options.tools = vec![Arc::clone(&tool) as Arc<dyn Tool>])
        .filled(20, 2_000)
        .await;
    drop(rig.run("send it").await);
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
    rig.store.kill_writers();
    rig.reopen();
    let again = rig.session.resume().await;
    assert!(matches!(again, Err(SessionError::AlreadyAnswered)), "{again:?}");
    assert_eq!((tool.0.load(Ordering::Relaxed), rig.turns()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn fb_054_a_crash_around_a_compaction_leaves_it_whole_or_absent() {
    for commits in [0, 1] {
        let script = if commits == 0 { Script::hang() } else { summary() };
        let mut rig = Play::turns([done()])
            .summaries([script])
            .rig()
            .filled(20, 2_000)
            .await;
        let session = rig.session.clone();
        let compacting = tokio::spawn(async move { session.compact(CompactOptions::default()).await });
        if commits == 0 {
            rig.until_compacting().await;
        } else {
            drop(compacting.await.unwrap().unwrap());
        }
        rig.store.restart(7);
        let old = rig.session.clone();
        rig.reopen();
        let state = rig.session.state();
        assert!(!state.is_compacting && !state.is_streaming);
        assert_eq!(rig.compactions(), commits);
        let (report, _) = rig.run("go on").await;
        assert_eq!(report.end, RunEnd::Completed);
        old.abort();
    }
}

/// R14: in the midst of its work a run goes on by itself, once; without work it does not.
#[tokio::test(start_paused = true)]
async fn fb_055_a_run_goes_on_after_a_compaction_only_in_the_midst_of_its_work() {
    let tool = Arc::new(Counts::default());
    let calls = (1..=5).map(|at| Script::tool_use(format!("t{at}"), "send", "{}", used(36_000 * at)));
    let mut rig = Play::turns(calls.chain([done()]))
        .rig_with(|options| options.tools = vec![Arc::clone(&tool) as Arc<dyn Tool>])
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 6));
    assert_summarised(told.end(), Reason::Threshold);
    assert!(told.end().mid_turn);
    assert_eq!((tool.0.load(Ordering::Relaxed), rig.told_to_go_on()), (5, 0));

    let done_todo = Todo {
        text: "write the parser".to_owned(),
        status: TodoStatus::Completed,
    };
    let work = board(Board {
        todos: vec![done_todo],
        ..Board::default()
    });
    let mut rig = Play::turns([over()])
        .rig_with(|options| options.work = work)
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!(
        (report.requests, told.ends().len(), rig.told_to_go_on()),
        (1, 1, 0)
    );
}

/// The request of the turn that is split survives word for word, once, after everything older.
#[tokio::test(start_paused = true)]
async fn fb_059_the_request_of_a_split_turn_is_in_the_rebuilt_context_once() {
    let mut rig = Play::turns([done()]).rig();
    write(
        &rig,
        [
            user("derive ids"),
            answer(&rig, "derived", None, Usage::default()),
        ],
    )
    .await;
    write(&rig, [user("start implementation")]).await;
    for step in 0..40 {
        let id = format!("k{step}");
        let call = answer(&rig, "next", Some((&id, "bash")), Usage::default());
        write(&rig, [call, result(&id, "bash", &filler(2_000))]).await;
    }
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
    drop(rig.run("go on").await);
    let request = serde_json::to_string(&rig.asked(Kind::Turn)[0].request).unwrap();
    assert_eq!(request.matches("start implementation").count(), 1, "{request}");
    if let Some(older) = request.rfind("derive ids") {
        assert!(older < request.find("start implementation").unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn fb_067_a_model_and_a_level_of_its_own_for_summaries() {
    let small = Play::default().model("small", 400_000);
    let mut rig = Play::turns([over()])
        .rig_with(|options| {
            options.models.summariser = Some(Arc::clone(&small) as Arc<dyn LanguageModel>);
            options.settings.summary_reasoning = ReasoningEffort::Off;
            options.reasoning = ReasoningEffort::High;
        })
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("go").await;
    // The window of the model that works decides when.
    assert_summarised(told.end(), Reason::Threshold);
    let asked = small.asked();
    assert!(!asked.is_empty());
    assert!(
        asked
            .iter()
            .all(|asked| asked.request.reasoning == ReasoningEffort::Off)
    );
    assert_eq!(rig.asked(Kind::Turn)[0].request.reasoning, ReasoningEffort::High);
    let bytes = String::from_utf8(rig.bytes()).unwrap();
    assert!(bytes.contains("\"planner\":\"test/small\""), "{bytes}");
}

#[tokio::test(start_paused = true)]
async fn fb_069_rules_are_sent_in_full_after_every_compaction_and_never_summarised() {
    let mut rig = Play::turns([done()]).rig_with(|options| {
        options.system.push("RULE-7: no unsafe code.".to_owned());
    });
    for _ in 0..3 {
        rig = rig.filled(20, 2_000).await;
        assert_summarised(&by_hand(&rig).await, Reason::Manual);
    }
    drop(rig.run("go on").await);
    let rules = |kind| -> Vec<usize> {
        let asked = rig.asked(kind);
        let texts = asked
            .iter()
            .map(|asked| serde_json::to_string(&asked.request).unwrap());
        texts.map(|text| text.matches("RULE-7").count()).collect()
    };
    assert_eq!(rules(Kind::Turn), [1]);
    assert!(rules(Kind::Summary).iter().all(|count| *count == 0));
    assert!(!String::from_utf8(rig.bytes()).unwrap().contains("RULE-7"));
}

#[tokio::test(start_paused = true)]
async fn fb_092_a_call_that_the_output_limit_cut_off_is_not_run() {
    let tool = Arc::new(Counts::default());
    let cut = Script::new()
        .call("k1", "send", "")
        .usage(used(1_000))
        .stop(StopReason::Length);
    let mut rig = Play::turns([cut, done()])
        .rig_with(|options| options.tools = vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    let (report, _) = rig.run("send it").await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(tool.0.load(Ordering::Relaxed), 0);
    let context = rig.context();
    assert!(context[2].starts_with("toolResult: "), "{context:?}");
    // The file can be read again, and the session goes on.
    rig.reopen();
    assert_eq!(rig.context(), context);
}

#[tokio::test(start_paused = true)]
async fn fb_117_below_the_threshold_each_request_begins_with_the_one_before() {
    let turns = (0..30).map(|at| Script::reply(format!("answer {at}"), used(1_000 + at)));
    let mut rig = Play::turns(turns.chain([over(), done()])).rig();
    for turn in 0..32 {
        drop(rig.run(&format!("question {turn} {}", filler(1_200))).await);
    }
    let asked = rig.asked(Kind::Turn);
    let breaks: Vec<usize> = asked
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| !pair[1].request.messages.starts_with(&pair[0].request.messages))
        .map(|(at, _)| at)
        .collect();
    assert_eq!((asked.len(), rig.compactions()), (32, 1));
    assert_eq!(breaks, [30]);
}

/// White space is no document, and that is a failure with its reason, not a cancel.
#[tokio::test(start_paused = true)]
async fn fb_132_a_handoff_without_a_document_fails_and_says_why() {
    let mut play = Play::default();
    play.handoffs.push_back(Script::reply("  \n", used(1_000)));
    let mut rig = play.rig().filled(3, 200).await;
    let before = rig.bytes();
    let error = rig.session.handoff(HandoffOptions::default()).await.unwrap_err();
    let text = "Handoff generation failed: the model wrote no document";
    assert!(!matches!(error, SessionError::Cancelled { .. }));
    assert_eq!(error.to_string(), text);
    assert_eq!(rig.bytes(), before);
    let told = Told(rig.events());
    let ends: Vec<_> = told
        .0
        .iter()
        .filter_map(|event| match &**event {
            Event::HandoffEnd {
                outcome,
                new_session,
                error_message,
                ..
            } => Some((*outcome, new_session.clone(), error_message.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(OperationOutcome::Failed, None, Some(text.to_owned()))]);
}
