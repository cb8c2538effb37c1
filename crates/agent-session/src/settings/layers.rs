//! Laying settings over each other: pure, from values to what holds.
#![expect(clippy::disallowed_types, reason = "a layer of settings is a small value")]

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use foldline_session_model::model_call::{ModelRef, RawJson};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};

use super::catalog::{self, KeyPath, Kind, Node, shown};
use super::{Environment, ModelChoice, Problem, ProblemKind, Settings};

/// What only the user and trusted projects may set (design page, D12): where conversations and keys go, what is
/// run, and what the model may do. The name of a model says which provider reads the conversation, so all places that
/// name one are among them.
pub(super) const GUARDED: &[&[&str]] = &[
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

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "camelCase")]
pub enum Source {
    /// Nobody set it.
    #[default]
    Default,
    /// The user's file.
    User {
        /// The file.
        file: PathBuf,
    },
    /// The project's file.
    Project {
        /// The file.
        file: PathBuf,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: &'static str,
    },
    /// An option of the command line, or a choice made while the program runs.
    Override,
}

impl Source {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::User { file } | Self::Project { file } => Some(file),
            Self::Default | Self::Environment { .. } | Self::Override => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User { file } | Self::Project { file } => file.display().fmt(f),
            Self::Environment { variable } => f.write_str(variable),
            Self::Override => f.write_str("option"),
        }
    }
}

/// Whether the user trusts the project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectTrust {
    /// Guarded settings of its file count.
    Trusted,
    /// They are ignored and reported.
    #[default]
    Untrusted,
}

/// A settings file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct FileLayer {
    file: PathBuf,
    content: Result<Map<String, Value>, ProblemKind>,
}

impl FileLayer {
    /// Reads the text of a file. One that is no JSON object counts as empty; [`resolve`] reports it.
    pub fn parse(file: PathBuf, text: &str) -> Self {
        // Editors of some systems put a mark at the beginning.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let content = serde_json::from_str(text).map_err(|error| ProblemKind::Syntax {
            line: error.line(),
            column: error.column(),
            message: syntax_message(&error),
        });
        Self { file, content }
    }

    /// A file that is there and cannot be read.
    pub fn unreadable(file: PathBuf, message: String) -> Self {
        Self {
            file,
            content: Err(ProblemKind::Unreadable { message }),
        }
    }
}

/// The message without the place, which is told apart.
pub(super) fn syntax_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place)
        .unwrap_or(&text)
        .replace("a map", "an object")
}

/// Options of the command line, and choices made while the program runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    tree: Map<String, Value>,
}

impl Overrides {
    /// Sets a key (`compaction.strategy`); `None` changes nothing.
    ///
    /// A key that is not known, or a value that cannot be taken, is reported by [`resolve`].
    ///
    /// # Errors
    /// The value has no form in JSON.
    pub fn set(&mut self, key: &str, value: Option<impl Serialize>) -> Result<(), serde_json::Error> {
        let Some(value) = value else {
            return Ok(());
        };
        let value = serde_json::to_value(value)?;
        let path = catalog::root()
            .path(key)
            .unwrap_or_else(|| key.split('.').map(str::to_owned).collect());
        place(&mut self.tree, &path, value);
        Ok(())
    }
}

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

/// The layers over the defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers<'l> {
    /// The user's file, if there is one.
    pub user: Option<&'l FileLayer>,
    /// The project's file, if there is one.
    pub project: Option<&'l FileLayer>,
    /// Whether the user trusts the project.
    pub trust: ProjectTrust,
    /// The environment, if it counts.
    pub environment: Option<&'l Environment>,
    /// Options and choices, if there are any.
    pub overrides: Option<&'l Overrides>,
}

/// What holds, where it comes from, and what is wrong.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What holds.
    pub settings: Settings,
    /// What is wrong with the layers, from the lowest to the highest.
    pub problems: Vec<Problem>,
    tree: Value,
    sources: BTreeMap<KeyPath, Source>,
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

