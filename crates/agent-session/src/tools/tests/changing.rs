//! Tools that change files.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

fn names(yard: &Yard) -> Vec<String> {
    let entries = fs_err::read_dir(&yard.root).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn set_mode(yard: &Yard, name: &str, mode: u32) {
    fs_err::set_permissions(yard.root.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn write_makes_folders_and_keeps_modes() {
    let yard = Yard::new();
    let made = yard
        .call(ToolName::Write, r#"{"path":"x/y/a.txt","content":"a\nb\n"}"#)
        .await;
    assert_eq!(told(&made), "Made `x/y/a.txt`: 4 bytes, 2 lines.");
    assert_eq!(
        (detail(&made, "created"), detail(&made, "bytes")),
        ("true".to_owned(), "4".to_owned())
    );
    set_mode(&yard, "x/y/a.txt", 0o751);
    let replaced = yard
        .text(ToolName::Write, r#"{"path":"x/y/a.txt","content":""}"#)
        .await;
    assert_eq!(replaced, "Replaced `x/y/a.txt`: 0 bytes, 0 lines.");
    let meta = fs_err::metadata(yard.root.join("x/y/a.txt")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.len()), (0o751, 0));
    assert_eq!(names(&yard), ["x"]);
    assert_eq!(fs_err::read_dir(yard.root.join("x/y")).unwrap().count(), 1);
}

#[tokio::test]
async fn write_refuses_what_is_no_file_of_its_own() {
    let mut yard = Yard::new();
    yard.put("locked", "x");
    set_mode(&yard, "locked", 0o444);
    yard.put("dir/x", "");
    symlink("../secret", yard.root.join("out")).unwrap();
    symlink("../new", yard.root.join("dead")).unwrap();
    yard.limits().edit.0 = 5;
    for (arguments, expected) in [
        (r#"{"path":"locked","content":""}"#, "`locked` is read-only."),
        (r#"{"path":"dir","content":""}"#, "`dir` is a folder, not a file."),
        (
            r#"{"path":".","content":""}"#,
            "`.` is a root, not a file in one.",
        ),
        (
            r#"{"path":"dead","content":""}"#,
            "`dead` is a link to something that does not exist.",
        ),
        (
            r#"{"path":"locked/x","content":""}"#,
            "`locked/x` is not a folder.",
        ),
        (r#"{"path":"a"}"#, "`content` is missing."),
        (
            r#"{"path":"a","content":"123456"}"#,
            "The text has 6 bytes; at most 5 are written.",
        ),
    ] {
        assert_eq!(
            yard.error(ToolName::Write, arguments).await,
            expected,
            "{arguments}"
        );
    }
    for path in ["out", "../new", "/tmp/new-file-of-a-test", "/proc/self/comm"] {
        let why = yard
            .error(ToolName::Write, &format!(r#"{{"path":"{path}","content":"x"}}"#))
            .await;
        assert!(
            why.contains("outside") || why.contains("never opened"),
            "{path}: {why}"
        );
    }
    assert_eq!(
        fs_err::read(yard.outside().join("secret")).unwrap(),
        b"hidden words\n"
    );
    assert_eq!(names(&yard), ["dead", "dir", "locked", "out"]);
}

#[tokio::test]
async fn edit_answers_with_a_diff_and_keeps_the_rest() {
    let yard = Yard::new();
    yard.put("a.txt", "\u{FEFF}one\r\ntwo\r\nthree\r\n");
    set_mode(&yard, "a.txt", 0o640);
    let edited = yard
        .call(ToolName::Edit, r#"{"path":"a.txt","edits":[{"oldText":"two\nthree","newText":"2\n3"},{"oldText":"one","newText":"1"}]}"#)
        .await;
    assert_eq!(
        told(&edited),
        "Made 2 edits in `a.txt`.\n@@ -1,3 +1,3 @@\n-one\n-two\n-three\n+1\n+2\n+3\n"
    );
    assert_eq!(yard.get("a.txt"), "\u{FEFF}1\r\n2\r\n3\r\n");
    assert_eq!(
        fs_err::metadata(yard.root.join("a.txt")).unwrap().mode() & 0o777,
        0o640
    );
    let single = yard
        .text(ToolName::Edit, r#"{"path":"a.txt","oldText":"3","newText":"4"}"#)
        .await;
    assert!(single.starts_with("Made 1 edit in `a.txt`."), "{single}");
    assert_eq!(names(&yard), ["a.txt"]);
}

#[tokio::test]
async fn edit_follows_a_link_inside_to_the_file_itself() {
    let yard = Yard::new();
    yard.put("a.txt", "x\n");
    symlink("a.txt", yard.root.join("link")).unwrap();
    yard.text(
        ToolName::Edit,
        r#"{"path":"link","edits":[{"oldText":"x","newText":"y"}]}"#,
    )
    .await;
    assert_eq!(yard.get("a.txt"), "y\n");
    assert!(
        fs_err::symlink_metadata(yard.root.join("link"))
            .unwrap()
            .is_symlink()
    );
}

#[tokio::test]
async fn edit_changes_all_or_nothing() {
    let yard = Yard::new();
    yard.put("a.txt", "a\na\nb\n");
    yard.put("latin", b"caf\xe9");
    for (arguments, expected) in [
        (
            r#"{"path":"a.txt","edits":[{"oldText":"b","newText":"c"},{"oldText":"a","newText":"c"}]}"#,
            "`a.txt`, edit 2: `oldText` is in the file 2 times, at lines 1, 2. Put more of what is around it into `oldText`. Nothing was changed.",
        ),
        (
            r#"{"path":"a.txt","edits":[{"oldText":"z","newText":"c"}]}"#,
            "`a.txt`, edit 1: `oldText` is not in the file. Nothing was changed.",
        ),
        (r#"{"path":"a.txt","edits":[]}"#, "`edits` is empty."),
        (
            r#"{"path":"a.txt","edits":[{"oldText":"z"}]}"#,
            "edit 1: `newText` is missing.",
        ),
        (
            r#"{"path":"a.txt","edits":["z"]}"#,
            "edit 1 must be an object, not a string.",
        ),
        (
            r#"{"path":"a.txt","edits":"z"}"#,
            "`edits` must be a list, not a string.",
        ),
        (r#"{"path":"a.txt"}"#, "`edits` is missing."),
        (
            r#"{"path":"latin","oldText":"a","newText":"b"}"#,
            "`latin` is not UTF-8, and an edit would destroy what is not.",
        ),
        (
            r#"{"path":"b.txt","oldText":"a","newText":"b"}"#,
            "`b.txt` does not exist.",
        ),
    ] {
        assert_eq!(
            yard.error(ToolName::Edit, arguments).await,
            expected,
            "{arguments}"
        );
    }
    assert_eq!(yard.get("a.txt"), "a\na\nb\n");
}

#[test]
fn what_was_changed_meanwhile_is_not_overwritten() {
    use super::super::blocking::Stop;
    use super::super::places::Places;
    use super::super::replace_file::{Version, replace_file};

    let yard = Yard::new();
    yard.put("a.txt", "x\n");
    let places = Places::new(&yard.root, &[]).unwrap();
    let place = places.existing(&yard.root, "a.txt").unwrap();
    let version = Version::of(&place.open_file().unwrap()).unwrap();
    yard.put("a.txt", "changed\n");
    let stop = Stop::new(&yard.cancel);
    let why = replace_file(&place, b"y\n", Some(version), &stop).unwrap_err();
    assert!(why.0.contains("changed by something else"), "{}", why.0);
    // A caller that has gone keeps a change from being made.
    let version = Version::of(&place.open_file().unwrap()).unwrap();
    assert!(stop.commit());
    assert_eq!(
        replace_file(&place, b"y\n", Some(version), &stop).unwrap_err().0,
        "Cancelled."
    );
    assert_eq!((yard.get("a.txt").as_str(), names(&yard).len()), ("changed\n", 1));
}
