//! `*.estimate_tokens`, `*.estimate_text_tokens`: what texts, messages and contexts cost.

use anyhow::Context as _;
use foldline_session_model::fold::Profile;
use foldline_session_model::model_call::{Api, Usage, context_tokens};
use foldline_session_model::tokens::{CharsPerFour, Heuristic, TokenCounter};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryIx, Tokens};
use serde_json::json;

use super::context::estimate;
use super::session::{Session, Sessions};
use super::{Case, Outcome, field, refused};

pub(super) fn texts(_: &Sessions, case: &Case) -> Outcome {
    let fragments = field(&case.input, "fragments")?
        .as_array()
        .context("\"fragments\" is no list")?;
    let fragments: Option<Vec<&str>> = fragments.iter().map(|f| f.as_str()).collect();
    let fragments = fragments.context("a fragment is no text")?;
    Ok(json!({ "tokens": Heuristic.text(&mut fragments.into_iter()) }))
}

pub(super) fn gajae(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let log = &session.log;
    let context = match log.context(&Leaf::Last, Profile::Gajae) {
        Ok(context) => context,
        Err(error) => return Ok(refused(&error)),
    };
    let per_entry: Vec<Tokens> = log.entries().map(|ix| of_entry(&session, ix)).collect();
    Ok(json!({
        "total": per_entry.iter().copied().sum::<Tokens>(),
        "defaultPathTotal": context.path.iter().map(|ix| of_entry(&session, *ix)).sum::<Tokens>(),
        "contextTotal": context.messages().map(|m| Heuristic.message(m)).sum::<Tokens>(),
        "perEntry": per_entry,
    }))
}

/// Message entries in file order, `null` for others.
pub(super) fn per_message(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    Ok(json!({ "perMessageEntry": message_entries(&session) }))
}

pub(super) fn pi(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let context = match session.log.context(&Leaf::Last, Profile::Pi) {
        Ok(context) => context,
        Err(error) => return Ok(refused(&error)),
    };
    let per_entry = message_entries(&session);
    let of_context: Vec<Tokens> = context.messages().map(|m| CharsPerFour.message(m)).collect();
    Ok(json!({
        "total": per_entry.iter().flatten().copied().sum::<Tokens>(),
        "contextTotal": of_context.iter().copied().sum::<Tokens>(),
        "contextEstimate": estimate(&context),
        "contextPerMessage": of_context,
        "perMessageEntry": per_entry,
    }))
}

fn message_entries(session: &Session) -> Vec<Option<Tokens>> {
    let log = &session.log;
    log.entries()
        .map(|ix| log.message(ix).map(|message| CharsPerFour.message(&message)))
        .collect()
}

/// What a recorded usage says of the size of the context.
pub(super) fn of_usage(_: &Sessions, case: &Case) -> Outcome {
    let usage: Usage = serde_json::from_value(field(&case.input, "usage")?.clone())?;
    let api: Api = serde_json::from_value(field(&case.params, "api")?.clone())?;
    Ok(json!({ "contextTokens": context_tokens(&usage, api) }))
}

/// The estimate of the message that an entry puts into a context; 0 if it puts none.
fn of_entry(session: &Session, ix: EntryIx) -> Tokens {
    session
        .log
        .context_message(ix)
        .map_or(Tokens::ZERO, |message| Heuristic.message(&message))
}
