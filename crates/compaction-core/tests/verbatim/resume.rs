//! Rows "Resume" (spec "Verbatim", sections 16 and 21; D5, D8): what a session shows after it is opened again.

use foldline_session_model::EntryId;
use foldline_session_model::fold::Profile;
use foldline_session_model::llm::{LlmBlock, LlmMessage, LlmRole, TrailingCalls, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::tree::Leaf;

use super::support::{
    Session, assistant, call, deleting, finished, json, lines, prepared, prepared_small, result, user,
};

/// Role and text of each message that the model sees.
fn seen(log: &SessionLog, profile: Profile) -> Vec<(String, String)> {
    let context = log.context(&Leaf::Last, profile).unwrap();
    let wrappers = Wrappers::default();
    context
        .llm_view(&wrappers, TrailingCalls::Leave)
        .iter()
        .map(|message| {
            (
                message.role_name().to_owned(),
                message.texts().collect::<Vec<_>>().join("\n"),
            )
        })
        .collect()
}

fn reopened(session: &Session) -> SessionLog {
    SessionLog::load(session.text(), Trust::Validated).unwrap()
}

/// Compacts with so many newest messages kept, and lines 2 to 30 deleted.
fn compact(session: &mut Session, preserve_recent: usize) -> String {
    let compaction = {
        let context = session.context();
        let preparation = prepared(&context, preserve_recent).unwrap();
        finished(&preparation, &deleting(&preparation, &[(2, 30)])).unwrap()
    };
    session.commit(&compaction);
    compaction.draft.summary
}

/// Row "the exact string after reopening".
#[test]
fn the_text_is_the_same_after_it_was_written_and_read() {
    let odd = format!(
        "task\r\n{}\n\u{2028}tab\there \"quoted\" \\n 日本 😀\u{0}",
        lines(40)
    );
    let mut session = Session::of(&[user(&odd), user("x"), assistant("y")]);
    let text = compact(&mut session, 2);
    let log = reopened(&session);
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let Message::VerbatimBoundary(boundary) = &context.items[0].message else {
        panic!("the context begins with the boundary")
    };
    assert_eq!(boundary.text, text);
    assert!(text.ends_with("\u{2028}tab\there \"quoted\" \\n 日本 😀\u{0}"));
    let wrapped = Wrappers::default().verbatim.wrap(&text);
    assert_eq!(seen(&log, Profile::Auto)[0], ("user".to_owned(), wrapped));
}

/// Rows "a tail that begins in the middle of a turn" and "a result of 16,050 characters and a picture are intact in the
/// tail": the tail is replayed as messages; a result whose call fell into the region becomes words that name the call,
/// and nothing of it is lost.
#[test]
fn a_tail_that_begins_in_the_middle_of_a_turn() {
    let long = "x".repeat(16_050);
    let picture = r#"{"role":"toolResult","toolCallId":"c2","toolName":"screenshot","content":[{"type":"text","text":"seen"},{"type":"image","data":"AA==","mimeType":"image/png"}],"isError":false}"#;
    let mut session = Session::of(&[
        user(&lines(40)),
        call("c1", "read", r#"{"path":"src/main.rs"}"#),
        result("c1", &long),
        call("c2", "screenshot", "{}"),
        picture.to_owned(),
        assistant("done"),
    ]);
    compact(&mut session, 4);
    let log = reopened(&session);
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let wrappers = Wrappers::default();
    let view = context.llm_view(&wrappers, TrailingCalls::Leave);
    let roles: Vec<&str> = view.iter().map(LlmMessage::role_name).collect();
    assert_eq!(roles, ["user", "user", "assistant", "toolResult", "assistant"]);
    let orphan: String = view[1].texts().collect();
    assert!(
        orphan.contains("read") && orphan.contains(&long),
        "the result is whole and names its call"
    );
    assert!(matches!(view[3].role, LlmRole::ToolResult { .. }));
    assert!(
        view[3]
            .content
            .iter()
            .any(|block| matches!(block, LlmBlock::Image { .. })),
        "pictures of the tail stay pictures"
    );
}

/// Row "null in JSONL".
#[test]
fn no_tail_is_written_as_null() {
    let mut session = Session::of(&[user(&lines(40)), assistant("y")]);
    compact(&mut session, 0);
    let text = session.text();
    assert!(
        text.lines()
            .last()
            .unwrap()
            .contains(r#""firstKeptEntryId":null"#)
    );
    assert_eq!(seen(&reopened(&session), Profile::Auto).len(), 1);
    session.message(&user("later"));
    assert_eq!(
        seen(&reopened(&session), Profile::Auto)[1],
        ("user".to_owned(), "later".to_owned())
    );
}

/// Row "a missing kept id: the boundary and later messages only"; any version and rung is read.
#[test]
fn a_missing_first_entry_keeps_no_tail() {
    let mut session = Session::of(&[user("old"), user("older")]);
    session.entry(
        "compaction",
        r#""summary":"kept line","firstKeptEntryId":"nowhere","tokensBefore":9,"details":{"strategy":"verbatim-lines","promptVersion":2,"rung":"standard"}"#,
    );
    session.message(&user("new"));
    let texts: Vec<String> = seen(&session.log, Profile::Auto)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(
        texts,
        [Wrappers::default().verbatim.wrap("kept line"), "new".to_owned()]
    );
    let log = reopened(&session);
    let codes: Vec<&str> = log.damage().iter().map(|damage| damage.kind.name()).collect();
    assert_eq!(codes, ["unknown_first_kept"], "an unknown id is told");
}

/// Row "an unknown id is rejected": a compaction of ours cannot name one. Its tail begins at an entry of the path, or
/// nowhere.
#[test]
fn the_tail_of_a_compaction_begins_on_the_path() {
    let session = Session::of(&[user(&lines(40)), assistant("a"), user("b"), assistant("c")]);
    let context = session.context();
    let path: Vec<&str> = context
        .items
        .iter()
        .map(|item| session.log.id(item.source))
        .collect();
    for preserve_recent in 0..=3 {
        let preparation = prepared(&context, preserve_recent).unwrap();
        let compaction = finished(&preparation, &deleting(&preparation, &[(2, 30)])).unwrap();
        let first = compaction.draft.first_kept.as_ref().map(EntryId::as_str);
        assert_eq!(
            first,
            path.get(path.len() - preserve_recent).copied(),
            "{preserve_recent}"
        );
    }
}

/// Row "the latest boundary only"; opening a session plans nothing.
#[test]
fn the_newest_boundary_stands_for_all_before_it() {
    let mut session = Session::of(&[user(&lines(40)), user("x"), assistant("y")]);
    compact(&mut session, 2);
    session.message(&user(&lines(40)));
    session.message(&assistant("z"));
    let second = compact(&mut session, 1);
    let before = session.text();
    let log = reopened(&session);
    let view = seen(&log, Profile::Auto);
    let texts: Vec<&str> = view.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, [Wrappers::default().verbatim.wrap(&second).as_str(), "z"]);
    assert_eq!(String::from_utf8(log.bytes().to_vec()).unwrap(), before);
}

/// Row "legacy records are inert": prose compactions and logical deletions say nothing in a session of atomic, and the
/// region begins at the root.
#[test]
fn records_of_older_forms_are_inert_for_atomic() {
    let mut session = Session::of(&[user(&lines(25)), assistant("a"), user("b")]);
    session.entry(
        "compaction",
        &format!(
            r#""summary":{},"firstKeptEntryId":"m2","tokensBefore":9"#,
            json("prose")
        ),
    );
    session.entry("context_compaction", r#""deletedEntryIds":["m0"]"#);
    session.message(&assistant("c"));
    let view = seen(&session.log, Profile::Atomic);
    assert_eq!(view.len(), 4);
    assert_eq!(view[0].1, lines(25));
    let context = session.log.context(&Leaf::Last, Profile::Atomic).unwrap();
    let preparation = prepared_small(&context, 2);
    assert_eq!(preparation.region().line_count(), 27);
    assert!(preparation.region().text().starts_with("[User]: line 1\n"));
}
