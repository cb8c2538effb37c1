//! Maintenance between two requests of a run (3.7 and 17; D16).

use async_trait::async_trait;
use foldline_compaction_core::settings::{Fallback, Strategy};
use foldline_session_model::model_call::{RawJson, ToolSpec};

use super::*;
use crate::AgentSession;
use crate::hooks::{
    BeforeCompactAnswer, BeforeCompactEvent, HookCompaction, HookContext, HookError, HookEvent, HookRunner,
    Hooks, SessionCompactEvent,
};
use crate::tool::{AfterTool, Tool, ToolOutput, ToolRun};

/// A tool that answers after a second with this many words, and says whether the run goes on.
pub(super) struct Fills(pub(super) usize, pub(super) AfterTool);

#[async_trait]
impl Tool for Fills {
    fn spec(&self) -> ToolSpec<'static> {
        ToolSpec {
            name: "fill".into(),
            description: "Fills the context.".into(),
            parameters: RawJson::empty_object(),
        }
    }

    async fn run(&self, _: ToolRun<'_>) -> ToolOutput {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        ToolOutput {
            then: self.1,
            ..ToolOutput::text("word ".repeat(self.0))
        }
    }
}

/// The model calls the tool.
fn call() -> Script {
    Script::tool_use("c1", "fill", "{}", used(100_000))
}

/// A session whose tool answers with this many words.
async fn filling(words: usize, turns: Vec<Script>, change: impl FnOnce(&mut SessionOptions)) -> Rig {
    Play::turns(turns)
        .rig_with(|options| {
            options.tools = vec![Arc::new(Fills(words, AfterTool::Continue))];
            change(options);
        })
        .filled(20, 2_000)
        .await
}

#[tokio::test(start_paused = true)]
async fn g_a_context_over_the_threshold_is_compacted_within_the_run() {
    let mut rig = filling(60_000, vec![call(), done()], |_| {}).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Threshold);
    assert!(told.end().mid_turn);
    assert_eq!((told.count("agent_start"), told.count("agent_end")), (1, 1));
    assert_eq!(rig.told_to_go_on(), 0);
}

/// G: "tool result and 2 steering messages are stored before the single continuation".
#[tokio::test(start_paused = true)]
async fn g_results_and_steering_are_in_the_context_that_is_compacted() {
    let mut rig = filling(60_000, vec![call(), done()], |options| {
        options.settings.steering = crate::QueueMode::All;
    })
    .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    rig.session.steer("first").await.unwrap();
    rig.session.steer("second").await.unwrap();
    let Prompted::Ran(report) = run.await.unwrap().unwrap() else {
        panic!("queued")
    };
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert!(Told(rig.events()).end().mid_turn);
    let context = rig.context();
    let at = |text: &str| context.iter().position(|line| line == text);
    assert!(at("user: first") < at("user: second"), "{context:?}");
    assert!(at("user: second") < at("assistant: done"), "{context:?}");
    assert_eq!(rig.session.state().pending_message_count, 0);
}

struct Forbids;

#[async_trait]
impl Hooks for Forbids {
    fn path(&self) -> &'static str {
        "forbids"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionBeforeCompact]
    }

    async fn session_before_compact(
        &self,
        _: &BeforeCompactEvent<'_>,
        _: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        Ok(BeforeCompactAnswer {
            cancel: true,
            ..BeforeCompactAnswer::default()
        })
    }
}

/// G: "hook cancel -> run goes on". The end has the shape of a cancel (10.3).
#[tokio::test(start_paused = true)]
async fn g_a_hook_that_forbids_it_does_not_stop_the_run() {
    let mut rig = filling(60_000, vec![call(), done()], |options| {
        options.hooks = HookRunner::new(vec![Arc::new(Forbids)]);
    })
    .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    let first = told.ends()[0];
    assert_ended(first, Reason::Threshold, OperationOutcome::Cancelled);
    assert!(first.aborted && first.error_message.is_none());
    assert_eq!(rig.compactions(), 0);
}

