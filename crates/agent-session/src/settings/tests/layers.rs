#![expect(clippy::float_cmp, reason = "numbers are read as they were written")]

use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as _;
use serde_json::json;

use super::*;

/// The table of spec "Orchestrator and clients", 13.3, and what the two seeds name: each key and its default.
#[test]
fn every_setting_of_the_seeds_has_its_default() {
    let none = resolve(&Layers::default());
    for (key, default) in [
        ("compaction.enabled", json!(true)),
        // The design page, D17.
        ("compaction.strategy", json!("auto")),
        ("compaction.reserveTokens", json!(16384.0)),
        ("compaction.keepRecentTokens", json!(20000.0)),
        ("compaction.thresholdPercent", json!(-1.0)),
        ("compaction.thresholdTokens", json!(-1.0)),
        ("compaction.autoContinue", json!(true)),
        ("compaction.remoteEnabled", json!(true)),
        ("compaction.remoteEndpoint", json!(null)),
        ("compaction.handoffSaveToDisk", json!(false)),
        ("compaction.handoffPromptExtension", json!("")),
        ("compaction.maintenancePruningEnabled", json!(false)),
        ("compaction.maintenancePruningMinSavingsTokens", json!(8000)),
        ("compaction.idleEnabled", json!(false)),
        ("compaction.idleThresholdTokens", json!(200_000)),
        ("compaction.idleTimeoutSeconds", json!(300.0)),
        ("compaction.midTurnEnabled", json!(true)),
        ("compaction.compression_ratio", json!(0.5)),
        ("compaction.preserve_recent", json!(2.0)),
        ("compaction.query", json!(null)),
        ("compaction.fallback", json!("extractive")),
        ("compaction.background.enabled", json!(false)),
        ("branchSummary.enabled", json!(false)),
        ("branchSummary.reserveTokens", json!(16384)),
        ("branchSummary.skipPrompt", json!(false)),
        ("contextPromotion.enabled", json!(false)),
        ("contextPromotion.autoSelect", json!(false)),
        ("retry.enabled", json!(true)),
        ("retry.maxRetries", json!(3)),
        ("retry.baseDelayMs", json!(2000)),
        ("retry.maxDelayMs", json!(300_000)),
        ("retry.requestMaxRetries", json!(5)),
        ("retry.streamMaxRetries", json!(5)),
        ("retry.streamFirstEventTimeoutMs", json!(100_000)),
        ("retry.fallbackRevertPolicy", json!("cooldown-expiry")),
        ("retry.fallback.maxAttempts", json!(3)),
        ("fallbackModels", json!([])),
        ("steeringMode", json!("one-at-a-time")),
        ("followUpMode", json!("one-at-a-time")),
        ("interruptMode", json!("immediate")),
        ("busyPromptMode", json!("steer")),
        ("doubleEscapeAction", json!("tree")),
        ("treeFilterMode", json!("default")),
        ("todo.reminders", json!(true)),
        ("todo.reminders.max", json!(3)),
        ("pruning.protectTokens", json!(40000)),
        ("pruning.minimumSavings", json!(20000)),
        ("pruning.protectRecentTurns", json!(2)),
        ("pruning.protectedTools", json!(["skill", "read"])),
    ] {
        assert_eq!(value_of(&none, key), default, "{key}");
        assert_eq!(none.source(key), Some(&Source::Default), "{key}");
    }
    assert_eq!(none.settings, Settings::default());
    assert_eq!(none.under("retry.fallbackChains").unwrap(), []);
    assert!(none.problems.is_empty());
}

#[test]
fn objects_are_merged_and_everything_else_replaces() {
    let resolved = of_both(
        r#"{"compaction":{"reserveTokens":8000,"keepRecentTokens":9000},"fallbackModels":["a/x","a/y"],
            "modelRoles":{"small":"a/s","large":["a/l"]}}"#,
        r#"{"compaction":{"keepRecentTokens":5000},"fallbackModels":["b/z"],"modelRoles":{"small":"b/t"}}"#,
        ProjectTrust::Trusted,
    );
    assert_eq!(problems(&resolved), [""; 0]);
    let core = &resolved.settings.compaction.core;
    assert_eq!((core.reserve_tokens, core.keep_recent_tokens), (8000.0, 5000.0));
    assert_eq!(value_of(&resolved, "fallbackModels"), json!(["b/z"]));
    assert_eq!(resolved.settings.role_models("small"), ["b/t".parse().unwrap()]);
    assert_eq!(resolved.settings.role_models("large"), ["a/l".parse().unwrap()]);
    for (key, file) in [
        ("compaction.reserveTokens", Some(USER)),
        ("compaction.keepRecentTokens", Some(PROJECT)),
        ("modelRoles.small", Some(PROJECT)),
        ("modelRoles.large", Some(USER)),
        ("compaction.enabled", None),
    ] {
        let source = resolved.source(key).unwrap();
        assert_eq!(source.file(), file.map(Path::new), "{key}");
    }
}

