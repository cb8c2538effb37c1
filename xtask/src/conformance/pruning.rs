//! `*.prune_tool_outputs`, `gajae.prune_tool_arguments`: what becomes of tool output and of arguments.
//!
//! Cases run over the whole path to the leaf, as the recorded systems do; the product plans over the folded context.

use std::collections::BTreeMap;

use anyhow::Context as _;
use foldline_pruning::{
    Item, Masking, Original, Originals, Plan, Policy, ReferenceBudget, Stamp, View, plan, plan_arguments,
};
use foldline_session_model::message::Message;
use foldline_session_model::tokens::{CharsPerFour, Heuristic, TokenCounter};
use foldline_session_model::{EntryIx, Tokens};
use serde_json::{Value, json};

use super::canonical::{sha16, utf16_len};
use super::session::{Session, Sessions};
use super::{Case, Outcome, field};

/// Any time: vectors do not record it, except where `params` names it.
const STAMP: Stamp = Stamp(1_760_000_000_000);

pub(super) fn gajae_outputs(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let messages = messages(&session, case)?;
    let options = field(&case.params, "options")?;
    let mut policy = policy(&case.params, gajae_default())?;
    if let Some(relaxed) = options.get("relaxedMinimum").and_then(Value::as_u64) {
        policy = policy.relaxed_to(Tokens(relaxed));
    }
    let originals = match options.get("artifactRefMaxChars").and_then(Value::as_u64) {
        Some(chars) => Originals::Artifacts {
            budget: u16::try_from(chars)
                .ok()
                .and_then(ReferenceBudget::new)
                .context("no budget")?,
        },
        None => Originals::Unreferenced,
    };
    let planned = plan(&view(&session, &messages), &policy, originals, &Heuristic);
    let mut returned = outputs(&session, &messages, &planned, &Heuristic)?;
    returned["estimate"] = json!({
        "prunableCount": planned.replacements.len(),
        "tokensSaved": planned.tokens_saved,
    });
    if matches!(originals, Originals::Artifacts { .. }) {
        returned["artifactCallOrder"] = planned
            .replacements
            .iter()
            .map(|replacement| session.reference(replacement.source))
            .collect();
    }
    Ok(returned)
}

pub(super) fn ohmypi_outputs(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let messages = messages(&session, case)?;
    // That system has no floor: it replaces results by notices that are longer, too.
    let default = Policy {
        entry_floor: Tokens(0),
        ..Policy::seed_001()
    };
    let policy = Policy {
        protect_recent_turns: 0,
        ..policy(&case.params, default)?
    };
    let planned = plan(
        &view(&session, &messages),
        &policy,
        Originals::Unreferenced,
        &CharsPerFour,
    );
    let mut returned = outputs(&session, &messages, &planned, &CharsPerFour)?;
    if let Some(rows) = returned["pruned"].as_array_mut() {
        rows.reverse();
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            row.remove("tokens");
            row.remove("complete");
        }
    }
    Ok(returned)
}

pub(super) fn gajae_arguments(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let messages = messages(&session, case)?;
    let policy = policy(&case.params, gajae_default())?;
    let stamp = field(&case.params, "prunedAt")?.as_u64().context("no time")?;
    let planned = plan_arguments(&view(&session, &messages), &policy, Stamp(stamp), &Heuristic);
    let mut pruned = Vec::new();
    for entry in &planned.entries {
        let calls: Result<Vec<Value>, serde_json::Error> = entry
            .calls
            .iter()
            .map(|call| {
                let arguments: Value = serde_json::from_str(&call.arguments)?;
                Ok(json!({ "id": call.id, "arguments": arguments }))
            })
            .collect();
        pruned.push(json!({ "entry": session.reference(entry.source), "calls": calls? }));
    }
    Ok(json!({
        "argumentPrunedCount": planned.entries.iter().map(|entry| entry.calls.len()).sum::<usize>(),
        "argumentTokensSaved": planned.tokens_saved,
        "pruned": pruned,
    }))
}

/// The policy of the recorded system: every saving counts.
fn gajae_default() -> Policy {
    Policy {
        entry_floor: Tokens(1),
        ..Policy::default()
    }
}

fn policy(params: &Value, default: Policy) -> anyhow::Result<Policy> {
    let policy = field(params, "policy")?;
    if policy == "default" {
        return Ok(default);
    }
    let names = |key: &str| -> Vec<String> {
        let list = policy.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let number = |key: &str| {
        field(policy, key)?
            .as_u64()
            .with_context(|| format!("{key} is no number"))
    };
    let turns = policy
        .get("protectRecentTurns")
        .and_then(Value::as_u64)
        .unwrap_or(2);
    Ok(Policy {
        protect_tokens: Tokens(number("protectTokens")?),
        minimum_savings: Tokens(number("minimumSavings")?),
        protect_recent_turns: u32::try_from(turns)?,
        protected_tools: names("protectedTools"),
        stale_overridable: names("staleOverridableTools"),
        ..default
    })
}

type Messages<'s> = Vec<(EntryIx, Box<Message<'s>>)>;

fn messages<'s>(session: &'s Session, case: &Case) -> anyhow::Result<Messages<'s>> {
    let leaf = session.log.resolve(&session.leaf(case)?)?;
    let path = leaf.map(|leaf| session.log.path(leaf)).unwrap_or_default();
    Ok(path
        .into_iter()
        .filter_map(|ix| Some((ix, session.log.message(ix)?)))
        .collect())
}

fn view<'v>(session: &'v Session, messages: &'v Messages<'_>) -> View<'v> {
    let items = messages.iter().map(|(ix, message)| Item {
        id: session.log.id(*ix),
        source: *ix,
        message,
        masking: Masking::None,
    });
    View::new(&session.log.header().cwd, items)
}

/// What a plan comes to, as the recorded systems report it: notices are read back from the rewritten entries.
fn outputs(
    session: &Session,
    messages: &Messages<'_>,
    planned: &Plan,
    counter: &dyn TokenCounter,
) -> anyhow::Result<Value> {
    let artifacts: BTreeMap<EntryIx, u64> = planned
        .replacements
        .iter()
        .zip(0..)
        .map(|(replacement, number)| (replacement.source, number))
        .collect();
    let rewrite = planned.rewrite(&session.log, &artifacts, STAMP, counter)?;
    let mut pruned = Vec::new();
    for (replacement, entry) in planned.replacements.iter().zip(&rewrite.entries) {
        let line: Value = serde_json::from_str(&entry.line)?;
        let original = messages
            .get(replacement.position)
            .and_then(|(_, message)| message.content())
            .map(|content| content.texts().collect::<Vec<_>>().join("\n"))
            .unwrap_or_default();
        let whole = Original::of(&session.log, replacement.source);
        pruned.push(json!({
            "entry": session.reference(replacement.source),
            "tool": replacement.tool,
            "tokens": replacement.tokens,
            "complete": matches!(whole, Some(Original::Text(_))),
            "originalLen": utf16_len(&original),
            "originalSha16": sha16(&original),
            "notice": line.pointer("/message/content/0/text"),
        }));
    }
    Ok(json!({
        "prunedCount": pruned.len(),
        "tokensSaved": rewrite.tokens_saved,
        "pruned": pruned,
    }))
}
