//! A cancel ends whatever is in progress within 200 ms, once, and leaves the file as it was (R11,
//! FB-130).

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use foldline_session_model::model_call::{ErrorClass, RawJson, ToolSpec, TransientCause};
use foldline_session_store::SessionStore as _;
use tokio::time::Instant;

use super::*;
use crate::event::{CompactionAction, OperationOutcome};
use crate::tool::{Tool, ToolOutput, ToolRun};
use crate::{AgentSession, BranchSummaryChoice, HandoffOptions, NavigateOptions, SessionError};

/// A tool that never answers.
struct Stuck;

#[async_trait]
impl Tool for Stuck {
    fn spec(&self) -> ToolSpec<'static> {
        ToolSpec {
            name: "stuck".into(),
            description: "Never answers.".into(),
            parameters: RawJson::empty_object(),
        }
    }

    async fn run(&self, _call: ToolRun<'_>) -> ToolOutput {
        std::future::pending().await
    }
}

type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What an operation that was cancelled may leave in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Nothing,
    /// What a turn had said until then.
    WhatWasSaid,
}

/// Begins an operation, cancels it in the midst of it, and checks what is left. Returns what it came to.
async fn cancelled<T: Send + 'static>(
    rig: &mut Rig,
    end_event: &str,
    leaves: Leaves,
    begin: impl FnOnce(AgentSession) -> Running<T>,
) -> T {
    drop(rig.events());
    let running = tokio::spawn(begin(rig.session.clone()));
    // By now the model, the tool or the wait is in progress.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!running.is_finished());
    let before = rig.bytes();
    let asked = Instant::now();
    rig.session.abort();
    rig.session.wait_for_idle().await;
    let outcome = running.await.unwrap();
    assert!(
        asked.elapsed() < Duration::from_millis(200),
        "{:?}",
        asked.elapsed()
    );

    let told = rig.told();
    let ends = told.iter().filter(|name| *name == end_event).count();
    assert_eq!(ends, 1, "{told:?}");
    let state = rig.session.state();
    assert!(!state.is_streaming && !state.is_compacting, "{state:?}");
    match leaves {
        Leaves::Nothing => assert!(rig.bytes() == before, "the file has changed"),
        Leaves::WhatWasSaid => assert!(rig.bytes().starts_with(&before), "the file has changed"),
    }

    rig.model.push(Script::reply("here again", used(100)));
    let Prompted::Ran(report) = rig.session.prompt("and now?").await.unwrap() else {
        panic!("queued")
    };
    assert_eq!(
        (report.end, report.requests),
        (RunEnd::Completed, 1),
        "{report:?}"
    );
    outcome
}

fn ended(outcome: Result<Prompted, SessionError>) -> RunEnd {
    match outcome.unwrap() {
        Prompted::Ran(report) => report.end,
        Prompted::Queued => panic!("queued"),
    }
}

