//! Which settings there are, as the schema of [`Settings`](super::Settings) tells: their names, what they take,
//! and what they are for.
#![expect(
    clippy::disallowed_types,
    reason = "schemas and settings are small, and `schemars` speaks in values"
)]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::reference::schema_value;

static CATALOG: LazyLock<Node> = LazyLock::new(|| Node::new(&schema_value()));

/// A place in a settings file.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// What it is for.
    pub(super) doc: String,
    /// What it takes.
    pub(super) schema: Map<String, Value>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// An object with these members.
    Group(BTreeMap<String, Node>),
    /// An object whose members have names of the user's choice.
    Named(Box<Node>),
    /// One value, which is taken or left as a whole.
    Leaf,
}

/// The names on the way to a place.
pub(super) type KeyPath = Vec<String>;

/// A path as people write it.
pub(super) fn shown(path: &[String]) -> String {
    path.join(".")
}

/// All settings.
pub(super) fn root() -> &'static Node {
    &CATALOG
}

impl Node {
    pub(super) fn new(schema: &Value) -> Self {
        let schema = schema.as_object().cloned().unwrap_or_default();
        let doc = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let doc = doc.to_owned();
        let has_required = schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|r| !r.is_empty());
        let members = |properties: &Map<String, Value>| {
            properties
                .iter()
                .map(|(name, schema)| (name.clone(), Self::new(schema)))
                .collect()
        };
        let kind = match (schema.get("properties"), schema.get("additionalProperties")) {
            // A group that cannot do without some member is taken as a whole.
            (Some(Value::Object(properties)), _) if !has_required => Kind::Group(members(properties)),
            (None, Some(each @ Value::Object(_))) => Kind::Named(Box::new(Self::new(each))),
            _ => Kind::Leaf,
        };
        Self { kind, doc, schema }
    }

    /// What is at this name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Group(members) => members.get(name),
            Kind::Named(each) => Some(each),
            Kind::Leaf => None,
        }
    }

    /// What is at this path.
    pub(super) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.child(name))
    }

    /// The path that a person means: names may hold dots themselves (`todo.reminders.max`, `models.x/y-1.5`).
    pub(super) fn path(&self, key: &str) -> Option<KeyPath> {
        if key.is_empty() {
            return Some(Vec::new());
        }
        match &self.kind {
            Kind::Leaf => None,
            Kind::Group(members) => members.iter().rev().find_map(|(name, node)| {
                let rest = key.strip_prefix(name.as_str())?;
                let rest = if rest.is_empty() {
                    rest
                } else {
                    rest.strip_prefix('.').filter(|r| !r.is_empty())?
                };
                node.path(rest).map(|path| prefixed(name, path))
            }),
            Kind::Named(each) => {
                let inside = key.match_indices('.').find_map(|(at, _)| {
                    let (name, rest) = (key.get(..at)?, key.get(at + 1..)?);
                    if name.is_empty() || rest.is_empty() {
                        return None;
                    }
                    each.path(rest).map(|path| prefixed(name, path))
                });
                Some(inside.unwrap_or_else(|| vec![key.to_owned()]))
            }
        }
    }

    /// Calls for each value that has a fixed place, in order.
    pub(super) fn each_leaf<'n>(&'n self, path: &mut KeyPath, visit: &mut impl FnMut(&KeyPath, &'n Self)) {
        match &self.kind {
            Kind::Group(members) => {
                for (name, node) in members {
                    path.push(name.clone());
                    node.each_leaf(path, visit);
                    path.pop();
                }
            }
            Kind::Named(_) => {}
            Kind::Leaf => visit(path, self),
        }
    }

    /// What the place takes, in words.
    pub(super) fn expected(&self) -> String {
        match self.kind {
            Kind::Group(_) | Kind::Named(_) => "an object".to_owned(),
            Kind::Leaf => expected(&self.schema),
        }
    }

    /// Whether a number lies within the bounds of the place. What is no number has none.
    pub(super) fn within_bounds(&self, value: &Value) -> bool {
        let Some(number) = value.as_f64() else {
            return true;
        };
        let bound = |name: &str| self.schema.get(name).and_then(Value::as_f64);
        bound("minimum").is_none_or(|least| number >= least)
            && bound("maximum").is_none_or(|most| number <= most)
            && bound("exclusiveMinimum").is_none_or(|below| number > below)
            && bound("exclusiveMaximum").is_none_or(|above| number < above)
    }
}

