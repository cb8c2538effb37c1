use super::Promotion::{Available, Unavailable};
use super::*;

fn limits(settings: &CompactionSettings) -> Limits {
    Limits::new(Some(Tokens(200_000)), settings, Tokens::ZERO).unwrap()
}

const GOOD: LastAnswer = LastAnswer {
    stop: StopReason::Stop,
    overflow: Overflow::No,
    model: AnswerModel::Current,
    age: Age::AfterCompaction,
};

/// Decides about a snapshot of a session of this size with the usual settings, after `change`.
fn ask(tokens: u64, change: impl FnOnce(&mut CompactionSettings, &mut Snapshot<'_>)) -> Action {
    let mut settings = CompactionSettings::default();
    let scratch = CompactionSettings::default();
    let mut snapshot = Snapshot {
        boundary: Boundary::AfterRun,
        settings: &scratch,
        limits: None,
        size: ContextSize {
            tokens: Tokens(tokens),
            source: SizeSource::Measured,
        },
        last: Some(GOOD),
        overflow_guard: Guard::Armed,
        breaker: Breaker::Closed,
        promotion: Promotion::Unavailable,
        prune: Prune::Done,
        quiet_at: None,
        emergency: None,
    };
    change(&mut settings, &mut snapshot);
    let limits = limits(&settings);
    decide(&Snapshot {
        settings: &settings,
        limits: Some(&limits),
        ..snapshot
    })
}

const fn compacted(reason: Reason, then: Then, urgency: Urgency) -> Action {
    compact(reason, then, urgency)
}

const OVER: u64 = 170_001;

fn overflowed(s: &mut Snapshot<'_>) {
    s.last = Some(LastAnswer {
        stop: StopReason::Error,
        overflow: Overflow::Failed,
        ..GOOD
    });
}

#[test]
fn fb_023_after_the_cheap_pass_comes_one_stronger_and_then_quiet() {
    let low = |s: &mut CompactionSettings| s.threshold_tokens = 50_000.0;
    let at = |prune: Prune, quiet_at: Option<Tokens>| {
        ask(70_000, |settings, s| {
            low(settings);
            s.prune = prune;
            s.quiet_at = quiet_at;
        })
    };
    let nothing_to_prune = MaintenancePrune {
        savings: Tokens::ZERO,
        cache_cost: Tokens::ZERO,
    };
    assert_eq!(
        at(Prune::Unknown, None),
        Action::NeedPruneEstimate(PruneMinimum::Relaxed)
    );
    let compact = compacted(
        Reason::Threshold,
        Then::ContinueIfUnfinished,
        Urgency::Recoverable,
    );
    assert_eq!(at(Prune::Estimated(nothing_to_prune), None), compact);
    assert_eq!(at(Prune::Done, None), compact);
    assert_eq!(
        at(Prune::Done, Some(Tokens(70_000))),
        Action::Nothing(Because::Quiet)
    );
}

#[test]
fn row_1_a_refusal_is_left_alone() {
    let refused = |s: &mut Snapshot<'_>| {
        s.last = Some(LastAnswer {
            overflow: Overflow::Refused,
            ..GOOD
        });
    };
    assert_eq!(ask(OVER, |_, s| refused(s)), Action::Nothing(Because::Refused));
}

#[test]
fn row_2_a_cancelled_run_is_left_alone_but_its_size_counts_before_a_prompt() {
    let aborted = LastAnswer {
        stop: StopReason::Aborted,
        ..GOOD
    };
    assert_eq!(
        ask(OVER, |_, s| s.last = Some(aborted)),
        Action::Nothing(Because::Aborted)
    );
    let before_prompt = ask(OVER, |_, s| {
        s.last = Some(aborted);
        s.boundary = Boundary::BeforePrompt;
    });
    assert_eq!(
        before_prompt,
        compacted(Reason::Threshold, Then::Proceed, Urgency::Recoverable)
    );
}

#[test]
fn row_3_and_fb_135_an_error_from_before_the_compaction_triggers_nothing() {
    let old = |s: &mut Snapshot<'_>| {
        overflowed(s);
        s.last.as_mut().unwrap().age = Age::BeforeCompaction;
    };
    assert_eq!(ask(OVER, |_, s| old(s)), Action::Nothing(Because::StaleAnswer));
    let before_prompt = ask(1_000, |_, s| {
        old(s);
        s.boundary = Boundary::BeforePrompt;
    });
    assert_eq!(before_prompt, Action::Nothing(Because::BelowThreshold));
}

#[test]
fn row_4_and_fb_135_the_overflow_of_another_model_triggers_nothing() {
    let other = ask(1_000, |_, s| {
        overflowed(s);
        s.last.as_mut().unwrap().model = AnswerModel::Other;
    });
    assert_eq!(other, Action::Nothing(Because::BelowThreshold));
}

