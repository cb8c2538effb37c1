//! Messages that wait get their turn, whatever holds the session (R09).

use std::time::Duration;

use foldline_llm_client::LlmError;
use foldline_session_model::model_call::ErrorClass;
use foldline_session_store::SessionStore as _;

use super::*;
use crate::testing::two_minds;
use crate::{Delivery, HandoffOptions, Prompt};

#[tokio::test(start_paused = true)]
async fn r09_a_prompt_during_a_compaction_of_the_idle_session_gets_its_turn() {
    let model = two_minds(
        200_000,
        |_, _| Script::reply("answered", used(100)),
        |_, _| {
            let refusal = LlmError::new(ErrorClass::Auth, "no");
            Script::new().wait(Duration::from_secs(5)).fail(refusal)
        },
    );
    let rig = Rig::over(model, |options| {
        options.settings.compaction.idle_enabled = true;
        options.settings.compaction.idle_threshold_tokens = foldline_session_model::Tokens(1_000);
    })
    .filled(30, 2_000)
    .await;
    let session = rig.session.clone();
    let idle = tokio::spawn(async move { session.compact_idle().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(rig.session.state().is_compacting);
    assert_eq!(rig.session.prompt("now").await.unwrap(), Prompted::Queued);
    idle.await.unwrap().unwrap();
    rig.session.wait_for_idle().await;
    assert_eq!(rig.context().last().unwrap(), "assistant: answered");
    assert_eq!(rig.session.state().pending_message_count, 0);
}

#[tokio::test(start_paused = true)]
async fn r09_what_waits_survives_a_compaction_that_keeps_nothing_and_a_crash_right_after_it() {
    let mut rig = Rig::new([Script::hang()]).filled(12, 4_000).await;
    rig.session.follow_up("later").await.unwrap();
    let options = CompactOptions {
        planner: Some(foldline_compaction_core::settings::Planner::Extractive),
        keep_recent: Some(foldline_session_model::Tokens(1)),
        ..CompactOptions::default()
    };
    rig.session.pause_queue(true);
    let end = rig.session.compact(options).await.unwrap();
    assert!(end.result.is_some(), "{end:?}");
    rig.store.restart(7);
    rig.reopen();
    assert_eq!(rig.session.state().pending_message_count, 1);
}

#[tokio::test(start_paused = true)]
async fn r09_what_waits_goes_along_with_a_handoff() {
    let mut rig = Rig::new([
        Script::reply("# Handoff\n\nThe parser is half done.", used(100)),
        Script::reply("done", used(100)),
    ])
    .filled(4, 200)
    .await;
    rig.session.follow_up("later").await.unwrap();
    let done = rig.session.handoff(HandoffOptions::default()).await.unwrap();
    assert_eq!(rig.session.state().pending_message_count, 1);
    drop(rig.session.resume().await.unwrap());
    let bytes: Vec<u8> = rig.store.read(&done.new_session).unwrap().into();
    assert_eq!(
        String::from_utf8(bytes)
            .unwrap()
            .matches("\"text\":\"later\"")
            .count(),
        2
    );
    // The old session does not deliver it a second time.
    rig.reopen();
    assert_eq!(rig.session.state().pending_message_count, 0);
}

#[tokio::test(start_paused = true)]
async fn r09_a_prompt_that_cannot_be_written_is_refused_and_not_in_the_session() {
    let mut rig = Rig::new([Script::reply("answered", used(100))]);
    let other = crate::AgentSession::open(
        std::sync::Arc::new(rig.store.clone()),
        std::path::Path::new(crate::testing::FILE),
        rig.options.clone(),
    )
    .unwrap();
    other.set_name("theirs").await.unwrap();
    let before = rig.bytes();
    let refused = rig.session.prompt("mine").await.unwrap_err();
    assert!(
        matches!(&refused, crate::SessionError::Write { busy: true, .. }),
        "{refused:?}"
    );
    assert!(matches!(
        rig.session.follow_up("mine too").await,
        Err(crate::SessionError::Write { busy: true, .. })
    ));
    assert_eq!(rig.bytes(), before);
    assert_eq!(rig.model.calls(), 0);
    // Whoever reads the session again goes on.
    rig.reopen();
    drop(rig.session.prompt("mine").await.unwrap());
    assert_eq!(rig.context(), ["user: mine", "assistant: answered"]);
}

#[tokio::test(start_paused = true)]
async fn r09_held_back_messages_do_not_keep_a_prompt_from_its_turn() {
    let rig = Rig::new([
        Script::reply("answered", used(100)),
        Script::reply("later too", used(100)),
    ]);
    rig.session.follow_up("later").await.unwrap();
    assert_eq!(rig.session.pause_queue(true), 1);
    drop(rig.session.prompt("now").await.unwrap());
    assert_eq!(rig.context(), ["user: now", "assistant: answered"]);
    rig.session.pause_queue(false);
    drop(rig.session.resume().await.unwrap());
    assert_eq!(rig.context()[2..], ["user: later", "assistant: later too"]);
}

#[tokio::test(start_paused = true)]
async fn r09_nobody_is_asked_about_messages_that_were_taken_back() {
    let rig = Rig::new([Script::new()
        .wait(Duration::from_secs(1))
        .text("first")
        .usage(used(100))
        .stop(foldline_session_model::model_call::StopReason::Stop)]);
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("now").await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let later = Prompt::text("later").queued_as(Delivery::FollowUp);
    assert_eq!(rig.session.prompt(later).await.unwrap(), Prompted::Queued);
    let (_, follow_up) = rig.session.clear_queue().await.unwrap();
    assert_eq!(follow_up, ["later"]);
    drop(run.await.unwrap().unwrap());
    assert_eq!(rig.context(), ["user: now", "assistant: first"]);
    assert_eq!(rig.model.calls(), 1);
}
