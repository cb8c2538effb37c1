//! Section 9: mentioned files that are shown again, and reminders of which only the newest counts.

use foldline_pruning::{
    MAINTENANCE_REMINDERS, MentionPlan, Policy, ReminderPlan, SUPERSEDED, VOLATILE_CONTEXT, View,
    plan_mentions, plan_reminders,
};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;

use crate::support::{context, eager, quoted, total};

/// A session of whole records, ids `a`, `b` and so on; each record is what follows the parent.
fn session(records: &[String]) -> SessionLog {
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = String::from("null");
    for (index, record) in records.iter().enumerate() {
        let id = char::from(b'a' + u8::try_from(index).unwrap());
        let (kind, rest) = record.split_once(' ').unwrap();
        file.push_str(&format!(
            "{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",{rest}}}\n"
        ));
        parent = quoted(&id.to_string());
    }
    SessionLog::load(file, Trust::Validated).unwrap()
}

fn mention(files: &[String]) -> String {
    format!(
        r#"message "message":{{"role":"fileMention","files":[{}]}}"#,
        files.join(",")
    )
}

fn file(path: &str, more: &str) -> String {
    format!(
        r#"{{"path":"{path}","content":"{}","lineCount":9{more}}}"#,
        "body ".repeat(110)
    )
}

fn read(args: &str, more: &str) -> [String; 2] {
    [
        format!(
            r#"message "message":{{"role":"assistant","content":[{{"type":"toolCall","id":"c","name":"read","arguments":{args}}}]}}"#
        ),
        format!(
            r#"message "message":{{"role":"toolResult","toolCallId":"c","toolName":"read","content":[]{more}}}"#
        ),
    ]
}

fn user() -> String {
    r#"message "message":{"role":"user","content":"go on"}"#.to_owned()
}

fn rewritten(log: &SessionLog, rewrite: &foldline_pruning::Rewrite) -> SessionLog {
    let after = SessionLog::load(
        log.to_written_form_with(&rewrite.lines()).unwrap(),
        Trust::Validated,
    )
    .unwrap();
    assert!(after.damage().is_empty());
    let (before, after_total) = (total(&context(log)), total(&context(&after)));
    assert_eq!(before - after_total, rewrite.tokens_saved.get());
    after
}

fn mentions(records: &[String], policy: &Policy) -> (SessionLog, MentionPlan, SessionLog) {
    let log = session(records);
    let plan_of = |log: &SessionLog| {
        let context = context(log);
        plan_mentions(&View::of_context(&context), policy, &Heuristic)
    };
    let plan = plan_of(&log);
    let after = rewritten(&log, &plan.rewrite(&log).unwrap());
    assert!(plan_of(&after).is_empty());
    (log, plan, after)
}

fn pruned(plan: &MentionPlan) -> Vec<(&str, &[usize])> {
    plan.mentions
        .iter()
        .map(|m| (m.entry.as_str(), &m.files[..]))
        .collect()
}

#[test]
fn a_later_mention_supersedes_an_earlier_one() {
    let old = mention(&[file("a.txt", r#","byteSize":550"#), file("other", "")]);
    let new = mention(&[file("./a.txt", "")]);
    let (log, plan, after) = mentions(&[old, new], &eager());
    assert_eq!(pruned(&plan), [("a", &[0][..])]);
    let line = std::str::from_utf8(after.raw_line(after.find("a").unwrap())).unwrap();
    assert!(line.contains(r#""content":"[Mention pruned: a.txt is shown again further down"#));
    assert!(line.contains(r#""pruned":true,"byteSize":550"#));
    assert_eq!(line.matches("lineCount").count(), 1);
    assert_eq!(log.len(), after.len());
    assert_eq!(
        log.raw_line(log.find("b").unwrap()),
        after.raw_line(after.find("b").unwrap())
    );
}

#[test]
fn what_supersedes_a_mention() {
    let whole = r#"{"path":"b.txt"}"#;
    // Arguments of the read, further members of its result, whether the mention goes.
    let table = [
        (whole, "", true),
        (
            r#"{"path":"x"}"#,
            r#","details":{"resolvedPath":"/w/b.txt"}"#,
            true,
        ),
        (r#"{"path":"c.txt"}"#, "", false),
        // Defect 6: a part of the file, a failure and a cut answer show less than the mention.
        (r#"{"path":"b.txt:1-5"}"#, "", false),
        (r#"{"path":"b.txt","limit":5}"#, "", false),
        (whole, r#","isError":true"#, false),
        (whole, r#","details":{"truncation":{"truncated":true}}"#, false),
        (whole, r#","prunedAt":1"#, false),
    ];
    for (args, more, expected) in table {
        let [call, result] = read(args, more);
        let (_, plan, _) = mentions(&[mention(&[file("b.txt", "")]), call, result], &eager());
        assert_eq!(!plan.is_empty(), expected, "{args} {more}");
    }
}

#[test]
fn mentions_that_stay() {
    let again = || mention(&[file("a", "")]);
    let short = mention(&[r#"{"path":"a","content":"tiny"}"#.to_owned()]);
    for stays in [
        mention(&[file("a", r#","pruned":true"#)]),
        mention(&[file("a", r#","duplicate":true"#)]),
        // Defect 6: a notice that is longer than the file.
        short,
    ] {
        assert!(mentions(&[stays, again()], &eager()).1.is_empty());
    }
    // Two of one message do not supersede each other.
    assert!(
        mentions(&[mention(&[file("a", ""), file("a", "")])], &eager())
            .1
            .is_empty()
    );
    // The newest turns stay whole.
    let fenced = [user(), again(), user(), again()];
    assert!(mentions(&fenced, &eager()).1.is_empty());
}

fn reminder(kind: &str, text: &str) -> String {
    format!(r#"custom_message "customType":"{kind}","content":"{text}","display":false"#)
}

fn reminders(records: &[String], types: &[&str]) -> (ReminderPlan, SessionLog) {
    let log = session(records);
    let plan_of = |log: &SessionLog| {
        let context = context(log);
        plan_reminders(&View::of_context(&context), &eager(), types, &Heuristic)
    };
    let plan = plan_of(&log);
    let after = rewritten(&log, &plan.rewrite(&log).unwrap());
    // Defect 6: a second pass changes nothing.
    assert!(plan_of(&after).is_empty());
    (plan, after)
}

#[test]
fn only_the_newest_of_a_kind_counts() {
    let long = "remember this ".repeat(20);
    let [one, two, _] = MAINTENANCE_REMINDERS;
    let records = [
        reminder(one, &long),
        reminder("goal-reminder", &long),
        reminder(two, &long),
        reminder(one, &long),
        reminder("goal-reminder", &long),
    ];
    let (plan, after) = reminders(&records, &MAINTENANCE_REMINDERS);
    assert_eq!(
        plan.entries.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        ["a"]
    );
    let line = std::str::from_utf8(after.raw_line(after.find("a").unwrap())).unwrap();
    assert!(line.contains(&format!(r#""content":"{SUPERSEDED}","display":false"#)));
}

#[test]
fn content_that_was_moved_away_does_not_come_back() {
    let long = "the project ".repeat(20);
    let records = [
        reminder(VOLATILE_CONTEXT, &long) + r#","evictedContent":{"payloads":{}}"#,
        reminder(VOLATILE_CONTEXT, &long),
    ];
    let (plan, after) = reminders(&records, &[VOLATILE_CONTEXT]);
    assert_eq!(plan.entries.len(), 1);
    let line = std::str::from_utf8(after.raw_line(after.find("a").unwrap())).unwrap();
    assert!(!line.contains("evictedContent"));
}