#[test]
fn row_5_a_silent_overflow_keeps_the_answer() {
    let silent = ask(1_000, |_, s| s.last.as_mut().unwrap().overflow = Overflow::Silent);
    assert_eq!(
        silent,
        compacted(Reason::Overflow, Then::ContinueIfUnfinished, Urgency::LoadBearing)
    );
}

#[test]
fn row_6_and_fb_005_a_second_overflow_of_a_turn_is_final() {
    let again = ask(1_000, |_, s| {
        overflowed(s);
        s.overflow_guard = Guard::Used;
        s.promotion = Promotion::Available;
    });
    assert_eq!(again, Action::UnresolvedOverflow(Unresolved::GuardUsed));
}

#[test]
fn row_7_an_overflow_promotes_or_compacts_and_retries() {
    let promoted = ask(1_000, |_, s| {
        overflowed(s);
        s.promotion = Promotion::Available;
    });
    assert_eq!(promoted, Action::Promote(Reason::Overflow));
    let retried = ask(1_000, |_, s| overflowed(s));
    assert_eq!(
        retried,
        compacted(Reason::Overflow, Then::Retry, Urgency::LoadBearing)
    );
    // Before a prompt the prompt is the continuation.
    let prompt = ask(1_000, |_, s| {
        overflowed(s);
        s.boundary = Boundary::BeforePrompt;
    });
    assert_eq!(
        prompt,
        compacted(Reason::Overflow, Then::Proceed, Urgency::LoadBearing)
    );
    // Never a handoff.
    let handoff = ask(1_000, |settings, s| {
        overflowed(s);
        settings.strategy = Strategy::Handoff;
    });
    assert_eq!(
        handoff,
        compacted(Reason::Overflow, Then::Retry, Urgency::LoadBearing)
    );
}

