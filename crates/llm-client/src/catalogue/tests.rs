use super::*;

fn model(name: &str) -> ModelRef {
    ModelRef::parse(name).unwrap()
}

#[test]
fn the_built_in_file_is_sound() {
    let catalogue = Catalogue::from_json(include_str!("../../data/catalogue.json")).unwrap();
    assert!(catalogue.models().count() > 15);
    for name in catalogue.models() {
        let profile = catalogue.profile(&name, None).unwrap();
        assert!(
            catalogue.provider(&name.provider).is_some(),
            "{name} has no provider"
        );
        let window = profile.context_window.unwrap();
        assert!(
            profile.max_output.unwrap() < window && window >= Tokens(100_000),
            "{name}"
        );
        let entry = catalogue.find(&name).unwrap();
        assert!(
            !entry.source.is_empty() && entry.source.iter().all(|page| page.starts_with("https://")),
            "{name} names no source"
        );
        if let Some(prices) = profile.prices {
            assert!(
                prices.input > 0.0 && prices.output > prices.input && prices.cache_read < prices.input,
                "{name}"
            );
        }
        assert_eq!(
            catalogue.models().filter(|other| *other == name).count(),
            1,
            "{name} is there twice"
        );
    }
}

#[test]
fn dated_names_mean_the_same_model() {
    let catalogue = Catalogue::built_in();
    for (dated, plain) in [
        (
            "anthropic/claude-haiku-4-5-20251001",
            "anthropic/claude-haiku-4-5",
        ),
        ("openai/gpt-5-2025-08-07", "openai/gpt-5"),
    ] {
        let (dated, plain) = (model(dated), model(plain));
        let profile = catalogue.profile(&dated, None).unwrap();
        assert_eq!(profile.id, dated.id, "the dated name is what the provider wants");
        assert_eq!(
            profile.context_window,
            catalogue.profile(&plain, None).unwrap().context_window
        );
        assert!(profile.context_window.is_some());
    }
    assert_eq!(undated("gpt-5"), None);
    assert_eq!(undated("x-1234567"), None);
}

#[test]
fn what_is_unknown_stays_unknown() {
    let catalogue = Catalogue::built_in();
    let local = catalogue.profile(&model("ollama/qwen3:8b"), None).unwrap();
    assert_eq!(
        (local.api, local.context_window, local.max_output),
        (Api::OpenAiCompletions, None, None)
    );
    assert_eq!(catalogue.profile(&model("nobody/x"), None), None);
    let asked = catalogue
        .profile(&model("nobody/x"), Some(Api::AnthropicMessages))
        .unwrap();
    assert_eq!((asked.api, asked.prices), (Api::AnthropicMessages, None));
}

#[test]
fn fb_020_the_user_corrects_single_fields() {
    let user = Catalogue::from_json(
        r#"{"models":[{"provider":"openai","id":"gpt-5","contextWindow":32768},
                      {"provider":"openai","id":"gpt-5-2025-08-07","maxOutput":1000},
                      {"provider":"mine","id":"m","api":"openai-completions"}],
            "providers":[{"name":"openai","api":"openai-completions","baseUrl":"https://gateway.example/v1"}]}"#,
    )
    .unwrap();
    let merged = Catalogue::built_in().overridden_by(&user);
    let corrected = merged.profile(&model("openai/gpt-5"), None).unwrap();
    assert_eq!(corrected.context_window, Some(Tokens(32_768)));
    assert_eq!(
        corrected.max_output,
        Some(Tokens(128_000)),
        "what was left out stays"
    );
    let dated = merged.profile(&model("openai/gpt-5-2025-08-07"), None).unwrap();
    assert_eq!(
        (dated.max_output, dated.context_window),
        (Some(Tokens(1000)), Some(Tokens(32_768)))
    );
    assert_eq!(
        merged.provider("openai").unwrap().base_url,
        "https://gateway.example/v1"
    );
    assert!(merged.profile(&model("mine/m"), None).is_some());
}

