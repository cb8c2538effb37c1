//! The schema of settings files, and the page that describes them; both follow from the types.
#![expect(clippy::disallowed_types, reason = "`schemars` speaks in values")]

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Settings;
use super::catalog::{Kind, Node, root, shown};
use super::layers::GUARDED;

/// The schema of settings files, as JSON.
pub fn schema() -> String {
    format!("{:#}\n", schema_value())
}

/// The schema, with a mark at what only trusted projects may set.
pub(super) fn schema_value() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<Settings>()
        .to_value();
    for path in GUARDED {
        let place = path.iter().try_fold(&mut schema, |place, name| {
            place.get_mut("properties")?.get_mut(name)
        });
        if let Some(Value::Object(place)) = place {
            place.insert("x-trusted-projects-only".to_owned(), json!(true));
        }
    }
    schema
}

/// The page that describes every setting.
pub fn reference() -> String {
    let mut page = include_str!("reference.md").to_owned();
    if let Kind::Group(members) = &root().kind {
        let (groups, single): (Vec<_>, Vec<_>) = members.iter().partition(|(_, node)| is_group(node));
        heading(&mut page, "At the top", "");
        for (name, node) in single {
            rows(&mut page, &mut vec![name.clone()], node);
        }
        for (name, node) in groups {
            heading(&mut page, &format!("`{name}`"), &node.doc);
            rows(&mut page, &mut vec![name.clone()], node);
        }
    }
    page
}

fn is_group(node: &Node) -> bool {
    match &node.kind {
        Kind::Group(_) => true,
        Kind::Named(each) => !matches!(each.kind, Kind::Leaf) || !each.schema.contains_key("x-expected"),
        Kind::Leaf => false,
    }
}

fn heading(page: &mut String, title: &str, doc: &str) {
    // Writing to a text cannot fail.
    write!(page, "\n## {title}\n\n").ok();
    if !doc.is_empty() {
        write!(page, "{doc}\n\n").ok();
    }
    page.push_str("| setting | takes | default | what it does |\n|---|---|---|---|\n");
}

fn rows(page: &mut String, path: &mut Vec<String>, node: &Node) {
    match &node.kind {
        Kind::Group(members) => {
            for (name, node) in members {
                path.push(name.clone());
                rows(page, path, node);
                path.pop();
            }
        }
        Kind::Named(each) => {
            path.push("NAME".to_owned());
            match &each.kind {
                Kind::Leaf if each.schema.contains_key("properties") => whole(page, path, each),
                Kind::Leaf => row(page, path, &each.expected(), None, &node.doc),
                _ => rows(page, path, each),
            }
            path.pop();
        }
        Kind::Leaf => row(
            page,
            path,
            &node.expected(),
            node.schema.get("default"),
            &node.doc,
        ),
    }
}

/// The members of a value that is taken as a whole.
fn whole(page: &mut String, path: &[String], node: &Node) {
    let no_members = Map::new();
    let members = node
        .schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&no_members);
    for (name, schema) in members {
        let mut path = path.to_vec();
        path.push(name.clone());
        let member = Node::new(schema);
        row(
            page,
            &path,
            &member.expected(),
            member.schema.get("default"),
            &member.doc,
        );
    }
}

fn row(page: &mut String, path: &[String], takes: &str, default: Option<&Value>, doc: &str) {
    let default = match default {
        None | Some(Value::Null) => String::new(),
        Some(value) => format!("`{value}`"),
    };
    let cell = |text: &str| text.replace('\n', " ").replace('|', "\\|");
    let guarded = GUARDED.iter().any(|guarded| {
        path.iter()
            .map(String::as_str)
            .take(guarded.len())
            .eq(guarded.iter().copied())
    });
    let mark = if guarded { " †" } else { "" };
    writeln!(
        page,
        "| `{}`{mark} | {} | {} | {} |",
        shown(path),
        cell(takes),
        cell(&default),
        cell(doc)
    )
    .ok();
}
