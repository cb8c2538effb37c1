//! Compaction by deleted lines through a session: who plans, and what a failure leaves behind (spec "Verbatim", 12 and
//! 21; D6). The rows are those of the ladder and of the sidecars.

mod hooked;
mod joined;
mod post_tool;
mod thinking;

use std::path::{Path, PathBuf};

use foldline_compaction_core::settings::Strategy;
use foldline_llm_client::LanguageModel;
use foldline_llm_client::testing::WhenEmpty;
use foldline_session_model::entry::EntryKind;
use foldline_session_model::model_call::StopReason;
use foldline_session_store::SessionStore as _;
use serde::Deserialize;

use super::*;
use crate::CompactOptions;
use crate::event::FailureKind;
use crate::testing::FILE;

/// A compaction entry, as far as these tests read it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    summary: String,
    first_kept_entry_id: Option<String>,
    #[serde(default)]
    from_extension: bool,
    details: Details,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    strategy: String,
    rung: String,
    planner_model: Option<PlannerModel>,
    stats: Stats,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlannerModel {
    id: String,
    thinking_level: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    lines_kept: usize,
    range_count: usize,
}

/// The compactions of a session.
fn entries(rig: &Rig) -> Vec<Entry> {
    let log = rig.log();
    let compactions = log.entries().filter(|ix| log.kind(*ix) == EntryKind::Compaction);
    compactions
        .map(|ix| serde_json::from_slice(log.raw_line(ix)).unwrap())
        .collect()
}

/// A sidecar, as far as these tests read it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Diagnostic {
    failure_category: String,
    raw_response: String,
    rate_limit_exhausted: Option<bool>,
}

/// The diagnostics beside the session, in the order of their names.
fn diagnostics(rig: &Rig) -> Vec<(PathBuf, Diagnostic)> {
    let folder = Path::new(FILE).parent().unwrap();
    let mut names: Vec<String> = rig
        .store
        .volume()
        .list(folder)
        .unwrap()
        .iter()
        .map(|item| item.name().to_string_lossy().into_owned())
        .filter(|name| name.contains("-diagnostic-"))
        .collect();
    names.sort();
    let read = |name: String| {
        let path = folder.join(name);
        let content: Vec<u8> = rig.store.read(&path).unwrap().into();
        (path, serde_json::from_slice(&content).unwrap())
    };
    names.into_iter().map(read).collect()
}

/// The path that a failure names.
fn named_path(text: &str) -> Option<&str> {
    text.split_once(" (diagnostic: ")?.1.strip_suffix(')')
}

/// Ranges that delete most of what is shown.
fn ranges() -> Script {
    Script::reply("1,15\n", used(5_000))
}

fn throttled() -> Script {
    Script::failure(ErrorClass::RateLimit, "429 Too Many Requests")
}

fn by_lines(options: &mut SessionOptions) {
    options.settings.compaction.strategy = Strategy::VerbatimLines;
    options.settings.retry.jitter = foldline_llm_client::Jitter::None;
}

async fn by_hand(rig: &Rig) -> CompactionEnd {
    rig.session.compact(CompactOptions::default()).await.unwrap()
}

/// How many lines a planner was shown.
fn shown(asked: &Asked) -> usize {
    let text = asked.last_text();
    let line = text.lines().rev().find_map(|line| line.strip_prefix("Lines: "));
    line.unwrap().parse().unwrap()
}

/// Another model, and what it answers whenever it is asked.
fn standby(script: Script) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(
        profile("other", 200_000),
        [],
        WhenEmpty::Repeat(script),
    ))
}

