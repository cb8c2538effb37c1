use foldline_session_model::log::{SessionLog, Trust};

use super::Abandoned;
use crate::testing::tree;

/// Ids in the form `ancestor: abandoned …`.
fn between(log: &SessionLog, old: Option<&str>, new: Option<&str>) -> String {
    let at = |id: Option<&str>| id.and_then(|id| log.find(id));
    let abandoned = Abandoned::between(log, at(old), at(new));
    let ids: Vec<&str> = abandoned.entries().iter().map(|ix| log.id(*ix)).collect();
    let ancestor = abandoned.common_ancestor().map_or("-", |ix| log.id(ix));
    format!("{ancestor}: {}", ids.join(" "))
}

#[test]
fn what_is_abandoned() {
    // a ─ b ─ c ─ d
    //      └─ e ─ f      g ─ h is a tree of its own
    let log = tree(&["a", "b<a", "c<b", "d<c", "e<b", "f<e", "g", "h<g"]);
    let cases = [
        ("siblings", Some("d"), Some("f"), "b: c d"),
        ("the other way", Some("f"), Some("d"), "b: e f"),
        ("an ancestor", Some("d"), Some("a"), "a: b c d"),
        ("a descendant", Some("b"), Some("d"), "b: "),
        ("the same leaf", Some("d"), Some("d"), "d: "),
        ("to before the first", Some("c"), None, "-: a b c"),
        ("from before the first", None, Some("d"), "-: "),
        ("nowhere", None, None, "-: "),
        ("disjoint roots", Some("h"), Some("f"), "-: g h"),
        ("an unknown target", Some("c"), Some("zzz"), "-: a b c"),
    ];
    for (name, old, new, expected) in cases {
        assert_eq!(between(&log, old, new), expected, "{name}");
    }
}

#[test]
fn a_missing_parent_ends_a_path() {
    let log = tree(&["a", "b<gone", "c<b", "d<b"]);
    assert_eq!(between(&log, Some("c"), Some("d")), "b: c");
    assert_eq!(between(&log, Some("c"), Some("a")), "-: b c");
}

#[test]
fn parents_in_a_circle_end() {
    let log = tree(&["x<z", "y<x", "z<y", "w<y"]);
    // y ← x ← z ← y …: whatever is shared is found on either way in.
    assert_eq!(between(&log, Some("w"), Some("z")), "y: w");
    assert_eq!(between(&log, Some("z"), Some("w")), "z: ");
    assert_eq!(between(&log, Some("x"), None), "-: y z x");
}

#[test]
fn an_empty_session_has_no_branch() {
    let log = SessionLog::load(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
        Trust::Validated,
    )
    .unwrap();
    assert_eq!(between(&log, None, None), "-: ");
}
