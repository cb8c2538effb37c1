//! Nothing goes round in circles: overflows, failing summaries, contexts that cannot be made smaller, long tool loops
//! (R01, R02, R07).

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use foldline_session_model::model_call::{ErrorClass, OtherCause, RawJson, ToolSpec};

use super::*;
use crate::event::{Event, NoticeLevel, OperationOutcome};
use crate::testing::two_minds;
use crate::tool::{Tool, ToolOutput, ToolRun};

/// A tool that answers with this many words.
pub(super) struct Echo(usize);

impl Echo {
    pub(super) const fn of(words: usize) -> Self {
        Self(words)
    }
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> ToolSpec<'static> {
        ToolSpec {
            name: "echo".into(),
            description: "Says something.".into(),
            parameters: RawJson::empty_object(),
        }
    }

    async fn run(&self, _call: ToolRun<'_>) -> ToolOutput {
        ToolOutput::text("word ".repeat(self.0))
    }
}

/// What a request costs, by the length of its JSON.
fn size_of(request: &foldline_session_model::model_call::LlmRequest<'_>) -> u64 {
    serde_json::to_string(request).unwrap().len() as u64 / 5
}

fn starts(events: &[Arc<Event>]) -> usize {
    events
        .iter()
        .filter(|event| matches!(***event, Event::CompactionStart(_)))
        .count()
}

fn ran(prompted: Prompted) -> crate::RunReport {
    match prompted {
        Prompted::Ran(report) => report,
        Prompted::Queued => panic!("queued"),
    }
}

