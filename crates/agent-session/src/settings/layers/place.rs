//! Values at their places: trees of settings, older names, what only some may set.
#![expect(clippy::disallowed_types, reason = "a layer of settings is a small value")]

use serde_json::{Map, Value, json};

use crate::settings::catalog::{KeyPath, shown};

/// What only the user and trusted projects may set (design page, D12): where conversations and keys go, what is
/// run, and what the model may do. The name of a model says which provider reads the conversation, so all places that
/// name one are among them.
pub(in crate::settings) const GUARDED: &[&[&str]] = &[
    &["providers"],
    &["model"],
    &["models"],
    &["modelRoles"],
    &["fallbackModels"],
    &["retry", "fallbackChains"],
    &["compaction", "model"],
    &["compaction", "remoteEndpoint"],
    &["hooks"],
    &["tools"],
];

/// Puts a value at a path; what is in the way of it goes.
pub(super) fn place(tree: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((name, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        tree.insert(name.clone(), value);
        return;
    }
    let inner = tree.entry(name.clone()).or_insert_with(|| json!({}));
    if !inner.is_object() {
        *inner = json!({});
    }
    if let Value::Object(inner) = inner {
        place(inner, rest, value);
    }
}

pub(super) fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter()
        .try_fold(value, |value, name| value.as_object()?.get(name))
}

fn at_in<'v>(tree: &'v Map<String, Value>, path: &[String]) -> Option<&'v Value> {
    let (name, rest) = path.split_first()?;
    at(tree.get(name)?, rest)
}

pub(super) fn parent_of<'v>(value: &'v mut Value, path: &[String]) -> Option<&'v mut Map<String, Value>> {
    let (_, parents) = path.split_last()?;
    let parent = parents
        .iter()
        .try_fold(value, |value, name| value.as_object_mut()?.get_mut(name))?;
    parent.as_object_mut()
}

pub(super) fn is_guarded(path: &[String]) -> bool {
    GUARDED
        .iter()
        .any(|guarded| path.iter().map(String::as_str).eq(guarded.iter().copied()))
}

pub(super) fn is_secret(path: &[String]) -> bool {
    matches!(path, [first, _, last] if first == "providers" && last == "key")
}

/// Brings older names up to date; returns the old and the new name of each.
pub(super) fn modernise(tree: &mut Map<String, Value>) -> Vec<(String, String)> {
    const NAMES: [(&[&str], &[&str]); 4] = [
        (&["queueMode"], &["steeringMode"]),
        (
            &["retry", "provider", "maxRetryDelayMs"],
            &["retry", "maxDelayMs"],
        ),
        (
            &["retry", "provider", "maxRetries"],
            &["retry", "requestMaxRetries"],
        ),
        (&["todo", "reminders", "max"], &["todo", "reminders.max"]),
    ];
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<KeyPath>();
    let mut renamed = Vec::new();
    for (old, new) in NAMES {
        let (old, new) = (owned(old), owned(new));
        if let Some(value) = take(tree, &old) {
            if at_in(tree, &new).is_none() {
                place(tree, &new, value);
            }
            renamed.push((shown(&old), shown(&new)));
        }
    }
    renamed
}

/// Takes a value out, and the objects around it that are empty then.
fn take(tree: &mut Map<String, Value>, path: &[String]) -> Option<Value> {
    let (name, rest) = path.split_first()?;
    if rest.is_empty() {
        return tree.remove(name);
    }
    let inner = tree.get_mut(name)?.as_object_mut()?;
    let value = take(inner, rest);
    if value.is_some() && inner.is_empty() {
        tree.remove(name);
    }
    value
}
