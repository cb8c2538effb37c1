use foldline_compaction_core::settings::CompactionSettings;

use super::*;

/// No evidence of anything.
const QUIET: Evidence = Evidence {
    waiting: Waiting::Nothing,
    last_stop: Some(StopReason::Stop),
    goal: GoalSays::Nothing,
    open_todos: 0,
    active_workflows: 0,
};

const WAITING: Evidence = Evidence {
    waiting: Waiting::Messages,
    ..QUIET
};
const CUT_OFF: Evidence = Evidence {
    last_stop: Some(StopReason::Length),
    ..QUIET
};
const GOAL: Evidence = Evidence {
    goal: GoalSays::Active,
    ..QUIET
};
const OPEN: Evidence = Evidence {
    open_todos: 1,
    ..QUIET
};
const WORKFLOW: Evidence = Evidence {
    active_workflows: 1,
    ..QUIET
};
/// Everything is open, and the goal is paused all the same.
const PAUSED: Evidence = Evidence {
    goal: GoalSays::Paused,
    open_todos: 3,
    active_workflows: 1,
    ..QUIET
};

/// A compaction that was committed, and what was to follow it for this reason.
fn committed(reason: Reason, evidence: Evidence) -> Situation {
    Situation {
        reason,
        then: match reason {
            Reason::Manual | Reason::Idle => Then::Stop,
            Reason::Threshold => Then::ContinueIfUnfinished,
            Reason::Overflow => Then::Retry,
        },
        came: Came::Committed,
        evidence,
        tail: if reason == Reason::Overflow {
            Tail::Resumable
        } else {
            Tail::Answered
        },
        headroom: Headroom::Enough,
        auto_continue: AutoContinue::On,
    }
}

fn overflow(tail: Tail, evidence: Evidence) -> Situation {
    Situation {
        tail,
        ..committed(Reason::Overflow, evidence)
    }
}

use Continuation::{AutoContinue as Auto, Deliver, Retry, Stop};
use Stopped::{AutoContinueDisabled, Done, GoalPaused, NoHeadroom, NoUnfinishedWork, NotCommitted};

/// R14, "Matrix of reason x state (24 cells)".
#[test]
fn r14_each_reason_meets_each_state() {
    let states = [
        ("nothing", QUIET),
        ("waiting", WAITING),
        ("cut off", CUT_OFF),
        ("goal", GOAL),
        ("paused", PAUSED),
        ("todo", OPEN),
    ];
    let rows = [
        (
            Reason::Manual,
            [
                Stop(Done),
                Deliver,
                Stop(Done),
                Stop(Done),
                Stop(Done),
                Stop(Done),
            ],
        ),
        (
            Reason::Threshold,
            [
                Stop(NoUnfinishedWork),
                Deliver,
                Auto,
                Auto,
                Stop(NoUnfinishedWork),
                Auto,
            ],
        ),
        // The request that overflowed is the unfinished work; only a paused goal keeps it from being sent.
        (
            Reason::Overflow,
            [Retry, Retry, Retry, Retry, Stop(GoalPaused), Retry],
        ),
        (
            Reason::Idle,
            [
                Stop(Done),
                Deliver,
                Stop(Done),
                Stop(Done),
                Stop(Done),
                Stop(Done),
            ],
        ),
    ];
    for (reason, row) in rows {
        for ((state, evidence), expected) in states.iter().zip(row) {
            let follows = continuation(&committed(reason, *evidence));
            assert_eq!(follows, expected, "{reason:?} x {state}");
        }
    }
}

