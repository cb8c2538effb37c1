//! Requests that do not fit (R01).

use super::*;

#[tokio::test(start_paused = true)]
async fn an_overflow_is_compacted_away_once_and_the_request_sent_again() {
    let refused = std::sync::atomic::AtomicBool::new(false);
    let model = crate::testing::two_minds(
        200_000,
        move |_, _| {
            if refused.swap(true, std::sync::atomic::Ordering::Relaxed) {
                Script::reply("done", used(30_000))
            } else {
                overflow()
            }
        },
        |_, _| summary(),
    );
    let mut rig = Rig::over(model, |_| {}).filled(30, 4_000).await;
    let Prompted::Ran(report) = rig.session.prompt("go on").await.unwrap() else {
        panic!("queued")
    };
    let told = rig.told();
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2), "{told:?}");
    assert_eq!(told.iter().filter(|name| *name == "compaction_end").count(), 1);
    assert_eq!(told.iter().filter(|name| *name == "agent_end").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_by_hand_commits() {
    let rig = Rig::new([summary(), summary(), summary()])
        .filled(30, 2_000)
        .await;
    let end = rig.session.compact(CompactOptions::default()).await.unwrap();
    assert!(end.result.is_some(), "{end:?}");
    assert!(
        rig.context()[0].starts_with("compactionSummary: "),
        "{:?}",
        rig.context()
    );
}
