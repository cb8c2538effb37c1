//! Compactions that meet: who joins, who makes way, and what never comes late (spec "Verbatim", 15 and 21).

use std::time::Duration;

use super::*;

/// Ranges after a wait of a second.
fn slow_ranges() -> Script {
    Script::new()
        .wait(Duration::from_secs(1))
        .text("1,15\n")
        .usage(used(5_000))
        .stop(StopReason::Stop)
}

/// Spec "Verbatim", 21, re-entrancy: "joined calls share result".
#[tokio::test(start_paused = true)]
async fn reentrancy_joined_calls_share_the_result() {
    let mut rig = Play::default()
        .summaries([slow_ranges()])
        .rig_with(by_lines)
        .filled(20, 2_000)
        .await;
    let (first, second) = tokio::join!(by_hand(&rig), by_hand(&rig));
    assert_ended(&first, Reason::Manual, OperationOutcome::Committed);
    assert_eq!(first, second);
    let told = Told(rig.events());
    assert_eq!((told.end(), rig.compactions()), (&first, 1));
    assert_eq!(rig.asked(Kind::Summary).len(), 1);
}

/// Spec "Verbatim", 21, re-entrancy: "abort cancels both" joined calls.
#[tokio::test(start_paused = true)]
async fn reentrancy_an_abort_cancels_both_joined_calls() {
    let mut rig = Play::default()
        .summaries([Script::hang(), ranges()])
        .rig_with(by_lines)
        .filled(20, 2_000)
        .await;
    let before = rig.bytes();
    let stopped = async {
        rig.until_compacting().await;
        // Both are in by now.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(rig.session.abort_compaction());
    };
    let (first, second, ()) = tokio::join!(by_hand(&rig), by_hand(&rig), stopped);
    assert_ended(&first, Reason::Manual, OperationOutcome::Cancelled);
    assert!(first.aborted && first.error_message.is_none());
    assert_eq!(first, second);
    assert_eq!((rig.bytes(), rig.asked(Kind::Summary).len()), (before, 1));
    assert_eq!(Told(rig.events()).end(), &first);
    // The next one is one of its own.
    assert_ended(&by_hand(&rig).await, Reason::Manual, OperationOutcome::Committed);
}

/// Spec "Verbatim", 21, re-entrancy: "manual cancels automatic; late automatic retry never continues".
#[tokio::test(start_paused = true)]
async fn reentrancy_an_automatic_run_makes_way_and_its_retry_never_comes() {
    // An overflow is followed by a retry, open work by a continuation; neither comes after the takeover.
    for (first, reason) in [(overflow(), Reason::Overflow), (over(), Reason::Threshold)] {
        let mut rig = Play::turns([first])
            .summaries([Script::hang(), slow_ranges()])
            .rig_with(|options| {
                by_lines(options);
                options.work = unfinished();
            })
            .filled(20, 2_000)
            .await;
        let session = rig.session.clone();
        let run = tokio::spawn(async move { session.prompt("go").await });
        rig.until_compacting().await;
        let end = by_hand(&rig).await;
        assert_ended(&end, Reason::Manual, OperationOutcome::Committed);
        assert_eq!(end.result.as_ref().unwrap().rung, "planned");
        let Prompted::Ran(report) = run.await.unwrap().unwrap() else {
            panic!("queued")
        };
        assert_eq!((report.end, report.requests), (RunEnd::Cancelled, 1));
        tokio::time::sleep(Duration::from_secs(600)).await;
        let told = Told(rig.events());
        let ends = told.ends();
        assert_eq!(ends.len(), 2);
        assert_ended(ends[0], reason, OperationOutcome::Cancelled);
        assert!(ends[0].manual_takeover_pending && !ends[0].will_retry);
        assert_eq!((rig.turns(), rig.compactions(), rig.told_to_go_on()), (1, 1, 0));
        assert!(!rig.session.state().is_streaming);
    }
}
