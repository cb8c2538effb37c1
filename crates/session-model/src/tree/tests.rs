use crate::log::{SessionLog, Trust};
use crate::tree::Leaf;

/// `id<parent`, one per entry; no parent means a root.
pub(crate) fn log(tree: &str) -> SessionLog {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    for node in tree.split_whitespace() {
        let (id, parent) = node
            .split_once('<')
            .map_or((node, "null".to_owned()), |(i, p)| (i, format!("\"{p}\"")));
        text.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{id}\"}}}}\n"
        ));
    }
    SessionLog::load(text, Trust::Claimed).unwrap()
}

fn path(log: &SessionLog, leaf: &str) -> String {
    let ids: Vec<&str> = log
        .path(log.find(leaf).unwrap())
        .into_iter()
        .map(|ix| log.id(ix))
        .collect();
    ids.join(" ")
}

#[test]
fn paths_go_from_the_root_to_the_leaf() {
    let table = [
        ("a b<a c<b", "c", "a b c"),
        ("a b<a c<a d<c", "d", "a c d"),
        ("a b<x c<b", "c", "b c"),
        ("a<a b<a", "b", "a b"),
        ("a<b b<a c<b", "c", "a b c"),
        ("c<b b<a a", "c", "a b c"),
        ("a<c b<a c<b", "a", "b c a"),
    ];
    for (tree, leaf, expected) in table {
        assert_eq!(path(&log(tree), leaf), expected, "{tree}");
    }
}

#[test]
fn of_two_entries_with_one_id_the_last_is_the_parent() {
    let log = log("a b<a a<b c<a");
    assert_eq!(path(&log, "c"), "b a c");
}

#[test]
fn children_and_roots_stand_in_file_order() {
    let log = log("a b<a c d<a e<x f<f");
    let children = log.children();
    let ids = |list: &[crate::EntryIx]| list.iter().map(|ix| log.id(*ix)).collect::<Vec<_>>().join(" ");
    assert_eq!(ids(children.roots()), "a c e f");
    assert_eq!(ids(children.of(log.find("a").unwrap())), "b d");
    assert_eq!(ids(children.of(log.find("d").unwrap())), "");
}

#[test]
fn the_common_ancestor_is_the_deepest_shared_entry() {
    let log = log("r a<r b<a c<a d<c x y<x");
    let find = |id: &str| log.find(id).unwrap();
    let table = [
        ("b", "d", Some("a")),
        ("a", "d", Some("a")),
        ("d", "d", Some("d")),
        ("d", "y", None),
    ];
    for (a, b, expected) in table {
        assert_eq!(
            log.common_ancestor(find(a), find(b)).map(|ix| log.id(ix)),
            expected
        );
    }
}

#[test]
fn leaves_resolve() {
    let log = log("a b<a");
    assert_eq!(log.resolve(&Leaf::Last).unwrap(), log.find("b"));
    assert_eq!(log.resolve(&Leaf::BeforeFirst).unwrap(), None);
    assert_eq!(log.resolve(&Leaf::Entry("a".into())).unwrap(), log.find("a"));
    assert_eq!(
        log.resolve(&Leaf::Entry("z".into())).unwrap_err().to_string(),
        "entry z not found"
    );
}
