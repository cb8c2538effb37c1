//! What holds in the end.
#![expect(clippy::disallowed_types, reason = "a layer of settings is a small value")]

use std::collections::BTreeMap;

use foldline_session_model::model_call::RawJson;
use serde::Serialize;
use serde_json::Value;

use super::Source;
use super::place::{at, is_secret};
use crate::settings::catalog::{self, KeyPath, Kind, Node, shown};
use crate::settings::{Problem, Settings};

/// What holds, where it comes from, and what is wrong.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What holds.
    pub settings: Settings,
    /// What is wrong with the layers, from the lowest to the highest.
    pub problems: Vec<Problem>,
    pub(super) tree: Value,
    pub(super) sources: BTreeMap<KeyPath, Source>,
}

/// A setting that holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveKey {
    /// Its name.
    pub key: String,
    /// Its value as JSON; a secret is `"[set]"`.
    pub value: RawJson<'static>,
    /// Where it comes from.
    pub source: Source,
}

impl Resolved {
    /// Where the value of a key comes from; `None` if there is no such key.
    pub fn source(&self, key: &str) -> Option<&Source> {
        const DEFAULT: &Source = &Source::Default;
        let path = catalog::root().path(key)?;
        at(&self.tree, &path)?;
        Some(self.sources.get(&path).unwrap_or(DEFAULT))
    }

    /// Every setting that holds, by name.
    pub fn keys(&self) -> Vec<EffectiveKey> {
        let mut keys = Vec::new();
        self.collect(&self.tree, &mut Vec::new(), catalog::root(), &mut keys);
        keys
    }

    /// The settings at and below a key; `None` if nobody knows it.
    pub fn under(&self, key: &str) -> Option<Vec<EffectiveKey>> {
        let path = catalog::root().path(key)?;
        let (value, node) = (at(&self.tree, &path)?, catalog::root().at(&path)?);
        let mut keys = Vec::new();
        self.collect(value, &mut path.clone(), node, &mut keys);
        Some(keys)
    }

    fn collect(&self, value: &Value, path: &mut KeyPath, node: &Node, keys: &mut Vec<EffectiveKey>) {
        match (value, &node.kind) {
            (Value::Object(members), Kind::Group(_) | Kind::Named(_)) => {
                for (name, value) in members {
                    if let Some(child) = node.child(name) {
                        path.push(name.clone());
                        self.collect(value, path, child, keys);
                        path.pop();
                    }
                }
            }
            _ => {
                let text = if is_secret(path) && !value.is_null() {
                    "\"[set]\"".to_owned()
                } else {
                    value.to_string()
                };
                keys.extend(RawJson::parse(text).map(|value| EffectiveKey {
                    key: shown(path),
                    value,
                    source: self.sources.get(path).cloned().unwrap_or_default(),
                }));
            }
        }
    }
}