/// Every way in which an answer cannot be used: its name in the sidecar, what the end says of it, and how often the
/// model is asked.
fn unusable() -> Vec<(&'static str, Script, FailureKind, usize)> {
    let reasoned = foldline_session_model::model_call::Usage {
        reasoning: Some(foldline_session_model::Tokens(4_096)),
        ..used(5_000)
    };
    let cut = |usage| Script::new().text("").usage(usage).stop(StopReason::Length);
    let provider = |class: ErrorClass| FailureKind::Provider(class);
    let invalid = ErrorClass::Other(OtherCause::InvalidRequest);
    vec![
        (
            "malformed_output",
            Script::reply("I would delete lines 1 to 5.", used(5_000)),
            FailureKind::Answer,
            1,
        ),
        (
            "no_usable_ranges",
            Script::reply("900,901\n", used(5_000)),
            FailureKind::Answer,
            1,
        ),
        ("starved", cut(reasoned), FailureKind::Answer, 1),
        ("malformed_output", cut(used(5_000)), FailureKind::Answer, 1),
        // Waiting is no second question (spec, 8.4).
        ("rate_limited", throttled(), provider(ErrorClass::RateLimit), 2),
        (
            "quota",
            Script::failure(ErrorClass::Quota, "insufficient_quota"),
            provider(ErrorClass::Quota),
            1,
        ),
        (
            "provider_error",
            Script::failure(invalid.clone(), "400 bad request"),
            provider(invalid),
            1,
        ),
        ("context_overflow", overflow(), provider(overflow_class()), 1),
    ]
}

fn overflow_class() -> ErrorClass {
    ErrorClass::Overflow {
        limit: Some(foldline_session_model::Tokens(200_000)),
        input: None,
        output: None,
    }
}

/// Spec "Verbatim", 12: "recoverable -> throw"; D6: by hand and over the threshold there is one question and an honest
/// failure, whatever stands by.
#[tokio::test(start_paused = true)]
async fn ladder_by_hand_and_over_the_threshold_one_question_then_a_clean_failure() {
    for (category, script, kind, asked) in unusable() {
        for reason in [Reason::Manual, Reason::Threshold] {
            let other = standby(ranges());
            let mut rig = Play::turns([over()])
                .summaries(vec![script.clone(); asked])
                .rig_with(|options| {
                    by_lines(options);
                    options.models.summarisers = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
                })
                .filled(20, 2_000)
                .await;
            let (before, end) = if reason == Reason::Manual {
                (rig.bytes(), by_hand(&rig).await)
            } else {
                let (report, told) = rig.run("go").await;
                assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
                (rig.bytes(), told.end().clone())
            };
            assert_ended(&end, reason, OperationOutcome::Failed);
            assert_eq!(end.action, CompactionAction::VerbatimLines);
            assert_eq!(end.failure, Some(kind.clone()), "{category}");
            assert_eq!((rig.compactions(), rig.bytes()), (0, before), "{category}");
            assert_eq!(rig.asked(Kind::Summary).len(), asked, "{category}");
            assert_eq!(other.calls(), 0, "{category}");

            let found = diagnostics(&rig);
            let [(path, told)] = &found[..] else {
                panic!("{category}: {found:?}")
            };
            assert_eq!(told.failure_category, category);
            let text = end.error_message.unwrap();
            assert_eq!(named_path(&text), path.to_str(), "{text}");
            let limit = matches!(category, "rate_limited" | "quota");
            assert_eq!(
                told.rate_limit_exhausted,
                limit.then_some(category == "rate_limited")
            );
            if category == "no_usable_ranges" {
                assert_eq!(told.raw_response, "900,901\n");
            }
        }
    }
}