fn prefixed(name: &str, mut path: KeyPath) -> KeyPath {
    path.insert(0, name.to_owned());
    path
}

/// The words of a set of choices, if that is what a schema is.
fn words(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    if let Some(Value::Array(words)) = schema.get("enum") {
        return words.iter().map(Value::as_str).collect();
    }
    if let Some(Value::String(word)) = schema.get("const") {
        return Some(vec![word]);
    }
    let Some(Value::Array(choices)) = schema.get("oneOf") else {
        return None;
    };
    let words: Option<Vec<_>> = choices.iter().map(|choice| words(choice.as_object()?)).collect();
    words.map(|words| words.concat())
}

fn expected(schema: &Map<String, Value>) -> String {
    if let Some(Value::String(text)) = schema.get("x-expected") {
        return text.clone();
    }
    if let Some(words) = words(schema) {
        let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
        return match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => words.join(""),
        };
    }
    if let Some(Value::Array(either)) = schema.get("anyOf") {
        let described: Vec<String> = either
            .iter()
            .filter_map(Value::as_object)
            .filter(|schema| schema.get("type").and_then(Value::as_str) != Some("null"))
            .map(expected)
            .collect();
        return described.join(" or ");
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        // A setting that may be unset.
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or_default(),
        _ => "",
    };
    match kind {
        "boolean" => "`true` or `false`".to_owned(),
        "integer" => format!("a whole number{}", bounds(schema)),
        "number" => format!("a number{}", bounds(schema)),
        "array" => {
            let each = schema.get("items").and_then(Value::as_object).map(expected);
            format!("a list, each {}", each.unwrap_or_else(|| "anything".to_owned()))
        }
        "object" => "an object".to_owned(),
        _ => "a text".to_owned(),
    }
}

fn bounds(schema: &Map<String, Value>) -> String {
    // The largest number of a type is no bound that anybody chose.
    let bound = |name: &str, words: &str| {
        let number = schema
            .get(name)
            .and_then(Value::as_f64)
            .filter(|n| n.abs() < 1e9)?;
        Some(format!("{words} {number}"))
    };
    let bounds: Vec<String> = [
        bound("exclusiveMinimum", "above"),
        bound("minimum", "of at least"),
        bound("exclusiveMaximum", "below"),
        bound("maximum", "of at most"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if bounds.is_empty() {
        String::new()
    } else {
        format!(" {}", bounds.join(" and "))
    }
}

/// The known key that somebody may have meant: `name` is not known among the members at `parent`.
pub(super) fn nearest(parent: &[String], name: &str) -> Option<String> {
    let mut full = parent.to_vec();
    full.push(name.to_owned());
    // Right, but with dots where there should be objects.
    if name.contains('.')
        && root()
            .path(&shown(&full))
            .is_some_and(|path| root().at(&path).is_some())
    {
        return Some(shown(&full));
    }
    let close = 2.max(name.chars().count() / 3);
    let lower = name.to_lowercase();
    if let Some(Node {
        kind: Kind::Group(members),
        ..
    }) = root().at(parent)
    {
        let best = members
            .keys()
            .map(|known| {
                let known_lower = known.to_lowercase();
                let is_beginning = lower.len() >= 3 && known_lower.starts_with(&lower);
                let distance = if is_beginning {
                    close
                } else {
                    strsim::osa_distance(&known_lower, &lower)
                };
                (distance, known)
            })
            .filter(|(distance, _)| *distance <= close)
            .min();
        if let Some((_, known)) = best {
            full.pop();
            full.push(known.clone());
            return Some(shown(&full));
        }
    }
    // Right, but in another group.
    let mut found = None;
    root().each_leaf(&mut Vec::new(), &mut |path, _| {
        let same = path.last().is_some_and(|last| last.to_lowercase() == lower);
        if same && found.is_none() {
            found = Some(shown(path));
        }
    });
    found
}
