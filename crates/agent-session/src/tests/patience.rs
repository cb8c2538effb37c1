//! Summarisers that are slow, broken or refuse: each is replaced in time, and nothing stays stuck (R12).

use std::sync::Arc;
use std::time::Duration;

use foldline_llm_client::testing::{ScriptedModel, WhenEmpty};
use foldline_session_model::model_call::{ErrorClass, StopReason, TransientCause};

use super::*;
use crate::event::{Event, OperationOutcome};
use crate::testing::{profile, two_minds};

/// A session over its threshold whose model answers turns well and summaries so, with another summariser behind it.
async fn session(
    first: impl Fn() -> Script + Send + Sync + 'static,
    second: Script,
) -> (Rig, Arc<ScriptedModel>) {
    let model = two_minds(
        60_000,
        |_, _| Script::reply("answered", used(20_000)),
        move |_, _| first(),
    );
    let next = Arc::new(ScriptedModel::new(
        profile("two", 200_000),
        [],
        WhenEmpty::Repeat(second),
    ));
    let behind = Arc::clone(&next);
    let rig = Rig::over(model, |options| {
        options.models.summarisers.push(behind);
    })
    .filled(20, 2_500)
    .await;
    (rig, next)
}

/// The next candidate is asked within 31 seconds, the first one twice at most, and its summary is taken.
async fn replaced(first: impl Fn() -> Script + Send + Sync + 'static) {
    let (mut rig, next) = session(first, summary()).await;
    let Prompted::Ran(report) = rig.session.prompt("go on").await.unwrap() else {
        panic!("queued")
    };
    assert_eq!(report.end, RunEnd::Completed);
    let ends: Vec<_> = rig
        .events()
        .into_iter()
        .filter_map(|event| match &*event {
            Event::CompactionEnd(end) => Some(end.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    let result = ends[0].result.as_ref().unwrap_or_else(|| panic!("{:?}", ends[0]));
    assert_eq!(result.planner, "test/two");
    let asked = rig.model.asked();
    let first: Vec<_> = asked
        .iter()
        .filter(|asked| !crate::testing::is_turn(&asked.request))
        .collect();
    // The same request is sent twice at most.
    for one in &first {
        let again = first.iter().filter(|other| other.request == one.request).count();
        assert!(again <= 2, "{again} times");
    }
    let took = next.asked()[0].at - first[0].at;
    assert!(took <= Duration::from_secs(31), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn r12_one_that_hangs_is_replaced() {
    replaced(Script::hang).await;
}

#[tokio::test(start_paused = true)]
async fn r12_one_that_falls_silent_is_replaced() {
    replaced(|| Script::new().text("## Goal\nBuild").then_hang()).await;
}

#[tokio::test(start_paused = true)]
async fn r12_one_whose_stream_has_no_end_is_replaced() {
    replaced(|| Script::new().text("## Goal\nBuild the parser.")).await;
}

#[tokio::test(start_paused = true)]
async fn r12_one_that_refuses_the_credentials_is_replaced() {
    replaced(|| Script::failure(ErrorClass::Auth, "401 invalid x-api-key")).await;
}

#[tokio::test(start_paused = true)]
async fn r12_one_that_fails_is_replaced() {
    replaced(|| {
        Script::failure(
            ErrorClass::Transient(TransientCause::Server),
            "500 internal error",
        )
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn r12_one_whose_thinking_takes_all_of_the_output_is_replaced() {
    replaced(|| {
        Script::new()
            .thinking("let me think about it", "signature")
            .usage(used(5_000))
            .stop(StopReason::Length)
    })
    .await;
}

/// Slowness is no failure: silence is.
#[tokio::test(start_paused = true)]
async fn r12_one_that_trickles_is_waited_for() {
    let text = "## Goal\nBuild the parser, slowly.\n## Progress\n- lexer\n## Next Steps\n1. parser\n";
    let pieces = move || {
        let pieces: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        Script::new()
            .pieces(pieces, Duration::from_secs(10))
            .usage(used(5_000))
            .stop(StopReason::Stop)
    };
    let (mut rig, next) = session(pieces, summary()).await;
    drop(rig.session.prompt("go on").await.unwrap());
    let committed = rig.events().iter().any(
        |event| matches!(&**event, Event::CompactionEnd(end) if end.outcome == OperationOutcome::Committed),
    );
    assert!(committed);
    assert_eq!(next.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn r12_when_all_fail_there_is_one_end_and_the_session_is_usable() {
    for broken in [
        Script::hang(),
        Script::failure(ErrorClass::Auth, "no"),
        Script::new().text("no end"),
    ] {
        let first = broken.clone();
        let (mut rig, _) = session(move || first.clone(), broken).await;
        let Prompted::Ran(report) = rig.session.prompt("go on").await.unwrap() else {
            panic!("queued")
        };
        assert_eq!(report.end, RunEnd::Completed, "{report:?}");
        let ends: Vec<_> = rig
            .events()
            .into_iter()
            .filter(|event| matches!(**event, Event::CompactionEnd(_)))
            .collect();
        assert!(!ends.is_empty());
        let Prompted::Ran(report) = rig.session.prompt("and on").await.unwrap() else {
            panic!("queued")
        };
        assert_eq!(report.end, RunEnd::Completed, "{report:?}");
    }
}

/// A byte every ten seconds, and no end.
fn endless() -> Script {
    Script::new().pieces((0..10_000).map(|_| "x"), Duration::from_secs(10))
}

/// Within the total budget there is an end, one, and the session can be used.
async fn bounded<T: Send + 'static>(
    end_event: &str,
    filled: usize,
    begin: impl FnOnce(crate::AgentSession) -> std::pin::Pin<Box<dyn Future<Output = T> + Send>>,
) -> T {
    let model = two_minds(
        200_000,
        |request, _| match request.tool_choice {
            // A handoff goes by the session's own system text.
            foldline_session_model::model_call::ToolChoice::None => endless(),
            _ => Script::reply("answered", used(100)),
        },
        |_, _| endless(),
    );
    let mut rig = Rig::over(model, |_| {}).filled(filled, 2_000).await;
    let before = rig.bytes();
    let began = tokio::time::Instant::now();
    let outcome = begin(rig.session.clone()).await;
    let budget = rig.options.settings.maintenance_budget;
    assert!(
        began.elapsed() <= budget + Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    let told = rig.told();
    let ends = told.iter().filter(|name| *name == end_event).count();
    assert_eq!(ends, 1, "{told:?}");
    assert_eq!(rig.bytes(), before);
    let Prompted::Ran(report) = rig.session.prompt("and now?").await.unwrap() else {
        panic!("queued")
    };
    assert_eq!(report.end, RunEnd::Completed);
    outcome
}

async fn bounded_compaction(action: crate::event::CompactionAction) {
    let end = bounded("compaction_end", 30, move |session| {
        Box::pin(async move {
            let options = CompactOptions {
                action: Some(action),
                ..CompactOptions::default()
            };
            session.compact(options).await
        })
    })
    .await
    .unwrap();
    assert_eq!(end.outcome, OperationOutcome::Failed);
    let text = end.error_message.unwrap();
    assert!(text.contains("within 600 seconds"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn r12_an_endless_trickle_of_a_summary_ends_with_the_budget() {
    bounded_compaction(crate::event::CompactionAction::ContextFull).await;
}

#[tokio::test(start_paused = true)]
async fn r12_an_endless_trickle_of_line_ranges_ends_with_the_budget() {
    bounded_compaction(crate::event::CompactionAction::VerbatimLines).await;
}

#[tokio::test(start_paused = true)]
async fn r12_an_endless_trickle_of_a_branch_summary_ends_with_the_budget() {
    let moved = bounded("branch_summary_end", 4, |session| {
        Box::pin(async move {
            let first = session
                .with_log(|log| log.entries().nth(1).map(|ix| log.entry_id(ix)))
                .await;
            let options = crate::NavigateOptions {
                summary: crate::BranchSummaryChoice::Summarize,
                ..crate::NavigateOptions::default()
            };
            session.navigate(first.unwrap().as_str(), options).await
        })
    })
    .await;
    let text = moved.unwrap_err().to_string();
    assert!(text.contains("within 600 seconds"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn r12_an_endless_trickle_of_a_handoff_ends_with_the_budget() {
    let done = bounded("handoff_end", 4, |session| {
        Box::pin(async move { session.handoff(crate::HandoffOptions::default()).await })
    })
    .await;
    let text = done.unwrap_err().to_string();
    assert!(text.contains("within 600 seconds"), "{text}");
}