#[tokio::test(start_paused = true)]
async fn r11_a_turn_that_streams() {
    let mut rig = Rig::new([Script::new().text("half an ans").then_hang()]);
    let outcome = cancelled(&mut rig, "agent_end", Leaves::WhatWasSaid, |session| {
        Box::pin(async move { session.prompt("hi").await })
    })
    .await;
    assert_eq!(ended(outcome), RunEnd::Cancelled);
    assert_eq!(
        rig.context(),
        [
            "user: hi",
            "assistant: half an ans",
            "user: and now?",
            "assistant: here again"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn r11_a_tool_that_runs_and_does_not_heed_the_cancel() {
    let script = Script::tool_use("c1", "stuck", "{}", used(100));
    let mut rig = Rig::with(200_000, [script], |options| {
        options.tools.push(std::sync::Arc::new(Stuck));
    });
    let outcome = cancelled(&mut rig, "agent_end", Leaves::WhatWasSaid, |session| {
        Box::pin(async move { session.prompt("hi").await })
    })
    .await;
    assert_eq!(ended(outcome), RunEnd::Cancelled);
    let context = rig.context();
    assert!(
        context[2].starts_with("toolResult: Cancelled while the tool ran"),
        "{context:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn r11_the_wait_before_a_retry() {
    let overloaded = Script::failure(ErrorClass::Transient(TransientCause::Overloaded), "overloaded");
    let mut rig = Rig::with(200_000, [overloaded], |options| {
        options.settings.retry.jitter = foldline_llm_client::Jitter::None;
    });
    let outcome = cancelled(&mut rig, "agent_end", Leaves::Nothing, |session| {
        Box::pin(async move { session.prompt("hi").await })
    })
    .await;
    assert_eq!(ended(outcome), RunEnd::Cancelled);
}

async fn compaction(action: CompactionAction) {
    // A summary of a split turn asks twice at once, lines are asked for once.
    let asked = match action {
        CompactionAction::VerbatimLines => 1,
        _ => 2,
    };
    let scripts = vec![Script::hang(); asked];
    let mut rig = Rig::new(scripts).filled(30, 2_000).await;
    let outcome = cancelled(&mut rig, "compaction_end", Leaves::Nothing, move |session| {
        Box::pin(async move {
            let options = CompactOptions {
                action: Some(action),
                ..CompactOptions::default()
            };
            session.compact(options).await
        })
    })
    .await;
    let end = outcome.unwrap();
    assert_eq!((end.outcome, end.aborted), (OperationOutcome::Cancelled, true));
    assert_eq!(end.error_message, None);
}

#[tokio::test(start_paused = true)]
async fn r11_a_compaction_by_summary() {
    compaction(CompactionAction::ContextFull).await;
}

#[tokio::test(start_paused = true)]
async fn r11_a_compaction_by_deleted_lines() {
    compaction(CompactionAction::VerbatimLines).await;
}

#[tokio::test(start_paused = true)]
async fn r11_the_summary_of_a_branch() {
    let mut rig = Rig::new([Script::hang()]).filled(4, 200).await;
    let target = {
        let log = rig.log();
        log.entries().nth(1).map(|ix| log.entry_id(ix)).unwrap()
    };
    let outcome = cancelled(&mut rig, "branch_summary_end", Leaves::Nothing, move |session| {
        Box::pin(async move {
            let options = NavigateOptions {
                summary: BranchSummaryChoice::Summarize,
                ..NavigateOptions::default()
            };
            session.navigate(target.as_str(), options).await
        })
    })
    .await;
    let moved = outcome.unwrap();
    assert_eq!(moved.outcome, OperationOutcome::Cancelled);
    assert_eq!(moved.new_leaf_id, moved.old_leaf_id);
}

#[tokio::test(start_paused = true)]
async fn r11_a_handoff() {
    let mut rig = Rig::new([Script::hang()]).filled(4, 200).await;
    let files = |rig: &Rig| {
        let folder = std::path::Path::new(crate::testing::FILE).parent().unwrap();
        let items = rig.store.volume().list(folder).unwrap();
        items
            .iter()
            .filter(|item| item.name().to_string_lossy().ends_with(".jsonl"))
            .count()
    };
    assert_eq!(files(&rig), 1);
    let outcome = cancelled(&mut rig, "handoff_end", Leaves::Nothing, |session| {
        Box::pin(async move { session.handoff(HandoffOptions::default()).await })
    })
    .await;
    assert!(
        matches!(outcome, Err(SessionError::Cancelled { .. })),
        "{outcome:?}"
    );
    assert_eq!(files(&rig), 1);
}

#[tokio::test(start_paused = true)]
async fn r11_a_prompt_after_a_cancel_is_no_part_of_what_was_cancelled() {
    let rig = Rig::new([Script::hang(), Script::reply("second", used(100))]);
    let session = rig.session.clone();
    let first = tokio::spawn(async move { session.prompt("first").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    rig.session.abort();
    let next = crate::Prompt::text("next").queued_as(crate::Delivery::FollowUp);
    drop(rig.session.prompt(next).await.unwrap());
    assert_eq!(ended(first.await.unwrap()), RunEnd::Cancelled);
    rig.session.wait_for_idle().await;
    assert_eq!(rig.context().last().unwrap(), "assistant: second");
    assert_eq!(rig.session.state().pending_message_count, 0);
}

/// A session on a runtime with one thread for work that blocks.
fn on_one_thread(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .enable_time()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await })
        .expect("a cancel waits for work that nobody wants");
}

/// However long a plan takes to make, a cancel does not wait for it.
#[test]
fn r11_the_preparation_of_a_compaction() {
    for action in [CompactionAction::ContextFull, CompactionAction::VerbatimLines] {
        on_one_thread(async {
            let mut rig = Rig::new([Script::reply("here again", used(100))])
                .filled(30, 500)
                .await;
            drop(rig.events());
            let before = rig.bytes();
            // The preparation does not come to an end before this does.
            let (release, held) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || held.recv().is_err());
            let session = rig.session.clone();
            let compacting = tokio::spawn(async move {
                let options = CompactOptions {
                    action: Some(action),
                    ..CompactOptions::default()
                };
                session.compact(options).await
            });
            while !rig.session.state().is_compacting {
                tokio::task::yield_now().await;
            }
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(!compacting.is_finished());
            rig.session.abort();
            let end = compacting.await.unwrap().unwrap();
            assert_eq!((end.outcome, end.aborted), (OperationOutcome::Cancelled, true));
            assert_eq!(rig.bytes(), before);
            let told = rig.told();
            assert_eq!(told, ["compaction_start", "compaction_end"]);
            assert!(!rig.session.state().is_compacting);
            assert!(!busy.is_finished());
            drop(release);
            let outcome = rig.session.prompt("and now?").await;
            assert_eq!(ended(outcome), RunEnd::Completed);
        });
    }
}
