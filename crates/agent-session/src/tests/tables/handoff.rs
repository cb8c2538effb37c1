//! Handoff (11 and 17).

use std::path::PathBuf;

use async_trait::async_trait;
use foldline_compaction_core::settings::Strategy;
use foldline_session_store::SessionStore as _;

use super::*;
use crate::hooks::{
    AgentStartAnswer, BeforeAgentStartEvent, HookContext, HookError, HookEvent, HookRunner, Hooks,
};
use crate::testing::FILE;
use crate::{BranchSummaryChoice, CompactOptions, HandoffOptions, NavigateOptions, SessionError};

fn document() -> Script {
    Script::reply(
        "# Handoff\n\nGo on with the parser in src/parser.rs.",
        used(1_000),
    )
}

/// A session over the threshold whose strategy is a handoff.
async fn over_threshold(handoffs: impl IntoIterator<Item = Script>) -> Rig {
    let mut play = Play::turns([over(), done()]);
    play.handoffs.extend(handoffs);
    play.rig_with(|options| {
        options.work = unfinished();
        options.settings.compaction.strategy = Strategy::Handoff;
    })
    .filled(20, 2_000)
    .await
}

fn text_of(rig: &Rig, path: &std::path::Path) -> String {
    let bytes: Vec<u8> = rig.store.read(path).unwrap().into();
    String::from_utf8(bytes).unwrap()
}

/// Also G 11 of auto-compaction-continue: "one prompt in the new session".
#[tokio::test(start_paused = true)]
async fn g_a_threshold_opens_a_new_session_and_goes_on_there() {
    let mut rig = over_threshold([document()]).await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    let end = told.end();
    assert_ended(end, Reason::Threshold, OperationOutcome::Committed);
    assert_eq!(
        (end.action, end.result.is_none()),
        (CompactionAction::Handoff, true)
    );
    assert_eq!((told.count("handoff_start"), told.count("handoff_end")), (1, 1));
    let path = rig.session.path();
    assert_ne!(path, PathBuf::from(FILE));
    let new = text_of(&rig, &path);
    for part in [
        &format!("\"parentSession\":\"{FILE}\""),
        "\"type\":\"model_change\"",
        "\"customType\":\"handoff\"",
        "\"display\":true",
        "Go on with the parser",
        "\"role\":\"developer\"",
    ] {
        assert!(new.contains(part), "{part} in {new}");
    }
    // What is asked for is the state of the work, and the request of the new session knows nothing else.
    let handoff = rig.asked(Kind::Handoff);
    assert!(handoff[0].request.messages.len() > 40);
    assert_eq!(rig.asked(Kind::Turn)[1].request.messages.len(), 2);
    assert!(!text_of(&rig, std::path::Path::new(FILE)).contains("\"compaction\""));
}

#[tokio::test(start_paused = true)]
async fn g_without_a_document_the_context_is_summarised() {
    for refused in [
        Script::reply("  ", used(1_000)),
        Script::failure(ErrorClass::Auth, "no key"),
    ] {
        let mut rig = over_threshold([refused]).await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
        let ends = told.ends();
        assert_eq!(ends.len(), 2);
        assert_ended(ends[0], Reason::Threshold, OperationOutcome::Failed);
        assert_eq!(ends[0].action, CompactionAction::Handoff);
        assert_summarised(ends[1], Reason::Threshold);
        assert_eq!(told.count("compaction_start"), 2);
        assert_eq!(rig.session.path(), PathBuf::from(FILE));
    }
}