#[test]
fn a_limit_of_zero_is_refused() {
    for field in ["contextWindow", "maxOutput"] {
        let text = format!(r#"{{"models":[{{"provider":"p","id":"m","{field}":0}}]}}"#);
        assert!(matches!(
            Catalogue::from_json(&text),
            Err(CatalogueError::ZeroLimit { .. })
        ));
    }
    assert!(Catalogue::from_json(r#"{"modles":[]}"#).is_err());
}

#[test]
fn who_takes_over_when_the_window_is_full() {
    use PromotionRule::{Configured, OrSmallestLarger};
    let catalogue = Catalogue::from_json(
        r#"{"providers":[{"name":"p","api":"openai-completions","baseUrl":"https://p.example/v1"}],
            "models":[
              {"provider":"p","id":"small","contextWindow":100,"contextPromotionTarget":"q/far"},
              {"provider":"p","id":"own","contextWindow":100,"contextPromotionTarget":"x/large"},
              {"provider":"p","id":"down","contextWindow":300,"contextPromotionTarget":"x/large"},
              {"provider":"p","id":"self","contextWindow":100,"contextPromotionTarget":"self"},
              {"provider":"p","id":"lost","contextWindow":100,"contextPromotionTarget":"p/nobody"},
              {"provider":"p","id":"none","contextWindow":100},
              {"provider":"p","id":"huge","contextWindow":900},
              {"provider":"p","id":"x/large","contextWindow":200},
              {"provider":"p","id":"other-api","contextWindow":150,"api":"anthropic-messages"},
              {"provider":"p","id":"unknown"},
              {"provider":"q","id":"far","contextWindow":110}]}"#,
    )
    .unwrap();
    let target = |id: &str, window: Option<u64>, rule| {
        let mut current = catalogue.profile(&model(&format!("p/{id}")), None).unwrap();
        if let Some(window) = window {
            current.context_window = Some(Tokens(window));
        }
        catalogue
            .promotion_target(&current, rule)
            .map(|model| model.to_string())
    };
    for (id, window, rule, expected) in [
        ("small", None, Configured, Some("q/far")),
        ("own", None, Configured, Some("p/x/large")),
        ("down", None, OrSmallestLarger, None),
        ("self", None, OrSmallestLarger, None),
        ("lost", None, OrSmallestLarger, None),
        ("none", None, Configured, None),
        ("none", None, OrSmallestLarger, Some("p/x/large")),
        ("none", Some(250), OrSmallestLarger, Some("p/down")),
        ("none", Some(900), OrSmallestLarger, None),
        ("none", Some(0), OrSmallestLarger, None),
        ("small", Some(110), Configured, None),
        ("unknown", None, OrSmallestLarger, None),
        ("huge", None, OrSmallestLarger, None),
    ] {
        assert_eq!(
            target(id, window, rule).as_deref(),
            expected,
            "{id} {window:?} {rule:?}"
        );
    }
}

/// Prices of providers change: these are the ones that the file's pages give.
#[test]
fn facts_that_were_checked() {
    let catalogue = Catalogue::built_in();
    for (name, output, cache_read, short_seconds) in [
        ("anthropic/claude-fable-5-2", 128_000, Some(0.2), 300),
        ("anthropic/claude-fable-5-1", 128_000, Some(0.25), 300),
        ("anthropic/claude-opus-5-5", 128_000, Some(0.2), 300),
        ("anthropic/claude-sonnet-5-5", 128_000, Some(0.1), 300),
        ("anthropic/claude-haiku-5-5", 128_000, Some(0.01), 300),
        ("anthropic/claude-sonnet-4-6", 128_000, Some(0.3), 300),
        ("openai/gpt-6.1-terra", 128_000, Some(0.05), 1800),
        ("openai/gpt-5.6-sol", 128_000, None, 1800),
        ("openai/gpt-5.6-luna", 128_000, Some(0.02), 1800),
        ("openai/gpt-5", 128_000, Some(0.125), 300),
    ] {
        let profile = catalogue.profile(&model(name), None).unwrap();
        assert_eq!(profile.max_output, Some(Tokens(output)), "{name}");
        assert_eq!(
            profile.prices.map(|prices| prices.cache_read),
            cache_read,
            "{name}"
        );
        assert_eq!(
            profile.cache_lifetime.short_seconds,
            Some(short_seconds),
            "{name}"
        );
    }
}
