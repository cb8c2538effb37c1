//! `*.load`: reading and migrating a session file.

use std::collections::BTreeMap;

use foldline_session_model::EntryIx;
use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::log::{SessionLog, Trust, Version};
use foldline_session_model::message::Message;
use serde_json::{Map, Value, json};

use super::canonical::message_text;
use super::session::{Session, Sessions};
use super::{Case, Outcome, text_field};

/// What a system says of a file besides what all say.
#[derive(Clone, Copy)]
enum Extras {
    None,
    /// Title, counts by role, entries.
    Gajae,
}

pub(super) fn pi(sessions: &Sessions, case: &Case) -> Outcome {
    load(sessions, case, Extras::None)
}

pub(super) fn gajae(sessions: &Sessions, case: &Case) -> Outcome {
    load(sessions, case, Extras::Gajae)
}

fn load(sessions: &Sessions, case: &Case, extras: Extras) -> Outcome {
    if case.input.get("inline").is_some() {
        return Ok(inline(text_field(&case.input, "inline")?, extras));
    }
    let session = sessions.of(case)?;
    Ok(session_file(&session, extras))
}

fn session_file(session: &Session, extras: Extras) -> Value {
    let log = &session.log;
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    let mut roles: BTreeMap<String, usize> = BTreeMap::new();
    let mut compactions = Vec::new();
    let mut entries = Vec::new();
    for ix in log.entries() {
        *types.entry(log.kind_text(ix).into_owned()).or_default() += 1;
        if let Some(message) = log.message(ix) {
            *roles.entry(message.role().to_owned()).or_default() += 1;
        }
        let reference = session.reference(ix);
        if log.kind(ix) == EntryKind::Compaction {
            let first_kept = first_kept(session, ix);
            compactions.push(json!({ "entry": reference, "firstKept": first_kept }));
        }
        entries.push(json!([reference, log.kind_text(ix), parent(session, ix)]));
    }
    let mut out = json!({
        "headerVersionAfterMigration": written_version(log),
        "sessionId": log.header().id,
        "cwd": log.header().cwd,
        "entryCount": log.len(),
        "types": types,
        "lastEntry": log.leaf().map(|ix| session.reference(ix)),
        "compactions": compactions,
    });
    if let (Extras::Gajae, Some(out)) = (extras, out.as_object_mut()) {
        out.insert("title".into(), json!(log.header().title));
        out.insert("roles".into(), json!(roles));
        out.insert("entries".into(), json!(entries));
    }
    out
}

fn inline(text: &str, extras: Extras) -> Value {
    let Ok(log) = SessionLog::load(text, Trust::Validated) else {
        return json!({ "header": null, "entries": [] });
    };
    let session = Session { log };
    let log = &session.log;
    let mut header = json!({
        "version": written_version(log),
        "id": log.header().id,
        "cwd": log.header().cwd,
    });
    if let (Extras::Gajae, Some(header)) = (extras, header.as_object_mut()) {
        header.insert("title".into(), json!(log.header().title));
    }
    let entries: Vec<Value> = log.entries().map(|ix| inline_entry(&session, ix)).collect();
    json!({ "header": header, "entries": entries })
}

fn inline_entry(session: &Session, ix: EntryIx) -> Value {
    let log = &session.log;
    let mut out = Map::new();
    out.insert("type".into(), json!(log.kind_text(ix)));
    out.insert("id".into(), json!(session.reference(ix)));
    out.insert("parentId".into(), json!(parent(session, ix)));
    if let Some(message) = log.message(ix) {
        let message: &Message<'_> = &message;
        out.insert("role".into(), json!(message.role()));
        out.insert("text".into(), json!(message_text(message)));
    }
    if log.kind(ix) == EntryKind::Compaction {
        out.insert("firstKept".into(), json!(first_kept(session, ix)));
    }
    Value::Object(out)
}

/// The version of the file in the form that Foldline writes; `None` for a file that it never writes.
fn written_version(log: &SessionLog) -> Option<u8> {
    let written = SessionLog::load(log.to_written_form()?, Trust::Claimed).ok()?;
    match written.header().version {
        Version::Known(version) => Some(version),
        _ => None,
    }
}

fn parent(session: &Session, ix: EntryIx) -> Option<String> {
    session.log.parent_id(ix).map(|id| session.reference_to(id))
}

fn first_kept(session: &Session, ix: EntryIx) -> Option<String> {
    match session.log.entry(ix).ok()?.body {
        EntryBody::Compaction(compaction) => compaction.first_kept.map(|id| session.reference_to(&id)),
        _ => None,
    }
}
