use std::fs;

use super::super::catalog::{self, Kind};
use super::super::layers::GUARDED;
use super::*;

fn committed(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(docs.join(name)).unwrap_or_default()
}

#[test]
fn schema_and_page_are_fresh() {
    assert!(
        committed("settings.schema.json") == schema(),
        "run `cargo xtask codegen`"
    );
    assert!(
        committed("settings.md") == reference(),
        "run `cargo xtask codegen`"
    );
}

/// The schema and the types know the same settings, and each says what it is for.
#[test]
fn every_setting_is_described() {
    let defaults = serde_json::to_value(Settings::default()).unwrap();
    let mut leaves = Vec::new();
    catalog::root().each_leaf(&mut Vec::new(), &mut |path, node| {
        assert!(!node.doc.is_empty(), "{path:?}");
        assert!(
            node.expected() != "a text" || node.schema["type"] != "object",
            "{path:?}"
        );
        leaves.push(path.clone());
    });
    for path in &leaves {
        let value = path.iter().try_fold(&defaults, |value, name| value.get(name));
        assert!(value.is_some(), "{path:?}");
        assert_eq!(catalog::root().path(&catalog::shown(path)).as_ref(), Some(path));
    }
    assert_eq!(count(&defaults, catalog::root()), leaves.len());
}

fn count(value: &Value, node: &catalog::Node) -> usize {
    match (value, &node.kind) {
        (Value::Object(members), Kind::Group(_)) => members
            .iter()
            .map(|(name, value)| count(value, node.child(name).unwrap()))
            .sum(),
        (_, Kind::Named(_)) => 0,
        _ => 1,
    }
}

#[test]
fn what_is_guarded_exists() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    for path in GUARDED {
        let place = path
            .iter()
            .try_fold(&schema, |place, name| place.get("properties")?.get(name));
        assert_eq!(place.unwrap()["x-trusted-projects-only"], true, "{path:?}");
    }
}
