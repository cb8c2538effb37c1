//! Properties of trees under sequences of operations (R04, R19).

use proptest::prelude::*;
use rustc_hash::FxHashSet;

use crate::fold::{Context, Profile};
use crate::llm::{LlmBlock, LlmMessage, LlmRole, TrailingCalls, Wrappers};
use crate::log::{SessionLog, Trust};
use crate::model_call::{Api, Origin};
use crate::testing::{self, Wildness};
use crate::tree::{Append, Leaf};
use crate::{Author, EntryId, EntryIx, Envelope, HeaderDraft};

/// What a user does to a session.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Move,
    Summarise,
    Label,
    Undo,
    Fork,
    Branch,
    Talk,
}

fn operation() -> impl Strategy<Value = (Operation, u16)> {
    use Operation::{Branch, Fork, Label, Move, Summarise, Talk, Undo};
    let one = prop::sample::select(vec![Move, Summarise, Label, Undo, Fork, Branch, Talk, Talk]);
    (one, any::<u16>())
}

fn said(context: &Context<'_>) -> Vec<String> {
    let word = |item: &crate::fold::ContextItem<'_>| {
        let masked = matches!(item.masked, crate::fold::Masked::ByEntry { .. });
        // A branch may move an origin.
        let origin = |text: String| match text.find("from_id") {
            Some(at) => text[..at].to_owned(),
            None => text,
        };
        format!(
            "{} {masked} {}",
            context.log.id(item.source),
            origin(format!("{:?}", item.message))
        )
    };
    context.items.iter().map(word).collect()
}

/// Each call has exactly one result, right after it or its siblings' results; each result has its call.
fn pairs_are_whole(view: &[LlmMessage<'_>]) {
    let mut open: Vec<String> = Vec::new();
    let mut used = FxHashSet::default();
    for message in view {
        if let LlmRole::ToolResult { call_id, .. } = &message.role {
            assert!(!open.is_empty(), "an orphan result");
            assert_eq!(open.remove(0), **call_id);
            continue;
        }
        assert!(open.is_empty(), "an unanswered call");
        for block in &message.content {
            if let LlmBlock::ToolCall { id, .. } = block {
                assert!(used.insert(id.to_string()), "a repeated id");
                open.push(id.to_string());
            }
        }
    }
    assert!(open.is_empty(), "an unanswered call at the end");
}

/// Every visible item of the context is in the view: as itself, or as text of the user.
fn nothing_vanishes(context: &Context<'_>, view: &[LlmMessage<'_>]) {
    let seen: FxHashSet<EntryIx> = view.iter().map(|m| m.source).collect();
    for item in context.items.iter().filter(|item| item.message.is_visible()) {
        let empty = item.message.content().is_some_and(|c| c.blocks().is_empty());
        assert!(
            empty || seen.contains(&item.source),
            "{}",
            context.log.id(item.source)
        );
    }
}

fn check(log: &SessionLog) {
    let wrappers = Wrappers::default();
    for profile in [Profile::Auto, Profile::Pi, Profile::Atomic] {
        let context = log.context(&Leaf::Last, profile).unwrap();
        let view = context.llm_view(&wrappers, TrailingCalls::Answer);
        pairs_are_whole(&view);
        nothing_vanishes(&context, &view);
        for provider in ["p0", "p1"] {
            let target = Origin {
                api: Api::AnthropicMessages,
                provider: provider.into(),
                model: "m1".into(),
            };
            pairs_are_whole(&context.llm_view_for(&wrappers, TrailingCalls::Answer, &target));
        }
    }
}

fn header() -> HeaderDraft {
    HeaderDraft {
        id: "new".into(),
        timestamp: "2026-01-02T00:00:00.000Z".into(),
        cwd: "/w".into(),
        parent_session: None,
        title: None,
    }
}

fn commit(log: &mut SessionLog, plan: Append, n: usize) {
    let envelope = Envelope {
        id: EntryId::from(format!("op{n}")),
        parent: plan.parent,
        timestamp: "2026-01-01T01:00:00.000Z".into(),
    };
    log.append(&plan.draft.line(&envelope)).unwrap();
}

