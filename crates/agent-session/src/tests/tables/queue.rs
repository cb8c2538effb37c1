//! Prompts that come while the context is too large: auto-compaction-queue (17, G and P).

use foldline_compaction_core::decide::Reason;

use super::*;

#[tokio::test(start_paused = true)]
async fn g_a_message_that_waits_is_delivered_after_a_run_over_the_threshold() {
    let mut rig = Play::turns([over(), done(), done()])
        .rig()
        .filled(20, 2_000)
        .await;
    rig.session.follow_up("first").await.unwrap();
    let (report, told) = rig.run("second").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    // The context is looked at again before the second request, within the run.
    assert_summarised(told.end(), Reason::Threshold);
    assert!(told.end().mid_turn);
    assert_eq!(rig.session.state().pending_message_count, 0);
}

#[tokio::test(start_paused = true)]
async fn g_output_that_a_model_may_write_is_no_part_of_the_context() {
    let mut large = profile("one", 200_000);
    large.max_output = Some(foldline_session_model::Tokens(128_000));
    let model = ScriptedModel::answering(large, |_, _| Script::reply("so far", used(111_000)));
    let mut rig = Rig::on(Arc::new(model), |_| {}).filled(20, 2_000).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.requests, told.ends().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn g_a_prompt_is_counted_before_it_is_sent() {
    // 60 turns of about 2,500 tokens are below the threshold; with the prompt they are not.
    let mut rig = Play::turns([done()]).rig().filled(60, 2_000).await;
    let prompt = "word ".repeat(20_000);
    let (report, told) = rig.run(&prompt).await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_summarised(told.end(), Reason::Threshold);
    assert_eq!((told.end().mid_turn, told.end().will_retry), (false, false));
    let roles: Vec<_> = told.0.iter().map(|event| name(event)).collect();
    let compacted = roles.iter().position(|name| name == "compaction_end");
    let sent = roles.iter().position(|name| name == "turn_start");
    assert!(compacted < sent, "{roles:?}");
}

#[tokio::test(start_paused = true)]
async fn g_a_waiting_message_that_is_too_large_is_counted_too() {
    // The run ends over the threshold, a message of 150,000 tokens came in while it was compacted.
    let mut rig = Play::turns([over(), done()])
        .summaries([slow_summary()])
        .rig()
        .filled(60, 2_000)
        .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    rig.until_compacting().await;
    rig.session.follow_up("word ".repeat(118_000)).await.unwrap();
    let Prompted::Ran(report) = run.await.unwrap().unwrap() else {
        panic!("queued")
    };
    let told = Told(rig.events());
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    let reasons: Vec<_> = told.ends().iter().map(|end| end.reason).collect();
    assert_eq!(reasons, [Reason::Threshold, Reason::Threshold]);
}

/// P: "second overflow -> one run and error text"; R01.
#[tokio::test(start_paused = true)]
async fn p_a_second_overflow_ends_the_turn_and_the_next_prompt_is_taken() {
    let mut rig = Play::turns([overflow(), overflow(), done()])
        .rig()
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 2));
    let ends = told.ends();
    assert_eq!(ends.len(), 2);
    assert_summarised(ends[0], Reason::Overflow);
    assert_ended(ends[1], Reason::Overflow, OperationOutcome::Failed);
    assert!(ends[1].unresolved_overflow && !ends[1].will_retry);
    let text = ends[1].error_message.as_deref().unwrap();
    assert!(
        text.starts_with(
            "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or \
             switching to a larger-context model. The window holds 200000 tokens;"
        ),
        "{text}"
    );
    assert_eq!((rig.compactions(), told.count("agent_end")), (1, 1));
    let (report, _) = rig.run("again").await;
    assert_eq!(report.end, RunEnd::Completed);
}

/// P: a kept answer's usage is older than the compaction and triggers nothing (trap 2).
#[tokio::test(start_paused = true)]
async fn p_an_answer_from_before_a_compaction_triggers_nothing() {
    let mut rig = Play::turns([over(), done()]).rig().filled(20, 2_000).await;
    let (_, told) = rig.run("go").await;
    assert_summarised(told.end(), Reason::Threshold);
    let (report, told) = rig.run("again").await;
    assert_eq!((report.requests, told.ends().len()), (1, 0));
}

/// P: "529 error uses last good usage -> threshold". The size is the same before the request as after its failure, so it
/// is the look before it that sees it.
#[tokio::test(start_paused = true)]
async fn p_a_request_that_fails_was_judged_by_what_was_measured_before() {
    let refused = Script::failure(ErrorClass::Auth, "invalid key");
    let mut rig = Play::turns([Script::reply("so far", used(160_000)), refused])
        .rig()
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("go").await;
    assert_eq!(told.ends().len(), 0);
    let (report, told) = rig.run(&"word ".repeat(12_000)).await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    assert_summarised(told.end(), Reason::Threshold);
}
