//! `*.thresholds`: reserve, threshold, trigger, usage arithmetic, emergency limits and the gate of maintenance prunes.

use foldline_compaction_core::accounting::{
    EmergencyLimits, Limits, MaintenancePrune, ResourceSample, prune_pays, usage_tokens,
};
use foldline_compaction_core::settings::{CompactionSettings, Strategy, ThresholdRule};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::Usage;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::session::Sessions;
use super::{Case, Outcome, field};

pub(super) fn gajae(_: &Sessions, case: &Case) -> Outcome {
    let params = &case.params;
    if let Some(usage) = case.input.get("usage") {
        let usage = recorded(usage);
        // No API is named: the parts are added.
        let prompt = Usage {
            output: Tokens::ZERO,
            ..usage
        };
        return Ok(json!({
            "contextTokens": usage_tokens(&usage, ""),
            "promptTokens": match usage_tokens(&prompt, "") {
                Tokens::ZERO => usage_tokens(&usage, ""),
                prompt => prompt,
            },
        }));
    }
    if let Some(sample) = case.input.get("sample") {
        let sample = ResourceSample::deserialize(sample)?;
        let limits = EmergencyLimits::for_memory(params.get("totalMemoryBytes").and_then(Value::as_u64));
        return Ok(json!({ "limits": limits, "reason": limits.exceeded_by(&sample) }));
    }
    if params.get("estimatedSavings").is_some() {
        let settings = CompactionSettings {
            maintenance_pruning_enabled: field(params, "enabled")? == &json!(true),
            maintenance_pruning_min_savings_tokens: number(params, "minSavings"),
            ..CompactionSettings::default()
        };
        let prune = MaintenancePrune {
            savings: number(params, "estimatedSavings"),
            cache_cost: number(params, "cacheEpochResetCost"),
        };
        return Ok(json!({ "run": prune_pays(&settings, prune) }));
    }
    let settings = CompactionSettings::deserialize(field(params, "settings")?)?;
    let limits = limits(params, &settings, number(params, "maxOutputTokens"));
    Ok(json!({
        "effectiveReserve": limits.as_ref().map(Limits::reserve),
        "threshold": limits.as_ref().map(Limits::threshold),
        "shouldCompact": should_compact(limits.as_ref(), &settings, params),
    }))
}

pub(super) fn pi(_: &Sessions, case: &Case) -> Outcome {
    let params = &case.params;
    let mut settings = CompactionSettings::deserialize(field(params, "settings")?)?;
    settings.threshold_rule = ThresholdRule::ReserveOnly;
    let limits = limits(params, &settings, Tokens::ZERO);
    Ok(json!({
        "contextTokensOfUsage": usage_tokens(&recorded(field(&case.input, "usage")?), ""),
        "shouldCompact": should_compact(limits.as_ref(), &settings, params),
    }))
}

fn limits(params: &Value, settings: &CompactionSettings, output: Tokens) -> Option<Limits> {
    let window = params.get("contextWindow").and_then(Value::as_u64).map(Tokens);
    Limits::new(window, settings, output)
}

fn should_compact(limits: Option<&Limits>, settings: &CompactionSettings, params: &Value) -> bool {
    let on = settings.enabled && settings.strategy != Strategy::Off;
    on && limits.is_some_and(|limits| limits.exceeded_by(number(params, "contextTokens")))
}

fn recorded(usage: &Value) -> Usage {
    Usage {
        input: number(usage, "input"),
        output: number(usage, "output"),
        cache_read: number(usage, "cacheRead"),
        cache_write: number(usage, "cacheWrite"),
        total_tokens: number(usage, "totalTokens"),
        ..Usage::default()
    }
}

/// A count; what is absent or no count is 0.
fn number(value: &Value, name: &str) -> Tokens {
    Tokens(value.get(name).and_then(Value::as_u64).unwrap_or_default())
}
