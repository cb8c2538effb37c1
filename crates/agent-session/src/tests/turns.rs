//! Turns without trouble.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_prompt_and_its_answer_are_in_the_session() {
    let mut rig = Rig::new([Script::reply("hello", used(100))]);
    let Prompted::Ran(report) = rig.session.prompt("hi").await.unwrap() else {
        panic!("queued")
    };
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_eq!(report.answer.unwrap().text, "hello");
    assert_eq!(rig.context(), ["user: hi", "assistant: hello"]);
    assert_eq!(
        rig.told(),
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_answered_and_the_run_goes_on() {
    let rig = Rig::new([
        Script::tool_use("c1", "nothing", "{}", used(100)),
        Script::reply("sorry", used(200)),
    ]);
    let Prompted::Ran(report) = rig.session.prompt("hi").await.unwrap() else {
        panic!("queued")
    };
    assert_eq!(report.requests, 2);
    assert_eq!(
        rig.context(),
        [
            "user: hi",
            "assistant: ",
            "toolResult: Tool nothing not found",
            "assistant: sorry",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waited_survives_a_restart_and_is_delivered_once() {
    let mut rig = Rig::new([
        Script::reply("first", used(100)),
        Script::reply("second", used(200)),
    ]);
    rig.session.follow_up("later").await.unwrap();
    rig.store.kill_writers();
    rig.reopen();
    let Prompted::Ran(report) = rig.session.prompt("now").await.unwrap() else {
        panic!("queued")
    };
    assert_eq!(report.requests, 2);
    assert_eq!(
        rig.context(),
        [
            "user: later",
            "assistant: first",
            "user: now",
            "assistant: second"
        ]
    );
    let before = rig.bytes();
    rig.reopen();
    assert_eq!(rig.session.state().pending_message_count, 0);
    assert_eq!(rig.bytes(), before);
}

/// 1.2 and 12, step 1: what cannot begin says why, and leaves the session as it is.
#[tokio::test(start_paused = true)]
async fn what_cannot_begin_says_why() {
    let rig = Rig::new([Script::reply("hello", used(100)), Script::hang()]);
    let before = rig.bytes();
    let text = |outcome: Result<crate::RunReport, crate::SessionError>| outcome.unwrap_err().to_string();
    assert_eq!(text(rig.session.resume().await), "No messages to continue from");
    let empty = rig.session.prompt("  ").await.unwrap_err();
    assert!(matches!(empty, crate::SessionError::EmptyPrompt));
    assert_eq!((rig.bytes(), rig.model.calls()), (before, 0));
    drop(rig.session.prompt("hi").await.unwrap());
    assert_eq!(
        text(rig.session.resume().await),
        "Cannot continue from message role: assistant"
    );

    // While a run is in progress.
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("and now?").await });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let busy = rig.session.prompt("me too").await.unwrap_err();
    assert!(
        busy.to_string().starts_with("Agent is already processing."),
        "{busy}"
    );
    let moved = rig.session.navigate("x", crate::NavigateOptions::default()).await;
    assert_eq!(
        moved.unwrap_err().to_string(),
        "Wait for the current response to finish before navigating the session tree."
    );
    rig.session.abort();
    drop(run.await.unwrap().unwrap());

    // Without a model.
    let rig = Rig::with(200_000, [], |options| options.models.current = None)
        .filled(2, 100)
        .await;
    let before = rig.bytes();
    let refused = rig.session.prompt("hi").await.unwrap_err();
    assert_eq!(refused.to_string(), "No model configured");
    let options = crate::NavigateOptions {
        summary: crate::BranchSummaryChoice::Summarize,
        planner: Some(foldline_compaction_core::settings::Planner::Model),
        ..crate::NavigateOptions::default()
    };
    let first = rig
        .log()
        .entries()
        .next()
        .map(|ix| rig.log().entry_id(ix))
        .unwrap();
    let moved = rig.session.navigate(first.as_str(), options).await.unwrap_err();
    assert_eq!(moved.to_string(), "No model available for summarization");
    assert_eq!(rig.bytes(), before);
}
