//! R19, R20 and S41 to S51: arguments of edits that later edits made worthless.

use foldline_pruning::{ArgumentPlan, Policy, Stamp, View, plan_arguments};
use foldline_session_model::Tokens;
use foldline_session_model::json::write_string;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::{Heuristic, TokenCounter};

use crate::support::{Step, context, eager, pair, patch, quoted, session, total};

const STAMP: Stamp = Stamp(1_760_000_000_000);

fn write(id: &str, tool: &str, path: &str, size: usize) -> Step {
    let args = format!(r#"{{"path":"{path}","content":"{}"}}"#, "n".repeat(size));
    pair(id, tool, &args).text("ok")
}

/// The plan; what it saves is what the rewritten session is smaller by, and a second plan is empty.
fn arguments(policy: &Policy, steps: &[Step]) -> (SessionLog, ArgumentPlan) {
    let log = session(steps);
    let plan_of = |log: &SessionLog| {
        let context = context(log);
        plan_arguments(&View::of_context(&context), policy, STAMP, &Heuristic)
    };
    let plan = plan_of(&log);
    let rewrite = plan.rewrite(&log).unwrap();
    let bytes = log.to_written_form_with(&rewrite.lines()).unwrap();
    let rewritten = SessionLog::load(bytes, Trust::Validated).unwrap();
    assert!(rewritten.damage().is_empty());
    let (before, after) = (total(&context(&log)), total(&context(&rewritten)));
    assert_eq!(before - after, plan.tokens_saved.get());
    assert!(plan_of(&rewritten).is_empty());
    (log, plan)
}

fn pruned_calls(plan: &ArgumentPlan) -> Vec<&str> {
    let calls = plan.entries.iter().flat_map(|entry| &entry.calls);
    calls.map(|call| call.id.as_str()).collect()
}

#[test]
fn r19_the_window_of_arguments() {
    let steps = [write("old", "edit", "a", 3000), write("new", "write", "a", 10)];
    let log = session(&steps);
    let newest = {
        let context = context(&log);
        let messages: Vec<_> = context.messages().collect();
        Heuristic.message(messages[2])
    };
    let policy = |protect_tokens| Policy {
        protect_tokens,
        ..eager()
    };
    assert!(arguments(&policy(newest + Tokens(1)), &steps).1.is_empty());
    assert_eq!(pruned_calls(&arguments(&policy(newest), &steps).1), ["call-old"]);
}

#[test]
fn r20_pruned_arguments_stay() {
    let done = r#"{"pruned":true,"reason":"stale_tool_arguments","pathHints":["a"],"originalChars":9000,"prunedAt":123,"path":"a"}"#;
    let steps = [
        pair("old", "edit", done).text("ok"),
        write("new", "write", "a", 10),
    ];
    assert!(arguments(&eager(), &steps).1.is_empty());
}

#[test]
fn s41_a_patch_under_another_name() {
    let input = format!(
        "*** Begin Patch\n*** Update File: a\n+{}\n*** End Patch",
        "p".repeat(2000)
    );
    let args = format!(r#"{{"input":{}}}"#, quoted(&input));
    let call = |tool: &str, more| Step::Calls(vec![("old".into(), tool.into(), args.clone(), more)]);
    let result = pair("old", "edit", "{}").text("ok").orphan();
    let wire = r#","customWireName":"apply_patch""#;
    let steps = [call("edit", wire), result.clone(), write("new", "write", "a", 10)];
    let (_, plan) = arguments(&eager(), &steps);
    assert_eq!(pruned_calls(&plan), ["call-old"]);
    let mut expected =
        String::from(r#"{"pruned":true,"reason":"stale_tool_arguments","pathHints":["a"],"originalChars":"#);
    expected.push_str(&args.len().to_string());
    expected.push_str(r#","prunedAt":1760000000000}"#);
    assert_eq!(plan.entries[0].calls[0].arguments, expected);
    // Of a tool that is no edit, only the name on the wire makes it a candidate.
    let steps = [
        call("custom", wire),
        result.clone(),
        write("new", "write", "a", 10),
    ];
    assert_eq!(pruned_calls(&arguments(&eager(), &steps).1), ["call-old"]);
    let steps = [call("custom", ""), result, write("new", "write", "a", 10)];
    assert!(arguments(&eager(), &steps).1.is_empty());
}

#[test]
fn s42_a_later_change_makes_arguments_stale() {
    let steps = [write("old", "edit", "a", 2000), write("new", "write", "a", 10)];
    assert_eq!(pruned_calls(&arguments(&eager(), &steps).1), ["call-old"]);
}

#[test]
fn s43_a_failed_change_makes_no_arguments_stale() {
    let old = write("old", "edit", "a", 2000);
    let new = write("new", "write", "a", 10);
    assert!(
        arguments(&eager(), &[old.clone(), new.clone().error()])
            .1
            .is_empty()
    );
    // A failed call keeps its arguments: they may be tried again.
    assert!(arguments(&eager(), &[old.error(), new]).1.is_empty());
}

#[test]
fn s44_a_call_without_paths_stays() {
    let no_path = pair(
        "ast",
        "ast_edit",
        &format!(r#"{{"rule":"{}"}}"#, "r".repeat(2000)),
    )
    .text("ok");
    let steps = [
        no_path,
        write("edit", "edit", "a", 2000),
        write("new", "write", "a", 2000),
    ];
    assert_eq!(pruned_calls(&arguments(&eager(), &steps).1), ["call-edit"]);
}

#[test]
fn s45_savings_and_a_second_pass() {
    let steps = [write("old", "edit", "a", 4000), write("new", "write", "./a", 10)];
    assert_eq!(pruned_calls(&arguments(&eager(), &steps).1), ["call-old"]);
}

#[test]
fn s46_two_calls_of_one_message() {
    let args = |path: &str| format!(r#"{{"path":"{path}","new":"{}"}}"#, "n".repeat(2000));
    let both = Step::Calls(vec![
        ("1".into(), "edit".into(), args("a"), ""),
        ("2".into(), "edit".into(), args("b"), ""),
    ]);
    let result = |id: &str| pair(id, "edit", "{}").text("ok").orphan();
    let steps = [
        both,
        result("1"),
        result("2"),
        write("3", "write", "a", 10),
        write("4", "write", "b", 10),
    ];
    let (log, plan) = arguments(&eager(), &steps);
    assert_eq!(plan.entries.len(), 1);
    assert_eq!(pruned_calls(&plan), ["call-1", "call-2"]);
    // All but the arguments keeps its bytes.
    let line = &plan.rewrite(&log).unwrap().entries[0].line;
    let mut expected = String::from_utf8(log.raw_line(log.find("e0").unwrap()).to_vec()).unwrap();
    for (call, path) in plan.entries[0].calls.iter().zip(["a", "b"]) {
        expected = expected.replace(&args(path), &call.arguments);
    }
    assert_eq!(line, &expected);
}

#[test]
fn s47_the_minimum_of_arguments() {
    let steps = [write("old", "edit", "a", 2003), write("new", "write", "a", 10)];
    let saved = arguments(&eager(), &steps).1.tokens_saved;
    let policy = |minimum_savings| Policy {
        minimum_savings,
        ..eager()
    };
    assert!(!arguments(&policy(saved), &steps).1.is_empty());
    assert!(arguments(&policy(saved + Tokens(1)), &steps).1.is_empty());
}

#[test]
fn s48_one_file_of_a_patch_that_changed_again_is_not_enough() {
    let steps = [patch_of_two("old"), write("a", "write", "a", 10)];
    assert!(arguments(&eager(), &steps).1.is_empty());
}

#[test]
fn s49_a_patch_is_stale_once_all_of_its_files_have_changed_again() {
    let (a, b) = (write("a", "write", "a", 10), write("b", "write", "b", 10));
    let steps = [patch_of_two("old"), a, b];
    assert_eq!(pruned_calls(&arguments(&eager(), &steps).1), ["call-old"]);
}

fn patch_of_two(id: &str) -> Step {
    let long = "+".to_owned() + &"p".repeat(2000);
    patch(id, &["*** Update File: a", "*** Update File: b", &long]).text("ok")
}

#[test]
fn a_moved_file_is_a_pair() {
    let long = "+".to_owned() + &"p".repeat(2000);
    let mv = |id: &str| patch(id, &["*** Update File: a", "*** Move to: b", &long]).text("ok");
    let separate = [
        mv("old"),
        write("a", "write", "a", 10),
        write("b", "write", "b", 10),
    ];
    assert!(arguments(&eager(), &separate).1.is_empty());
    assert_eq!(
        pruned_calls(&arguments(&eager(), &[mv("old"), mv("new")]).1),
        ["call-old"]
    );
}

#[test]
fn s50_s51_the_newest_turns_keep_their_arguments() {
    let (edit, write_) = (
        |id: &str, path: &str| write(id, "edit", path, 2000),
        |id: &str, path: &str| write(id, "write", path, 2000),
    );
    let steps = [
        Step::User,
        edit("old-1", "a"),
        write_("old-2", "a"),
        Step::User,
        Step::User,
        edit("new-1", "b"),
        write_("new-2", "b"),
    ];
    assert_eq!(pruned_calls(&arguments(&eager(), &steps).1), ["call-old-1"]);
    let steps = [
        Step::User,
        Step::User,
        Step::User,
        patch("new-1", &["*** Update File: b", "+x"]),
        write_("new-2", "b"),
    ];
    assert!(arguments(&eager(), &steps).1.is_empty());
}

#[test]
fn hints_are_written_as_json() {
    let mut quoted_path = String::new();
    write_string(&mut quoted_path, "a\"b\n");
    let old = pair(
        "old",
        "edit",
        &format!(r#"{{"path":{quoted_path},"new":"{}"}}"#, "n".repeat(2000)),
    )
    .text("ok");
    let new = pair("new", "write", &format!(r#"{{"path":{quoted_path}}}"#)).text("ok");
    let (_, plan) = arguments(&eager(), &[old, new]);
    assert!(
        plan.entries[0].calls[0]
            .arguments
            .contains(r#""pathHints":["a\"b\n"]"#)
    );
}
