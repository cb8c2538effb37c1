//! What keeps maintenance from doing the same thing again: guards, breaker, promotion, other models (3.4, 5; R01 to R03).

use std::sync::Arc;

use foldline_compaction_core::settings::{Fallback, Strategy};
use foldline_llm_client::LanguageModel;
use foldline_llm_client::testing::WhenEmpty;
use foldline_session_model::Tokens;

use super::*;
use crate::CompactOptions;

/// A model that cannot do anything with what it is asked.
fn always(script: Script) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(
        profile("two", 200_000),
        [],
        WhenEmpty::Repeat(script),
    ))
}

/// G, oversized; R03: "an unchanged request is never sent twice".
#[tokio::test(start_paused = true)]
async fn g_a_maintenance_request_that_did_not_fit_is_not_sent_again() {
    let two = always(overflow());
    let mut rig = Rig::on(always(overflow()), |options| {
        options.models.summarisers = vec![Arc::clone(&two) as Arc<dyn LanguageModel>];
        options.settings.compaction.idle_enabled = true;
        options.settings.compaction.idle_threshold_tokens = Tokens(10_000);
    })
    .filled(20, 2_000)
    .await;
    // Both models have the same name: each is asked once.
    rig.session.compact_idle().await.unwrap();
    let told = Told(rig.events());
    assert_ended(told.end(), Reason::Idle, OperationOutcome::Failed);
    let calls = rig.model.calls();
    assert!(calls > 0);
    // Nothing has changed: the trigger is quiet.
    rig.session.compact_idle().await.unwrap();
    assert_eq!((rig.model.calls(), Told(rig.events()).ends().len()), (calls, 0));
    // And who asks for it is told why it is in vain.
    let end = rig.session.compact(CompactOptions::default()).await.unwrap();
    assert_ended(&end, Reason::Manual, OperationOutcome::Skipped);
    assert_eq!(
        end.error_message.as_deref(),
        Some(
            "Compaction skipped: previous unchanged maintenance request exceeded the model context window; change or \
             reduce the conversation before retrying maintenance."
        )
    );
    assert_eq!((rig.model.calls(), two.calls()), (calls, 0));
    // A changed conversation makes other requests.
    drop(rig.events());
    let mut rig = rig.filled(5, 4_000).await;
    rig.session.compact_idle().await.unwrap();
    assert_eq!(Told(rig.events()).ends().len(), 1);
    assert!(rig.model.calls() > calls);
}

/// G, oversized: every candidate is asked once.
#[tokio::test(start_paused = true)]
async fn g_each_candidate_is_asked_for_an_automatic_summary() {
    let one = Play::turns([over()])
        .summaries([overflow(), overflow()])
        .model("one", 200_000);
    let two = Arc::new(ScriptedModel::new(
        profile("another", 200_000),
        [],
        WhenEmpty::Repeat(summary()),
    ));
    let mut rig = Rig::on(one, |options| {
        options.models.summarisers = vec![Arc::clone(&two) as Arc<dyn LanguageModel>];
    })
    .filled(20, 2_000)
    .await;
    let (_, told) = rig.run("go").await;
    assert_summarised(told.end(), Reason::Threshold);
    let result = told.end().result.as_ref().unwrap();
    assert_eq!(result.planner, "test/another");
    assert_eq!(result.fallback_reasons.len(), 1);
    assert!(two.calls() > 0);
}

fn promoting(turns: impl IntoIterator<Item = Script>, large: &Arc<ScriptedModel>) -> Rig {
    Play::turns(turns).rig_with(|options| {
        options.models.promotion = Some(Arc::clone(large) as Arc<dyn LanguageModel>);
    })
}