/// Spec "Verbatim", 21, ladder: "all throttled: manual -> error + real sidecar path, no entry, next try works"; sidecars:
/// "names regex `^BASE-compaction-diagnostic-\d+-[0-9a-f-]{36}\.json$`".
#[tokio::test(start_paused = true)]
async fn ladder_all_throttled_by_hand_is_an_error_with_the_path_of_its_sidecar() {
    let rig = Play::default()
        .summaries([throttled(), throttled(), ranges()])
        .rig_with(by_lines)
        .filled(20, 2_000)
        .await;
    let before = rig.bytes();
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Failed);
    let text = end.error_message.unwrap();
    assert!(
        text.starts_with("Compaction failed: 429 Too Many Requests (diagnostic: /sessions/"),
        "{text}"
    );
    let path = PathBuf::from(named_path(&text).unwrap());
    let content: Vec<u8> = rig.store.read(&path).unwrap().into();
    let content = String::from_utf8(content).unwrap();
    assert!(
        content.contains("\"failureCategory\": \"rate_limited\""),
        "{content}"
    );
    for forbidden in [
        "apiKey",
        "headers",
        "prompt",
        "systemPrompt",
        "numbered-transcript",
        "word word",
    ] {
        assert!(!content.contains(forbidden), "{forbidden} in {content}");
    }
    let name = path.file_name().unwrap().to_str().unwrap();
    let rest = name.strip_prefix("test-compaction-diagnostic-").unwrap();
    let (millis, unique) = rest.strip_suffix(".json").unwrap().split_once('-').unwrap();
    assert!(millis.parse::<u64>().is_ok(), "{name}");
    assert!(
        unique.len() == 36
            && unique
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-')),
        "{name}"
    );
    assert_eq!((rig.bytes(), rig.compactions()), (before, 0));

    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Committed);
    assert_eq!(end.result.unwrap().rung, "planned");
    assert_eq!(rig.compactions(), 1);
}

/// Spec "Verbatim", 21, ladder: "overflow once -> second request strictly smaller and same model".
#[tokio::test(start_paused = true)]
async fn ladder_after_an_overflow_the_same_model_sees_less() {
    let other = standby(ranges());
    let mut rig = Play::turns([overflow(), done()])
        .summaries([overflow(), ranges()])
        .rig_with(|options| {
            by_lines(options);
            options.models.summarisers = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
        })
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
    assert_ended(told.end(), Reason::Overflow, OperationOutcome::Committed);
    let result = told.end().result.as_ref().unwrap();
    assert_eq!((result.rung, result.planner.as_str()), ("planned", "test/one"));
    let asked = rig.asked(Kind::Summary);
    assert_eq!((asked.len(), other.calls()), (2, 0));
    assert!(shown(&asked[1]) < shown(&asked[0]));
    assert!(asked[1].last_text().len() < asked[0].last_text().len());
    assert!(entries(&rig)[0].details.planner_model.is_none());
}

/// Spec "Verbatim", 21, ladder: "endless overflow -> last view 1 line then fallback"; "throttled primary + healthy
/// fallback -> planned, plannerModel, session model and JSONL prefix unchanged, exactly one appended line".
#[tokio::test(start_paused = true)]
async fn ladder_then_another_model_plans_and_the_session_stays_on_its_own() {
    for (script, row) in [(overflow(), "endless overflow"), (throttled(), "throttled")] {
        let other = standby(ranges());
        let mut rig = Play::turns([overflow(), done()])
            .summaries(vec![script; 40])
            .rig_with(|options| {
                by_lines(options);
                options.models.summarisers = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
            })
            .filled(20, 2_000)
            .await;
        let before = rig.bytes();
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Completed, 2), "{row}");
        assert_ended(told.end(), Reason::Overflow, OperationOutcome::Committed);
        let result = told.end().result.as_ref().unwrap();
        assert_eq!((result.rung, result.planner.as_str()), ("planned", "test/other"));

        let asked = rig.asked(Kind::Summary);
        let views: Vec<usize> = asked.iter().map(shown).collect();
        if row == "throttled" {
            assert_eq!(views.len(), 2, "{views:?}");
            assert_eq!(views[0], views[1]);
        } else {
            assert!(views.is_sorted_by(|a, b| a > b), "{views:?}");
            assert_eq!(views.last(), Some(&1));
        }
        assert_eq!(other.calls(), 1, "{row}");

        let entry = &entries(&rig)[0];
        assert_eq!(
            (entry.details.strategy.as_str(), entry.details.rung.as_str()),
            ("verbatim-lines", "planned")
        );
        assert_eq!(entry.details.planner_model.as_ref().unwrap().id, "other");
        assert_eq!(rig.session.state().model.as_deref(), Some("test/one"));
        assert_eq!(
            told.count("model_changed") + told.count("model_fallback_start"),
            0
        );
        // The question, the refusal, the compaction, the answer.
        let bytes = rig.bytes();
        let added = bytes.strip_prefix(&before[..]).unwrap();
        assert_eq!(memchr::memchr_iter(b'\n', added).count(), 4, "{row}");
    }
}

