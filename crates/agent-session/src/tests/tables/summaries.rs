//! Who writes a summary, and what becomes of failures: hooks, rungs, slow models, services (7, 13 and 17; R03, R12).

use std::time::Duration;

use async_trait::async_trait;
use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::testing::{Replay, ReplayTransport, WhenEmpty};
use foldline_llm_client::{LanguageModel, LlmError, RemoteSummary};
use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::Profile;
use foldline_session_model::model_call::TransientCause;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryId, Tokens};

use super::*;
use crate::CompactOptions;
use crate::hooks::{
    BeforeCompactAnswer, BeforeCompactEvent, HookCompaction, HookContext, HookError, HookEvent, HookRunner,
    Hooks,
};
use crate::testing::SUMMARY;

/// What a hook does with a planned compaction.
pub(super) enum Before {
    Forbids,
    Makes(&'static str),
    /// Keeps an entry first that is nowhere.
    KeepsUnknown,
    /// Keeps the entry at this place of the path first.
    KeepsFrom(usize),
    Fails,
}

#[async_trait]
impl Hooks for Before {
    fn path(&self) -> &'static str {
        "before"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionBeforeCompact]
    }

    async fn session_before_compact(
        &self,
        event: &BeforeCompactEvent<'_>,
        _: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        #[derive(serde::Deserialize)]
        struct Entry {
            id: EntryId,
        }
        let mut answer = BeforeCompactAnswer::default();
        let first_kept = match self {
            Self::KeepsUnknown => Some(EntryId::new("nope")),
            Self::KeepsFrom(at) => {
                let entry: Entry = serde_json::from_str(event.branch_entries[*at].get()).unwrap();
                Some(entry.id)
            }
            _ => None,
        };
        match self {
            Self::Forbids => answer.cancel = true,
            Self::Fails => return Err("it broke".into()),
            Self::Makes(_) | Self::KeepsUnknown | Self::KeepsFrom(_) => {
                let summary = if let Self::Makes(summary) = self {
                    summary
                } else {
                    "S"
                };
                answer.compaction = Some(HookCompaction {
                    summary: summary.to_owned(),
                    short_summary: None,
                    first_kept_entry_id: first_kept,
                    tokens_before: Some(Tokens(999)),
                    details: None,
                    preserve_data: None,
                });
            }
        }
        Ok(answer)
    }
}

async fn hooked(hooks: Vec<Before>) -> Rig {
    let hooks = hooks.into_iter().map(|hook| Arc::new(hook) as Arc<dyn Hooks>);
    let hooks = HookRunner::new(hooks.collect());
    Play::default()
        .rig_with(|options| options.hooks = hooks)
        .filled(20, 2_000)
        .await
}

/// The lines of compactions.
fn compactions(rig: &Rig) -> Vec<String> {
    let log = rig.log();
    log.entries()
        .filter(|ix| log.kind(*ix) == EntryKind::Compaction)
        .map(|ix| String::from_utf8_lossy(log.raw_line(ix)).into_owned())
        .collect()
}

