use super::*;

const THREE: NonZeroU32 = FallbackChain::MAX_ATTEMPTS;

fn model(text: &str) -> ChainModel {
    ChainModel::parse(text).unwrap()
}

fn chain(models: &[&str]) -> FallbackChain {
    let mut models = models.iter().map(|name| model(name));
    let head = models.next().unwrap();
    FallbackChain::new(head, models, THREE, RevertPolicy::CooldownExpiry)
}

/// One failed attempt; the word for what follows.
fn fail(chain: &mut FallbackChain, trigger: FallbackTrigger) -> &'static str {
    chain.start_attempt();
    match chain.on_attempt_failure(trigger, Duration::from_secs(60)) {
        ChainStep::Retry => "retry",
        ChainStep::Advance(_) => "advance",
        ChainStep::Exhausted => "exhausted",
    }
}

#[test]
fn two_models_and_three_attempts_each() {
    let mut chain = chain(&["p/a", "p/b"]);
    let steps: Vec<_> = (0..6)
        .map(|_| fail(&mut chain, FallbackTrigger::Server))
        .collect();
    assert_eq!(
        steps,
        ["retry", "retry", "advance", "retry", "retry", "exhausted"]
    );
    assert_eq!(chain.attempts_used(), 6);
    assert_eq!(
        chain.exhausted_message(),
        "Model fallback chain exhausted; models tried: p/a, p/b; models skipped: none"
    );
    chain.begin_turn();
    assert_eq!(
        (chain.attempts_used(), chain.active_index()),
        (0, 1),
        "the model stays"
    );
    assert_eq!(fail(&mut chain, FallbackTrigger::Server), "retry");
}

#[test]
fn reasons_that_stay_go_to_the_next_model_at_once() {
    use FallbackTrigger::{Auth, Forbidden, Model, Quota, RateLimit, Server, Unknown};
    for (trigger, first) in [
        (Quota, "advance"),
        (Auth, "advance"),
        (Forbidden, "advance"),
        (Model, "advance"),
        (RateLimit, "retry"),
        (Server, "retry"),
        (Unknown, "retry"),
    ] {
        assert_eq!(fail(&mut chain(&["p/a", "p/b"]), trigger), first, "{trigger:?}");
    }
    // Other levels of the same model would meet the same.
    let mut chain = chain(&["p/a:high", "p/a:low", "q/b", "p/a"]);
    assert_eq!(fail(&mut chain, Model), "advance");
    assert_eq!(chain.active().model.to_string(), "q/b");
    assert_eq!(fail(&mut chain, Quota), "exhausted");
    assert_eq!(
        chain.exhausted_message(),
        "Model fallback chain exhausted; models tried: p/a:high, q/b; models skipped: p/a:low, p/a"
    );
}

#[test]
fn a_discarded_start_costs_nothing() {
    let mut chain = chain(&["p/a"]);
    for _ in 0..10 {
        chain.start_attempt();
        chain.discard_start();
    }
    chain.discard_start();
    assert_eq!(chain.attempts_used(), 0);
    let steps: Vec<_> = (0..3)
        .map(|_| fail(&mut chain, FallbackTrigger::RateLimit))
        .collect();
    assert_eq!(steps, ["retry", "retry", "exhausted"]);
}

#[test]
fn new_credentials_give_one_more_attempt_once() {
    let mut chain = chain(&["p/a", "p/b"]);
    let mut attempts = 0;
    loop {
        chain.start_attempt();
        attempts += 1;
        if chain.restore_after_rotation() {
            continue;
        }
        if chain.on_attempt_failure(FallbackTrigger::RateLimit, Duration::ZERO) == ChainStep::Exhausted {
            break;
        }
    }
    assert_eq!(attempts, 2 * 3 + 2, "the attempts of each model and one restored");
}

#[test]
fn listeners_are_told_who_took_over() {
    let mut chain = chain(&["p/a", "q/b:high"]);
    chain.start_attempt();
    let told = chain.on_attempt_failure(FallbackTrigger::Auth, Duration::from_secs(9));
    let expected = FallbackSwitch {
        from: model("p/a"),
        to: model("q/b:high"),
        reason: Some(FallbackTrigger::Auth),
        active_index: 1,
        chain_length: 2,
        attempts_used: 1,
    };
    assert_eq!(told, ChainStep::Advance(expected));
}

