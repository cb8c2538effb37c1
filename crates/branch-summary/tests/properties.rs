//! What holds for every tree and every move in it.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use foldline_branch_summary::{Budget, LeftOutReason, Navigation, PrepareOptions, extractive, prepare};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::{Append, Leaf};
use foldline_session_model::{Author, EntryId, EntryIx, Envelope, Tokens};
use proptest::prelude::*;

/// A kind of entry, how far back its parent is, and a number for its text.
type Choice = (u8, u8, u16);

/// A file of entries of all kinds in a random tree.
fn session(choices: &[Choice]) -> String {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    for (at, &(kind, back, n)) in choices.iter().enumerate() {
        let parent = match back {
            _ if at == 0 => "null".to_owned(),
            0..=3 => "null".to_owned(),
            4..=60 => format!("\"e{}\"", usize::from(n) % at),
            _ => format!("\"e{}\"", at - 1),
        };
        let said = format!("entry {at} {}", "word ".repeat(usize::from(n % 40)));
        let body = match kind {
            0..=69 => {
                format!("\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"{said}\"}}")
            }
            70..=139 => format!(
                "\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"stopReason\":\"stop\",\"content\":[{{\"type\":\"text\",\"text\":\"{said}\"}},{{\"type\":\"toolCall\",\"id\":\"c{at}\",\"name\":\"edit\",\"arguments\":{{\"path\":\"f{}.rs\"}}}}]}}",
                n % 9
            ),
            140..=179 => format!(
                "\"type\":\"message\",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"c{}\",\"toolName\":\"edit\",\"isError\":false,\"content\":[{{\"type\":\"text\",\"text\":\"{said}\"}}]}}",
                at.saturating_sub(1)
            ),
            180..=199 => format!(
                "\"type\":\"compaction\",\"summary\":\"{said}\",\"firstKeptEntryId\":\"e{}\",\"tokensBefore\":9",
                usize::from(n) % (at + 1)
            ),
            200..=214 => format!(
                "\"type\":\"branch_summary\",\"fromId\":\"root\",\"summary\":\"{said}\",\"details\":{{\"readFiles\":[\"r{}.rs\"],\"modifiedFiles\":[]}}",
                n % 5
            ),
            215..=224 => format!(
                "\"type\":\"custom_message\",\"customType\":\"note\",\"content\":\"{said}\",\"display\":true"
            ),
            225..=234 => "\"type\":\"custom\",\"customType\":\"foldline/leaf\",\"data\":{}".to_owned(),
            235..=240 => format!(
                "\"type\":\"custom\",\"customType\":\"foldline/revoke\",\"data\":{{\"entryId\":\"e{}\"}}",
                usize::from(n) % (at + 1)
            ),
            _ => "\"type\":\"model_change\",\"provider\":\"p\",\"modelId\":\"m\"".to_owned(),
        };
        writeln!(
            text,
            "{{\"id\":\"e{at}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",{body}}}"
        )
        .unwrap();
    }
    text
}

fn trees() -> impl Strategy<Value = (SessionLog, EntryIx)> {
    (
        proptest::collection::vec(any::<Choice>(), 1..60),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(choices, target)| {
            let log = SessionLog::load(session(&choices), Trust::Validated).unwrap();
            let target = log.entries().nth(target.index(log.len())).unwrap();
            (log, target)
        })
}

fn path(log: &SessionLog, leaf: Option<EntryIx>) -> Vec<EntryIx> {
    leaf.map(|leaf| log.path(leaf)).unwrap_or_default()
}

/// What the model would see: roles, sources and texts.
fn seen(log: &SessionLog, leaf: &Leaf) -> Vec<String> {
    let context = log.context(leaf, Profile::Auto).unwrap();
    context
        .items
        .iter()
        .map(|item| format!("{} {:?}", log.id(item.source), item.message))
        .collect()
}