/// Spec "Verbatim", 21, ladder: "primary listed in fallbackModels is not retried".
#[tokio::test(start_paused = true)]
async fn ladder_a_model_that_is_listed_twice_is_asked_once() {
    let again = Arc::new(ScriptedModel::new(
        profile("one", 200_000),
        [],
        WhenEmpty::Repeat(ranges()),
    ));
    let mut rig = Play::turns([overflow(), done()])
        .summaries([Script::failure(ErrorClass::Quota, "insufficient_quota")])
        .rig_with(|options| {
            by_lines(options);
            options.models.summarisers = vec![Arc::clone(&again) as Arc<dyn LanguageModel>];
        })
        .filled(20, 2_000)
        .await;
    let (report, told) = rig.run("go").await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(told.end().result.as_ref().unwrap().planner, "extractive");
    assert_eq!((rig.asked(Kind::Summary).len(), again.calls()), (1, 0));
}

/// Spec "Verbatim", 21, ladder: "all throttled: … overflow reason -> fresh" and "no credentials: … load-bearing ->
/// fresh" (D6: the last rung is the embedded planner).
#[tokio::test(start_paused = true)]
async fn ladder_when_all_models_fail_an_overflow_has_a_rung_without_one() {
    let auth = || Script::failure(ErrorClass::Auth, "no key");
    for (script, calls) in [(throttled(), 2), (auth(), 1)] {
        let other = standby(script.clone());
        let mut rig = Play::turns([overflow(), done()])
            .summaries(vec![script; calls])
            .rig_with(|options| {
                by_lines(options);
                options.models.summarisers = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
            })
            .filled(20, 2_000)
            .await;
        let (report, told) = rig.run("go").await;
        assert_eq!((report.end, report.requests), (RunEnd::Completed, 2));
        let end = told.end();
        assert_ended(end, Reason::Overflow, OperationOutcome::Committed);
        let result = end.result.as_ref().unwrap();
        assert_eq!(
            (result.rung, result.planner.as_str()),
            ("extractive", "extractive")
        );
        assert_eq!(result.fallback_reasons.len(), 2, "{:?}", result.fallback_reasons);
        assert_eq!((rig.asked(Kind::Summary).len(), other.calls()), (calls, calls));
        assert_eq!(entries(&rig)[0].details.rung, "extractive");
        assert_eq!(diagnostics(&rig).len(), 2);
    }
}

/// Spec "Verbatim", 21, ladder: "no credentials: recoverable -> auth message without diagnosticPath".
#[tokio::test(start_paused = true)]
async fn ladder_without_credentials_the_failure_names_what_is_missing_and_no_sidecar() {
    let rig = Play::default()
        .summaries([Script::failure(ErrorClass::Auth, "no key")])
        .rig_with(by_lines)
        .filled(20, 2_000)
        .await;
    let before = rig.bytes();
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Failed);
    assert_eq!(end.failure, Some(FailureKind::Provider(ErrorClass::Auth)));
    let text = end.error_message.unwrap();
    assert_eq!(text, "Compaction failed: No API key found for test: no key");
    assert_eq!(rig.bytes(), before);
}

/// Spec "Verbatim", 21, ladder: "19-line load-bearing -> fresh with 0 requests, 20 -> planned" (D6: the embedded planner).
#[tokio::test(start_paused = true)]
async fn ladder_a_small_region_is_planned_without_a_request() {
    // A message of one line and an empty one; the question and its refusal are the tail.
    for (turns, calls) in [(4, 0), (12, 1)] {
        let mut rig = Play::turns([overflow(), done()])
            .summaries([Script::reply("1,12\n", used(5_000))])
            .rig_with(by_lines)
            .filled(turns, 4_000)
            .await;
        let (report, told) = rig.run("go").await;
        assert_eq!(report.end, RunEnd::Completed, "{turns}");
        let result = told.end().result.as_ref().unwrap();
        assert_eq!(rig.asked(Kind::Summary).len(), calls, "{turns}");
        assert_eq!(result.rung == "planned", calls == 1, "{}", result.rung);
    }
}
