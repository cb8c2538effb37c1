//! The provider's own compaction beside a summary in text (seed 000, "Remote summarization modes"; compaction-core, 12;
//! R15, FB-112).

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::testing::{Replay, ReplayEnd, ReplayTransport};
use foldline_llm_client::{NativeCompaction, NativeForm};
use foldline_session_model::model_call::{Api, MessageContent, ModelProfile, ModelRef};

use super::*;

type Change<'c> = &'c dyn Fn(&mut SessionOptions);

const HISTORY: &str = r#"{"type":"compaction", "id":"cmp_1","encrypted_content":"b64=="}"#;

fn openai(id: &str) -> ModelProfile {
    let name = ModelRef {
        provider: "openai".to_owned(),
        id: id.to_owned(),
    };
    let mut profile = ModelProfile::unknown(name, Api::OpenAiResponses);
    profile.context_window = Some(foldline_session_model::Tokens(200_000));
    profile
}

fn made(item: &str) -> Replay {
    Replay::ok(format!(
        r#"{{"output":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"kept"}}]}},{item}]}}"#
    ))
}

/// A model whose provider answers these compactions, and what was asked of the provider.
fn native(
    play: Play,
    answers: impl IntoIterator<Item = Replay>,
) -> (Arc<ScriptedModel>, Arc<ReplayTransport>) {
    let transport = Arc::new(ReplayTransport::new(answers));
    let endpoint = Endpoint::new("https://api.example.com", Auth::None, PlainHttp::LoopbackOnly).unwrap();
    let native = NativeCompaction::with_transport(openai("m"), endpoint, Arc::clone(&transport) as _)
        .with_forms(&[NativeForm::Plain]);
    let model = play.scripted(openai("m")).with_native_compaction(native);
    (Arc::new(model), transport)
}

/// The histories that a request holds.
fn histories(asked: &Asked) -> Vec<String> {
    let contents = asked.request.messages.iter().map(|message| &message.content);
    let items = contents.filter_map(|content| match content {
        MessageContent::Opaque { items, .. } => Some(items),
        _ => None,
    });
    items.flatten().map(|item| item.get().to_owned()).collect()
}

fn last_compaction(rig: &Rig) -> String {
    let log = rig.log();
    let of_kind = |ix: &foldline_session_model::EntryIx| {
        log.kind(*ix) == foldline_session_model::entry::EntryKind::Compaction
    };
    let ix = log.entries().rfind(of_kind).unwrap();
    String::from_utf8_lossy(log.raw_line(ix)).into_owned()
}

