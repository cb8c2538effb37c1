//! Rows "Post-tool" (spec "Verbatim", sections 17 and 21), as far as numbers decide them: whether the context is
//! compacted between a tool's result and the next request, and whether that request depends on it. What then happens
//! in a run: `foldline-agent-session`, `tests::tables::midrun`.

use foldline_compaction_core::accounting::{ContextSize, Limits};
use foldline_compaction_core::decide::{
    Action, Because, Boundary, Breaker, Compaction, Guard, Promotion, Prune, Reason, Snapshot, Then, Urgency,
    decide,
};
use foldline_compaction_core::settings::{CompactionSettings, ThresholdRule};
use foldline_session_model::Tokens;
use foldline_session_model::tokens::CharsPerFour;

use super::support::{Session, result, user};

/// The decision after a result of so many characters that follows a measured usage, in a window of 1000 tokens of
/// which 200 are reserved.
fn decision(usage: u64, characters: usize) -> Action {
    let call = format!(
        r#"{{"role":"assistant","stopReason":"toolUse","content":[{{"type":"toolCall","id":"c","name":"read","arguments":{{}}}}],"usage":{{"input":{usage},"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":{usage}}}}}"#
    );
    let session = Session::of(&[user("read it"), call, result("c", &"x".repeat(characters))]);
    let settings = CompactionSettings {
        threshold_rule: ThresholdRule::ReserveOnly,
        reserve_tokens: 200.0,
        ..CompactionSettings::default()
    };
    let limits = Limits::new(Some(Tokens(1_000)), &settings, Tokens::ZERO).unwrap();
    let size = ContextSize::of(&session.context(), Tokens::ZERO, Tokens::ZERO, &CharsPerFour);
    assert_eq!(size.tokens.get(), usage + characters as u64 / 4);
    decide(&Snapshot {
        boundary: Boundary::BetweenRequests,
        settings: &settings,
        limits: Some(&limits),
        size,
        last: None,
        overflow_guard: Guard::Armed,
        breaker: Breaker::Closed,
        promotion: Promotion::Unavailable,
        prune: Prune::Done,
        quiet_at: None,
        emergency: None,
    })
}

fn compacted(urgency: Urgency) -> Action {
    Action::Compact(Compaction {
        reason: Reason::Threshold,
        then: Then::Proceed,
        urgency,
    })
}

/// Usage, characters of the result, decision.
#[test]
fn rows_of_window_1000_and_reserve_200() {
    for (usage, characters, expected) in [
        // 840 of 800: one compaction within the run, and the run goes on by itself.
        (720, 480, compacted(Urgency::Recoverable)),
        // 690.
        (570, 480, Action::Nothing(Because::BelowThreshold)),
        // Exactly 800 is not over it.
        (680, 480, Action::Nothing(Because::BelowThreshold)),
        // Exactly the window still fits; one token more, and the request must not be sent as it is.
        (880, 480, compacted(Urgency::Recoverable)),
        (881, 480, compacted(Urgency::LoadBearing)),
        // A result of 10,000 characters.
        (720, 10_000, compacted(Urgency::LoadBearing)),
    ] {
        assert_eq!(decision(usage, characters), expected, "{usage} and {characters}");
    }
}