#[tokio::test(start_paused = true)]
async fn r01_a_provider_that_always_overflows() {
    let model = two_minds(200_000, |_, _| overflow(), |_, _| summary());
    let mut rig = Rig::over(model, |_| {}).filled(30, 4_000).await;
    for turn in 1..=3 {
        let before = rig.turns();
        let report = ran(rig.session.prompt(format!("go on {turn}")).await.unwrap());
        assert_eq!(report.end, RunEnd::Failed);
        let turns = rig.turns() - before;
        assert!(turns <= 2, "{turns} requests in turn {turn}");
        let events = rig.events();
        let ends: Vec<_> = events
            .iter()
            .filter_map(|event| match &**event {
                Event::CompactionEnd(end) => Some(end),
                _ => None,
            })
            .collect();
        let committed = ends
            .iter()
            .filter(|end| end.outcome == OperationOutcome::Committed)
            .count();
        let unresolved = ends.iter().filter(|end| end.unresolved_overflow).count();
        let ended = events
            .iter()
            .filter(|event| matches!(***event, Event::AgentEnd { .. }))
            .count();
        assert!(committed <= 1, "turn {turn}: {ends:?}");
        assert_eq!((unresolved, ended), (1, 1), "turn {turn}: {ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn r01_a_summariser_that_always_fails_is_not_asked_in_every_turn() {
    let model = two_minds(
        60_000,
        |request, _| Script::reply("word ".repeat(3_000), used(size_of(request))),
        |_, _| Script::failure(ErrorClass::Other(OtherCause::Protocol), "nonsense"),
    );
    let mut rig = Rig::over(model, |_| {}).filled(10, 4_000).await;
    for turn in 0..20 {
        let report = ran(rig.session.prompt(format!("go on {turn}")).await.unwrap());
        assert_eq!(report.end, RunEnd::Completed, "{report:?}");
    }
    let asked = rig.model.calls() - rig.turns();
    let attempts = starts(&rig.events());
    assert!((1..=3).contains(&attempts), "{attempts} attempts");
    // A summary may take two requests: one for the history, one for the beginning of a split turn.
    assert!(asked <= 2 * attempts, "{asked} calls in {attempts} attempts");
}

#[tokio::test(start_paused = true)]
async fn r02_a_tail_that_cannot_be_made_smaller_is_tried_once() {
    let model = two_minds(
        60_000,
        |request, _| Script::reply("noted", used(size_of(request))),
        |_, _| summary(),
    );
    let mut rig = Rig::over(model, |options| {
        options.settings.compaction.auto_continue = true;
    })
    .filled(2, 20)
    .await;
    let tail = "one more of so many words that stay ".repeat(7_000);
    let mut events = Vec::new();
    for turn in 0..10 {
        let prompt = if turn == 0 {
            tail.clone()
        } else {
            format!("go on {turn}")
        };
        let before = rig.bytes();
        let report = ran(rig.session.prompt(prompt).await.unwrap());
        assert_eq!(
            (report.end, report.requests),
            (RunEnd::Completed, 1),
            "turn {turn}: {report:?}"
        );
        assert!(rig.bytes().starts_with(&before));
        events.extend(rig.events());
    }
    let asked = rig.model.calls() - rig.turns();
    assert!(asked <= 1, "{asked} calls");
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &**event {
            Event::CompactionEnd(end) => Some(end),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].outcome, OperationOutcome::Skipped, "{ends:?}");
    let warnings = events
        .iter()
        .filter(|event| {
            matches!(
                &***event,
                Event::Notice {
                    level: NoticeLevel::Warning | NoticeLevel::Error,
                    ..
                }
            )
        })
        .count();
    assert!(warnings <= 1, "{warnings} notices");
}

/// A loop of this many calls in one run; the sizes of the requests as the provider counts them.
async fn long_loop(enabled: bool) -> (Vec<u64>, Vec<Arc<Event>>, crate::RunReport) {
    const CALLS: usize = 60;
    let sizes: Arc<Mutex<Vec<u64>>> = Arc::default();
    let seen = Arc::clone(&sizes);
    let model = two_minds(
        40_000,
        move |request, number| {
            let size = size_of(request);
            let mut sizes = seen.lock().unwrap();
            sizes.push(size);
            if sizes.len() <= CALLS {
                Script::tool_use(format!("c{number}"), "echo", "{}", used(size))
            } else {
                Script::reply("done", used(size))
            }
        },
        |_, _| summary(),
    );
    let mut rig = Rig::over(model, |options| {
        options.tools.push(Arc::new(Echo::of(1_500)));
        options.settings.compaction.enabled = enabled;
    });
    let report = ran(rig.session.prompt("look at everything").await.unwrap());
    let sizes = sizes.lock().unwrap().clone();
    (sizes, rig.events(), report)
}

#[tokio::test(start_paused = true)]
async fn r07_in_a_long_loop_no_request_is_over_the_threshold_without_an_attempt_before_it() {
    let (sizes, events, report) = long_loop(true).await;
    assert_eq!(
        (report.end, report.requests),
        (RunEnd::Completed, 61),
        "{report:?}"
    );
    // 15 % of the window are less than the reserve, which is clamped to half of it.
    let threshold = 40_000 - 16_384;
    let mut requests = sizes.iter();
    let mut attempted = false;
    for event in &events {
        match &**event {
            Event::CompactionStart(start) => {
                assert!(start.mid_turn);
                attempted = true;
            }
            Event::MessageStart { role: "assistant" } => {
                let size = *requests.next().unwrap();
                assert!(
                    size <= threshold || attempted,
                    "a request of {size} tokens in {sizes:?}"
                );
                attempted &= size > threshold;
            }
            _ => {}
        }
    }
    assert!(starts(&events) > 1);
}

#[tokio::test(start_paused = true)]
async fn r07_switched_off_nothing_is_compacted_by_itself() {
    // In a run.
    let (_, events, _) = long_loop(false).await;
    assert_eq!(starts(&events), 0);
    // After an overflow, and while nothing happens.
    let model = two_minds(200_000, |_, _| overflow(), |_, _| summary());
    let mut rig = Rig::over(model, |options| {
        options.settings.compaction.enabled = false;
        options.settings.compaction.idle_enabled = true;
        options.settings.compaction.idle_threshold_tokens = foldline_session_model::Tokens(1_000);
    })
    .filled(30, 4_000)
    .await;
    drop(ran(rig.session.prompt("go on").await.unwrap()));
    rig.session.compact_idle().await.unwrap();
    assert_eq!(starts(&rig.events()), 0);
    assert_eq!(rig.model.calls(), rig.turns());
}
