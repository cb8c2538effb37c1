use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

use super::{changed_paths, open_errors};
use crate::verbatim::{Parameters, SmallRegion, prepare};

/// Calls and results as `tool path ok|error`; returns the positions of open errors and the changed files.
fn facts(steps: &[&str]) -> (Vec<usize>, Vec<String>) {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = "null".to_owned();
    let mut push = |id: String, message: String| {
        text.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"t\",\"message\":{message}}}\n"
        ));
        parent = format!("\"{id}\"");
    };
    for (i, step) in steps.iter().enumerate() {
        let mut words = step.split(' ');
        let (tool, path, outcome) = (
            words.next().unwrap(),
            words.next().unwrap(),
            words.next().unwrap(),
        );
        push(
            format!("a{i}"),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c{i}","name":"{tool}","arguments":{{"path":"{path}"}}}}]}}"#
            ),
        );
        push(
            format!("r{i}"),
            format!(
                r#"{{"role":"toolResult","toolCallId":"c{i}","toolName":"{tool}","content":"out","isError":{}}}"#,
                outcome == "error"
            ),
        );
    }
    let log = SessionLog::load(text, Trust::Validated).unwrap();
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let parameters = Parameters {
        preserve_recent: 0,
        ..Parameters::with_query("q")
    };
    let preparation = prepare(&context, parameters, SmallRegion::Allow, &Heuristic).unwrap();
    let open = open_errors(&preparation)
        .into_iter()
        .map(|m| m.index() / 2)
        .collect();
    (open, changed_paths(&preparation))
}

#[test]
fn errors_are_open_until_the_same_thing_succeeds() {
    let table: &[(&[&str], &[usize])] = &[
        (&["edit a.rs error"], &[0]),
        (&["edit a.rs error", "edit a.rs ok"], &[]),
        (&["edit a.rs error", "edit b.rs ok"], &[0]),
        (&["edit a.rs error", "read a.rs ok"], &[0]),
        (&["edit a.rs error", "edit a.rs error"], &[0, 1]),
        (&["edit a.rs ok", "edit a.rs error"], &[1]),
    ];
    for (steps, open) in table {
        assert_eq!(facts(steps).0, *open, "{steps:?}");
    }
}

#[test]
fn changed_files_are_those_of_writes_and_edits() {
    let (_, changed) = facts(&[
        "read a.rs ok",
        "write b.rs ok",
        "edit c.rs error",
        "write b.rs ok",
        "Edit d.rs ok",
    ]);
    assert_eq!(changed, ["b.rs", "c.rs", "d.rs"]);
}
