//! `pi.session_tree`: the whole tree of a session, its leaf and its name.

use foldline_session_model::EntryIx;
use serde_json::{Value, json};

use super::session::Sessions;
use super::{Case, Outcome};

pub(super) fn whole(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let log = &session.log;
    let children = log.children();
    let labels = log.labels();
    let mut tree: Vec<Value> = Vec::new();
    let mut open: Vec<(EntryIx, usize)> = children.roots().iter().rev().map(|ix| (*ix, 0)).collect();
    while let Some((ix, depth)) = open.pop() {
        tree.push(json!([session.reference(ix), depth, labels.of(ix)]));
        open.extend(children.of(ix).iter().rev().map(|child| (*child, depth + 1)));
    }
    Ok(json!({
        "leaf": log.leaf().map(|ix| session.reference(ix)),
        "sessionName": log.name().as_str(),
        "tree": tree,
    }))
}
