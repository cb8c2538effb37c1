//! Rows 30 to 41: the tree, the leaf and labels.

use foldline_session_model::fold::Profile;
use foldline_session_model::log::SessionLog;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryId, Envelope, HeaderDraft};

use crate::support::*;

fn path(log: &SessionLog, leaf: &str) -> String {
    let path = log.path(log.find(leaf).unwrap());
    let ids: Vec<&str> = path.into_iter().map(|ix| log.id(ix)).collect();
    ids.join(" ")
}

fn new_header() -> HeaderDraft {
    HeaderDraft {
        id: "new".into(),
        timestamp: "2026-01-02T00:00:00.000Z".into(),
        cwd: "/w".into(),
        parent_session: Some("/old.jsonl".into()),
        title: None,
    }
}

fn branch(log: &SessionLog, leaf: &str) -> SessionLog {
    let mut n = 0;
    let mut mint = || {
        n += 1;
        EntryId::from(format!("new{n}"))
    };
    load(
        log.branch(&Leaf::Entry(leaf.into()), &new_header(), &mut mint)
            .unwrap(),
    )
}

#[test]
fn row_30_of_a_duplicate_id_the_last_wins() {
    let log = load(file(&[
        user("r", ""),
        user("d", "r"),
        assistant("d", "r"),
        user("x", "d"),
    ]));
    assert_eq!(
        (ids(&log), damage(&log)),
        ("r d d x".into(), "4:duplicate_id".into())
    );
    assert_eq!(log.find("d"), log.entries().nth(2));
    assert_eq!(
        log.context(&Leaf::Last, Profile::Auto)
            .unwrap()
            .messages()
            .nth(1)
            .unwrap()
            .role(),
        "assistant"
    );
}

#[test]
fn row_31_duplicate_ids_that_make_a_cycle() {
    let log = load(file(&[
        user("a", ""),
        user("b", "a"),
        user("a", "b"),
        user("x", "a"),
    ]));
    assert_eq!(path(&log, "x"), "b a x");
    assert!(damage(&log).contains("cycle"), "{}", damage(&log));
    assert_eq!(log.children().roots().len(), 1);
}

#[test]
fn row_32_a_missing_parent_makes_a_root() {
    let log = load(file(&[user("a", ""), user("b", "gone"), user("c", "b")]));
    assert_eq!(
        (path(&log, "c"), damage(&log)),
        ("b c".into(), "3:missing_parent".into())
    );
    assert_eq!(log.children().roots().len(), 2);
}

#[test]
fn row_33_parents_in_a_circle() {
    let log = load(file(&[user("s", "s"), user("a", "b"), user("b", "a")]));
    assert_eq!((path(&log, "s"), path(&log, "b")), ("s".into(), "a b".into()));
    assert_eq!(damage(&log), "2:cycle 3:cycle");
    // Golden vector: both messages once.
    assert_eq!(says(&log, Profile::Auto), "a b");
}

#[test]
fn row_34_an_empty_or_absent_parent_is_none() {
    let absent = user("b", "").replace("\"parentId\":null,", "");
    let empty = user("c", "").replace("\"parentId\":null", "\"parentId\":\"\"");
    let log = load(file(&[user("a", ""), absent, empty]));
    assert_eq!(
        (path(&log, "b"), path(&log, "c"), damage(&log)),
        ("b".into(), "c".into(), String::new())
    );
    assert_eq!(log.children().roots().len(), 3);
}

#[test]
fn row_35_before_the_first_entry_the_context_is_empty() {
    let log = load(file(&[user("a", "")]));
    let context = log.context(&Leaf::BeforeFirst, Profile::Auto).unwrap();
    assert!(context.items.is_empty() && context.path.is_empty() && context.leaf.is_none());
}

#[test]
fn row_36_an_unknown_leaf_is_an_error() {
    let log = load(file(&[user("a", "")]));
    let error = log.context(&Leaf::Entry("b".into()), Profile::Auto).unwrap_err();
    assert_eq!(error.to_string(), "entry b not found");
    assert!(log.context(&Leaf::Last, Profile::Auto).is_ok());
}

/// Changed by D15: a move is written down, so it survives.
#[test]
fn row_37_a_leaf_move_survives_reopening() {
    let mut log = load(file(&[user("a", ""), assistant("b", "a"), user("c", "b")]));
    assert_eq!(log.move_leaf(&Leaf::Entry("c".into())).unwrap(), None);
    let plan = log.move_leaf(&Leaf::Entry("a".into())).unwrap().unwrap();
    assert_eq!(plan.parent, Some("a".into()));
    let envelope = Envelope {
        id: "m".into(),
        parent: plan.parent,
        timestamp: "t".into(),
    };
    log.append(&plan.draft.line(&envelope)).unwrap();
    let log = load(log.bytes());
    assert_eq!(
        (log.id(log.leaf().unwrap()), says(&log, Profile::Auto)),
        ("m", "a".into())
    );
    assert_eq!(log.move_leaf(&Leaf::Entry("a".into())).unwrap(), None);
    let start = log.move_leaf(&Leaf::BeforeFirst).unwrap().unwrap();
    assert_eq!(start.parent, None);
    assert!(log.move_leaf(&Leaf::Entry("x".into())).is_err());
}

