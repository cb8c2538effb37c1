//! The merge of layers: each value is tried when it is laid.
#![expect(clippy::disallowed_types, reason = "a layer of settings is a small value")]

use std::collections::BTreeMap;

use foldline_session_model::model_call::ModelRef;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::place::{GUARDED, at, is_guarded, is_secret, modernise, parent_of, place};
use super::{FileLayer, Overrides, ProjectTrust, Resolved, Source};
use crate::settings::catalog::{self, KeyPath, Kind, Node, shown};
use crate::settings::{ModelChoice, Problem, ProblemKind, Settings};

pub(super) struct Merge {
    tree: Value,
    defaults: Value,
    sources: BTreeMap<KeyPath, Source>,
    pub(super) problems: Vec<Problem>,
}

/// The layer that is being laid.
struct Laying {
    source: Source,
    trust: ProjectTrust,
}

impl Merge {
    pub(super) fn new() -> Self {
        // Settings are plain data: this cannot fail, and an empty tree reads as the defaults.
        let defaults = serde_json::to_value(Settings::default()).unwrap_or_else(|_| json!({}));
        Self {
            tree: defaults.clone(),
            defaults,
            sources: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    pub(super) fn file(&mut self, layer: &FileLayer, source: Source, trust: ProjectTrust) {
        match &layer.content {
            Ok(tree) => {
                let mut tree = tree.clone();
                for (old, new) in modernise(&mut tree) {
                    self.problem(&source, Some(old), ProblemKind::Renamed { to: new });
                }
                self.layer(&tree, source, trust);
            }
            Err(kind) => self.problem(&source, None, kind.clone()),
        }
    }

    pub(super) fn value(&mut self, layer: &Value, source: Source) {
        if let Value::Object(layer) = layer {
            self.layer(layer, source, ProjectTrust::Trusted);
        }
    }

    pub(super) fn layer(&mut self, layer: &Map<String, Value>, source: Source, trust: ProjectTrust) {
        let laying = Laying { source, trust };
        self.members(layer, &mut Vec::new(), catalog::root(), &laying);
    }

    fn members(&mut self, layer: &Map<String, Value>, path: &mut KeyPath, node: &Node, laying: &Laying) {
        for (name, value) in layer {
            // Editors look here for the schema.
            if path.is_empty() && name == "$schema" {
                continue;
            }
            path.push(name.clone());
            match node.child(name) {
                None => {
                    let parent = path.get(..path.len() - 1).unwrap_or_default();
                    let nearest = catalog::nearest(parent, name);
                    self.problem(
                        &laying.source,
                        Some(shown(path)),
                        ProblemKind::UnknownKey { nearest },
                    );
                }
                Some(_) if laying.trust == ProjectTrust::Untrusted && is_guarded(path) => {
                    self.problem(&laying.source, Some(shown(path)), ProblemKind::Untrusted);
                }
                Some(child) => self.member(value, path, child, laying),
            }
            path.pop();
        }
    }

    fn member(&mut self, value: &Value, path: &mut KeyPath, node: &Node, laying: &Laying) {
        match (value, &node.kind) {
            (Value::Null, _) => self.reset(path, laying),
            (Value::Object(members), Kind::Group(_) | Kind::Named(_)) => {
                self.members(members, path, node, laying);
            }
            (_, Kind::Leaf) => {
                if let Err(expected) = self.set(path, value, node) {
                    self.wrong(path, value, expected, laying);
                } else {
                    self.sources.insert(path.clone(), laying.source.clone());
                }
            }
            _ => self.wrong(path, value, node.expected(), laying),
        }
    }

    /// Back to the default, with all that is below. What was laid under guard stays.
    fn reset(&mut self, path: &KeyPath, laying: &Laying) {
        let untrusted = laying.trust == ProjectTrust::Untrusted;
        let kept: Vec<(KeyPath, Value)> = GUARDED
            .iter()
            .map(|guarded| guarded.iter().map(|name| (*name).to_owned()).collect::<KeyPath>())
            .filter(|guarded| untrusted && guarded.starts_with(path))
            .filter_map(|guarded| Some((guarded.clone(), at(&self.tree, &guarded)?.clone())))
            .collect();
        let default = at(&self.defaults, path).cloned();
        match (parent_of(&mut self.tree, path), path.last()) {
            (Some(parent), Some(name)) => match default {
                Some(default) => drop(parent.insert(name.clone(), default)),
                None => drop(parent.remove(name)),
            },
            _ => return,
        }
        self.sources
            .retain(|known, _| !known.starts_with(path) || kept.iter().any(|(k, _)| known.starts_with(k)));
        for (guarded, value) in &kept {
            if let (Some(parent), Some(name)) = (parent_of(&mut self.tree, guarded), guarded.last()) {
                parent.insert(name.clone(), value.clone());
            }
        }
        if let Some(node) = catalog::root().at(path) {
            node.each_leaf(&mut path.clone(), &mut |leaf, _| {
                if !kept.iter().any(|(k, _)| leaf.starts_with(k)) && at(&self.tree, leaf).is_some() {
                    self.sources.insert(leaf.clone(), laying.source.clone());
                }
            });
        }
    }

    /// Puts a value in its place if the settings can be read with it; else says what is expected there.
    fn set(&mut self, path: &[String], value: &Value, node: &Node) -> Result<(), String> {
        if !node.within_bounds(value) {
            return Err(node.expected());
        }
        let before = self.tree.clone();
        if let Value::Object(tree) = &mut self.tree {
            place(tree, path, value.clone());
        }
        let Err(error) = Settings::deserialize(&self.tree) else {
            return Ok(());
        };
        self.tree = before;
        // What is taken as a whole has members of its own, and the error knows which one is wrong.
        let has_members = node.schema.contains_key("properties");
        Err(if has_members {
            format!("another form: {error}")
        } else {
            node.expected()
        })
    }

    fn wrong(&mut self, path: &[String], value: &Value, expected: String, laying: &Laying) {
        let found = if is_secret(path) {
            kind_of(value).to_owned()
        } else {
            preview(value)
        };
        self.problem(
            &laying.source,
            Some(shown(path)),
            ProblemKind::WrongValue { expected, found },
        );
    }

    fn problem(&mut self, source: &Source, key: Option<String>, kind: ProblemKind) {
        self.problems.push(Problem {
            source: source.clone(),
            key,
            kind,
        });
    }

    /// The model in use, for variables that are about it.
    pub(super) fn model(&self, overrides: Option<&Overrides>) -> Option<ModelRef> {
        let chosen = overrides.and_then(|o| o.tree.get("model"));
        let named = chosen.or_else(|| self.tree.get("model"))?.as_str()?;
        named.parse::<ModelChoice>().ok()?.model().cloned()
    }

    pub(super) fn finish(self) -> Resolved {
        Resolved {
            // Each value was tried when it was laid.
            settings: Settings::deserialize(&self.tree).unwrap_or_default(),
            problems: self.problems,
            tree: self.tree,
            sources: self.sources,
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn preview(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 60 {
        kind_of(value).to_owned()
    } else {
        text
    }
}