#[test]
fn row_7b_an_overflow_without_any_way_out_is_reported() {
    for switch in [
        (|settings, _| settings.enabled = false) as fn(&mut CompactionSettings, &mut Snapshot<'_>),
        |settings, _| settings.strategy = Strategy::Off,
    ] {
        let action = ask(1_000, |settings, s| {
            overflowed(s);
            switch(settings, s);
        });
        assert_eq!(action, Action::UnresolvedOverflow(Unresolved::Disabled));
    }
    let broken = ask(1_000, |_, s| {
        overflowed(s);
        s.breaker = Breaker::Open;
    });
    assert_eq!(broken, Action::UnresolvedOverflow(Unresolved::BreakerOpen));
}

#[test]
fn row_8_and_fb_141_disabled_stops_every_automatic_path() {
    for boundary in [
        Boundary::AfterRun,
        Boundary::BeforePrompt,
        Boundary::BetweenRequests,
        Boundary::Idle,
    ] {
        let disabled = ask(1_000_000, |settings, s| {
            settings.enabled = false;
            settings.idle_enabled = true;
            s.boundary = boundary;
        });
        assert_eq!(disabled, Action::Nothing(Because::Disabled), "{boundary:?}");
    }
}

#[test]
fn row_9_a_failed_run_counts_only_with_a_measurement() {
    let failed = |source| {
        ask(OVER, |_, s| {
            s.last.as_mut().unwrap().stop = StopReason::Error;
            s.size.source = source;
        })
    };
    assert_eq!(
        failed(SizeSource::Estimated),
        Action::Nothing(Because::NothingMeasured)
    );
    assert!(matches!(failed(SizeSource::Measured), Action::Compact(_)));
}

#[test]
fn row_10_a_context_that_fits_needs_nothing() {
    assert_eq!(ask(170_000, |_, _| {}), Action::Nothing(Because::BelowThreshold));
}

#[test]
fn row_11_prune_then_promote_then_compact() {
    let with_prune = |prune, promotion| {
        ask(OVER, |_, s| {
            s.prune = prune;
            s.promotion = promotion;
        })
    };
    let savings = |savings| {
        Prune::Estimated(MaintenancePrune {
            savings: Tokens(savings),
            cache_cost: Tokens(9_999_999),
        })
    };
    assert_eq!(
        with_prune(Prune::Unknown, Available),
        Action::NeedPruneEstimate(PruneMinimum::Relaxed)
    );
    assert_eq!(
        with_prune(savings(1), Available),
        Action::Prune(PruneReason::Threshold)
    );
    assert_eq!(
        with_prune(savings(0), Available),
        Action::Promote(Reason::Threshold)
    );
    let compaction = compacted(
        Reason::Threshold,
        Then::ContinueIfUnfinished,
        Urgency::Recoverable,
    );
    assert_eq!(with_prune(savings(0), Unavailable), compaction);
    assert_eq!(with_prune(Prune::Done, Unavailable), compaction);
}

#[test]
fn the_handoff_strategy_hands_off_at_the_threshold_but_not_within_a_run() {
    let at = |boundary| {
        ask(OVER, |settings, s| {
            settings.strategy = Strategy::Handoff;
            s.boundary = boundary;
        })
    };
    assert_eq!(at(Boundary::AfterRun), Action::HandOff(Reason::Threshold));
    assert_eq!(at(Boundary::BeforePrompt), Action::HandOff(Reason::Threshold));
    assert!(matches!(at(Boundary::BetweenRequests), Action::Compact(_)));
}

#[test]
fn between_requests_only_a_context_over_the_window_is_load_bearing() {
    let at = |tokens| ask(tokens, |_, s| s.boundary = Boundary::BetweenRequests);
    assert_eq!(
        at(OVER),
        compacted(Reason::Threshold, Then::Proceed, Urgency::Recoverable)
    );
    assert_eq!(
        at(200_001),
        compacted(Reason::Threshold, Then::Proceed, Urgency::LoadBearing)
    );
}

#[test]
fn r02_after_a_skipped_attempt_the_trigger_is_quiet_until_the_context_grows() {
    let quiet = |tokens, boundary| {
        ask(tokens, |_, s| {
            s.quiet_at = Some(Tokens(OVER));
            s.boundary = boundary;
        })
    };
    assert_eq!(
        quiet(OVER + 8_000, Boundary::AfterRun),
        Action::Nothing(Because::Quiet)
    );
    assert!(matches!(
        quiet(OVER + 8_500, Boundary::AfterRun),
        Action::Compact(_)
    ));
    // A request that cannot be sent does not wait for that.
    let tight = ask(200_001, |_, s| {
        s.quiet_at = Some(Tokens(200_000));
        s.boundary = Boundary::BetweenRequests;
    });
    assert!(matches!(tight, Action::Compact(_)));
}

#[test]
fn before_a_prompt_the_resource_floor_holds_whatever_the_settings_say() {
    let floor = |boundary| {
        ask(1_000, |settings, s| {
            settings.enabled = false;
            s.boundary = boundary;
            s.prune = Prune::Unknown;
            s.emergency = Some(EmergencyReason::MessageCount);
        })
    };
    let expected = compacted(Reason::Overflow, Then::Proceed, Urgency::Recoverable);
    assert_eq!(floor(Boundary::BeforePrompt), expected);
    assert_eq!(floor(Boundary::AfterRun), Action::Nothing(Because::Disabled));
}

#[test]
fn before_a_prompt_a_prune_below_the_threshold_runs_when_it_pays() {
    let maintained = |prune| {
        ask(100_000, |settings, s| {
            settings.maintenance_pruning_enabled = true;
            s.boundary = Boundary::BeforePrompt;
            s.prune = prune;
        })
    };
    let estimate = |savings, cache_cost| {
        Prune::Estimated(MaintenancePrune {
            savings: Tokens(savings),
            cache_cost: Tokens(cache_cost),
        })
    };
    assert_eq!(
        maintained(Prune::Unknown),
        Action::NeedPruneEstimate(PruneMinimum::Policy)
    );
    assert_eq!(
        maintained(estimate(30_000, 29_999)),
        Action::Prune(PruneReason::Maintenance)
    );
    assert_eq!(
        maintained(estimate(30_000, 30_000)),
        Action::Nothing(Because::BelowThreshold)
    );
}

#[test]
fn idle_sessions_are_compacted_when_asked_for_and_never_go_on() {
    let idle = |enabled, tokens| {
        ask(tokens, |settings, s| {
            settings.idle_enabled = enabled;
            s.boundary = Boundary::Idle;
        })
    };
    assert_eq!(idle(false, 1_000_000), Action::Nothing(Because::Disabled));
    assert_eq!(idle(true, 199_999), Action::Nothing(Because::BelowThreshold));
    assert_eq!(
        idle(true, 200_000),
        compacted(Reason::Idle, Then::Stop, Urgency::Recoverable)
    );
}

#[test]
fn an_unknown_window_never_triggers_by_size() {
    let settings = CompactionSettings::default();
    let snapshot = Snapshot {
        boundary: Boundary::AfterRun,
        settings: &settings,
        limits: None,
        size: ContextSize {
            tokens: Tokens(u64::MAX),
            source: SizeSource::Measured,
        },
        last: Some(GOOD),
        overflow_guard: Guard::Armed,
        breaker: Breaker::Closed,
        promotion: Promotion::Available,
        prune: Prune::Unknown,
        quiet_at: None,
        emergency: None,
    };
    assert_eq!(decide(&snapshot), Action::Nothing(Because::UnknownWindow));
}
