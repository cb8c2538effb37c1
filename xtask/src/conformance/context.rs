//! `*.build_session_context`: the fold of a log at a leaf.

use std::collections::BTreeMap;

use foldline_session_model::Tokens;
use foldline_session_model::fold::{Context, ModelRef, Profile};
use foldline_session_model::tokens::{CharsPerFour, TokenSource};
use serde_json::{Value, json};

use super::canonical::row;
use super::session::{Session, Sessions};
use super::{Case, Outcome, refused};

pub(super) fn pi(sessions: &Sessions, case: &Case) -> Outcome {
    fold(sessions, case, Profile::Pi, |context| {
        let state = context.state();
        let model = |m: &ModelRef<'_>| json!({ "provider": m.provider, "modelId": m.model });
        json!({
            "thinkingLevel": state.thinking_level.as_deref().unwrap_or("off"),
            "model": state.model().map(model),
        })
    })
}

pub(super) fn gajae(sessions: &Sessions, case: &Case) -> Outcome {
    fold(sessions, case, Profile::Gajae, |context| {
        let state = context.state();
        let models: BTreeMap<&str, String> = state
            .models
            .iter()
            .map(|(role, m)| (role.as_ref(), format!("{}/{}", m.provider, m.model)))
            .collect();
        let tier: Option<Value> = state
            .service_tier
            .as_ref()
            .and_then(|tier| serde_json::from_str(tier.get()).ok());
        json!({
            "thinkingLevel": state.thinking_level.as_deref().unwrap_or("off"),
            "models": models,
            "serviceTier": tier,
            "mode": state.mode.as_deref().unwrap_or("none"),
            "selectedMCPToolNames": state.selected_tools.clone().unwrap_or_default(),
        })
    })
}

pub(super) fn atomic(sessions: &Sessions, case: &Case) -> Outcome {
    fold(
        sessions,
        case,
        Profile::Atomic,
        |context| json!({ "contextEstimate": estimate(context) }),
    )
}

/// The size of a context as the vectors record it.
pub(super) fn estimate(context: &Context<'_>) -> Value {
    let size = context.tokens(&CharsPerFour);
    let (usage, item) = match size.source {
        TokenSource::Measured { usage, item } => (usage, Some(item)),
        TokenSource::Estimated => (Tokens::ZERO, None),
    };
    json!({
        "tokens": size.total,
        "usageTokens": usage,
        "trailingTokens": size.estimated,
        "lastUsageIndex": item,
    })
}

/// The messages at a case's leaf, and what a system says besides.
fn fold(
    sessions: &Sessions,
    case: &Case,
    profile: Profile,
    extras: impl FnOnce(&Context<'_>) -> Value,
) -> Outcome {
    let session = sessions.of(case)?;
    let context = match session.log.context(&session.leaf(case)?, profile) {
        Ok(context) => context,
        Err(error) => return Ok(refused(&error)),
    };
    let mut out = extras(&context);
    if let Some(out) = out.as_object_mut() {
        out.insert("messages".into(), rows(&session, &context));
    }
    Ok(out)
}

fn rows(session: &Session, context: &Context<'_>) -> Value {
    context.items.iter().map(|item| row(session, item)).collect()
}