async fn by_hand(rig: &Rig) -> CompactionEnd {
    rig.session.compact(CompactOptions::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_history_of_the_provider_stands_beside_the_summary() {
    let (model, transport) = native(Play::turns([done()]), [made(HISTORY)]);
    let mut rig = Rig::on(model, |_| {}).filled(20, 2_000).await;
    let options = CompactOptions {
        instructions: Some("look at the lexer".to_owned()),
        ..CompactOptions::default()
    };
    let end = rig.session.compact(options).await.unwrap();
    assert_summarised(&end, Reason::Manual);
    let result = end.result.unwrap();
    assert_eq!(
        (result.native, result.planner.as_str()),
        (Some("plain"), "openai/m")
    );
    assert!(result.fallback_reasons.is_empty());
    assert!(result.summary.contains("Build the parser"), "{}", result.summary);
    let line = last_compaction(&rig);
    for part in [
        r#""openaiRemoteCompaction":{"provider":"openai","api":"openai-responses","model":"m","replacementHistory":["#,
        HISTORY,
        r#""native":"plain""#,
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }

    // All of the context, with the session's own instructions; a user's are for the text.
    let body = &transport.bodies()[0];
    for part in [
        r#""instructions":"You are a careful engineer.""#,
        "question 0",
        "question 19",
    ] {
        assert!(body.contains(part), "{part}");
    }
    assert!(!body.contains("lexer"));
    let asked = rig.asked(Kind::Summary);
    assert!(
        asked
            .iter()
            .any(|asked| asked.last_text().contains("look at the lexer"))
    );

    // The model reads its own history in place of summary and tail; what came after it stays.
    let (report, _) = rig.run("go on").await;
    assert_eq!(report.end, RunEnd::Completed);
    let asked = rig.asked(Kind::Turn);
    assert_eq!(histories(&asked[0]).last().map(String::as_str), Some(HISTORY));
    assert_eq!(asked[0].request.messages.len(), 2);
    assert_eq!(asked[0].last_text(), "go on");
}

#[tokio::test(start_paused = true)]
async fn fb_112_another_model_reads_the_summary_and_the_kept_tail() {
    let (model, _) = native(Play::turns([done()]), [made(HISTORY)]);
    let mut rig = Rig::on(model, |_| {}).filled(20, 2_000).await;
    drop(by_hand(&rig).await);
    for other in [profile("one", 200_000), openai("m2")] {
        let other = Arc::new(Play::turns([done()]).scripted(other));
        rig.options.models.current = Some(Arc::clone(&other) as _);
        rig.reopen();
        drop(rig.run("go on").await);
        let asked = &other.asked()[0];
        assert!(histories(asked).is_empty());
        let json = serde_json::to_string(&asked.request).unwrap();
        assert!(
            json.contains("Build the parser") && json.contains("question 19"),
            "{json}"
        );
        assert!(!json.contains("b64=="), "{json}");
    }
    // Back to the model that made it.
    rig.options.models.current = Some(Arc::clone(&rig.model) as _);
    rig.reopen();
    drop(rig.run("and on").await);
    let asked = rig.asked(Kind::Turn);
    assert_eq!(histories(&asked[0]).last().map(String::as_str), Some(HISTORY));
}

#[tokio::test(start_paused = true)]
async fn a_failure_leaves_the_summary_alone_and_is_told_once() {
    let broken = || Replay::with_status(500, "down");
    let malformed = Replay::ok(r#"{"output":[{"type":"reasoning"}]}"#);
    let (model, _) = native(Play::default(), [broken(), malformed, made(HISTORY)]);
    let mut rig = Rig::on(model, |_| {}).filled(20, 2_000).await;
    let rows = [
        (None, Some("native plain: "), 1),
        (None, Some("no compaction item"), 0),
        (Some("plain"), None, 0),
    ];
    for (form, reason, notices) in rows {
        let end = by_hand(&rig).await;
        assert_summarised(&end, Reason::Manual);
        let result = end.result.unwrap();
        assert_eq!(result.native, form);
        let line = last_compaction(&rig);
        assert_eq!(line.contains("openaiRemoteCompaction"), form.is_some());
        match (reason, result.fallback_reasons.first()) {
            (None, None) => assert!(!line.contains("fallbackReasons"), "{line}"),
            (Some(part), Some(told)) => {
                assert!(
                    told.starts_with("openai/m native") && told.contains(part),
                    "{told}"
                );
                assert!(line.contains("\"fallbackReasons\":[\"openai/m native"), "{line}");
            }
            other => panic!("{other:?}"),
        }
        let told = Told(rig.events());
        let about = told
            .notices()
            .into_iter()
            .filter(|text| text.contains("own compaction failed"));
        assert_eq!(about.count(), notices);
        rig = rig.filled(20, 2_000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_history_is_compacted_on_and_then_gone() {
    let second = r#"{"type":"compaction", "id":"cmp_2","encrypted_content":"c2Vj"}"#;
    let (model, transport) = native(
        Play::default(),
        [made(HISTORY), made(second), Replay::with_status(500, "")],
    );
    let mut rig = Rig::on(model, |_| {}).filled(20, 2_000).await;
    drop(by_hand(&rig).await);
    rig = rig.filled(20, 2_000).await;
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
    let line = last_compaction(&rig);
    assert!(line.contains(second) && !line.contains("b64=="), "{line}");
    let bodies = transport.bodies();
    let input = bodies[1].split_once("\"input\":[").unwrap().1;
    assert!(
        input.starts_with(
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]},"#
        )
    );
    assert!(input.contains(HISTORY), "byte for byte");
    // What the history stands for is not sent beside it: each question once, those of the second filling.
    assert_eq!(input.matches("question 7\"").count(), 1);
    // A compaction without one does not carry the old one on.
    rig = rig.filled(20, 2_000).await;
    assert_summarised(&by_hand(&rig).await, Reason::Manual);
    assert!(!last_compaction(&rig).contains("openaiRemoteCompaction"));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_the_provider_works_writes_nothing() {
    let silent = Replay::ok("").ending(ReplayEnd::Open);
    let (model, transport) = native(Play::default(), [silent]);
    let rig = Rig::on(model, |_| {}).filled(20, 2_000).await;
    let before = rig.bytes();
    let session = rig.session.clone();
    let running = tokio::spawn(async move { session.compact(CompactOptions::default()).await });
    rig.until_compacting().await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!((transport.bodies().len(), running.is_finished()), (1, false));
    assert!(rig.session.abort_compaction());
    let end = running.await.unwrap().unwrap();
    assert_ended(&end, Reason::Manual, OperationOutcome::Cancelled);
    assert_eq!(rig.bytes(), before);
}

/// CD14: a provider that never answers is given up, and the summary stands alone.
#[tokio::test(start_paused = true)]
async fn a_provider_that_is_silent_is_given_up() {
    let silent = Replay::ok("").ending(ReplayEnd::Open);
    let (model, _) = native(Play::turns([over()]), [silent]);
    let mut rig = Rig::on(model, |_| {}).filled(20, 2_000).await;
    let (_, told) = rig.run("go").await;
    assert_summarised(told.end(), Reason::Threshold);
    let result = told.end().result.as_ref().unwrap();
    assert_eq!(result.native, None);
    assert!(
        result.fallback_reasons[0].contains("did not answer in time"),
        "{result:?}"
    );
}

/// What the provider made is kept though no model summarises: the embedded planner writes the text.
#[tokio::test(start_paused = true)]
async fn a_history_is_kept_when_no_model_summarises() {
    let refuse = || Script::failure(ErrorClass::Other(OtherCause::InvalidRequest), "no");
    let play = Play::default().summaries([refuse(), refuse()]);
    let (model, _) = native(play, [made(HISTORY)]);
    let rig = Rig::on(model, |_| {}).filled(20, 2_000).await;
    let end = by_hand(&rig).await;
    assert_summarised(&end, Reason::Manual);
    let result = end.result.unwrap();
    assert_eq!(
        (result.native, result.planner.as_str(), result.rung),
        (Some("plain"), "extractive", "fallback")
    );
    assert_eq!(result.fallback_reasons, ["openai/m: no"]);
}

#[tokio::test(start_paused = true)]
async fn the_provider_is_not_asked_where_nothing_could_come_of_it() {
    let off = |options: &mut SessionOptions| options.settings.compaction.remote_enabled = false;
    let extractive = |options: &mut SessionOptions| {
        options.settings.planner = crate::PlannerChoice::Extractive;
    };
    let lines = |options: &mut SessionOptions| {
        options.settings.compaction.strategy = foldline_compaction_core::settings::Strategy::VerbatimLines;
    };
    let rows: [(&str, Change<'_>, usize); 4] = [
        ("switched off", &off, 20),
        ("planned without a model", &extractive, 20),
        ("by lines", &lines, 20),
        ("nothing to compact", &|_: &mut SessionOptions| {}, 1),
    ];
    for (row, change, turns) in rows {
        let (model, transport) = native(Play::default(), []);
        let rig = Rig::on(model, change).filled(turns, 2_000).await;
        drop(by_hand(&rig).await);
        assert!(transport.bodies().is_empty(), "{row}");
    }
}

/// CD15: what does not fit the window is not sent, and the summary stands alone.
#[tokio::test(start_paused = true)]
async fn cd15_a_history_larger_than_the_window_is_not_sent() {
    let (model, transport) = native(Play::default(), []);
    let rig = Rig::on(model, |_| {}).filled(60, 4_000).await;
    let end = by_hand(&rig).await;
    assert_summarised(&end, Reason::Manual);
    let result = end.result.unwrap();
    assert!(result.fallback_reasons[0].contains("too large"), "{result:?}");
    assert!(transport.bodies().is_empty());
}