fn run(mut log: SessionLog, operations: &[(Operation, u16)]) {
    check(&log);
    let mut minted = 0;
    for (n, &(operation, choice)) in operations.iter().enumerate() {
        let some = log
            .entries()
            .nth(usize::from(choice) % log.len().max(1))
            .map(|ix| log.entry_id(ix));
        let target = some.clone().map_or(Leaf::BeforeFirst, Leaf::Entry);
        let mut mint = || {
            minted += 1;
            EntryId::from(format!("new{minted}"))
        };
        match operation {
            Operation::Move => {
                let expected = said(&log.context(&target, Profile::Auto).unwrap());
                if let Some(plan) = log.move_leaf(&target).unwrap() {
                    commit(&mut log, plan, n);
                    assert_eq!(said(&log.context(&Leaf::Last, Profile::Auto).unwrap()), expected);
                }
            }
            Operation::Summarise => {
                let plan = log
                    .branch_with_summary(&target, "left", None, Author::Foldline)
                    .unwrap();
                commit(&mut log, plan, n);
            }
            Operation::Label => {
                if let Some(id) = &some {
                    let before = said(&log.context(&Leaf::Last, Profile::Auto).unwrap());
                    let plan = log.set_label(id, Some("name")).unwrap();
                    commit(&mut log, plan, n);
                    assert_eq!(said(&log.context(&Leaf::Last, Profile::Auto).unwrap()), before);
                    let labels = log.labels();
                    assert_eq!(labels.of(log.find(id.as_str()).unwrap()), Some("name"));
                }
            }
            Operation::Undo => {
                let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
                if let Some(undo) = context.undo() {
                    let newest = context.compaction.map(|ix| log.entry_id(ix));
                    commit(&mut log, undo.append, n);
                    let after = log.context(&Leaf::Last, Profile::Auto).unwrap();
                    let active = after.compaction.map(|ix| log.entry_id(ix));
                    assert!(newest != Some(undo.target.clone()) || active != newest);
                    assert_ne!(after.undo().map(|next| next.target), Some(undo.target));
                }
            }
            Operation::Fork | Operation::Branch => {
                let parent = log.context(&target, Profile::Auto).unwrap();
                let bytes = match operation {
                    Operation::Fork => log.fork(&target, &header(), &mut mint).unwrap(),
                    _ => log.branch(&target, &header(), &mut mint).unwrap(),
                };
                let new = SessionLog::load(bytes, Trust::Validated).unwrap();
                let context = new.context(&Leaf::Last, Profile::Auto).unwrap();
                assert_eq!(said(&context), said(&parent));
                assert_eq!(context.state().to_details(), parent.state().to_details());
                assert!(
                    new.damage().iter().all(|d| d.kind.name() == "unknown_first_kept"),
                    "{:?}",
                    new.damage()
                );
                for label in new.labels().labels {
                    let old = log.find(new.id(label.target)).unwrap();
                    assert_eq!(log.labels().of(old), Some(&*label.label));
                }
                check(&new);
                if matches!(operation, Operation::Branch) {
                    log = new;
                }
            }
            Operation::Talk => {
                let message = match choice % 3 {
                    0 => r#"{"role":"user","content":"more"}"#.to_owned(),
                    1 => format!(
                        r#"{{"role":"assistant","stopReason":"toolUse","content":[{{"type":"toolCall","id":"c{}","name":"ls","arguments":{{}}}}]}}"#,
                        choice % 6
                    ),
                    _ => format!(
                        r#"{{"role":"toolResult","toolCallId":"c{}","toolName":"ls","isError":false,"content":[]}}"#,
                        choice % 6
                    ),
                };
                let plan = Append {
                    parent: log.leaf().map(|ix| log.entry_id(ix)),
                    draft: crate::EntryDraft::message(&message),
                };
                commit(&mut log, plan, n);
            }
        }
        check(&log);
        let reloaded = SessionLog::load(log.bytes(), Trust::Validated).unwrap();
        assert_eq!(
            said(&reloaded.context(&Leaf::Last, Profile::Auto).unwrap()),
            said(&log.context(&Leaf::Last, Profile::Auto).unwrap())
        );
    }
}

#[test]
fn a_label_before_an_elided_compaction_changes_nothing_in_a_branch() {
    let text = concat!(
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#,
        "\n",
        r#"{"type":"label","id":"l1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","targetId":"u1","label":"x"}"#,
        "\n",
        r#"{"type":"compaction","id":"c1","parentId":"l1","timestamp":"2026-01-01T00:00:02.000Z","summary":"[Superseded compaction summary elided during session load]","firstKeptEntryId":null,"tokensBefore":0}"#,
        "\n",
        r#"{"type":"message","id":"u1","parentId":"c1","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"hi"}}"#,
        "\n",
    );
    let log = SessionLog::load(text, Trust::Validated).unwrap();
    let mut minted = 0;
    let mut mint = || {
        minted += 1;
        EntryId::from(format!("new{minted}"))
    };
    let branch = log
        .branch(&Leaf::Entry("u1".into()), &header(), &mut mint)
        .unwrap();
    let branch = SessionLog::load(branch, Trust::Validated).unwrap();
    let of = |log: &SessionLog| said(&log.context(&Leaf::Last, Profile::Auto).unwrap());
    assert_eq!(of(&branch), of(&log));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn trees_keep_their_meaning(
        choices in testing::choices(40),
        operations in prop::collection::vec(operation(), 0..12),
    ) {
        let text = testing::session(&choices, Wildness::Tame);
        run(SessionLog::load(text, Trust::Claimed).unwrap(), &operations);
    }

    #[test]
    fn views_of_wild_trees_are_whole(choices in testing::choices(60)) {
        let text = testing::session(&choices, Wildness::Wild);
        check(&SessionLog::load(text, Trust::Validated).unwrap());
    }
}
