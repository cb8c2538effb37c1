//! A server whose window is smaller than the catalogue says (R01, FB-005).

use foldline_compaction_core::decide::Reason;
use foldline_llm_client::WindowSource;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, LlmRequest, MessageContent, StopReason, Usage};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use super::*;
use crate::event::{CompactionEnd, Event, OperationOutcome};
use crate::testing::{SUMMARY, estimated, is_turn, two_minds};

/// What the catalogue says.
const CLAIMED: u64 = 8_192;
/// What the server has.
const WINDOW: u64 = 2_048;

/// A server.
#[derive(Clone, Copy, Debug)]
struct Server {
    /// Tokens of the server for 100 of the estimate.
    dense: u64,
    /// Whether a refusal names the window.
    named: bool,
}

impl Server {
    fn count(self, request: &LlmRequest<'_>) -> u64 {
        estimated(request) * self.dense / 100
    }

    /// Answers with this many of its tokens, or as many as there is room for.
    fn answer(self, request: &LlmRequest<'_>, text: &str) -> Script {
        let prompt = self.count(request);
        if prompt > WINDOW {
            let class = ErrorClass::Overflow {
                limit: self.named.then_some(Tokens(WINDOW)),
                input: None,
                output: None,
            };
            return Script::failure(
                class,
                format!("request ({prompt} tokens) exceeds the available context size ({WINDOW} tokens)"),
            );
        }
        let most = request
            .max_output
            .map_or(u64::MAX, Tokens::get)
            .min(WINDOW - prompt);
        let mut said = String::new();
        for word in text.split_inclusive(' ') {
            if Heuristic.one(&said).get() * self.dense / 100 >= most {
                break;
            }
            said.push_str(word);
        }
        let stop = if said.len() == text.len() {
            StopReason::Stop
        } else {
            StopReason::Length
        };
        let output = Heuristic.one(&said).get() * self.dense / 100;
        let usage = Usage::from_parts(Tokens(prompt), Tokens(output), Tokens::ZERO, Tokens::ZERO);
        Script::new().text(said).usage(usage).stop(stop)
    }
}

fn words(tokens: u64) -> String {
    let mut text = String::new();
    let mut at = 0;
    while Heuristic.one(&text).get() < tokens {
        text.push_str(["river ", "engine ", "harvest ", "signal "][at % 4]);
        at += 1;
    }
    text
}

/// A session on a server that answers prompts which begin with `long` with this many tokens of the estimator, and all
/// others shortly.
fn on(server: Server, source: WindowSource, long: u64) -> Rig {
    let model = two_minds(
        CLAIMED,
        move |request, _| {
            let newest = request.messages.last().map(|message| match &message.content {
                MessageContent::User { blocks } => crate::message::text_of(blocks),
                _ => String::new(),
            });
            let is_long = newest.is_some_and(|text| text.starts_with("long"));
            server.answer(request, &words(if is_long { long } else { 12 }))
        },
        move |request, _| server.answer(request, SUMMARY),
    );
    Rig::over(model, |options| options.models.window_source = source)
}

/// What a prompt came to.
struct Turn {
    report: crate::RunReport,
    /// Requests of the turn that the server refused.
    refused: usize,
    ends: Vec<CompactionEnd>,
}

impl Turn {
    /// Compactions that are in the session because a request did not fit.
    fn recovered(&self) -> usize {
        let committed = self
            .ends
            .iter()
            .filter(|end| end.outcome == OperationOutcome::Committed);
        committed.filter(|end| end.reason == Reason::Overflow).count()
    }
}

async fn turn(rig: &mut Rig, server: Server, prompt: String) -> Turn {
    let before = rig.model.calls();
    let Prompted::Ran(report) = rig.session.prompt(prompt).await.unwrap() else {
        panic!("queued")
    };
    let asked = rig.model.asked();
    let turns = asked.iter().skip(before).filter(|asked| is_turn(&asked.request));
    let events = rig.events();
    let ends = events.iter().filter_map(|event| match &**event {
        Event::CompactionEnd(end) => Some((**end).clone()),
        _ => None,
    });
    Turn {
        report,
        refused: turns
            .filter(|asked| server.count(&asked.request) > WINDOW)
            .count(),
        ends: ends.collect(),
    }
}

/// FB-005: an answer that fills the window makes the next request overflow. One compaction makes room for it, whoever
/// says how large the window is, and however much denser the server counts than the estimator.
#[tokio::test(start_paused = true)]
async fn r01_an_answer_that_fills_the_window_is_compacted_away_at_the_first_attempt() {
    for (dense, named, source) in [
        (100, true, WindowSource::User),
        (100, false, WindowSource::Catalogue),
        (140, true, WindowSource::Catalogue),
        (140, false, WindowSource::User),
        (180, true, WindowSource::User),
        (180, true, WindowSource::Catalogue),
        (180, false, WindowSource::User),
    ] {
        let server = Server { dense, named };
        let mut refused = 0;
        for filler in [10, 500] {
            let mut rig = on(server, source, 1_200);
            for number in 0..6 {
                let prompt = if number % 3 == 1 {
                    format!("long {}", words(200))
                } else {
                    format!("short {number} {}", words(filler))
                };
                let turn = turn(&mut rig, server, prompt).await;
                let row = format!(
                    "{server:?} {source:?} {filler} prompt {number}: {:?}",
                    turn.report
                );
                assert_eq!(turn.report.end, RunEnd::Completed, "{row} {:#?}", turn.ends);
                assert!(
                    turn.refused <= 1 && turn.recovered() <= 1,
                    "{row} {:#?}",
                    turn.ends
                );
                assert!(turn.refused <= turn.recovered(), "{row} {:#?}", turn.ends);
                refused += turn.refused;
            }
        }
        assert!(refused > 0, "{server:?}: nothing overflowed");
    }
}

/// R02, FB-029: over the window the outcome is insufficient, with the shortfall, and nothing is written or asked; FB-009:
/// the largest entry is named. The next prompt is answered.
#[tokio::test(start_paused = true)]
async fn r02_a_prompt_larger_than_the_window_is_insufficient_and_the_next_one_is_answered() {
    for named in [true, false] {
        let server = Server { dense: 100, named };
        let mut rig = on(server, WindowSource::User, 1_200);
        for number in 0..3 {
            let turn = turn(&mut rig, server, format!("short {number} {}", words(200))).await;
            assert_eq!(turn.report.end, RunEnd::Completed);
        }
        let calls = rig.model.calls();
        let failed = turn(&mut rig, server, words(3_000)).await;
        assert_eq!(failed.report.end, RunEnd::Failed);
        assert_eq!(
            (failed.refused, failed.recovered(), rig.model.calls() - calls),
            (1, 0, 1),
            "{named}"
        );
        let end = &failed.ends[0];
        assert_eq!(
            (end.outcome, failed.ends.len()),
            (OperationOutcome::Skipped, 1),
            "{end:#?}"
        );
        assert!(end.unresolved_overflow);
        let text = failed.report.error.unwrap();
        for part in ["insufficient: ", " too many", "the largest entry, ", " (user), "] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let next = turn(&mut rig, server, "short again".to_owned()).await;
        assert_eq!(
            next.report.end,
            RunEnd::Completed,
            "{named} {:?} {:#?}",
            next.report,
            next.ends
        );
        assert!(next.refused <= 1 && next.recovered() == 1, "{:#?}", next.ends);
    }
}
