//! Rows 70 to 80: version 1, and what a store has to know from here.

use foldline_session_model::fold::Profile;
use foldline_session_model::log::{LoadError, Migration, SessionLog, Trust};
use foldline_session_model::tail::{Need, TailReader};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryId, HeaderDraft};

use crate::support::*;

/// A version 1 record: no id, no parent.
fn old(kind: &str, rest: &str) -> String {
    format!(r#"{{"type":"{kind}","timestamp":"2026-01-01T00:00:01.000Z",{rest}}}"#)
}

fn old_user(text: &str) -> String {
    old(
        "message",
        &format!(r#""message":{{"role":"user","content":"{text}"}}"#),
    )
}

fn old_compaction(index: &str) -> String {
    old(
        "compaction",
        &format!(r#""summary":"S","firstKeptEntryIndex":{index},"tokensBefore":9"#),
    )
}

fn version_1(lines: &[String]) -> SessionLog {
    load(format!("{}\n{}\n", header("1"), lines.join("\n")))
}

#[test]
fn row_70_indexes_of_version_1() {
    let log = |index: &str| version_1(&[old_user("A"), old_user("B"), old_compaction(index), old_user("D")]);
    // The header is 0, A is 1.
    assert_eq!(says(&log("1"), Profile::Auto), "[S] A B D");
    assert_eq!(says(&log("2"), Profile::Auto), "[S] B D");
    for (index, reported) in [
        ("0", ""),
        ("3", "4:index_out_of_range"),
        ("4", "4:index_out_of_range"),
        ("99", "4:index_out_of_range"),
        ("-1", "4:index_out_of_range"),
        ("1.5", "4:index_out_of_range"),
    ] {
        let log = log(index);
        assert_eq!(
            (says(&log, Profile::Auto), damage(&log)),
            ("[S] D".into(), reported.into()),
            "{index}"
        );
        assert!(!String::from_utf8_lossy(log.bytes()).contains("firstKeptEntryIndex"));
    }
}

#[test]
fn row_71_indexes_of_version_1_count_parsed_values() {
    let lines = [
        old_user("A"),
        "{broken".into(),
        "null".into(),
        old_user("B"),
        old_compaction("3"),
        old_user("D"),
    ];
    let log = version_1(&lines);
    // Header 0, A 1, null 2, B 3: the broken line does not count.
    assert_eq!(says(&log, Profile::Auto), "[S] B D");
    assert_eq!(damage(&log), "3:malformed 4:not_an_object");
}

#[test]
fn row_72_a_fork_of_version_1_is_migrated_first() {
    let log = version_1(&[old_user("A"), old_user("B"), old_compaction("2"), old_user("D")]);
    let header = HeaderDraft {
        id: "n".into(),
        timestamp: "t".into(),
        cwd: "/w".into(),
        parent_session: None,
        title: None,
    };
    let mut mint = || EntryId::from("m");
    for bytes in [
        log.fork(&Leaf::Last, &header, &mut mint).unwrap(),
        log.branch(&Leaf::Last, &header, &mut mint).unwrap(),
    ] {
        let new = load(bytes);
        assert_eq!((new.len(), says(&new, Profile::Auto)), (4, "[S] B D".into()));
        assert_eq!(new.disk_form().migration, Migration::NotNeeded);
    }
    // Ids are the same in every process (D1).
    let again = version_1(&[old_user("A"), old_user("B"), old_compaction("2"), old_user("D")]);
    assert_eq!(ids(&log), ids(&again));
}

#[test]
fn row_73_a_long_header_is_read_whole() {
    let long = "x".repeat(200_000);
    let text = format!("{}\n{}\n", HEADER.replace("/w", &long), user("u", ""));
    assert_eq!(load(&*text).header().cwd.len(), long.len());
    let mut reader = TailReader::new(text.len() as u64, Profile::Auto);
    while let Need::Bytes(range) = reader.need() {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        reader.feed(&text.as_bytes()[range]);
    }
    let log = reader.finish().unwrap();
    assert_eq!(
        (log.header().cwd.len(), says(&log, Profile::Auto)),
        (long.len(), "u".into())
    );
}

/// The store cuts the file back; the log in memory is only told of lines that are written.
#[test]
fn row_74_a_refused_line_leaves_the_log_as_it_was() {
    let text = file(&[user("u", "")]);
    let mut log = load(&*text);
    for line in [
        "",
        "{}",
        "null",
        "{\"type\":\"message\"",
        HEADER,
        "{\"type\":\"x\",\"id\":\"y\"}\n{}",
    ] {
        assert!(log.append(line).is_err(), "{line}");
        assert_eq!((log.bytes(), log.len()), (text.as_bytes(), 1));
    }
    assert_eq!(log.id(log.leaf().unwrap()), "u");
}

/// The store's lock keeps writers apart. A file in which they met reads as branches.
#[test]
fn row_75_lines_of_two_writers_are_branches() {
    let log = load(file(&[
        user("u", ""),
        user("a1", "u"),
        user("b1", "u"),
        user("a2", "a1"),
        user("b2", "b1"),
    ]));
    assert_eq!(
        (says(&log, Profile::Auto), damage(&log)),
        ("u b1 b2".into(), String::new())
    );
    let other = log.context(&Leaf::Entry("a2".into()), Profile::Auto).unwrap();
    assert_eq!(said(&other), "u a1 a2");
}

#[test]
fn row_76_an_invalid_timestamp_is_kept_and_orders_nothing() {
    let odd = user("b", "a").replace("2026-01-01T00:00:01.000Z", "yesterday");
    let log = load(file(&[user("a", ""), odd, user("c", "a")]));
    let b = log.find("b").unwrap();
    assert_eq!((log.timestamp(b), damage(&log)), ("yesterday", String::new()));
    assert_eq!(
        log.children().of(log.find("a").unwrap()),
        [b, log.find("c").unwrap()]
    );
}

#[test]
fn row_77_deep_nesting_and_repeated_keys() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let call = message(
        "a",
        "",
        &format!(
            r#""role":"assistant","content":[{{"type":"toolCall","id":"x","name":"n","name":"read","arguments":{{"d":{deep}}}}}]"#
        ),
    );
    let twice = message(
        "b",
        "a",
        r#""role":"assistant","role":"user","content":"first","content":"last""#,
    );
    let log = load(file(&[call, twice]));
    assert_eq!(
        (says(&log, Profile::Auto), damage(&log)),
        (" last".into(), String::new())
    );
    let context = context(&log);
    let call = context.items[0]
        .message
        .content()
        .unwrap()
        .tool_calls()
        .next()
        .unwrap();
    assert_eq!(
        (&*call.name, call.arguments.as_ref().unwrap().get().len()),
        ("read", 10_001 + 6)
    );
}

/// Whether and when lines reach the disk is the store's and the agent's business; a session of user messages only is
/// a session.
#[test]
fn row_78_only_user_messages() {
    let log = load(file(&[user("a", ""), user("b", "a")]));
    assert_eq!(
        (says(&log, Profile::Auto), log.disk_form().migration),
        ("a b".into(), Migration::NotNeeded)
    );
}

#[test]
fn row_79_the_header_of_version_1_starts_the_state() {
    let header = header("1").replace(
        r#""cwd""#,
        r#""provider":"p","modelId":"m","thinkingLevel":"high","cwd""#,
    );
    let log = load(format!("{header}\n{}\n", old_user("A")));
    let context = context(&log);
    let state = context.state();
    let model = state.model().unwrap();
    assert_eq!(
        (&*model.provider, &*model.model, state.thinking_level.as_deref()),
        ("p", "m", Some("high"))
    );
}

/// Promotion is the store's business: a backup is a session like any other, and damage never makes it one that is not.
#[test]
fn row_80_a_backup_loads_as_its_session() {
    let text = file(&[user("a", "")]);
    assert_eq!(ids(&SessionLog::load(&*text, Trust::Claimed).unwrap()), "a");
    assert!(matches!(
        SessionLog::load("\0\0\0", Trust::Claimed),
        Err(LoadError::NotASession { .. })
    ));
}
