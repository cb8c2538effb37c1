use foldline_session_model::log::SessionLog;
use foldline_session_model::{Author, EntryId, Envelope};

use super::Navigation;
use crate::testing::{assistant, rows, user};

fn session() -> SessionLog {
    let (u1, a1, u2, a2) = (
        user("Fix it"),
        assistant("Done"),
        user("Again"),
        assistant("Done again"),
    );
    rows(&[
        ("u1", "-", &u1),
        ("a1", "u1", &a1),
        (
            "n1",
            "a1",
            "\"type\":\"custom_message\",\"customType\":\"note\",\"content\":\"Look\",\"display\":true",
        ),
        ("u2", "n1", &u2),
        ("a2", "u2", &a2),
    ])
}

fn to(log: &SessionLog, id: &str) -> (Option<String>, Option<String>, String) {
    let navigation = Navigation::plan(log, log.find(id).unwrap());
    let ids: Vec<&str> = navigation
        .abandoned
        .entries()
        .iter()
        .map(|ix| log.id(*ix))
        .collect();
    (
        navigation.new_leaf.map(|ix| log.id(ix).to_owned()),
        navigation.editor_text,
        ids.join(" "),
    )
}

fn commit(log: &mut SessionLog, append: foldline_session_model::tree::Append, id: &str) {
    let envelope = Envelope {
        id: EntryId::from(id),
        parent: append.parent,
        timestamp: "2026-01-01T00:00:09.000Z".to_owned(),
    };
    log.append(&append.draft.line(&envelope)).unwrap();
}

#[test]
fn what_a_user_typed_goes_back_to_the_editor() {
    let log = session();
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        // target, new leaf, text for the editor, abandoned
        ("u1", None, text("Fix it"), "u1 a1 n1 u2 a2"),
        ("a1", text("a1"), None, "n1 u2 a2"),
        ("n1", text("a1"), text("Look"), "n1 u2 a2"),
        ("u2", text("n1"), text("Again"), "u2 a2"),
        ("a2", text("a2"), None, ""),
    ];
    for (target, leaf, editor, abandoned) in cases {
        assert_eq!(to(&log, target), (leaf, editor, abandoned.to_owned()), "{target}");
    }
    assert!(Navigation::plan(&log, log.find("a2").unwrap()).is_at_target());
}

#[test]
fn a_leaf_that_the_user_typed_is_where_the_session_stands() {
    let u1 = user("Fix it");
    let log = rows(&[("u1", "-", &u1)]);
    let navigation = Navigation::plan(&log, log.find("u1").unwrap());
    assert!(navigation.is_at_target());
    assert_eq!(
        (navigation.new_leaf, navigation.editor_text),
        (navigation.old_leaf, None)
    );
    assert_eq!(
        Navigation::plan(&log, log.find("u1").unwrap()).move_leaf(&log),
        None
    );
}

#[test]
fn moves_are_no_places_of_their_own() {
    let mut log = session();
    let away = Navigation::plan(&log, log.find("a1").unwrap());
    let append = away.move_leaf(&log).unwrap();
    commit(&mut log, append, "m1");
    assert_eq!(log.stands_at(), log.find("a1"));
    // Back again: the move itself is not among what is left.
    let back = Navigation::plan(&log, log.find("a2").unwrap());
    assert_eq!(back.old_leaf, log.find("a1"));
    assert!(back.abandoned.entries().is_empty());
    // The move as a target means the place that it went to.
    assert!(Navigation::plan(&log, log.find("m1").unwrap()).is_at_target());

    let root = Navigation::plan(&log, log.find("u1").unwrap());
    let append = root.move_leaf(&log).unwrap();
    assert_eq!(append.parent, None);
    commit(&mut log, append, "m2");
    assert_eq!(log.stands_at(), None);
    let moved = log.find("m2").unwrap();
    assert!(Navigation::plan(&log, moved).is_at_target());
}

/// FB-093: the summary hangs below the entry navigated to, and names the leaf that was left.
#[test]
fn a_summary_names_both_ends() {
    let (a, b, c, d) = (assistant("A"), assistant("B"), assistant("C"), assistant("D"));
    let mut log = rows(&[("A", "-", &a), ("B", "A", &b), ("C", "B", &c), ("D", "C", &d)]);
    let navigation = Navigation::plan(&log, log.find("A").unwrap());
    let append = navigation
        .with_summary(&log, "tried B to D", Some("{\"readFiles\":[]}"), Author::Foldline)
        .unwrap();
    commit(&mut log, append, "BS");
    let entry = log.find("BS").unwrap();
    assert_eq!(log.parent_id(entry), Some("A"));
    let line = String::from_utf8_lossy(log.raw_line(entry)).into_owned();
    assert!(line.contains("\"fromId\":\"D\""), "{line}");
    assert_eq!(log.stands_at(), Some(entry));
}
