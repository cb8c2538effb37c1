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