/// 9.2: the order of the evidence.
#[test]
fn unfinished_work_is_what_is_first_in_the_order() {
    let rows = [
        ("nothing", QUIET, false),
        ("waiting messages", WAITING, true),
        ("an answer that was cut off", CUT_OFF, true),
        ("an active goal", GOAL, true),
        ("an open todo", OPEN, true),
        ("an active workflow", WORKFLOW, true),
        ("a paused goal overrides todos and workflows", PAUSED, false),
        (
            "waiting messages override a paused goal",
            Evidence {
                waiting: Waiting::Messages,
                ..PAUSED
            },
            true,
        ),
        (
            "a cut answer overrides a paused goal",
            Evidence {
                last_stop: Some(StopReason::Length),
                ..PAUSED
            },
            true,
        ),
        (
            "no answer at all",
            Evidence {
                last_stop: None,
                ..QUIET
            },
            false,
        ),
    ];
    for (name, evidence, expected) in rows {
        assert_eq!(evidence.shows_unfinished_work(), expected, "{name}");
    }
    for stop in [StopReason::ToolUse, StopReason::Error, StopReason::Aborted] {
        let evidence = Evidence {
            last_stop: Some(stop),
            ..QUIET
        };
        assert!(!evidence.shows_unfinished_work(), "{stop:?}");
    }
}

/// 9.3: when the model is told to go on after a compaction at the threshold.
#[test]
fn a_threshold_goes_on_with_waiting_messages_first_and_by_itself_only_with_room_and_leave() {
    let due = |evidence| committed(Reason::Threshold, evidence);
    let rows = [
        ("work", due(OPEN), Auto),
        (
            "work, but the settings forbid it",
            Situation {
                auto_continue: AutoContinue::Off,
                ..due(OPEN)
            },
            Stop(Done),
        ),
        (
            "work, but no room",
            Situation {
                headroom: Headroom::Tight,
                ..due(OPEN)
            },
            Stop(NoHeadroom),
        ),
        (
            "messages, without room and leave",
            Situation {
                headroom: Headroom::Tight,
                auto_continue: AutoContinue::Off,
                ..due(WAITING)
            },
            Deliver,
        ),
        (
            "a prompt is about to be sent: it is the continuation",
            Situation {
                then: Then::Proceed,
                ..due(OPEN)
            },
            Stop(Done),
        ),
    ];
    for (name, situation, expected) in rows {
        assert_eq!(continuation(&situation), expected, "{name}");
    }
}

/// 9.4: after the compaction of an overflow.
#[test]
fn an_overflow_is_sent_again_if_something_can_be_resumed() {
    let rows = [
        ("a question", overflow(Tail::Resumable, QUIET), Retry),
        (
            "a question and messages",
            overflow(Tail::Resumable, WAITING),
            Retry,
        ),
        (
            "a paused goal parks it",
            overflow(Tail::Resumable, PAUSED),
            Stop(GoalPaused),
        ),
        (
            "a paused goal and messages",
            overflow(
                Tail::Resumable,
                Evidence {
                    waiting: Waiting::Messages,
                    ..PAUSED
                },
            ),
            Retry,
        ),
        (
            "a paused goal and a cut answer",
            overflow(
                Tail::Answered,
                Evidence {
                    last_stop: Some(StopReason::Length),
                    ..PAUSED
                },
            ),
            Auto,
        ),
        ("an answer", overflow(Tail::Answered, QUIET), Auto),
        (
            "an answer and messages",
            overflow(Tail::Answered, WAITING),
            Deliver,
        ),
        (
            "an answer, and the settings forbid to go on",
            Situation {
                auto_continue: AutoContinue::Off,
                ..overflow(Tail::Answered, QUIET)
            },
            Stop(AutoContinueDisabled),
        ),
        (
            "a question, and the settings forbid to go on: a retry is no continuation of its own",
            Situation {
                auto_continue: AutoContinue::Off,
                ..overflow(Tail::Resumable, QUIET)
            },
            Retry,
        ),
        (
            "a question without room",
            Situation {
                headroom: Headroom::Tight,
                ..overflow(Tail::Resumable, QUIET)
            },
            Stop(NoHeadroom),
        ),
        (
            "messages without room",
            Situation {
                headroom: Headroom::Tight,
                ..overflow(Tail::Resumable, WAITING)
            },
            Deliver,
        ),
    ];
    for (name, situation, expected) in rows {
        assert_eq!(continuation(&situation), expected, "{name}");
    }
}

