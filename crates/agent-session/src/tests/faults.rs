//! Disks that are full, fail or lie: said, tried again, and nothing twice (R08, R09).

use foldline_session_model::message::Message;
use foldline_session_store::Fault;

use super::*;
use crate::event::{Event, NoticeLevel};
use crate::tests::loops::Echo;

/// The steps of a whole turn with a call: prompt, answer, result, answer.
async fn turn(rig: &Rig) -> Result<Prompted, crate::SessionError> {
    rig.session.prompt("look at it").await
}

fn rig() -> Rig {
    let scripts = [
        Script::tool_use("c1", "echo", "{}", used(100)),
        Script::reply("done", used(200)),
        Script::reply("spare", used(300)),
        Script::reply("spare", used(300)),
        Script::reply("spare", used(300)),
    ];
    Rig::with(200_000, scripts, |options| {
        options.tools.push(std::sync::Arc::new(Echo::of(10)));
    })
}

/// The messages of a file, each with its role; a call is named.
fn messages(rig: &Rig) -> Vec<String> {
    let log = rig.log();
    assert!(log.damage().is_empty(), "{:?}", log.damage());
    let mut found = Vec::new();
    for ix in log.entries() {
        match log.message(ix).as_deref() {
            Some(Message::User(user)) => found.push(user.content.texts().collect::<String>()),
            Some(Message::ToolResult(result)) => found.push(result.tool_call_id.to_string()),
            Some(Message::Assistant(answer)) => found.push(answer.content.texts().collect::<String>()),
            _ => {}
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn r08_one_failure_anywhere_in_a_turn_is_told_and_the_write_is_tried_again() {
    let steps = {
        let rig = rig();
        let before = rig.store.steps();
        drop(turn(&rig).await.unwrap());
        rig.store.steps() - before
    };
    let mut told = 0;
    for fault in [
        Fault::DiskFull,
        Fault::InputOutput,
        Fault::FailedSync,
        Fault::ShortWrite,
    ] {
        for step in 1..=steps {
            let mut rig = rig();
            rig.store.plan_fault(rig.store.steps() + step, fault);
            let Prompted::Ran(report) = turn(&rig).await.unwrap() else {
                panic!("queued")
            };
            let at = format!("{fault:?} at step {step} of {steps}: {report:?}");
            assert_eq!(report.end, RunEnd::Completed, "{at}");
            assert_eq!(messages(&rig), ["look at it", "", "c1", "done"], "{at}");
            told += rig
                .events()
                .iter()
                .filter(|event| {
                    matches!(
                        &***event,
                        Event::Notice {
                            level: NoticeLevel::Warning,
                            ..
                        }
                    )
                })
                .count();
        }
    }
    assert!(told > 0, "no failure was told");
}

#[tokio::test(start_paused = true)]
async fn r08_a_disk_that_stays_full_is_told_and_the_session_goes_on_once_there_is_room() {
    let steps = {
        let rig = rig();
        let before = rig.store.steps();
        drop(turn(&rig).await.unwrap());
        rig.store.steps() - before
    };
    for from in 1..=steps {
        let mut rig = rig();
        let now = rig.store.steps();
        for step in from..from + 400 {
            rig.store.plan_fault(now + step, Fault::DiskFull);
        }
        let outcome = turn(&rig).await;
        let accepted = outcome.is_ok();
        let notices = rig
            .events()
            .iter()
            .filter(|event| {
                matches!(
                    &***event,
                    Event::Notice {
                        level: NoticeLevel::Error,
                        ..
                    }
                )
            })
            .count();
        let completed = matches!(&outcome, Ok(Prompted::Ran(report)) if report.end == RunEnd::Completed);
        assert_eq!(notices, usize::from(!completed), "from step {from}: {outcome:?}");
        rig.store.clear_faults();
        // Room again: what was accepted is there once, what was refused is not, and the next prompt is answered.
        assert_eq!(
            messages(&rig).first().is_some_and(|text| text == "look at it"),
            accepted
        );
        let Prompted::Ran(report) = rig.session.prompt("again").await.unwrap() else {
            panic!("queued")
        };
        assert_eq!(report.end, RunEnd::Completed, "from step {from}: {report:?}");
        let found = messages(&rig);
        for text in ["look at it", "again", "c1"] {
            assert!(
                found.iter().filter(|found| *found == text).count() <= 1,
                "{found:?}"
            );
        }
        let in_memory = rig
            .session
            .with_log(foldline_session_model::log::SessionLog::len)
            .await;
        assert_eq!(in_memory, rig.log().len());
    }
}