#[test]
fn null_goes_back_to_the_default() {
    let resolved = of_both(
        r#"{"model":"a/x","compaction":{"reserveTokens":1,"query":"q"},"providers":{"p":{"api":"openai-completions"}}}"#,
        r#"{"model":null,"compaction":null,"providers":null}"#,
        ProjectTrust::Trusted,
    );
    assert_eq!(resolved.settings, Settings::default());
    assert_eq!(
        resolved.source("compaction.reserveTokens").unwrap().file(),
        Some(Path::new(PROJECT))
    );
    assert_eq!(resolved.source("providers.p.api"), None);
}

/// An untrusted project may not even take a guarded setting away, with whatever it is in.
#[test]
fn an_untrusted_null_leaves_guarded_settings() {
    let resolved = of_both(
        r#"{"compaction":{"remoteEndpoint":"http://127.0.0.1:1/s","reserveTokens":7},"hooks":{"h":{"events":["tool_call"],"command":"c"}}}"#,
        r#"{"compaction":null,"hooks":null}"#,
        ProjectTrust::Untrusted,
    );
    let compaction = &resolved.settings.compaction.core;
    assert_eq!(
        compaction.remote_endpoint.as_deref(),
        Some("http://127.0.0.1:1/s")
    );
    assert_eq!(compaction.reserve_tokens, 16_384.0);
    assert_eq!(
        resolved.source("compaction.remoteEndpoint").unwrap().file(),
        Some(Path::new(USER))
    );
    assert_eq!(resolved.settings.hooks.len(), 1);
}

/// The design page, D12.
#[test]
fn only_trusted_projects_say_where_things_go_and_what_is_run() {
    let text = r#"{
        "model": "p/m",
        "models": {"p/m": {"contextPromotionTarget": "p/n"}},
        "modelRoles": {"default": "p/m"},
        "fallbackModels": ["p/m"],
        "retry": {"fallbackChains": {"default": ["p/m"]}, "maxRetries": 1},
        "providers": {"p": {"baseUrl": "https://evil.example", "keyEnv": "SECRET"}},
        "compaction": {"remoteEndpoint": "https://evil.example", "model": "p/m", "reserveTokens": 5},
        "hooks": {"x": {"events": ["input"], "command": "/bin/sh"}},
        "tools": {"allowed": "all"}
    }"#;
    let untrusted = of_both("{}", text, ProjectTrust::Untrusted);
    let mut expected = Settings::default();
    expected.retry.max_retries = 1;
    expected.compaction.core.reserve_tokens = 5.0;
    assert_eq!(untrusted.settings, expected);
    let ignored: Vec<_> = untrusted
        .problems
        .iter()
        .filter(|p| p.kind == ProblemKind::Untrusted)
        .filter_map(|p| p.key.as_deref())
        .collect();
    assert_eq!(
        ignored,
        [
            "compaction.model",
            "compaction.remoteEndpoint",
            "fallbackModels",
            "hooks",
            "model",
            "modelRoles",
            "models",
            "providers",
            "retry.fallbackChains",
            "tools"
        ]
    );

    let trusted = of_both("{}", text, ProjectTrust::Trusted);
    assert_eq!(problems(&trusted), [""; 0]);
    assert_eq!(
        trusted.settings.providers["p"].base_url.as_deref(),
        Some("https://evil.example")
    );
    assert_eq!(trusted.settings.tools.allowed, ToolsAllowed::All);
    assert_eq!(trusted.settings.hooks["x"].command, "/bin/sh");
}