/// A silent overflow keeps its answer: only unfinished work goes on (3.3, row 5).
#[test]
fn a_silent_overflow_goes_on_like_a_threshold() {
    for (evidence, expected) in [
        (QUIET, Stop(NoUnfinishedWork)),
        (OPEN, Auto),
        (WAITING, Deliver),
        (PAUSED, Stop(NoUnfinishedWork)),
    ] {
        let situation = Situation {
            then: Then::ContinueIfUnfinished,
            ..overflow(Tail::Answered, evidence)
        };
        assert_eq!(continuation(&situation), expected, "{evidence:?}");
    }
}

/// What was not committed changes nothing, and messages that were accepted get their turn (R09).
#[test]
fn without_a_commit_only_waiting_messages_go_on() {
    for came in [Came::Skipped, Came::Cancelled, Came::Vetoed, Came::Failed] {
        for reason in [Reason::Threshold, Reason::Overflow] {
            for (evidence, expected) in [
                (QUIET, Stop(NotCommitted)),
                (OPEN, Stop(NotCommitted)),
                (CUT_OFF, Stop(NotCommitted)),
                (WAITING, Deliver),
            ] {
                let situation = Situation {
                    came,
                    ..committed(reason, evidence)
                };
                assert_eq!(
                    continuation(&situation),
                    expected,
                    "{came:?} {reason:?} {evidence:?}"
                );
            }
        }
    }
}

#[test]
fn only_what_was_skipped_has_a_reason_for_it() {
    let rows = [
        (
            AutoContinueDisabled,
            Some("auto_continue_disabled_non_resumable_tail"),
        ),
        (GoalPaused, Some("goal_paused")),
        (NoHeadroom, Some("no_headroom")),
        (NoUnfinishedWork, Some("no_unfinished_work")),
        (Done, None),
        (NotCommitted, None),
    ];
    for (stopped, expected) in rows {
        assert_eq!(stopped.skip_reason(), expected, "{stopped:?}");
    }
}

/// 3.4, headroom. The threshold of a window of 200,000 is 170,000; four fifths of it are 136,000; the reserve is 30,000.
#[test]
fn room_is_four_fifths_of_the_threshold_or_the_window_without_the_reserve() {
    let settings = CompactionSettings::default();
    let limits = Limits::new(Some(Tokens(200_000)), &settings, Tokens::ZERO).unwrap();
    let rows = [
        (136_000, Then::ContinueIfUnfinished, Headroom::Enough),
        (136_001, Then::ContinueIfUnfinished, Headroom::Tight),
        (170_000, Then::Retry, Headroom::Enough),
        (170_001, Then::Retry, Headroom::Tight),
    ];
    for (residual, then, expected) in rows {
        let room = Headroom::after(Tokens(residual), then, Some(&limits));
        assert_eq!(room, expected, "{residual} {then:?}");
    }
    // Of an unknown window nothing is known to be used up.
    let unknown = Headroom::after(Tokens(10_000_000), Then::Retry, None);
    assert_eq!(unknown, Headroom::Enough);
}

/// A reserve below 15 % of the window counts as it is.
#[test]
fn a_small_reserve_leaves_a_retry_more_room() {
    use foldline_compaction_core::settings::ThresholdRule;
    let settings = CompactionSettings {
        threshold_rule: ThresholdRule::ReserveOnly,
        ..CompactionSettings::default()
    };
    let limits = Limits::new(Some(Tokens(200_000)), &settings, Tokens::ZERO).unwrap();
    for (residual, expected) in [(183_616, Headroom::Enough), (183_617, Headroom::Tight)] {
        let room = Headroom::after(Tokens(residual), Then::Retry, Some(&limits));
        assert_eq!(room, expected, "{residual}");
    }
}