async fn by_hand(rig: &Rig) -> CompactionEnd {
    rig.session.compact(CompactOptions::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn p_a_hook_may_forbid_a_compaction() {
    let rig = hooked(vec![Before::Forbids]).await;
    let before = rig.bytes();
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Cancelled);
    assert!(end.aborted && end.error_message.is_none());
    assert_eq!((rig.bytes(), rig.model.calls()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn p_a_summary_of_a_hook_is_stored_as_it_is() {
    let rig = hooked(vec![Before::Makes("first"), Before::Makes("second")]).await;
    let end = by_hand(&rig).await;
    assert_eq!(end.result.unwrap().planner, "extension");
    let lines = compactions(&rig);
    assert_eq!((lines.len(), rig.model.calls()), (1, 0));
    for part in [
        "\"summary\":\"second\"",
        "\"tokensBefore\":999",
        "\"fromExtension\":true",
    ] {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_a_hook_keeps_first_is_on_the_path_or_nothing_changes() {
    let rig = hooked(vec![Before::KeepsUnknown]).await;
    let before = rig.bytes();
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Failed);
    assert!(end.error_message.unwrap().contains("keeps the entry nope first"));
    assert_eq!(rig.bytes(), before);

    for at in [4, 15] {
        let rig = hooked(vec![Before::KeepsFrom(at)]).await;
        let result = by_hand(&rig).await.result.unwrap();
        let log = rig.log();
        let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
        let size: Tokens = context.messages().map(|message| Heuristic.message(message)).sum();
        assert_eq!((result.tokens_after, context.kept_tail.len() > 1), (size, true));
    }
}

#[tokio::test(start_paused = true)]
async fn p_a_hook_that_fails_is_told_of_and_the_summary_is_made() {
    let mut rig = hooked(vec![Before::Fails]).await;
    let end = by_hand(&rig).await;
    assert_summarised(&end, Reason::Manual);
    assert!(!compactions(&rig)[0].contains("fromExtension"));
    assert_eq!(Told(rig.events()).count("extension_error"), 1);
}

/// A: "missing auth on overflow -> fresh rung; threshold -> `No API key found`" (D6: the last rung is the embedded
/// planner).
#[tokio::test(start_paused = true)]
async fn a_without_credentials_only_a_request_that_must_fit_has_another_rung() {
    let auth = || Script::failure(ErrorClass::Auth, "no key");
    let mut rig = Play::turns([overflow(), done()])
        .summaries([auth(), auth()])
        .rig()
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    let result = told.end().result.as_ref().unwrap();
    assert_eq!((result.planner.as_str(), result.rung), ("extractive", "fallback"));
    assert_eq!(result.fallback_reasons.len(), 1);
    let line = &compactions(&rig)[0];
    assert!(line.contains("\"reason\":\"overflow\"") && line.contains("\"rung\":\"fallback\""));

    let missing = "Compaction requires usable credentials for test/one. Configure test credentials or assign an \
                   authenticated fallback via modelRoles.default. no key";
    let mut rig = Play::turns([over()])
        .summaries([auth(), auth(), auth(), auth()])
        .rig()
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_ended(told.end(), Reason::Threshold, OperationOutcome::Failed);
    let expected = format!("Auto-compaction failed: {missing}");
    assert_eq!(told.end().error_message.as_deref(), Some(&*expected));
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Failed);
    let expected = format!("Compaction failed: {missing}");
    assert_eq!(end.error_message.as_deref(), Some(&*expected));
}

/// 7: by hand only missing credentials lead to the next candidate.
#[tokio::test(start_paused = true)]
async fn g_by_hand_a_failure_is_told_and_missing_credentials_are_passed_over() {
    let bad = || Script::failure(ErrorClass::Other(OtherCause::InvalidRequest), "bad request");
    let auth = || Script::failure(ErrorClass::Auth, "auth_unavailable");
    for (failure, outcome, asked) in [
        (bad(), OperationOutcome::Failed, false),
        (auth(), OperationOutcome::Committed, true),
    ] {
        let other = Arc::new(ScriptedModel::new(
            profile("other", 200_000),
            [],
            WhenEmpty::Repeat(summary()),
        ));
        let rig = Play::default()
            .summaries([failure])
            .rig_with(|options| {
                options.models.summarisers = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
            })
            .filled(20, 2_000)
            .await;
        let end = by_hand(&rig).await;
        assert_ended(&end, Reason::Manual, outcome);
        assert_eq!(other.calls() > 0, asked);
    }
}

/// FB-060, R12: a model that is slow is replaced, not asked again.
#[tokio::test(start_paused = true)]
async fn fb_060_a_slow_summariser_is_replaced() {
    let slow = Script::new().wait(Duration::from_secs(30)).fail(LlmError::new(
        ErrorClass::Transient(TransientCause::FirstEventTimeout),
        "nothing came",
    ));
    let second = Play::default().model("second", 200_000);
    let mut rig = Play::turns([over()])
        .summaries([slow])
        .rig_with(|options| {
            options.models.summarisers = vec![Arc::clone(&second) as Arc<dyn LanguageModel>];
        })
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("go").await;
    assert_summarised(told.end(), Reason::Threshold);
    assert_eq!(told.end().result.as_ref().unwrap().planner, "test/second");
    // A summary may take two requests; neither is sent again.
    let requests: std::collections::BTreeSet<String> = rig.model.requests().into_iter().collect();
    assert_eq!(requests.len(), rig.model.calls());
    let asked = rig.asked(Kind::Summary);
    assert!(second.asked()[0].at - asked[0].at <= Duration::from_secs(31));
}

/// FB-062, R12: whatever the summariser does, there is one end, and the session can be used.
#[tokio::test(start_paused = true)]
async fn fb_062_a_summary_that_never_ends_has_one_end() {
    let scripts = [
        Script::new().text("half a summ"),
        Script::new().text("half a summ").then_hang(),
        Script::hang(),
    ];
    for script in scripts {
        let mut rig = Play::turns([over(), done()])
            .summaries([script])
            .rig()
            .filled(20, 2_000)
            .await;
        let (report, told) = rig.run("go").await;
        assert_eq!(report.end, RunEnd::Completed);
        assert_ended(told.end(), Reason::Threshold, OperationOutcome::Failed);
        assert!(!rig.session.state().is_compacting);
        let (report, _) = rig.run("again").await;
        assert_eq!(report.end, RunEnd::Completed);
    }
}

/// FB-003, R03: a history of one and a half windows is summarised in requests that fit.
#[tokio::test(start_paused = true)]
async fn fb_003_a_history_larger_than_the_window_is_summarised_by_hand() {
    let rig = Play::default().rig().filled(60, 4_000).await;
    let end = by_hand(&rig).await;
    assert_summarised(&end, Reason::Manual);
    for asked in rig.model.asked() {
        let prompt = Heuristic.one(&asked.last_text());
        let output = asked.request.max_output.unwrap();
        assert!(prompt + output <= Tokens(200_000), "{prompt} + {output}");
    }
}

/// FB-007: what a summary costs is never compared with the threshold.
#[tokio::test(start_paused = true)]
async fn fb_007_the_usage_of_a_summary_is_no_context() {
    let dear = Script::reply(SUMMARY, used(196_000));
    let mut rig = Play::turns([over(), done()])
        .summaries([dear])
        .rig_with(|options| options.work = unfinished())
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_summarised(told.end(), Reason::Threshold);
    assert_eq!(rig.told_to_go_on(), 1);
}

/// FB-011: nothing that could be removed is nothing done, and the turn fails with what could be changed.
#[tokio::test(start_paused = true)]
async fn fb_011_an_overflow_of_a_small_session_compacts_nothing() {
    let mut rig = Play::turns([overflow()]).rig().filled(1, 10).await;
    let (report, told) = rig.run("a small edit").await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    assert_ended(told.end(), Reason::Overflow, OperationOutcome::Skipped);
    assert!(told.end().unresolved_overflow);
    let text = report.error.unwrap();
    for part in [
        "nothing eligible to compact",
        "The window holds 200000 tokens",
        "the largest entry",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(rig.compactions(), 0);
}

/// FB-033: a session that was compacted can be compacted again once something has come after it.
#[tokio::test(start_paused = true)]
async fn fb_033_bookkeeping_after_a_compaction_is_nothing_to_compact() {
    let mut rig = Play::default().rig().filled(20, 2_000).await;
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
    rig.session.set_name("a name").await.unwrap();
    let calls = rig.model.calls();
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Skipped);
    assert_eq!(rig.model.calls(), calls);
    rig = rig.filled(20, 2_000).await;
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
}

pub(super) fn service(
    answers: impl IntoIterator<Item = Replay>,
) -> (Arc<ReplayTransport>, Arc<RemoteSummary>) {
    let transport = Arc::new(ReplayTransport::new(answers));
    let endpoint = Endpoint::new("http://127.0.0.1:9/summary", Auth::None, PlainHttp::LoopbackOnly).unwrap();
    let remote = RemoteSummary::with_transport(endpoint, Arc::clone(&transport) as _);
    (transport, Arc::new(remote))
}

/// Seed 000, "Remote summarization modes": the service first, the models when it fails, nobody when it is switched off.
#[tokio::test(start_paused = true)]
async fn a_service_is_asked_before_any_model_if_the_settings_allow_it() {
    #[derive(serde::Serialize)]
    struct Answer {
        summary: &'static str,
    }
    let good = || Replay::ok(serde_json::to_string(&Answer { summary: SUMMARY }).unwrap());
    let broken = || Replay::with_status(503, "down");
    let rows = [
        ("it answers", [good(), good()], true, "remote/summary"),
        ("it is down", [broken(), broken()], true, "test/one"),
        ("it is switched off", [good(), good()], false, "test/one"),
    ];
    for (row, answers, enabled, planner) in rows {
        let (transport, remote) = service(answers);
        let rig = Play::default()
            .rig_with(|options| {
                options.models.remote = Some(remote);
                options.settings.compaction.remote_enabled = enabled;
            })
            .filled(20, 2_000)
            .await;
        let end = by_hand(&rig).await;
        assert_summarised(&end, Reason::Manual);
        let result = end.result.unwrap();
        assert_eq!(result.planner, planner, "{row}");
        assert_eq!(transport.bodies().is_empty(), !enabled, "{row}");
        assert_eq!(rig.model.calls() == 0, planner == "remote/summary", "{row}");
        if let Some(body) = transport.bodies().first() {
            assert!(
                body.starts_with("{\"systemPrompt\":\"") && body.contains("question"),
                "{body}"
            );
        }
    }
}

/// A, reentrancy: who asks while a compaction by hand runs gets its outcome; an automatic one makes way.
#[tokio::test(start_paused = true)]
async fn a_compactions_by_hand_are_joined_and_take_over_automatic_ones() {
    let mut rig = Play::default()
        .summaries([slow_summary()])
        .rig()
        .filled(20, 2_000)
        .await;
    let (first, second) = tokio::join!(by_hand(&rig), by_hand(&rig));
    assert_eq!(first, second);
    assert_eq!((rig.compactions(), Told(rig.events()).ends().len()), (1, 1));

    let mut rig = Play::turns([over()])
        .summaries([Script::hang()])
        .rig()
        .filled(20, 2_000)
        .await;
    let session = rig.session.clone();
    let run = tokio::spawn(async move { session.prompt("go").await });
    rig.until_compacting().await;
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Committed);
    drop(run.await.unwrap().unwrap());
    let told = Told(rig.events());
    let ends = told.ends();
    assert_eq!(ends.len(), 2);
    assert_ended(ends[0], Reason::Threshold, OperationOutcome::Cancelled);
    assert!(ends[0].manual_takeover_pending && !ends[1].manual_takeover_pending);
}

/// A, reentrancy: "a listener of `compaction_end` may prompt or compact synchronously".
#[tokio::test(start_paused = true)]
async fn a_a_listener_of_the_end_may_ask_for_the_next_thing_at_once() {
    let rig = Play::turns([done()]).rig().filled(20, 2_000).await;
    let mut events = rig.session.subscribe();
    let session = rig.session.clone();
    let listener = tokio::spawn(async move {
        let mut ends = 0;
        let mut ran = None;
        while ends < 2 {
            let event = events.recv().await.unwrap();
            if !matches!(&*event, Event::CompactionEnd(_)) {
                continue;
            }
            ends += 1;
            if ends == 1 {
                ran = Some(session.prompt("and now?").await);
                // The second one finds little to do; it is a compaction of its own all the same.
                drop(session.compact(CompactOptions::default()).await.unwrap());
            }
        }
        ran
    });
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
    let ran = listener.await.unwrap().unwrap();
    let Ok(Prompted::Ran(report)) = ran else {
        panic!("{ran:?}")
    };
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    rig.session.wait_for_idle().await;
    assert_eq!(rig.context().last().unwrap(), "assistant: done");
}