#[test]
fn the_first_model_returns_when_its_time_has_come() {
    for (revert, now, returns) in [
        (RevertPolicy::CooldownExpiry, 59, false),
        (RevertPolicy::CooldownExpiry, 60, true),
        (RevertPolicy::Never, 6000, false),
    ] {
        let mut chain = FallbackChain::new(model("p/a"), [model("p/b")], THREE, revert);
        assert_eq!(chain.revert(Duration::MAX), None, "it is the first already");
        assert_eq!(fail(&mut chain, FallbackTrigger::Quota), "advance");
        let switch = chain.revert(Duration::from_secs(now));
        assert_eq!(switch.is_some(), returns, "{revert:?} {now}");
        assert_eq!(chain.active_index(), usize::from(!returns));
        if let Some(switch) = switch {
            assert_eq!((switch.reason, switch.to), (None, model("p/a")));
        }
    }
}

#[test]
fn models_without_credentials_are_passed_over() {
    let mut chain = chain(&["p/a", "p/a", "q/b", "r/c"]);
    chain.leave_out(&model("q/b").model);
    assert_eq!(fail(&mut chain, FallbackTrigger::Auth), "advance");
    assert_eq!(
        (chain.active().model.to_string(), chain.active_index()),
        ("r/c".to_owned(), 2)
    );
    assert_eq!(fail(&mut chain, FallbackTrigger::Auth), "exhausted");
    assert!(chain.exhausted_message().ends_with("models skipped: q/b"));
}

#[test]
fn names_with_levels() {
    for (text, id, reasoning) in [
        ("p/a", "a", ReasoningEffort::Unset),
        ("p/a:high", "a", ReasoningEffort::High),
        ("p/x/qwen3:8b", "x/qwen3:8b", ReasoningEffort::Unset),
        ("p/qwen3:8b:off", "qwen3:8b", ReasoningEffort::Off),
    ] {
        let parsed = model(text);
        assert_eq!(
            (parsed.model.id.as_str(), parsed.reasoning),
            (id, reasoning),
            "{text}"
        );
    }
    assert_eq!(ChainModel::parse("nothing"), None);
    assert_eq!(ChainModel::parse("p/:high"), None);
}

#[test]
fn triggers_come_from_typed_facts() {
    use FallbackTrigger::{Auth, Forbidden, Quota, RateLimit, Server, Unknown};
    let rows: &[(Option<u16>, &[&str], FallbackTrigger)] = &[
        (Some(429), &["insufficient_quota"], Quota),
        (Some(402), &[], Quota),
        (Some(401), &["forbidden"], Auth),
        (Some(403), &[], Auth),
        (Some(403), &["forbidden"], Forbidden),
        (None, &["INVALID_API_KEY"], Auth),
        (Some(429), &[], RateLimit),
        (None, &["rate_limit_error"], RateLimit),
        (Some(503), &[], Server),
        (None, &[FIRST_EVENT_TIMEOUT], Server),
        (None, &["overloaded_error"], Server),
        (Some(400), &["something"], Unknown),
        (None, &[], Unknown),
    ];
    for (status, codes, expected) in rows {
        let facts = TransportFacts {
            status: *status,
            codes,
        };
        assert_eq!(fallback_trigger(&facts), *expected, "{status:?} {codes:?}");
    }
    assert!(!Forbidden.rotates_credentials() && Auth.rotates_credentials());
    for (class, expected) in [
        (ErrorClass::Quota, Quota),
        (ErrorClass::Auth, Auth),
        (ErrorClass::RateLimit, RateLimit),
        (ErrorClass::Transient(TransientCause::FirstEventTimeout), Server),
        (ErrorClass::Transient(TransientCause::Network), Unknown),
        (ErrorClass::Other(OtherCause::NotFound), FallbackTrigger::Model),
    ] {
        assert_eq!(fallback_trigger_of(&LlmError::new(class, "x")), expected);
    }
}