#[tokio::test(start_paused = true)]
async fn g_an_overflow_moves_to_the_larger_model_and_compacts_nothing() {
    let body = Script::failure(
        ErrorClass::BodyTooLarge { limit: None },
        "413 Request Entity Too Large",
    );
    for failure in [overflow(), body] {
        let large = Play::turns([done()]).model("large", 1_000_000);
        let mut rig = promoting([failure], &large).filled(20, 2_000).await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
        assert_eq!(
            (told.ends().len(), told.count("model_changed"), large.calls()),
            (0, 1, 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn g_over_the_threshold_the_model_changes_and_nothing_goes_on() {
    let large = Play::default().model("large", 1_000_000);
    let mut rig = promoting([over()], &large).filled(20, 2_000).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_eq!(
        (told.ends().len(), told.count("model_changed"), large.calls()),
        (0, 1, 0)
    );
}

/// Row 1.
#[tokio::test(start_paused = true)]
async fn g_a_refusal_moves_nowhere() {
    let large = Play::default().model("large", 1_000_000);
    let refused = Script::failure(ErrorClass::Other(OtherCause::Refused), "stopped for safety");
    let mut rig = promoting([refused], &large).filled(20, 2_000).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    assert_eq!(
        (told.ends().len(), told.count("model_changed"), large.calls()),
        (0, 0, 0)
    );
}

/// Row 7b; A: "overflow only after compaction failed, is disabled, or was unresolved"; FB-141.
#[tokio::test(start_paused = true)]
async fn an_overflow_that_stays_goes_to_the_next_model_if_there_is_one() {
    type Change = fn(&mut SessionOptions);
    let rows: [(&str, Vec<Script>, Change, usize); 3] = [
        (
            "disabled",
            vec![overflow()],
            |options| options.settings.compaction.enabled = false,
            0,
        ),
        ("again", vec![overflow(), overflow()], |_| {}, 1),
        (
            "failed",
            vec![overflow()],
            |options| options.settings.compaction.fallback = Fallback::None,
            0,
        ),
    ];
    for (row, turns, change, compactions) in rows {
        for stands_by in [true, false] {
            let requests = turns.len();
            let other = Play::turns([done()]).model("other", 200_000);
            let auth = || Script::failure(ErrorClass::Auth, "no key");
            let play = Play::turns(turns.clone());
            let play = if row == "failed" {
                play.summaries([auth(), auth()])
            } else {
                play
            };
            let mut rig = play
                .rig_with(|options| {
                    change(options);
                    if stands_by {
                        options.models.fallbacks = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
                    }
                })
                .filled(20, 2_000)
                .await;
            let (report, told) = rig.run("go").await;
            let expected = if stands_by {
                (RunEnd::Completed, requests + 1)
            } else {
                (RunEnd::Failed, requests)
            };
            assert_eq!((report.end, report.requests as usize), expected, "{row}");
            assert_eq!(
                told.count("model_fallback_start"),
                usize::from(stands_by),
                "{row}"
            );
            assert_eq!(rig.compactions(), compactions, "{row}");
            assert_eq!(other.calls(), usize::from(stands_by), "{row}");
        }
    }
}

/// R01: "hard ceiling …, kept across a resume"; FB-005: "the counter survives a resume".
#[tokio::test(start_paused = true)]
async fn r01_a_resume_does_not_give_a_turn_another_recovery() {
    let mut rig = Play::turns([overflow(), Script::hang(), overflow()])
        .rig()
        .filled(20, 2_000)
        .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        if rig.asked(Kind::Turn).len() == 2 {
            break;
        }
    }
    rig.session.abort();
    drop(run.await.unwrap().unwrap());
    assert_eq!(rig.compactions(), 1);
    rig.store.kill_writers();
    rig.reopen();
    let report = rig.session.resume().await.unwrap();
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    assert_eq!(rig.compactions(), 1);
    assert!(Told(rig.events()).end().unresolved_overflow);
}

/// R01: "after 3 failed attempts in a session a breaker stops automatic calls until a success, a manual compact or a
/// model change".
#[tokio::test(start_paused = true)]
async fn r01_the_breaker_stops_a_failing_summariser() {
    let failing = || Script::failure(ErrorClass::Auth, "no key");
    let turns = (0..30).map(|turn| Script::reply("so far", used(60_000 + 6_000 * turn)));
    let mut rig = Play::turns(turns)
        .summaries((0..6).map(|_| failing()))
        .rig_with(|options| options.settings.compaction.threshold_tokens = 50_000.0)
        .filled(20, 2_000)
        .await;
    let mut ends = 0;
    for turn in 0..20 {
        let (report, told) = rig.run(&format!("turn {turn}")).await;
        assert_eq!(report.end, RunEnd::Completed);
        ends += told.ends().len();
    }
    assert_eq!((ends, rig.compactions()), (3, 0));
    let asked = rig.asked(Kind::Summary).len();
    assert!(asked <= 6, "{asked}");
    // A compaction by hand that succeeds closes it.
    while rig.asked(Kind::Summary).len() < 6 {
        drop(rig.session.compact(CompactOptions::default()).await.unwrap());
    }
    let end = rig.session.compact(CompactOptions::default()).await.unwrap();
    assert_ended(&end, Reason::Manual, OperationOutcome::Committed);
    drop(rig.events());
    let (_, told) = rig.run("again").await;
    assert_eq!(told.end().reason, Reason::Threshold);
}

/// R02: "Incompressible tail over the threshold, 10 turns: ≤ 1 summariser call, 1 notice, 0 continuations".
#[tokio::test(start_paused = true)]
async fn r02_what_cannot_become_smaller_is_tried_once() {
    let mut rig = Play::turns((0..12).map(|_| Script::reply("so far", used(175_000))))
        .rig_with(|options| options.work = unfinished())
        .filled(1, 10)
        .await;
    let (mut ends, mut requests) = (0, 0);
    for _ in 0..10 {
        let (report, told) = rig.run("and now?").await;
        requests += report.requests;
        ends += told.ends().len();
    }
    assert_eq!((ends, requests, rig.compactions()), (1, 10, 0));
    assert_eq!((rig.asked(Kind::Summary).len(), rig.told_to_go_on()), (0, 0));
}

/// FB-141: disabled means disabled for every reason, and by hand it works (D17).
#[tokio::test(start_paused = true)]
async fn fb_141_what_is_switched_off_happens_by_hand_only() {
    type Change = fn(&mut SessionOptions);
    let changes: [Change; 2] = [
        |options| options.settings.compaction.enabled = false,
        |options| options.settings.compaction.strategy = Strategy::Off,
    ];
    for change in changes {
        let mut rig = Play::turns([over(), overflow(), done()])
            .rig_with(|options| {
                change(options);
                options.settings.compaction.idle_enabled = true;
                options.settings.compaction.idle_threshold_tokens = Tokens(10_000);
            })
            .filled(20, 2_000)
            .await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, told.ends().len()), (RunEnd::Completed, 0));
        rig.session.compact_idle().await.unwrap();
        assert_eq!(Told(rig.events()).ends().len(), 0);
        let (report, told) = rig.run("again").await;
        assert_eq!(
            (report.end, report.requests, told.ends().len()),
            (RunEnd::Failed, 1, 0)
        );
        assert!(report.error.unwrap().contains("Compact by hand"));
        let end = rig.session.compact(CompactOptions::default()).await.unwrap();
        assert_summarised(&end, Reason::Manual);
        let (report, _) = rig.run("once more").await;
        assert_eq!(report.end, RunEnd::Completed);
    }
}

/// FB-135, rows 3 and 4.
#[tokio::test(start_paused = true)]
async fn fb_135_an_overflow_of_another_model_or_from_before_a_compaction_compacts_nothing() {
    let mut rig = Play::turns([overflow()])
        .rig_with(|options| options.settings.compaction.enabled = false)
        .filled(20, 2_000)
        .await;
    let (report, _) = rig.run("go").await;
    assert_eq!(report.end, RunEnd::Failed);
    let large = Play::turns([done()]).model("large", 1_000_000);
    rig.session.set_model(large).await.unwrap();
    rig.session
        .change_options(|options| options.settings.compaction.enabled = true)
        .await
        .unwrap();
    let (report, told) = rig.run("again").await;
    assert_eq!((report.end, told.ends().len()), (RunEnd::Completed, 0));

    let mut rig = Play::turns([overflow(), done()])
        .rig_with(|options| options.settings.compaction.enabled = false)
        .filled(20, 2_000)
        .await;
    drop(rig.run("go").await);
    let end = rig.session.compact(CompactOptions::default()).await.unwrap();
    assert_summarised(&end, Reason::Manual);
    rig.options.settings.compaction.enabled = true;
    rig.reopen();
    let (report, told) = rig.run("again").await;
    assert_eq!((report.end, told.ends().len()), (RunEnd::Completed, 0));
}

/// FB-066: one order of candidates for all reasons.
#[tokio::test(start_paused = true)]
async fn fb_066_the_configured_model_summarises_first_for_every_reason() {
    let configured = || {
        Arc::new(ScriptedModel::new(
            profile("small", 200_000),
            [],
            WhenEmpty::Repeat(summary()),
        ))
    };
    for (turns, reason) in [
        (vec![over()], Reason::Threshold),
        (vec![overflow(), done()], Reason::Overflow),
        (vec![], Reason::Manual),
        (vec![], Reason::Idle),
    ] {
        let small = configured();
        let mut rig = Play::turns(turns)
            .rig_with(|options| {
                options.models.summariser = Some(Arc::clone(&small) as Arc<dyn LanguageModel>);
                options.settings.compaction.idle_enabled = true;
                options.settings.compaction.idle_threshold_tokens = Tokens(10_000);
            })
            .filled(20, 2_000)
            .await;
        let told = match reason {
            Reason::Manual => {
                drop(rig.session.compact(CompactOptions::default()).await.unwrap());
                Told(rig.events())
            }
            Reason::Idle => {
                rig.session.compact_idle().await.unwrap();
                Told(rig.events())
            }
            _ => rig.run("go").await.1,
        };
        assert_summarised(told.end(), reason);
        assert_eq!(told.end().result.as_ref().unwrap().planner, "test/small");
        assert!(small.calls() > 0);
        assert_eq!(rig.asked(Kind::Summary).len(), 0, "{reason:?}");
    }
}