/// D16: a cancel stops the run.
#[tokio::test(start_paused = true)]
async fn g_a_cancelled_compaction_stops_the_run() {
    let rig = Play::turns([call()])
        .summaries([Script::hang()])
        .rig_with(|options| options.tools = vec![Arc::new(Fills(60_000, AfterTool::Continue))])
        .filled(20, 2_000)
        .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    rig.until_compacting().await;
    assert!(rig.session.abort_compaction());
    let Prompted::Ran(report) = run.await.unwrap().unwrap() else {
        panic!("queued")
    };
    assert_eq!((report.end, report.requests), (RunEnd::Cancelled, 1));
    assert_eq!(rig.compactions(), 0);
}

/// D16: below the hard window a failure sends the request all the same; above it, it does not.
#[tokio::test(start_paused = true)]
async fn a_a_failed_plan_stops_the_run_only_over_the_hard_window() {
    let auth = || Script::failure(ErrorClass::Auth, "no key");
    for (words, requests, end) in [(60_000, 2, RunEnd::Completed), (90_000, 1, RunEnd::Failed)] {
        let mut rig = Play::turns([call(), done()])
            .summaries((0..6).map(|_| auth()))
            .rig_with(|options| {
                options.tools = vec![Arc::new(Fills(words, AfterTool::Continue))];
                options.settings.compaction.fallback = Fallback::None;
            })
            .filled(20, 2_000)
            .await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (end, requests), "{words}");
        let first = told.ends()[0];
        assert_ended(first, Reason::Threshold, OperationOutcome::Failed);
        assert!(first.mid_turn);
        if end == RunEnd::Failed {
            let text = report.error.unwrap();
            assert!(
                text.starts_with("Post-tool context compaction failed before the next provider request: "),
                "{text}"
            );
        }
    }
}

/// A: "terminating batch -> none"; G: "`yield` -> no maintenance".
#[tokio::test(start_paused = true)]
async fn a_a_tool_that_ends_the_run_leaves_nothing_to_maintain() {
    let mut rig = Play::turns([Script::tool_use("c1", "fill", "{}", used(180_000))])
        .rig_with(|options| options.tools = vec![Arc::new(Fills(5, AfterTool::EndRun))])
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_eq!(told.ends().len(), 0);
}

/// G: a handoff never interrupts a run.
#[tokio::test(start_paused = true)]
async fn g_between_two_requests_a_handoff_is_a_summary() {
    let mut rig = filling(60_000, vec![call(), done()], |options| {
        options.settings.compaction.strategy = Strategy::Handoff;
    })
    .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Threshold);
}

/// FB-009: a result that is larger than the window is compacted away in one attempt, and the next request fits.
#[tokio::test(start_paused = true)]
async fn fb_009_a_result_larger_than_the_window_is_compacted_once() {
    use foldline_session_model::Tokens;
    use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
    let mut rig = filling(210_000, vec![call(), done()], |_| {}).await;
    let (report, told) = rig.run("read the log").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_ended(told.end(), Reason::Threshold, OperationOutcome::Committed);
    assert!(told.end().mid_turn);
    let request = serde_json::to_string(&rig.asked(Kind::Turn)[1].request).unwrap();
    assert!(Heuristic.one(&request) < Tokens(200_000));
}

