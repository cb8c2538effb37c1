//! What follows a compaction: auto-compaction-continue and state-aware (17, G).

use async_trait::async_trait;
use foldline_compaction_core::decide::Boundary;
use foldline_session_model::model_call::StopReason;
use foldline_session_model::{EntryDraft, EntryId, Tokens};

use super::*;
use crate::continuation::Continuation;
use crate::hooks::{
    BeforeCompactAnswer, BeforeCompactEvent, HookCompaction, HookContext, HookError, HookEvent, HookRunner,
    Hooks, SessionCompactEvent,
};
use crate::maintenance::Maintained;

const WORDS: &str = "Auto-continue skipped: no unfinished work detected";

/// A session over the threshold after one answer, on which this work stands.
async fn over_threshold(work: Arc<Work>) -> Rig {
    Play::turns([over(), done()])
        .rig_with(|options| options.work = work)
        .filled(20, 2_000)
        .await
}

/// A session whose next request does not fit, on which this work stands.
async fn overflowing(work: Arc<Work>) -> Rig {
    Play::turns([overflow(), done()])
        .rig_with(|options| options.work = work)
        .filled(20, 2_000)
        .await
}

#[tokio::test(start_paused = true)]
async fn g_01_unfinished_work_goes_on_once_after_a_threshold() {
    let mut rig = over_threshold(unfinished()).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Threshold);
    assert!(!told.end().will_retry);
    assert_eq!((rig.told_to_go_on(), told.count("agent_end")), (1, 1));
    let log = rig.log();
    let developer = log
        .entries()
        .map(|ix| String::from_utf8_lossy(log.raw_line(ix)).into_owned())
        .find(|line| line.contains("\"developer\""));
    assert!(developer.unwrap().contains("\"attribution\":\"agent\""));
}

/// A hook that makes every compaction itself; its kept tail begins at the newest entry, or nowhere.
struct OwnSummary;

#[async_trait]
impl Hooks for OwnSummary {
    fn path(&self) -> &'static str {
        "own-summary"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionBeforeCompact]
    }

    async fn session_before_compact(
        &self,
        event: &BeforeCompactEvent<'_>,
        _: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        #[derive(serde::Deserialize)]
        struct Entry {
            id: EntryId,
        }
        let last = event.branch_entries.last().unwrap();
        let last: Entry = serde_json::from_str(last.get()).unwrap();
        Ok(BeforeCompactAnswer {
            compaction: Some(HookCompaction {
                summary: "the parser is half written".to_owned(),
                short_summary: None,
                first_kept_entry_id: Some(last.id),
                tokens_before: Some(Tokens(999)),
                details: None,
                preserve_data: None,
            }),
            ..BeforeCompactAnswer::default()
        })
    }
}

fn own_summary() -> HookRunner {
    HookRunner::new(vec![Arc::new(OwnSummary)])
}

