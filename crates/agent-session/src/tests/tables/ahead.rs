//! A compaction that is prepared beside the agent (DESIGN, D21). The clock stands still unless something waits.

use std::time::Duration;

use super::*;
use crate::event::AheadOutcome;
use crate::testing::SUMMARY;
use crate::{NavigateOptions, SoftLine};

/// Above the soft line of 136,000 tokens and below the threshold of 170,000.
fn near() -> Script {
    Script::reply("near", used(150_000))
}

fn summary_after(seconds: u64) -> Script {
    Script::new()
        .wait(Duration::from_secs(seconds))
        .text(SUMMARY)
        .usage(used(5_000))
        .stop(foldline_session_model::model_call::StopReason::Stop)
}

async fn rig(turns: impl IntoIterator<Item = Script>, summaries: impl IntoIterator<Item = Script>) -> Rig {
    Play::turns(turns)
        .summaries(summaries)
        .rig_with(|options| {
            options.settings.background = Some(SoftLine::percent(80.0));
            // One request is enough, so that its script says how long all of it takes.
            options.settings.compaction.keep_recent_tokens = 1.0;
        })
        .filled(20, 2_000)
        .await
}

/// The ends of preparations, in order.
fn ends(told: &Told) -> Vec<(AheadOutcome, Option<String>)> {
    let ends = told.0.iter().filter_map(|event| match &**event {
        Event::BackgroundCompactionEnd {
            outcome,
            error_message,
        } => Some((*outcome, error_message.clone())),
        _ => None,
    });
    ends.collect()
}

async fn a_minute() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn d21_what_was_prepared_is_committed_without_a_wait() {
    let mut rig = rig([near(), over(), done()], [summary_after(30), summary_after(30)]).await;
    let (_, told) = rig.run("first").await;
    assert_eq!(told.count("background_compaction_start"), 1);
    assert!(told.ends().is_empty() && ends(&told).is_empty());
    a_minute().await;
    assert_eq!(rig.compactions(), 0, "nothing is committed below the threshold");
    let asked = rig.asked(Kind::Summary).len();

    let started = tokio::time::Instant::now();
    let (_, told) = rig.run("second").await;
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(ends(&told), [(AheadOutcome::Committed, None)]);
    assert_summarised(told.end(), Reason::Threshold);
    let result = told.end().result.as_ref().unwrap();
    assert_eq!(result.prepared, Some("background"));
    assert_eq!(rig.asked(Kind::Summary).len(), asked);
    let line = String::from_utf8(rig.bytes()).unwrap();
    assert!(line.contains("\"prepared\":\"background\""));

    // What was said after the plan was begun comes behind it.
    let context = rig.context();
    assert!(context[0].starts_with("compactionSummary: "), "{context:?}");
    let at = |text: &str| context.iter().position(|line| line == text).unwrap();
    assert!(at("user: second") < at("assistant: so far"), "{context:?}");
    assert!(
        !context.iter().any(|line| line.starts_with("user: question 3")),
        "{context:?}"
    );
    rig.model.push(done());
    drop(rig.run("third").await);
    let asked = rig.asked(Kind::Turn);
    let json = serde_json::to_string(&asked.last().unwrap().request).unwrap();
    assert!(
        json.contains("second") && json.contains("Build the parser"),
        "{json}"
    );
}

#[tokio::test(start_paused = true)]
async fn d21_one_that_is_not_ready_is_waited_for() {
    let mut rig = rig([near(), over()], [summary_after(30)]).await;
    drop(rig.run("first").await);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let started = tokio::time::Instant::now();
    let (_, told) = rig.run("second").await;
    assert!(
        started.elapsed() <= Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(told.end().result.as_ref().unwrap().prepared, Some("background"));
    assert_eq!(rig.compactions(), 1);
}

#[tokio::test(start_paused = true)]
async fn d21_nothing_is_prepared_below_the_soft_line_or_without_the_setting() {
    let below = || Script::reply("far", used(130_000));
    let mut rig = rig([below()], []).await;
    let (_, told) = rig.run("first").await;
    assert_eq!(told.count("background_compaction_start"), 0);
    let mut rig = Play::turns([near()]).rig().filled(20, 2_000).await;
    let (_, told) = rig.run("first").await;
    assert_eq!(told.count("background_compaction_start"), 0);
    let mut rig = Play::turns([near()])
        .rig_with(|options| {
            options.settings.background = Some(SoftLine::percent(80.0));
            options.settings.compaction.strategy = foldline_compaction_core::settings::Strategy::Handoff;
        })
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("first").await;
    assert_eq!(told.count("background_compaction_start"), 0);
}

/// What makes a plan worthless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Move,
    Manual,
    Undo,
    Settings,
    Model,
}