/// G: "prune alone -> no compaction".
#[tokio::test(start_paused = true)]
async fn g_a_prune_alone_averts_a_compaction_within_the_run() {
    use foldline_session_model::Tokens;
    let sized = |tokens| Script::tool_use(format!("c{tokens}"), "fill", "{}", used(tokens));
    let turns = [sized(20_000), sized(80_000), sized(140_000), done()];
    let mut rig = Play::turns(turns).rig_with(|options| {
        options.tools = vec![Arc::new(Fills(60_000, AfterTool::Continue))];
        options.settings.pruning.protect_tokens = Tokens(50_000);
        options.settings.pruning.protect_recent_turns = 0;
    });
    let (report, told) = rig.run("read them all").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 4));
    assert_eq!((told.count("compaction_start"), told.count("pruned")), (0, 1));
    assert_eq!((told.count("agent_start"), told.count("agent_end")), (1, 1));
    assert_eq!(rig.compactions(), 0);
    let asked = rig.asked(Kind::Turn);
    let sizes: Vec<usize> = asked
        .iter()
        .map(|asked| serde_json::to_string(&asked.request).unwrap().len())
        .collect();
    assert!(sizes[3] < sizes[2], "{sizes:?}");
}

/// Cancels the session as soon as a compaction is in it.
#[derive(Default)]
struct CancelsAfter(Mutex<Option<AgentSession>>);

#[async_trait]
impl Hooks for CancelsAfter {
    fn path(&self) -> &'static str {
        "cancels-after"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionCompact]
    }

    async fn session_compact(&self, _: &SessionCompactEvent<'_>, _: &HookContext) -> Result<(), HookError> {
        self.0.lock().unwrap().as_ref().unwrap().abort();
        Ok(())
    }
}

/// G: "abort after append -> no continuation": the compaction stays, and the run ends as cancelled.
#[tokio::test(start_paused = true)]
async fn g_a_cancel_after_the_commit_keeps_the_compaction_and_sends_nothing() {
    // Between two requests, after a run, and after an overflow.
    for (turns, words) in [(call(), 60_000), (over(), 1), (overflow(), 1)] {
        let hook = Arc::new(CancelsAfter::default());
        let mut rig = filling(words, vec![turns, done()], |options| {
            options.hooks = HookRunner::new(vec![Arc::clone(&hook) as Arc<dyn Hooks>]);
            options.work = unfinished();
        })
        .await;
        *hook.0.lock().unwrap() = Some(rig.session.clone());
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Cancelled, 1));
        assert_eq!(told.end().outcome, OperationOutcome::Committed);
        assert_eq!(
            (told.count("agent_end"), rig.compactions(), rig.turns()),
            (1, 1, 1)
        );
        *hook.0.lock().unwrap() = None;
    }
}

/// Makes a compaction of this many words.
struct Makes(usize);

#[async_trait]
impl Hooks for Makes {
    fn path(&self) -> &'static str {
        "makes"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionBeforeCompact]
    }

    async fn session_before_compact(
        &self,
        _: &BeforeCompactEvent<'_>,
        _: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        Ok(BeforeCompactAnswer {
            compaction: Some(HookCompaction {
                summary: "word ".repeat(self.0),
                short_summary: None,
                first_kept_entry_id: None,
                tokens_before: None,
                details: None,
                preserve_data: None,
            }),
            ..BeforeCompactAnswer::default()
        })
    }
}

/// A: "over the hard limit -> end has result **and** errorMessage": what is committed stays, and the run stops.
#[tokio::test(start_paused = true)]
async fn a_a_context_that_is_still_over_the_window_after_a_commit_has_a_result_and_an_error() {
    let mut rig = Play::turns([call(), done()])
        .rig_with(|options| {
            options.tools = vec![Arc::new(Fills(180_000, AfterTool::Continue))];
            options.hooks = HookRunner::new(vec![Arc::new(Makes(205_000))]);
        })
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    let end = told.end();
    assert_ended(end, Reason::Threshold, OperationOutcome::Committed);
    assert!(end.mid_turn && end.result.is_some());
    let text = end.error_message.as_deref().unwrap();
    assert!(
        text.starts_with("Post-tool context remains over the provider hard input limit after compaction ("),
        "{text}"
    );
    assert!(
        text.ends_with("; the next provider request was not sent."),
        "{text}"
    );
    assert_eq!(report.error.as_deref(), Some(text));
    assert_eq!((rig.compactions(), told.count("auto_retry_start")), (1, 0));
}