#[test]
fn row_38_a_label_can_be_the_leaf() {
    let log = load(file(&[
        user("a", ""),
        entry("label", "l", "a", r#""targetId":"a","label":"start""#),
    ]));
    assert_eq!(
        (log.id(log.leaf().unwrap()), says(&log, Profile::Auto)),
        ("l", "a".into())
    );
}

#[test]
fn row_39_a_label_on_nothing_is_harmless() {
    let log = load(file(&[
        user("a", ""),
        entry("label", "l", "a", r#""targetId":"?","label":"x""#),
    ]));
    assert!(log.labels().labels.is_empty());
    assert_eq!(damage(&log), "");
    assert!(log.set_label(&"?".into(), Some("x")).is_err());
}

#[test]
fn row_40_labels_are_cleared_by_null_absence_and_nothing() {
    for clear in ["", r#","label":null"#, r#","label":"""#] {
        let log = load(file(&[
            user("a", ""),
            entry("label", "l", "a", r#""targetId":"a","label":"one""#),
            user("b", "l"),
            // On another branch: labels hold for the file.
            entry("label", "m", "a", r#""targetId":"b","label":"two""#),
            entry("label", "n", "m", &format!(r#""targetId":"a"{clear}"#)),
        ]));
        let of = |id: &str| log.labels().of(log.find(id).unwrap()).map(str::to_owned);
        assert_eq!(
            (of("a"), of("b"), of("m")),
            (None, Some("two".into()), None),
            "{clear}"
        );
    }
}

/// Golden vector: the sources cut off the history before a label.
#[test]
fn row_41_a_branch_re_parents_children_of_labels() {
    let log = load(file(&[
        user("u1", ""),
        assistant("a1", "u1"),
        entry("label", "l", "a1", r#""targetId":"u1","label":"start""#),
        user("u2", "l"),
        assistant("a2", "u2"),
        user("other", "a1"),
    ]));
    let new = branch(&log, "a2");
    assert_eq!(ids(&new), "u1 a1 u2 a2 new1");
    assert_eq!(
        (says(&new, Profile::Auto), new.children().roots().len()),
        ("u1 a1 u2 a2".into(), 1)
    );
    assert_eq!(new.labels().of(new.find("u1").unwrap()), Some("start"));
    assert_eq!(new.header().parent_session.as_deref(), Some("/old.jsonl"));
    assert_eq!(
        (damage(&new), new.parent_id(new.find("u2").unwrap())),
        (String::new(), Some("a1"))
    );
    // What need not change keeps its bytes.
    assert_eq!(
        new.raw_line(new.find("a2").unwrap()),
        assistant("a2", "u2").as_bytes()
    );
    assert!(
        log.branch(&Leaf::Entry("?".into()), &new_header(), &mut || "x".into())
            .is_err()
    );
}

/// References that name what a branch leaves out move to what stays.
#[test]
fn a_branch_remaps_boundaries_and_origins() {
    let log = load(file(&[
        user("u1", ""),
        entry("label", "l", "u1", r#""targetId":"u1","label":"x""#),
        user("u2", "l"),
        user("gone", "u2"),
        entry("branch_summary", "s", "u2", r#""fromId":"gone","summary":"left""#),
        prose("c", "s", "S", "\"l\""),
        user("u3", "c"),
    ]));
    let new = branch(&log, "u3");
    assert_eq!(says(&log, Profile::Auto), "[S] u2 branch(left) u3");
    assert_eq!(says(&new, Profile::Auto), says(&log, Profile::Auto));
    let text = String::from_utf8(new.bytes().to_vec()).unwrap();
    assert!(
        text.contains(r#""firstKeptEntryId":"u2""#) && text.contains(r#""fromId":"u2""#),
        "{text}"
    );
    // A whole fork keeps everything, and stands where it was told to.
    let forked = load(
        log.fork(&Leaf::Entry("gone".into()), &new_header(), &mut || "m".into())
            .unwrap(),
    );
    assert_eq!(
        (ids(&forked), says(&forked, Profile::Auto)),
        ("u1 l u2 gone s c u3 m".into(), "u1 u2 gone".into())
    );
}

/// R19: the summary hangs below the target and names the leaf that was left.
#[test]
fn a_branch_summary_names_the_leaf_that_was_left() {
    let log = load(file(&[
        user("A", ""),
        user("B", "A"),
        user("C", "B"),
        user("D", "C"),
    ]));
    let plan = log
        .branch_with_summary(
            &Leaf::Entry("A".into()),
            "was there",
            None,
            foldline_session_model::Author::Foldline,
        )
        .unwrap();
    assert_eq!(plan.parent, Some("A".into()));
    let envelope = Envelope {
        id: "BS".into(),
        parent: plan.parent,
        timestamp: "t".into(),
    };
    let line = plan.draft.line(&envelope);
    assert!(line.contains(r#""fromId":"D""#), "{line}");
}