/// Lays the layers over the defaults. Never fails: what cannot be taken is in
/// [`problems`](Resolved::problems), and what lies below it holds.
pub fn resolve(layers: &Layers<'_>) -> Resolved {
    let mut merge = Merge::new();
    if let Some(user) = layers.user {
        merge.file(
            user,
            Source::User {
                file: user.file.clone(),
            },
            ProjectTrust::Trusted,
        );
    }
    if let Some(project) = layers.project {
        merge.file(
            project,
            Source::Project {
                file: project.file.clone(),
            },
            layers.trust,
        );
    }
    if let Some(environment) = layers.environment {
        if let Some((variable, layer)) = environment.model() {
            merge.value(&layer, Source::Environment { variable });
        }
        for (variable, layer) in merge
            .model(layers.overrides)
            .map(|m| environment.about(&m))
            .unwrap_or_default()
        {
            merge.value(&layer, Source::Environment { variable });
        }
    }
    if let Some(overrides) = layers.overrides {
        merge.layer(&overrides.tree, Source::Override, ProjectTrust::Trusted);
    }
    merge.finish()
}

/// Whether a value can be taken at a path. The path exists.
pub(super) fn acceptable(path: &[String], value: &Value) -> Result<(), ProblemKind> {
    let mut merge = Merge::new();
    let mut layer = Map::new();
    place(&mut layer, path, value.clone());
    merge.layer(&layer, Source::Override, ProjectTrust::Trusted);
    match merge.problems.into_iter().next() {
        Some(problem) => Err(problem.kind),
        None => Ok(()),
    }
}

struct Merge {
    tree: Value,
    defaults: Value,
    sources: BTreeMap<KeyPath, Source>,
    problems: Vec<Problem>,
}

/// The layer that is being laid.
struct Laying {
    source: Source,
    trust: ProjectTrust,
}

impl Merge {
    fn new() -> Self {
        // Settings are plain data: this cannot fail, and an empty tree reads as the defaults.
        let defaults = serde_json::to_value(Settings::default()).unwrap_or_else(|_| json!({}));
        Self {
            tree: defaults.clone(),
            defaults,
            sources: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    fn file(&mut self, layer: &FileLayer, source: Source, trust: ProjectTrust) {
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

    fn value(&mut self, layer: &Value, source: Source) {
        if let Value::Object(layer) = layer {
            self.layer(layer, source, ProjectTrust::Trusted);
        }
    }

    fn layer(&mut self, layer: &Map<String, Value>, source: Source, trust: ProjectTrust) {
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
    fn model(&self, overrides: Option<&Overrides>) -> Option<ModelRef> {
        let chosen = overrides.and_then(|o| o.tree.get("model"));
        let named = chosen.or_else(|| self.tree.get("model"))?.as_str()?;
        named.parse::<ModelChoice>().ok()?.model().cloned()
    }

    fn finish(self) -> Resolved {
        Resolved {
            // Each value was tried when it was laid.
            settings: Settings::deserialize(&self.tree).unwrap_or_default(),
            problems: self.problems,
            tree: self.tree,
            sources: self.sources,
        }
    }
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

/// Brings older names up to date; returns the old and the new name of each.
fn modernise(tree: &mut Map<String, Value>) -> Vec<(String, String)> {
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

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter()
        .try_fold(value, |value, name| value.as_object()?.get(name))
}

fn at_in<'v>(tree: &'v Map<String, Value>, path: &[String]) -> Option<&'v Value> {
    let (name, rest) = path.split_first()?;
    at(tree.get(name)?, rest)
}

fn parent_of<'v>(value: &'v mut Value, path: &[String]) -> Option<&'v mut Map<String, Value>> {
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

fn is_secret(path: &[String]) -> bool {
    matches!(path, [first, _, last] if first == "providers" && last == "key")
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