/// The log as a new process would load it, with one more entry.
fn reopened(log: &SessionLog, append: &Append, id: &str) -> SessionLog {
    let envelope = Envelope {
        id: EntryId::from(id),
        parent: append.parent.clone(),
        timestamp: "2026-01-01T00:00:09.000Z".to_owned(),
    };
    let mut bytes = log.to_written_form().unwrap();
    bytes.extend_from_slice(append.draft.line(&envelope).as_bytes());
    bytes.push(b'\n');
    SessionLog::load(bytes, Trust::Validated).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn abandoned_is_one_path_without_the_other((log, target) in trees()) {
        let navigation = Navigation::plan(&log, target);
        let new: BTreeSet<EntryIx> = path(&log, navigation.new_leaf).into_iter().collect();
        let expected: Vec<EntryIx> = path(&log, navigation.old_leaf).into_iter().filter(|ix| !new.contains(ix)).collect();
        prop_assert_eq!(navigation.abandoned.entries(), expected);
        if let Some(ancestor) = navigation.abandoned.common_ancestor() {
            prop_assert!(new.contains(&ancestor));
        }
    }

    /// Nothing vanishes: each entry that a model could see of the branch is a message of the input or is named.
    #[test]
    fn every_visible_entry_is_in_the_input_or_named((log, target) in trees(), budget in prop_oneof![Just(Budget::Unlimited), (1_u64..400).prop_map(|n| Budget::Tokens(Tokens(n)))]) {
        let navigation = Navigation::plan(&log, target);
        let tools = ToolTable::default();
        let in_editor = navigation.target.filter(|_| navigation.editor_text.is_some());
        let options = PrepareOptions { budget, profile: Profile::Auto, tools: &tools, in_editor };
        let preparation = prepare(&log, &navigation.abandoned, &options, &Heuristic).unwrap();
        let old = navigation.old_leaf.map_or(Leaf::BeforeFirst, |ix| Leaf::Entry(log.entry_id(ix)));
        let context = log.context(&old, Profile::Auto).unwrap();
        let abandoned: BTreeSet<EntryIx> = navigation.abandoned.entries().iter().copied().collect();
        let chosen: Vec<EntryIx> = preparation.messages().map(|item| item.source).collect();
        for item in context.items.iter().filter(|item| item.message.is_visible() && abandoned.contains(&item.source)) {
            let named = preparation.left_out().iter().any(|left| left.entry_id.as_str() == log.id(item.source));
            prop_assert!(chosen.contains(&item.source) != named, "{}", log.id(item.source));
        }
        prop_assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
        let results = preparation.messages().filter(|item| matches!(item.message, Message::ToolResult(_))).count();
        prop_assert_eq!(results, 0);
        if budget == Budget::Unlimited {
            prop_assert!(preparation.left_out().iter().all(|left| left.reason != LeftOutReason::Budget));
        }
        // The files do not depend on the budget.
        let all = prepare(&log, &navigation.abandoned, &PrepareOptions { budget: Budget::Unlimited, ..options }, &Heuristic).unwrap();
        prop_assert_eq!(preparation.file_ops().lists(), all.file_ops().lists());
    }

    /// After a move with a summary the context is that of the new leaf and the summary.
    #[test]
    fn after_a_summary_the_context_is_that_of_the_target_and_one_more((log, target) in trees()) {
        let navigation = Navigation::plan(&log, target);
        let tools = ToolTable::default();
        let options = PrepareOptions { budget: Budget::Unlimited, profile: Profile::Auto, tools: &tools, in_editor: None };
        let preparation = prepare(&log, &navigation.abandoned, &options, &Heuristic).unwrap();
        let Some(summary) = extractive(&preparation, &Prompts::default(), &Heuristic) else { return Ok(()) };
        let before = seen(&log, &navigation.destination(&log));
        let append = navigation.with_summary(&log, &summary.summary, Some(&summary.details), Author::Foldline).unwrap();
        let after = reopened(&log, &append, "summary");
        let seen = seen(&after, &Leaf::Last);
        prop_assert_eq!(seen.len(), before.len() + 1);
        prop_assert_eq!(&seen[..before.len()], &before[..]);
        prop_assert!(seen[before.len()].starts_with("summary BranchSummary"));
        let entry = after.find("summary").unwrap();
        prop_assert_eq!(after.parent_id(entry), navigation.new_leaf.map(|ix| log.id(ix)));
    }

    /// Away and back, each move by another process: the context is what it was.
    #[test]
    fn coming_back_restores_the_context((log, target) in trees()) {
        let away = Navigation::plan(&log, target);
        let Some(append) = away.move_leaf(&log) else { return Ok(()) };
        let before = seen(&log, &Leaf::Last);
        let moved = reopened(&log, &append, "away");
        prop_assert_eq!(seen(&moved, &Leaf::Last), seen(&log, &away.destination(&log)));
        let Some(old) = away.old_leaf else { return Ok(()) };
        let back = Navigation::plan(&moved, old);
        if back.editor_text.is_some() {
            return Ok(());
        }
        let append = back.move_leaf(&moved).unwrap();
        let returned = reopened(&moved, &append, "back");
        prop_assert_eq!(seen(&returned, &Leaf::Last), before);
        // No line was changed.
        prop_assert!(returned.to_written_form().unwrap().starts_with(&log.to_written_form().unwrap()));
    }
}
