//! Rows "Sidecars" (spec "Verbatim", sections 13 and 21): what they say and what they never say. Their names, modes
//! and that a folder which cannot be written is harmless: `foldline-session-store`, `beside`.

use std::collections::BTreeMap;

use foldline_compaction_core::redact::redact;
use foldline_compaction_core::verbatim::diagnostic::{SidecarKind, diagnostic, recovery};
use foldline_compaction_core::verbatim::{Attempt, CallFailure, Climb, Ladder, LastRung, RangePrompts, Step};
use foldline_session_model::model_call::{LlmReply, StopReason};
use foldline_session_model::tokens::Heuristic;
use serde_json::value::RawValue;

use super::support::{Session, candidate, lines, prepared, prompt, reply, secret, user};

const NOW: &str = "2026-01-01T00:00:00.000Z";

/// Asks a model about a session with a secret in it. Returns the prompt and the sidecar of the answer.
fn sidecar(answer: &Result<LlmReply, CallFailure>) -> (String, Option<(SidecarKind, String)>) {
    let session = Session::of(&[
        user(&format!("the key is {}\nzebra crossing\n{}", secret(), lines(40))),
        user("x"),
        user("y"),
    ]);
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    let prompts = RangePrompts::default();
    let model = candidate("acme/large", 200_000);
    let profile = model.profile.clone();
    let mut ladder = Ladder::new(
        &preparation,
        &prompts,
        vec![model],
        Climb::OneRequest,
        LastRung::Fail,
    );
    let Step::Ask { request, .. } = ladder.step(&Heuristic) else {
        panic!("the model is asked")
    };
    let hide = |text: &str| redact(text).into_owned();
    let written = match (ladder.answer(answer), answer) {
        (Attempt::Failed(failed), _) => Some((
            SidecarKind::Diagnostic,
            diagnostic(&failed, answer, &profile, NOW, &hide),
        )),
        (Attempt::Recovered { records }, Ok(reply)) => Some((
            SidecarKind::Recovery,
            recovery(records, reply, &profile, NOW, &hide),
        )),
        _ => None,
    };
    (prompt(&request), written)
}

/// The names of a document's members, in order.
fn members(document: &str) -> Vec<String> {
    let document: BTreeMap<String, Box<RawValue>> = serde_json::from_str(document).unwrap();
    document.into_keys().collect()
}

/// Row, answer, kind of the sidecar and its members.
#[test]
fn rows_of_sidecars() {
    let failed = "failureCategory failureMessage model rawResponse stopReason timestamp usage version";
    let key = secret();
    let rows = [
        (
            "malformed, with what it read",
            reply(&format!("The key {key} is in line 1."), StopReason::Stop),
            Some((SidecarKind::Diagnostic, failed)),
        ),
        (
            "nothing usable",
            reply("900,901\n", StopReason::Stop),
            Some((SidecarKind::Diagnostic, failed)),
        ),
        (
            "recovered",
            reply("5,10\n11,", StopReason::Length),
            Some((
                SidecarKind::Recovery,
                "model rawResponse recoveredRangeCount recoveryCategory stopReason timestamp usage version",
            )),
        ),
        ("a whole plan has none", reply("5,10\n", StopReason::Stop), None),
    ];
    for (row, answer, expected) in rows {
        let (prompt, written) = sidecar(&answer);
        assert!(
            prompt.contains("zebra crossing") && !prompt.contains(&key),
            "{row}"
        );
        let Some((kind, text)) = written else {
            assert_eq!(expected, None, "{row}");
            continue;
        };
        assert_eq!(Some((kind, &*members(&text).join(" "))), expected, "{row}");
        for word in [
            "apiKey",
            "headers",
            "prompt",
            "systemPrompt",
            "numbered-transcript",
            "zebra",
            &key,
        ] {
            assert!(!text.contains(word), "{row}: {word} in {text}");
        }
    }
}