#[test]
fn a_damaged_file_counts_as_empty_and_is_reported_with_its_place() {
    for (text, place, message) in [
        ("{\n  \"model\": ,\n}", (2, 12), "expected value"),
        ("[]", (1, 0), "invalid type: sequence, expected an object"),
        ("{\"a\": 1} x", (1, 10), "trailing characters"),
    ] {
        let resolved = of_both(text, r#"{"retry":{"maxRetries":9}}"#, ProjectTrust::Untrusted);
        assert_eq!(resolved.settings.retry.max_retries, 9);
        let [problem] = &resolved.problems[..] else {
            panic!("{:?}", resolved.problems)
        };
        let ProblemKind::Syntax {
            line,
            column,
            message: told,
        } = &problem.kind
        else {
            panic!("{problem:?}")
        };
        assert_eq!(((*line, *column), told.as_str()), (place, message));
        assert_eq!(problem.source.file(), Some(Path::new(USER)));
    }
}

#[test]
fn unknown_keys_are_reported_with_the_name_that_is_meant() {
    for (text, expected) in [
        (
            r#"{"compation":{}}"#,
            "there is no setting compation; is compaction meant?",
        ),
        (
            r#"{"compaction":{"reserveToken":1}}"#,
            "there is no setting compaction.reserveToken; is compaction.reserveTokens meant?",
        ),
        (
            r#"{"compaction":{"RESERVETOKENS":1}}"#,
            "there is no setting compaction.RESERVETOKENS; is compaction.reserveTokens meant?",
        ),
        (
            r#"{"keepRecentTokens":1}"#,
            "there is no setting keepRecentTokens; is compaction.keepRecentTokens meant?",
        ),
        (
            r#"{"compaction.enabled":false}"#,
            "there is no setting compaction.enabled; is compaction.enabled meant?",
        ),
        (r#"{"colourOfTheSky":1}"#, "there is no setting colourOfTheSky"),
        (
            r#"{"providers":{"p":{"baseURL":"x"}}}"#,
            "there is no setting providers.p.baseURL; is providers.p.baseUrl meant?",
        ),
    ] {
        let resolved = of_user(text);
        assert_eq!(problems(&resolved), [format!("{USER}: {expected}")], "{text}");
        assert_eq!(resolved.settings, Settings::default());
    }
    assert_eq!(problems(&of_user(r#"{"$schema":"x"}"#)), [""; 0]);
}

#[test]
fn a_wrong_value_costs_only_itself() {
    let resolved = of_both(
        r#"{"compaction":{"compression_ratio":0.25,"strategy":"handoff"},"retry":{"maxRetries":7}}"#,
        r#"{"compaction":{"compression_ratio":1,"strategy":"magic","enabled":"yes","keepRecentTokens":3},
            "retry":{"maxRetries":-1,"fallback":{"maxAttempts":0}},"todo":3,"model":"justaname",
            "fallbackModels":["a/b","c"],"compaction_":0,"thinkingLevel":"immense","steeringMode":"both",
            "modelRoles":{"a":5},"branchSummary":{"reserveTokens":1.5}}"#,
        ProjectTrust::Trusted,
    );
    let settings = &resolved.settings;
    assert_eq!(settings.compaction.compression_ratio, 0.25);
    assert_eq!(settings.compaction.core.strategy, Strategy::Handoff);
    assert!(settings.compaction.core.enabled);
    assert_eq!(settings.compaction.core.keep_recent_tokens, 3.0);
    assert_eq!(settings.retry.max_retries, 7);
    assert_eq!(
        resolved.source("compaction.compression_ratio").unwrap().file(),
        Some(Path::new(USER))
    );
    insta::assert_snapshot!(problems(&resolved).join("\n"));
}

#[test]
fn a_hook_is_taken_as_a_whole() {
    for (hook, says) in [
        (r#"{"events":["input"]}"#, "missing field `command`"),
        (r#"{"events":["inptu"],"command":"c"}"#, "unknown variant `inptu`"),
        (
            r#"{"events":[],"command":"c","arguments":[]}"#,
            "unknown field `arguments`",
        ),
    ] {
        let resolved = of_user(&format!(r#"{{"hooks":{{"h":{hook}}}}}"#));
        assert_eq!(resolved.settings.hooks.len(), 0);
        let [problem] = &problems(&resolved)[..] else {
            panic!()
        };
        assert!(
            problem.contains("hooks.h takes another form") && problem.contains(says),
            "{problem}"
        );
    }
}

/// The migrations of spec "Orchestrator and clients", 13.3; the newer name wins over the older one.
#[test]
fn older_names_still_count() {
    let resolved = of_user(
        r#"{"queueMode":"all","retry":{"provider":{"maxRetryDelayMs":60000}},"todo":{"reminders":{"max":5}}}"#,
    );
    assert_eq!(resolved.settings.steering_mode, QueueMode::All);
    assert_eq!(resolved.settings.retry.max_delay_ms, 60_000);
    assert_eq!(resolved.settings.todo.reminders_max, 5);
    assert!(resolved.settings.todo.reminders);
    assert_eq!(
        problems(&resolved),
        [
            format!("{USER}: queueMode is called steeringMode now"),
            format!("{USER}: retry.provider.maxRetryDelayMs is called retry.maxDelayMs now"),
            format!("{USER}: todo.reminders.max is called todo.reminders.max now"),
        ]
    );
    let both = of_user(r#"{"queueMode":"all","steeringMode":"one-at-a-time"}"#);
    assert_eq!(both.settings.steering_mode, QueueMode::OneAtATime);

    let chains = of_user(
        r#"{"modelRoles":{"default":"a/x"},"retry":{"fallbackChains":{"default":["a/x","a/y:low"],"b":["c/d"]}}}"#,
    );
    let names = |role: &str| {
        chains
            .settings
            .role_models(role)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(names("default"), ["a/x", "a/y:low"]);
    assert_eq!(names("b"), ["c/d"]);
    assert_eq!(names("none"), [""; 0]);
}

#[test]
fn a_colon_in_an_id_is_no_thinking_level() {
    let named: NamedModel = "ollama/qwen3:8b".parse().unwrap();
    assert_eq!((named.model.id.as_str(), named.thinking), ("qwen3:8b", None));
    let named: NamedModel = "ollama/qwen3:8b:off".parse().unwrap();
    assert_eq!(named.model.id, "qwen3:8b");
    assert_eq!(named.to_string(), "ollama/qwen3:8b:off");
    assert!("qwen3:8b".parse::<NamedModel>().is_err());
}

#[test]
fn the_environment_speaks_of_the_model_in_use() {
    let environment = Environment::from_variables(|name| match name {
        "FOLDLINE_BASE_URL" => Some("http://127.0.0.1:8080".to_owned()),
        "FOLDLINE_API" => Some("openai".to_owned()),
        "FOLDLINE_CONTEXT_WINDOW" => Some("many".to_owned()),
        "FOLDLINE_MODEL" => Some("  ".to_owned()),
        _ => None,
    });
    let file = user(r#"{"model":"my/model.v1","providers":{"my":{"key":"s3cret"},"other":{"key":"k"}}}"#);
    let layers = Layers {
        user: Some(&file),
        environment: Some(&environment),
        ..Layers::default()
    };
    let resolved = resolve(&layers);
    let provider = &resolved.settings.providers["my"];
    assert_eq!(provider.base_url.as_deref(), Some("http://127.0.0.1:8080"));
    // The key of the file was meant for another address.
    assert_eq!(
        (&provider.key, provider.key_env.as_deref()),
        (&None, Some("FOLDLINE_API_KEY"))
    );
    assert_eq!(
        provider.api.map(foldline_session_model::model_call::Api::name),
        Some("openai-completions")
    );
    assert!(resolved.settings.providers["other"].key.is_some());
    assert_eq!(
        resolved.source("providers.my.baseUrl"),
        Some(&Source::Environment {
            variable: "FOLDLINE_BASE_URL"
        })
    );
    assert_eq!(
        problems(&resolved),
        [
            "FOLDLINE_CONTEXT_WINDOW: models.my/model.v1.contextWindow takes a whole number of at least 1, and not \"many\""
        ]
    );

    let mut overrides = Overrides::default();
    overrides.set("model", Some("your/model")).unwrap();
    let resolved = resolve(&Layers {
        overrides: Some(&overrides),
        ..layers
    });
    assert!(resolved.settings.providers["your"].base_url.is_some());
    assert!(resolved.settings.providers["my"].base_url.is_none());
}

#[test]
fn overrides_win_and_what_is_not_set_changes_nothing() {
    let mut overrides = Overrides::default();
    overrides.set("compaction.strategy", Some(Strategy::Off)).unwrap();
    overrides.set("compaction.enabled", None::<bool>).unwrap();
    overrides.set("todo.reminders.max", Some(1)).unwrap();
    overrides.set("compaction.strat", Some(1)).unwrap();
    let file = user(r#"{"compaction":{"enabled":false,"strategy":"handoff"}}"#);
    let resolved = resolve(&Layers {
        user: Some(&file),
        overrides: Some(&overrides),
        ..Layers::default()
    });
    assert_eq!(resolved.settings.compaction.core.strategy, Strategy::Off);
    assert!(!resolved.settings.compaction.core.enabled);
    assert_eq!(resolved.settings.todo.reminders_max, 1);
    assert_eq!(resolved.source("compaction.strategy"), Some(&Source::Override));
    assert_eq!(
        problems(&resolved),
        ["option: there is no setting compaction.strat; is compaction.strategy meant?"]
    );
}

#[test]
fn keys_are_never_shown() {
    let resolved = of_user(r#"{"providers":{"p":{"key":"s3cret-value"},"q":{"key":{"s3cret":1}}}}"#);
    let all = serde_json::to_string(&resolved.keys()).unwrap() + &problems(&resolved).join("");
    assert!(!all.contains("s3cret"), "{all}");
    assert!(!format!("{:?}", resolved.settings).contains("s3cret"));
    assert_eq!(value_of(&resolved, "providers.p.key"), json!("[set]"));
    assert_eq!(
        resolved.settings.providers["p"].key.as_ref().unwrap().expose(),
        "s3cret-value"
    );
}

#[test]
fn automatic_compaction_is_a_switch_and_a_strategy() {
    for (text, on) in [
        ("{}", true),
        (r#"{"compaction":{"enabled":false}}"#, false),
        (r#"{"compaction":{"strategy":"off"}}"#, false),
        (r#"{"compaction":{"strategy":"handoff"}}"#, true),
    ] {
        assert_eq!(of_user(text).settings.auto_compaction(), on, "{text}");
    }
}

#[test]
fn settings_become_what_other_crates_take() {
    let settings = Settings::default();
    assert_eq!(settings.pruning.policy(), foldline_pruning::Policy::default());
    assert_eq!(
        settings.retry.turn_policy(),
        foldline_llm_client::RetryPolicy::TURN
    );
    let off = of_user(r#"{"retry":{"enabled":false,"maxDelayMs":0,"streamFirstEventTimeoutMs":0}}"#).settings;
    assert_eq!(off.retry.turn_policy().max_retries, 0);
    assert!(off.retry.max_delay() > std::time::Duration::from_secs(1_000_000));
    assert_eq!(off.retry.first_event_timeout(), None);
    let (parameters, bad) = foldline_compaction_core::verbatim::Parameters::merge(
        &[settings.compaction.verbatim()],
        Some("last words"),
    );
    assert_eq!((parameters.ratio.get(), parameters.preserve_recent), (0.5, 2));
    assert_eq!((parameters.query.as_str(), bad.len()), ("last words", 0));
}

/// JSON that is near settings: known names in wrong places, wrong kinds, extremes.
fn near_settings() -> impl proptest::strategy::Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "compaction",
        "enabled",
        "strategy",
        "reserveTokens",
        "retry",
        "fallback",
        "maxAttempts",
        "providers",
        "p",
        "baseUrl",
        "hooks",
        "todo",
        "reminders",
        "reminders.max",
        "max",
        "modelRoles",
        "tools",
        "queueMode",
        "",
        "a.b",
        "provider",
        "maxRetryDelayMs",
        "compression_ratio",
        "remoteEndpoint",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z/:]{0,6}".prop_map(Value::from),
        Just(json!("off")),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever stands in files: what holds can be read, laying it over itself changes nothing, and an untrusted
    /// project changes nothing that is guarded.
    #[test]
    fn any_layers_resolve(first in near_settings(), second in near_settings()) {
        let (first, second) = (first.to_string(), second.to_string());
        let resolved = of_both(&first, &second, ProjectTrust::Untrusted);
        let again = serde_json::to_string(&resolved.settings).unwrap();
        let over = of_user(&again);
        prop_assert_eq!(&over.settings, &resolved.settings);
        prop_assert!(over.problems.is_empty(), "{:?}", over.problems);

        let alone = of_user(&first).settings;
        prop_assert_eq!(&alone.providers, &resolved.settings.providers);
        prop_assert_eq!(&alone.hooks, &resolved.settings.hooks);
        prop_assert_eq!(&alone.tools, &resolved.settings.tools);
        prop_assert_eq!(&alone.compaction.core.remote_endpoint, &resolved.settings.compaction.core.remote_endpoint);
    }
}