#[tokio::test(start_paused = true)]
async fn d21_a_plan_is_dropped_when_the_session_is_another_one() {
    for change in [
        Change::Move,
        Change::Manual,
        Change::Undo,
        Change::Settings,
        Change::Model,
    ] {
        let mut rig = rig([near(), over()], [summary_after(30)]).await;
        if change == Change::Undo {
            let log = rig.log();
            let results = log.id(log.entries().next().unwrap()).to_owned();
            rig.session.set_label(&results, Some("here")).await.unwrap();
            drop(rig.session.compact(CompactOptions::default()).await.unwrap());
            rig = rig.filled(20, 2_000).await;
            drop(rig.events());
        }
        drop(rig.run("first").await);
        a_minute().await;
        match change {
            Change::Move => {
                let log = rig.log();
                let turn = log.entries().nth(30).unwrap();
                let target = log.id(turn).to_owned();
                drop(
                    rig.session
                        .navigate(&target, NavigateOptions::default())
                        .await
                        .unwrap(),
                );
            }
            Change::Manual => drop(rig.session.compact(CompactOptions::default()).await.unwrap()),
            Change::Undo => assert!(rig.session.undo().await.unwrap().is_some()),
            Change::Settings => rig
                .session
                .change_options(|options| options.settings.compaction.keep_recent_tokens = 9_000.0)
                .await
                .unwrap(),
            Change::Model => {
                let other = Play::turns([over()]).model("two", 200_000);
                rig.session.set_model(other).await.unwrap();
            }
        }
        let told = Told(rig.events());
        let told = ends(&told);
        assert_eq!(told.len(), 1, "{change:?} {told:?}");
        assert_eq!(told[0].0, AheadOutcome::Dropped, "{change:?}");
        assert!(told[0].1.is_some(), "{change:?}");
    }
}

/// A failure beside the agent is told, and the compaction that is due is made in the usual way.
#[tokio::test(start_paused = true)]
async fn d21_a_failure_leaves_the_ordinary_path() {
    let refuse = || Script::failure(ErrorClass::Other(OtherCause::InvalidRequest), "no");
    let mut rig = rig([near(), near(), over()], [refuse()]).await;
    let (_, told) = rig.run("first").await;
    assert_eq!(told.count("background_compaction_start"), 1);
    a_minute().await;
    let told = Told(rig.events());
    assert_eq!(ends(&told), [(AheadOutcome::Failed, Some("no".to_owned()))]);
    // Not again for the same context.
    let (_, told) = rig.run("second").await;
    assert_eq!(told.count("background_compaction_start"), 0);
    let (_, told) = rig.run("third").await;
    assert_summarised(told.end(), Reason::Threshold);
    let result = told.end().result.as_ref().unwrap();
    assert_eq!((result.prepared, result.planner.as_str()), (None, "test/one"));
}

#[tokio::test(start_paused = true)]
async fn d21_an_abort_ends_it_and_so_does_the_end_of_the_session() {
    for by_hand in [true, false] {
        let mut rig = rig([near(), over()], [summary_after(30)]).await;
        drop(rig.run("first").await);
        tokio::time::sleep(Duration::from_secs(5)).await;
        if by_hand {
            assert!(rig.session.abort_compaction());
        } else {
            rig.session.abort();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let told = Told(rig.events());
        assert_eq!(ends(&told), [(AheadOutcome::Dropped, None)]);
        assert!(!rig.session.abort_compaction(), "nothing is left to cancel");
        let asked = rig.asked(Kind::Summary).len();
        // The next boundary begins anew.
        let (_, told) = rig.run("second").await;
        assert_eq!(told.count("background_compaction_start"), 1);
        assert_eq!(ends(&told), [(AheadOutcome::Committed, None)]);
        assert!(rig.asked(Kind::Summary).len() > asked);
    }

    let mut rig = rig([near()], [summary_after(30)]).await;
    drop(rig.run("first").await);
    let mut events = rig.session.subscribe();
    let before = rig.bytes();
    // The last handle.
    rig.reopen();
    a_minute().await;
    let mut last = Vec::new();
    while let Ok(event) = events.try_recv() {
        last.push(event);
    }
    assert_eq!(ends(&Told(last)), [(AheadOutcome::Dropped, None)]);
    assert_eq!(rig.bytes(), before);
}

/// Hooks that speak about a compaction are asked when it is due, so nothing is prepared without them.
#[tokio::test(start_paused = true)]
async fn d21_hooks_are_not_passed_over() {
    let hook = Arc::new(super::summaries::Before::Makes("a hook's")) as Arc<dyn crate::hooks::Hooks>;
    let mut rig = Play::turns([near()])
        .rig_with(|options| {
            options.settings.background = Some(SoftLine::percent(80.0));
            options.hooks = crate::hooks::HookRunner::new(vec![hook]);
        })
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("first").await;
    assert_eq!(told.count("background_compaction_start"), 0);
}
