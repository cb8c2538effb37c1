//! Masks, revocations and undo.

use super::{Context, Masked, Profile};
use crate::log::SessionLog;
use crate::message::Message;
use crate::tree::Leaf;
use crate::{EntryId, Envelope, notation};

fn said(log: &SessionLog) -> String {
    words(&log.context(&Leaf::Last, Profile::Auto).unwrap())
}

fn words(context: &Context<'_>) -> String {
    let words: Vec<String> = context
        .items
        .iter()
        .map(|item| {
            let text = match &item.message {
                Message::CompactionSummary(m) => format!("[{}]", m.summary),
                Message::VerbatimBoundary(m) => format!("lines({})", m.text),
                message => message.content().unwrap().texts().collect::<String>(),
            };
            match item.masked {
                Masked::No => text,
                Masked::ByEntry { .. } => format!("~{text}"),
                Masked::Pictures { .. } => format!("^{text}"),
            }
        })
        .collect();
    words.join(" ")
}

fn table(rows: &[(&str, &str)]) {
    for (tree, expected) in rows {
        let log = notation::log(&tree.replace("; ", "\n")).unwrap();
        assert_eq!(said(&log), *expected, "{tree}");
    }
}

#[test]
fn masks_and_revocations_apply_to_what_stands_before_them() {
    let start = "u user; a assistant call=x; r result of=x";
    table(&[
        (&format!("{start}; p prune gone on=r"), "u a ~gone"),
        (
            &format!("{start}; p prune gone on=r; q prune less on=r"),
            "u a ~less",
        ),
        (
            &format!("{start}; p prune gone on=r; q prune less on=r; v revoke on=q"),
            "u a ~gone",
        ),
        (
            &format!("{start}; p prune gone on=r; v revoke on=p; w revoke on=v"),
            "u a ~gone",
        ),
        (&format!("{start}; p prune gone on=u"), "u a r"),
        (&format!("{start}; v revoke on=r"), "u a"),
        ("u user; v revoke on=w; w user", "u w"),
        (
            "u user; p prune gone on=r; a assistant call=x; r result of=x",
            "u a r",
        ),
        (&format!("{start}; p prune gone on=r; z < r user"), "u a r z"),
        ("u user; c prose S; v user; w revoke on=c; x user", "u v x"),
        (
            "u user; b prose R kept=u; v user; c verbatim S; w revoke on=c",
            "[R] u v",
        ),
    ]);
}

#[test]
fn undo_moves_the_leaf_or_revokes() {
    let rows = [
        // Nothing seen after it: the leaf moves to its parent.
        (
            "u user; v user; c prose S kept=v",
            "c",
            "foldline/leaf",
            Some("v"),
            "u v",
        ),
        (
            "u user; c prose S; l label x on=u",
            "c",
            "foldline/leaf",
            Some("u"),
            "u",
        ),
        ("c prose S", "c", "foldline/leaf", None, ""),
        // Later turns stay.
        (
            "u user; c prose S; v user",
            "c",
            "foldline/revoke",
            Some("v"),
            "u v",
        ),
        (
            "u user; a assistant call=x; r result of=x; p prune gone on=r",
            "p",
            "foldline/leaf",
            Some("r"),
            "u a r",
        ),
        (
            "u user; a assistant call=x; r result of=x; p prune gone on=r; v user",
            "p",
            "foldline/revoke",
            Some("v"),
            "u a r v",
        ),
        // The newest first; a prune that shows nothing is nothing to undo.
        (
            "u user; c prose S; a assistant call=x; r result of=x; p prune gone on=r; v user",
            "p",
            "foldline/revoke",
            Some("v"),
            "[S] a r v",
        ),
        (
            "u user; c prose S; v user; p prune gone on=u",
            "c",
            "foldline/revoke",
            Some("p"),
            "u v",
        ),
        (
            "u user; b prose R; v user; c prose S; w user",
            "c",
            "foldline/revoke",
            Some("w"),
            "[R] v w",
        ),
    ];
    for (tree, target, kind, parent, after) in rows {
        let mut log = notation::log(&tree.replace("; ", "\n")).unwrap();
        let undo = log.context(&Leaf::Last, Profile::Auto).unwrap().undo().unwrap();
        assert_eq!(undo.target.as_str(), target, "{tree}");
        assert_eq!(undo.append.parent.as_ref().map(EntryId::as_str), parent, "{tree}");
        let line = undo.append.draft.line(&Envelope {
            id: "undo".into(),
            parent: undo.append.parent,
            timestamp: "t".into(),
        });
        assert!(line.contains(kind), "{line}");
        log.append(&line).unwrap();
        assert_eq!(said(&log), after, "{tree}");
    }
    let nothing = notation::log("u user\nv user").unwrap();
    assert_eq!(nothing.context(&Leaf::Last, Profile::Auto).unwrap().undo(), None);
}

#[test]
fn a_carried_state_ends_the_search() {
    let carried = "details=\"'state':{'models':[{'role':'default','provider':'p','model':'m'}],'thinkingLevel':'low'}\"";
    let log = notation::log(&format!(
        "m model q/old\nt thinking high\nx mode plan\nu user\nc prose S {carried}\ny thinking off"
    ))
    .unwrap();
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let state = context.state();
    assert_eq!(state.model().map(|m| (&*m.provider, &*m.model)), Some(("p", "m")));
    assert_eq!(
        (state.thinking_level.as_deref(), state.mode.as_deref()),
        (Some("off"), None)
    );
    // What is written is read back.
    let json = state.to_details().unwrap();
    let again = notation::log(&format!(
        "u user\nc prose S details=\"'state':{}\"",
        json.replace('"', "'")
    ))
    .unwrap();
    let context = again.context(&Leaf::Last, Profile::Auto).unwrap();
    assert_eq!(context.state().to_details().unwrap(), json);
}

#[test]
fn an_entry_alone_gives_the_message_that_the_fold_shows() {
    let text = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#,
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"x"}}"#,
        r#"{"type":"custom_message","id":"b","parentId":"a","timestamp":"t","customType":"c","content":"x","display":true}"#,
        r#"{"type":"branch_summary","id":"c","parentId":"b","timestamp":"t","fromId":"a","summary":"x"}"#,
        r#"{"type":"branch_summary","id":"d","parentId":"c","timestamp":"t","fromId":"a","summary":""}"#,
        r#"{"type":"label","id":"e","parentId":"d","timestamp":"t","targetId":"a","label":"x"}"#,
        r#"{"type":"compaction","id":"f","parentId":"e","timestamp":"t","summary":"x","firstKeptEntryId":null,"tokensBefore":1}"#,
    ];
    let log = SessionLog::load(text.join("\n"), crate::log::Trust::Validated).unwrap();
    let roles: Vec<Option<String>> = log
        .entries()
        .map(|ix| log.context_message(ix).map(|message| message.role().to_owned()))
        .collect();
    let expected = [
        Some("user"),
        Some("custom"),
        Some("branchSummary"),
        None,
        None,
        None,
    ];
    assert_eq!(roles, expected.map(|role| role.map(str::to_owned)));
}
