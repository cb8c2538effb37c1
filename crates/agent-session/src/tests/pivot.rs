//! A user who changes course: the newest message outranks every summary, and survives word for word (R14).

use std::sync::Arc;

use foldline_session_model::model_call::{LlmRequest, MessageContent};

use super::loops::Echo;
use super::*;
use crate::event::Event;
use crate::testing::{is_turn, two_minds};

const PIVOT: &str = "Stop the parser. Write the README instead, and nothing else: one page, no code.";

/// The texts of what is said in the user's place, in order.
fn said(request: &LlmRequest<'_>) -> Vec<String> {
    let users = request
        .messages
        .iter()
        .filter_map(|message| match &message.content {
            MessageContent::User { blocks } => Some(crate::message::text_of(blocks)),
            _ => None,
        });
    users.collect()
}

fn compactions(rig: &mut Rig) -> usize {
    let events = rig.events();
    let committed = events
        .iter()
        .filter(|event| matches!(&***event, Event::CompactionEnd(end) if end.result.is_some()));
    committed.count()
}

/// Every turn request since the change of course has it as the last thing that the user said.
fn outranks(rig: &Rig) {
    let asked = rig.model.asked();
    let turns: Vec<_> = asked.iter().filter(|asked| is_turn(&asked.request)).collect();
    assert!(!turns.is_empty());
    for turn in turns {
        let said = said(&turn.request);
        let at = said.iter().rposition(|text| text.contains(PIVOT));
        let at = at.unwrap_or_else(|| panic!("the change of course is gone: {said:?}"));
        let after = &said[at + 1..];
        assert!(
            after.iter().all(|text| !text.starts_with("question")),
            "{after:?}"
        );
        assert!(said[at].ends_with(PIVOT), "{:?}", said[at]);
    }
}

#[tokio::test(start_paused = true)]
async fn r14_a_change_of_course_outranks_the_summary_that_is_made_before_it() {
    let model = two_minds(
        60_000,
        |_, _| Script::reply("done", used(20_000)),
        |_, _| summary(),
    );
    let mut rig = Rig::over(model, |_| {}).filled(20, 2_500).await;
    drop(rig.session.prompt(PIVOT).await.unwrap());
    assert_eq!(compactions(&mut rig), 1);
    outranks(&rig);
}

#[tokio::test(start_paused = true)]
async fn r14_a_change_of_course_outranks_the_summary_after_its_overflow() {
    let refused = std::sync::atomic::AtomicBool::new(false);
    let model = two_minds(
        200_000,
        move |_, _| {
            if refused.swap(true, std::sync::atomic::Ordering::Relaxed) {
                Script::reply("done", used(20_000))
            } else {
                overflow()
            }
        },
        |_, _| summary(),
    );
    let mut rig = Rig::over(model, |_| {}).filled(30, 4_000).await;
    drop(rig.session.prompt(PIVOT).await.unwrap());
    assert_eq!(compactions(&mut rig), 1);
    assert_eq!(rig.turns(), 2);
    outranks(&rig);
}

#[tokio::test(start_paused = true)]
async fn r14_a_change_of_course_survives_compactions_within_its_own_run() {
    let model = two_minds(
        40_000,
        |request, number| {
            let size = serde_json::to_string(request).unwrap().len() as u64 / 5;
            if number < 30 {
                Script::tool_use(format!("c{number}"), "echo", "{}", used(size))
            } else {
                Script::reply("done", used(size))
            }
        },
        |_, _| summary(),
    );
    let mut rig = Rig::over(model, |options| options.tools.push(Arc::new(Echo::of(1_500))))
        .filled(3, 500)
        .await;
    drop(rig.session.prompt(PIVOT).await.unwrap());
    assert!(compactions(&mut rig) > 1);
    let asked = rig.model.asked();
    for turn in asked.iter().filter(|asked| is_turn(&asked.request)) {
        let said = said(&turn.request);
        assert!(
            said.iter().any(|text| text.contains(PIVOT)),
            "the request is gone: {said:?}"
        );
    }
}
