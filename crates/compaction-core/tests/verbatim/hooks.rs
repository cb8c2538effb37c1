//! Rows "Hooks" (spec "Verbatim", sections 15 and 21): a hook's text in place of the region. Who is asked and told, and
//! what a hook that cancels or fails leads to: `foldline-agent-session`.

use foldline_compaction_core::verbatim::{
    Demand, NotSmaller, OverrideError, Preparation, VerbatimCompaction, finish_override,
};
use foldline_session_model::model_call::StopReason;
use foldline_session_model::tokens::Heuristic;

use super::support::{
    Session, ask_once, assistant, deleting, finished, lines, prepared, prepared_small, reply, user,
};

fn replaced(preparation: &Preparation<'_, '_>, text: &str) -> Result<VerbatimCompaction, OverrideError> {
    finish_override(
        preparation,
        text,
        Demand::Any,
        preparation.tokens_before(),
        &Heuristic,
    )
}

/// Row "the override is persisted verbatim".
#[test]
fn the_text_is_stored_as_it_is() {
    let mut session = Session::of(&[user(&lines(40)), user("x"), assistant("y")]);
    let text = "  What matters:\n(filtered 7 lines)\n[User]: <keepContext>\n\n";
    let compaction = {
        let context = session.context();
        let preparation = prepared(&context, 2).unwrap();
        replaced(&preparation, text).unwrap()
    };
    assert_eq!(compaction.draft.summary, text);
    assert_eq!(
        compaction.draft.first_kept.as_ref().unwrap().as_str(),
        "m1",
        "the tail is not the hook's to move"
    );
    let stats = &compaction.stats;
    assert_eq!(
        (
            stats.lines_before,
            stats.lines_kept,
            stats.lines_deleted,
            stats.range_count
        ),
        (40, 5, 35, 0)
    );
    assert!(stats.tokens_after < stats.tokens_before);
    session.commit(&compaction);
    let entry = session.text();
    let entry = entry.lines().last().unwrap();
    assert!(
        entry.contains(r#""rung":"extension""#) && entry.contains(r#""fromHook":true"#),
        "{entry}"
    );
    assert!(
        !entry.contains("provenance"),
        "nobody knows where its lines come from"
    );

    // Nothing in it is believed later: no marker, no protected span, no words of the user.
    session.message(&user(&lines(30)));
    let context = session.context();
    let preparation = prepared(&context, 0).unwrap();
    assert!(preparation.region().text().starts_with(text));
    assert!(preparation.region().markers().is_empty());
    assert!(preparation.region().protected().is_empty());
}

/// Row "blank text writes nothing"; neither does a text that frees nothing (D11).
#[test]
fn a_blank_or_a_larger_text_is_refused() {
    let session = Session::of(&[user(&lines(40)), user("x"), assistant("y")]);
    let before = session.text();
    let context = session.context();
    let preparation = prepared(&context, 2).unwrap();
    for blank in ["", " ", "\n\t\n", "\u{a0}"] {
        assert_eq!(
            replaced(&preparation, blank).unwrap_err(),
            OverrideError::Blank,
            "{blank:?}"
        );
    }
    let larger = "a word and another ".repeat(500);
    let OverrideError::NotSmaller(NotSmaller::Insufficient {
        before: was, after, ..
    }) = replaced(&preparation, &larger).unwrap_err()
    else {
        panic!("a larger text is no compaction")
    };
    assert!(after > was);
    assert_eq!(session.text(), before);
}

/// Rows "zero tail, then the second run sees the durable text as the first lines of its region" and "planner request 2
/// contains `1→[User]: task 0` and `2→(filtered 1 lines)` and not the tail".
#[test]
fn a_second_request_shows_the_durable_text_first() {
    let long = "a line that is longer than the marker that stands in its place";
    let mut session = Session::of(&[user(&format!("task 0\n{long}\n{}", lines(30))), assistant("done")]);
    let compaction = {
        let context = session.context();
        let preparation = prepared(&context, 0).unwrap();
        assert_eq!(preparation.first_kept(), None);
        finished(&preparation, &deleting(&preparation, &[(2, 2)])).unwrap()
    };
    session.commit(&compaction);
    session.message(&user("task 1"));
    session.message(&assistant("the newest words"));
    let context = session.context();
    let preparation = prepared(&context, 1).unwrap();
    let climbed = ask_once(&preparation, &reply("3,4\n", StopReason::Stop));
    let prompt = &climbed.requests[0].1;
    assert!(prompt.contains("\n1→[User]: task 0\n2→(filtered 1 lines)\n3→line 1\n"));
    assert!(prompt.contains("→[User]: task 1\n"));
    assert!(!prompt.contains("the newest words"));
}

/// The same after a text of a hook.
#[test]
fn a_second_request_shows_the_text_of_a_hook_first() {
    let mut session = Session::of(&[user(&lines(60)), assistant("done")]);
    let compaction = {
        let context = session.context();
        replaced(
            &prepared(&context, 0).unwrap(),
            "kept by a hook\n(filtered 9 lines)",
        )
        .unwrap()
    };
    session.commit(&compaction);
    session.message(&user(&lines(30)));
    session.message(&assistant("the newest words"));
    let context = session.context();
    let preparation = prepared(&context, 1).unwrap();
    let climbed = ask_once(&preparation, &reply("3,20\n", StopReason::Stop));
    let prompt = &climbed.requests[0].1;
    assert!(prompt.contains("\n1→kept by a hook\n2→(filtered 9 lines)\n3→[User]: line 1\n"));
    assert!(!prompt.contains("the newest words"));
}

/// Row "set and map mutation throws": here it does not compile (documentation of `Preparation`), and preparing changes
/// nothing, however often: what hooks read is what was prepared.
#[test]
fn a_preparation_is_read_only() {
    let session = Session::of(&[user(&lines(40)), user("x")]);
    let context = session.context();
    let preparation = prepared_small(&context, 1);
    let text = preparation.region().text().to_owned();
    let plan = deleting(&preparation, &[(2, 30)]);
    let first = finished(&preparation, &plan).unwrap();
    let second = finished(&preparation, &plan).unwrap();
    assert_eq!(first, second);
    assert_eq!(preparation.region().text(), text);
}
