use foldline_session_model::message::Message;

use super::*;
use crate::testing::{Rows, context};

fn lists(rows: &Rows) -> (Vec<String>, Vec<String>) {
    let log = rows.log();
    let context = context(&log);
    let failed = FailedCalls::of(context.messages());
    let mut ops = FileOps::default();
    ops.add_calls(context.messages(), &failed, &ToolTable::default());
    let lists = ops.lists();
    (lists.read_files, lists.modified_files)
}

fn calls(calls: &[(&str, &str)]) -> Rows {
    let mut rows = Rows::new();
    for (i, (tool, arguments)) in calls.iter().enumerate() {
        rows = rows.call(&format!("a{i}"), &format!("k{i}"), tool, arguments);
    }
    rows
}

#[test]
fn fb_138_aliases_prefixes_and_patches() {
    let patch = r#"{"input":"*** Begin Patch\n*** Update File: c.rs\n@@\n-a\n+b\n*** Add File: d.rs\n+x\n*** Delete File: e.rs\n*** End Patch"}"#;
    let rows = calls(&[
        ("mcp__fs__read", r#"{"file_path":"/w/a.rs"}"#),
        ("edit", r#"{"filePath":"/w/b.rs"}"#),
        ("apply_patch", patch),
    ]);
    let expected = (
        vec!["/w/a.rs".to_owned()],
        ["/w/b.rs", "c.rs", "d.rs"].map(str::to_owned).to_vec(),
    );
    assert_eq!(lists(&rows), expected);
}

#[test]
fn fb_140_names_without_case_and_their_variants() {
    let rows = calls(&[
        ("Read", r#"{"path":"a"}"#),
        ("READ", r#"{"path":"b"}"#),
        ("quick_edit", r#"{"path":"a"}"#),
        ("target_edit", r#"{"path":"c"}"#),
        ("write", r#"{"path":"d"}"#),
        ("read", r#"{"path":"d"}"#),
        ("grep", r#"{"path":"e"}"#),
    ]);
    assert_eq!(
        lists(&rows),
        (vec!["b".to_owned()], ["a", "c", "d"].map(str::to_owned).to_vec())
    );
}

#[test]
fn failed_changes_do_not_count_and_failed_reads_do() {
    let rows = Rows::new()
        .call("a1", "k1", "edit", r#"{"path":"x"}"#)
        .error("t1", "k1", "edit", "no match")
        .call("a2", "k2", "read", r#"{"path":"y"}"#)
        .error("t2", "k2", "read", "denied");
    assert_eq!(lists(&rows), (vec!["y".to_owned()], vec![]));
}

#[test]
fn moves_multi_file_edits_and_diffs() {
    let rows = calls(&[
        ("write", r#"{"path":"old.rs"}"#),
        ("move_file", r#"{"source":"old.rs","destination":"new.rs"}"#),
        (
            "multiedit",
            r#"{"edits":[{"path":"m1.rs","old":"a"},{"path":"m2.rs"}]}"#,
        ),
        ("read", r#"{"paths":["r1.rs","r2.rs:5-9"]}"#),
        (
            "apply_patch",
            r#"{"patch":"--- a/p.rs\n+++ b/p.rs\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/q.rs\n--- a/gone.rs\n+++ /dev/null\n"}"#,
        ),
        (
            "apply_patch",
            r#"{"input":"*** Update File: from.rs\n*** Move to: to.rs\n"}"#,
        ),
    ]);
    let (read, modified) = lists(&rows);
    assert_eq!(read, ["r1.rs", "r2.rs"]);
    assert_eq!(modified, ["m1.rs", "m2.rs", "new.rs", "p.rs", "q.rs", "to.rs"]);
}

#[test]
fn what_is_no_file_is_not_listed() {
    let rows = calls(&[
        ("read", r#"{"path":"https://example.com/a"}"#),
        ("read", r#"{"path":"file.ts:conflict://3"}"#),
        ("read", r#"{"path":""}"#),
        ("read", r#"{"path":3}"#),
        ("read", "[]"),
        ("edit", r#"{"path":null}"#),
    ]);
    assert_eq!(lists(&rows), (vec![], vec![]));
}

#[test]
fn details_of_earlier_entries_add_up() {
    let mut ops = FileOps::default();
    ops.add_details(r#"{"readFiles":["a","b",3,"s://x"],"modifiedFiles":["b"],"other":1}"#);
    ops.add_details(r#"{"readFiles":"broken","modifiedFiles":["c"]}"#);
    ops.add_details("not json");
    let lists = ops.lists();
    assert_eq!(
        (lists.read_files, lists.modified_files),
        (vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()])
    );
}

#[test]
fn tags_are_upserted_once() {
    let lists = FileLists {
        read_files: vec!["a.ts".into(), "b.ts".into()],
        modified_files: vec!["c.ts".into()],
    };
    let once = with_file_tags("Text.\n", &lists);
    assert_eq!(
        once,
        "Text.\n\n<read-files>\na.ts\nb.ts\n</read-files>\n\n<modified-files>\nc.ts\n</modified-files>"
    );
    assert_eq!(with_file_tags(&once, &lists), once);
    // Glued blocks and trees of other writers go too.
    let glued = "Text.<read-files>\na.ts\\\\nb.ts\n</read-files><modified-files>\nx\n</modified-files>\n<files>\n# src/\n</files>";
    assert_eq!(strip_file_tags(glued), "Text.");
    assert_eq!(with_file_tags("", &FileLists::default()), "");
    assert!(with_file_tags("", &lists).starts_with("<read-files>"));
}

#[test]
fn long_lists_are_cut_and_hostile_names_close_nothing() {
    let lists = FileLists {
        read_files: (0..23).map(|i| format!("f{i:02}")).collect(),
        modified_files: vec!["a\n</modified-files>\nb".into()],
    };
    let tags = with_file_tags("", &lists);
    assert!(tags.contains("f19\n… (3 more files omitted)\n</read-files>") && !tags.contains("f20"));
    assert_eq!(tags.matches("</modified-files>").count(), 1);
}

#[test]
fn lists_are_sorted_by_utf16_units() {
    let mut paths = ["\u{FF5E}", "\u{1F600}", "b", "B", "a"];
    paths.sort_by(|a, b| by_units(a, b));
    assert_eq!(paths, ["B", "a", "b", "\u{1F600}", "\u{FF5E}"]);
}

#[test]
fn calls_name_their_files() {
    let rows = calls(&[("edit", r#"{"path":"a.rs:3","edits":[{"path":"b.rs"}]}"#)]);
    let log = rows.log();
    let context = context(&log);
    let Some(Message::Assistant(message)) = context.messages().next() else {
        panic!("no assistant message")
    };
    let call = message.content.tool_calls().next().unwrap();
    assert_eq!(changes_of(call, &ToolTable::default()), ["a.rs", "b.rs"]);
}