#[tokio::test(start_paused = true)]
async fn g_02_a_summary_of_a_hook_gets_the_state_of_the_work() {
    let work = board(Board {
        goal: Some(goal("active", GoalMode::On)),
        todos: todos(),
        ..Board::default()
    });
    let mut rig = Play::turns([over(), done()])
        .rig_with(|options| {
            options.work = work;
            options.hooks = own_summary();
        })
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("go").await;
    let result = told.end().result.as_ref().unwrap();
    assert_eq!(
        result.summary,
        "the parser is half written\n\n<compaction-state>\nActive goal: ship it (status: active)\nOpen todos: write \
         the parser\n</compaction-state>"
    );
    assert_eq!(rig.asked(Kind::Summary).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn g_03_an_overflow_without_a_question_left_tells_the_model_to_go_on() {
    let mut rig = Play::turns([overflow(), done()])
        .rig_with(|options| options.hooks = own_summary())
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_ended(told.end(), Reason::Overflow, OperationOutcome::Committed);
    assert!(!told.end().will_retry);
    assert_eq!(rig.told_to_go_on(), 1);
}

#[tokio::test(start_paused = true)]
async fn g_04_a_paused_goal_parks_an_overflow() {
    let work = board(Board {
        goal: Some(goal("paused", GoalMode::Off)),
        todos: todos(),
        ..Board::default()
    });
    let mut rig = overflowing(work).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    assert_summarised(told.end(), Reason::Overflow);
    assert!(!told.end().will_retry);
    assert_eq!(told.end().continuation_skip_reason, Some("goal_paused"));
    assert_eq!(rig.told_to_go_on(), 0);
}

#[tokio::test(start_paused = true)]
async fn g_05_an_overflow_is_sent_again_without_the_failed_answer() {
    let mut rig = overflowing(board(Board::default())).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Overflow);
    assert!(told.end().will_retry);
    assert_eq!(rig.told_to_go_on(), 0);
    let turns = rig.asked(Kind::Turn);
    assert_eq!(turns[1].last_text(), "go");
}

#[tokio::test(start_paused = true)]
async fn g_06_without_leave_to_go_on_the_end_says_so() {
    let mut rig = Play::turns([overflow()])
        .rig_with(|options| {
            options.hooks = own_summary();
            options.settings.compaction.auto_continue = false;
        })
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    let end = told.end();
    assert_eq!(
        (end.will_retry, end.continuation_skip_reason),
        (false, Some("auto_continue_disabled_non_resumable_tail"))
    );
}

#[tokio::test(start_paused = true)]
async fn g_07_a_continuation_that_is_cancelled_ends_the_run_once() {
    let mut rig = Play::turns([over(), done()])
        .summaries([Script::hang()])
        .rig_with(|options| options.work = unfinished())
        .filled(20, 2_000)
        .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    rig.until_compacting().await;
    rig.session.follow_up("later").await.unwrap();
    rig.session.abort();
    let Prompted::Ran(report) = run.await.unwrap().unwrap() else {
        panic!("queued")
    };
    let told = Told(rig.events());
    assert_eq!((report.end, told.count("agent_end")), (RunEnd::Cancelled, 1));
    assert_ended(told.end(), Reason::Threshold, OperationOutcome::Cancelled);
    assert_eq!(rig.session.state().pending_message_count, 1);
}

#[tokio::test(start_paused = true)]
async fn g_08_a_message_that_came_in_meanwhile_is_the_continuation() {
    let mut rig = Play::turns([over(), done()])
        .summaries([slow_summary()])
        .rig_with(|options| options.work = unfinished())
        .filled(20, 2_000)
        .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    rig.until_compacting().await;
    rig.session.follow_up("later").await.unwrap();
    let Prompted::Ran(report) = run.await.unwrap().unwrap() else {
        panic!("queued")
    };
    let told = Told(rig.events());
    assert_eq!((report.requests, told.count("agent_end")), (2, 1));
    assert_eq!(rig.told_to_go_on(), 0);
    assert_eq!(rig.asked(Kind::Turn)[1].last_text(), "later");
}

#[tokio::test(start_paused = true)]
async fn g_09_idle_maintenance_never_goes_on() {
    let mut rig = Play::default()
        .rig_with(|options| {
            options.work = unfinished();
            options.settings.compaction.idle_enabled = true;
            options.settings.compaction.idle_threshold_tokens = Tokens(10_000);
        })
        .filled(20, 2_000)
        .await;
    rig.session.compact_idle().await.unwrap();
    let told = Told(rig.events());
    assert_summarised(told.end(), Reason::Idle);
    assert_eq!((rig.asked(Kind::Turn).len(), rig.told_to_go_on()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn g_10_without_leave_nothing_goes_on_after_a_threshold() {
    let mut rig = over_threshold(unfinished()).await;
    rig.session
        .change_options(|options| options.settings.compaction.auto_continue = false)
        .await
        .unwrap();
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_summarised(told.end(), Reason::Threshold);
    assert_eq!((rig.told_to_go_on(), told.notices().len()), (0, 0));
}

/// G 12 and 3.3 row 7b. A request of a session always answers something, so the situation is made by hand.
#[tokio::test(start_paused = true)]
async fn g_12_an_overflow_that_must_not_be_compacted_goes_on_only_with_work_and_without_a_question() {
    let failed = || {
        use foldline_llm_client::testing::text_reply;
        use foldline_session_model::model_call::LlmReply;
        let reply = LlmReply {
            blocks: Vec::new(),
            stop: StopReason::Error,
            ..text_reply("")
        };
        crate::message::assistant(
            &reply,
            &profile("one", 200_000),
            Some("prompt is too long: 250000 tokens > 200000 maximum"),
            0,
        )
    };
    for (work, goes_on) in [(unfinished(), true), (board(Board::default()), false)] {
        let mut rig = Play::default()
            .rig_with(|options| {
                options.work = work;
                options.settings.compaction.enabled = false;
            })
            .filled(2, 100)
            .await;
        let core = rig.session.core();
        let mut core = core.lock().await;
        let failed: EntryDraft = failed();
        core.append(failed).await.unwrap();
        let lease = rig.session.begin(crate::OperationKind::Run).unwrap();
        let maintained = core.maintain(&lease, Boundary::AfterRun, Tokens::ZERO).await;
        if goes_on {
            assert!(
                matches!(maintained, Maintained::Compacted(Continuation::AutoContinue)),
                "{maintained:?}"
            );
        } else {
            assert!(matches!(maintained, Maintained::Stop(_)), "{maintained:?}");
        }
        drop((core, lease));
        assert_eq!(Told(rig.events()).count("compaction_start"), 0);
    }
}

/// What each state of the work means after a threshold.
#[tokio::test(start_paused = true)]
async fn g_state_of_the_work_decides_who_goes_on() {
    let rows = [
        ("nothing", Board::default(), 0),
        (
            "an open todo",
            Board {
                todos: todos(),
                ..Board::default()
            },
            1,
        ),
        (
            "an active goal",
            Board {
                goal: Some(goal("active", GoalMode::On)),
                ..Board::default()
            },
            1,
        ),
        (
            "a goal that is reached",
            Board {
                goal: Some(goal("complete", GoalMode::On)),
                ..Board::default()
            },
            0,
        ),
        (
            "an active goal with goal mode off",
            Board {
                goal: Some(goal("active", GoalMode::Off)),
                ..Board::default()
            },
            0,
        ),
        (
            "a paused goal beside a blocked workflow and a todo",
            Board {
                goal: Some(goal("paused", GoalMode::On)),
                todos: todos(),
                workflows: workflow("blocked"),
            },
            0,
        ),
        (
            "a workflow that is not inert",
            Board {
                workflows: workflow("blocked"),
                ..Board::default()
            },
            1,
        ),
        (
            "a workflow in a last phase",
            Board {
                workflows: workflow("handoff"),
                ..Board::default()
            },
            0,
        ),
    ];
    for (state, work, continuations) in rows {
        let mut rig = over_threshold(board(work)).await;
        let (report, told) = rig.run("go").await;
        assert_summarised(told.end(), Reason::Threshold);
        assert_eq!(rig.told_to_go_on(), continuations, "{state}");
        assert_eq!(report.requests as usize, 1 + continuations, "{state}");
        let expected: &[&str] = if continuations == 0 { &[WORDS] } else { &[] };
        assert_eq!(told.notices(), expected, "{state}");
    }
}

/// Ends the goal while the compaction is being written.
struct EndsGoal(Arc<Work>);

#[async_trait]
impl Hooks for EndsGoal {
    fn path(&self) -> &'static str {
        "ends-goal"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionCompact]
    }

    async fn session_compact(&self, _: &SessionCompactEvent<'_>, _: &HookContext) -> Result<(), HookError> {
        *self.0.0.lock().unwrap() = Board::default();
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn g_a_goal_that_is_reached_while_compacting_does_not_go_on() {
    let work = board(Board {
        goal: Some(goal("active", GoalMode::On)),
        ..Board::default()
    });
    let hook = EndsGoal(Arc::clone(&work));
    let mut rig = Play::turns([over()])
        .rig_with(|options| {
            options.work = work;
            options.hooks = HookRunner::new(vec![Arc::new(hook)]);
        })
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.requests, rig.told_to_go_on()), (1, 0));
    assert_eq!(told.notices(), [WORDS]);
    let summary = rig.asked(Kind::Summary)[0].last_text();
    assert!(summary.contains("Active goal: ship it (status: active)"));
}
