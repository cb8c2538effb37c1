//! Answers that were cut off, and overflows that only the usage shows (3.3 rows 5 and 10, 3.4, 4.3; A, length handling).

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{StopReason, Usage};

use super::*;

/// An answer of this many output tokens that was cut off after a prompt of this size. The model may write 25,000.
fn cut(prompt: u64, output: u64) -> Script {
    let usage = Usage::from_parts(Tokens(prompt), Tokens(output), Tokens::ZERO, Tokens::ZERO);
    Script::new()
        .text("and then")
        .usage(usage)
        .stop(StopReason::Length)
}

#[tokio::test(start_paused = true)]
async fn a_an_answer_that_the_window_cut_off_is_continued_in_a_smaller_context() {
    let mut rig = Play::turns([cut(190_000, 9_000), done()])
        .rig()
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Overflow);
    assert_eq!(rig.told_to_go_on(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_a_second_answer_of_the_turn_that_the_window_cut_off_stays_as_it_is() {
    let mut rig = Play::turns([cut(190_000, 9_000), cut(190_000, 9_000)])
        .rig_with(|options| options.settings.compaction.threshold_tokens = 199_900.0)
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Overflow);
    assert_eq!(
        told.notices(),
        ["Response truncation recovery stopped after one retry."]
    );
}

#[tokio::test(start_paused = true)]
async fn a_an_answer_at_the_output_limit_is_continued_three_times() {
    let turns = (0..5).map(|_| cut(20_000, 25_000));
    let mut rig = Play::turns(turns).rig().filled(5, 1_000).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 4));
    assert_eq!(
        (rig.told_to_go_on(), told.ends().len(), told.count("agent_end")),
        (3, 0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_a_whole_answer_begins_the_count_again_and_leave_is_needed() {
    let mut rig = Play::turns([cut(20_000, 25_000), done(), cut(20_000, 25_000)])
        .rig()
        .filled(5, 1_000)
        .await;
    let (report, _) = rig.run("go").await;
    assert_eq!(report.requests, 2);
    rig.session
        .change_options(|options| options.settings.compaction.auto_continue = false)
        .await
        .unwrap();
    let (report, _) = rig.run("again").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
}

/// 4.3: "length, output 0, input >= 0.99 window": an answer without a word is none, so its request is sent again.
#[tokio::test(start_paused = true)]
async fn a_an_answer_without_room_for_a_word_is_an_overflow() {
    let usage = Usage::from_parts(Tokens(198_500), Tokens::ZERO, Tokens::ZERO, Tokens::ZERO);
    let nothing = Script::new().usage(usage).stop(StopReason::Length);
    let mut rig = Play::turns([nothing, done()]).rig().filled(20, 2_000).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Overflow);
    assert!(told.end().will_retry);
    assert_eq!(rig.asked(Kind::Turn)[1].last_text(), "go");
}

/// Row 5; A: "silent overflow -> compacts, no retry".
#[tokio::test(start_paused = true)]
async fn a_a_silent_overflow_keeps_its_answer_and_is_not_sent_again() {
    let mut rig = Play::turns([Script::reply("the good answer", used(200_001))])
        .rig()
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_summarised(told.end(), Reason::Overflow);
    assert!(!told.end().will_retry);
    assert_eq!(rig.context().last().unwrap(), "assistant: the good answer");
}