#[tokio::test(start_paused = true)]
async fn g_an_overflow_is_never_handed_off() {
    let mut rig = Play::turns([overflow(), done()])
        .rig_with(|options| options.settings.compaction.strategy = Strategy::Handoff)
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Overflow);
    assert_eq!(rig.asked(Kind::Handoff).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn g_without_leave_nothing_goes_on_in_the_new_session() {
    let mut rig = over_threshold([document()]).await;
    rig.session
        .change_options(|options| options.settings.compaction.auto_continue = false)
        .await
        .unwrap();
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_eq!(told.end().action, CompactionAction::Handoff);
}

#[tokio::test(start_paused = true)]
async fn g_by_hand_the_old_file_stays_as_it_is() {
    let mut play = Play::default();
    play.handoffs.push_back(document());
    let mut rig = play.rig().filled(3, 200).await;
    let before = rig.bytes();
    let options = HandoffOptions {
        focus: Some("the lexer".to_owned()),
        ..HandoffOptions::default()
    };
    let done = rig.session.handoff(options).await.unwrap();
    assert_eq!(done.document.planner, "test/one");
    assert_eq!((rig.bytes(), rig.session.path()), (before, done.new_session));
    let asked = rig.asked(Kind::Handoff);
    assert!(asked[0].last_text().contains("the lexer"));
    assert_eq!(Told(rig.events()).ends().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn g_a_handoff_that_is_cancelled_or_cannot_be_written_changes_nothing() {
    let mut play = Play::turns([done()]);
    play.handoffs.extend([Script::hang(), document()]);
    let mut rig = play.rig().filled(3, 200).await;
    let before = rig.bytes();
    let session = rig.session.clone();
    let handing = tokio::spawn(async move { session.handoff(HandoffOptions::default()).await });
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        if rig.model.calls() == 1 {
            break;
        }
    }
    // Nothing else begins meanwhile.
    let prompt = rig.session.prompt("go").await;
    assert!(matches!(prompt, Err(SessionError::HandoffInProgress)));
    let second = rig.session.handoff(HandoffOptions::default()).await;
    assert!(matches!(second, Err(SessionError::Failed(text)) if text == "A handoff is already in progress."));
    assert!(rig.session.abort_handoff());
    let error = handing.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "Handoff cancelled");
    assert_eq!(
        (rig.bytes(), rig.session.path()),
        (before.clone(), PathBuf::from(FILE))
    );

    let options = HandoffOptions {
        output: Some(PathBuf::from(FILE)),
        ..HandoffOptions::default()
    };
    assert!(rig.session.handoff(options).await.is_err());
    assert_eq!((rig.bytes(), rig.session.path()), (before, PathBuf::from(FILE)));
    let told = Told(rig.events());
    assert_eq!((told.count("handoff_start"), told.count("handoff_end")), (2, 2));
    let (report, _) = rig.run("go").await;
    assert_eq!(report.end, RunEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn g_there_must_be_something_to_hand_off() {
    let rig = Play::default().rig();
    let error = rig.session.handoff(HandoffOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "Nothing to hand off (no messages yet)");
}

/// R09: a message that came in while the document was written gets its turn in the new session, and only there.
#[tokio::test(start_paused = true)]
async fn r09_messages_that_wait_go_along() {
    let mut play = Play::turns([done(), done()]);
    let slow = Script::new()
        .wait(std::time::Duration::from_secs(1))
        .text("# Handoff")
        .usage(used(1_000))
        .stop(foldline_session_model::model_call::StopReason::Stop);
    play.handoffs.push_back(slow);
    let mut rig = play.rig().filled(3, 200).await;
    let session = rig.session.clone();
    let handing = tokio::spawn(async move { session.handoff(HandoffOptions::default()).await });
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    rig.session.follow_up("later").await.unwrap();
    let done = handing.await.unwrap().unwrap();
    assert_eq!(rig.session.state().pending_message_count, 1);
    let (report, _) = rig.run("now").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert!(text_of(&rig, &done.new_session).contains("\"text\":\"later\""));
    rig.reopen();
    assert_eq!(rig.session.path(), PathBuf::from(FILE));
    assert_eq!(rig.session.state().pending_message_count, 0);
}

/// Gives every run another system text.
struct OtherSystem;

#[async_trait]
impl Hooks for OtherSystem {
    fn path(&self) -> &'static str {
        "other-system"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::BeforeAgentStart]
    }

    async fn before_agent_start(
        &self,
        _: &BeforeAgentStartEvent<'_>,
        _: &HookContext,
    ) -> Result<AgentStartAnswer, HookError> {
        Ok(AgentStartAnswer {
            system_prompt: Some("You are a bold engineer.".to_owned()),
            ..AgentStartAnswer::default()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn g_a_document_is_asked_for_with_the_session_s_own_system_text() {
    let mut play = Play::turns([over(), done()]);
    play.handoffs.push_back(document());
    let mut rig = play
        .rig_with(|options| {
            options.settings.compaction.strategy = Strategy::Handoff;
            options.hooks = HookRunner::new(vec![Arc::new(OtherSystem)]);
        })
        .filled(20, 2_000)
        .await;
    drop(rig.run("go").await);
    let system = |kind| rig.asked(kind)[0].request.system.join("");
    assert_eq!(system(Kind::Turn), "You are a bold engineer.");
    assert_eq!(system(Kind::Handoff), "You are a careful engineer.");
}

async fn until_asked(rig: &Rig, kinds: Kind) {
    for _ in 0..300 {
        if !rig.asked(kinds).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("nothing was asked");
}

/// G: "lease busy in both directions" (10.2).
#[tokio::test(start_paused = true)]
async fn g_a_handoff_and_every_other_change_keep_each_other_out() {
    let mut play = Play::default();
    play.handoffs.push_back(Script::hang());
    let rig = play.rig().filled(3, 200).await;
    let before = rig.bytes();
    let first = {
        let log = rig.log();
        log.entries().nth(1).map(|ix| log.entry_id(ix)).unwrap()
    };
    let session = rig.session.clone();
    let handing = tokio::spawn(async move { session.handoff(HandoffOptions::default()).await });
    until_asked(&rig, Kind::Handoff).await;
    let refused = [
        rig.session.compact(CompactOptions::default()).await.unwrap_err(),
        rig.session
            .navigate(first.as_str(), NavigateOptions::default())
            .await
            .unwrap_err(),
        rig.session.set_name("another").await.unwrap_err(),
        rig.session.resume().await.unwrap_err(),
    ];
    assert_eq!(
        refused.map(|error| error.to_string()),
        [
            "Cannot start compact while a handoff transition is in progress.",
            "Cannot start navigate-tree while a handoff transition is in progress.",
            "Cannot start edit while a handoff transition is in progress.",
            "Cannot start a turn while a handoff is in progress.",
        ]
    );
    rig.session.abort();
    assert!(handing.await.unwrap().is_err());
    assert_eq!(rig.bytes(), before);

    // The other way round.
    let hanging = || Play::default().summaries([Script::hang(), Script::hang()]);
    let rig = hanging().rig().filled(20, 2_000).await;
    let session = rig.session.clone();
    let compacting = tokio::spawn(async move { session.compact(CompactOptions::default()).await });
    until_asked(&rig, Kind::Summary).await;
    let refused = rig.session.handoff(HandoffOptions::default()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Cannot start handoff while a compact transition is in progress."
    );
    rig.session.abort();
    assert_eq!(
        compacting.await.unwrap().unwrap().outcome,
        OperationOutcome::Cancelled
    );

    let rig = hanging().rig().filled(3, 200).await;
    let first = {
        let log = rig.log();
        log.entries().nth(1).map(|ix| log.entry_id(ix)).unwrap()
    };
    let session = rig.session.clone();
    let moving = tokio::spawn(async move {
        let options = NavigateOptions {
            summary: BranchSummaryChoice::Summarize,
            ..NavigateOptions::default()
        };
        session.navigate(first.as_str(), options).await
    });
    until_asked(&rig, Kind::Summary).await;
    let refused = rig.session.handoff(HandoffOptions::default()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Cannot start handoff while a navigate-tree transition is in progress."
    );
    rig.session.abort();
    assert_eq!(
        moving.await.unwrap().unwrap().outcome,
        OperationOutcome::Cancelled
    );

    // And a run.
    let rig = Play::turns([Script::hang()]).rig().filled(3, 200).await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    until_asked(&rig, Kind::Turn).await;
    let refused = rig.session.handoff(HandoffOptions::default()).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("Cannot hand off while a response is streaming"),
        "{refused}"
    );
    rig.session.abort();
    drop(run.await.unwrap().unwrap());
}

/// G: "pre-commit failure rolls back and keeps the document": the error carries it.
#[tokio::test(start_paused = true)]
async fn g_a_handoff_that_cannot_be_written_gives_its_document_back() {
    let mut play = Play::default();
    play.handoffs.push_back(document());
    let rig = play.rig().filled(3, 200).await;
    rig.session.follow_up("later").await.unwrap();
    let before = rig.bytes();
    let options = HandoffOptions {
        output: Some(PathBuf::from(FILE)),
        ..HandoffOptions::default()
    };
    let error = rig.session.handoff(options).await.unwrap_err();
    let SessionError::HandoffNotWritten { handoff_document, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (handoff_document.text.as_str(), handoff_document.planner.as_str()),
        ("# Handoff\n\nGo on with the parser in src/parser.rs.", "test/one")
    );
    assert_eq!((rig.bytes(), rig.session.path()), (before, PathBuf::from(FILE)));
    assert_eq!(rig.session.state().pending_message_count, 1);
}
