//! Loading never fails on damage and never panics, whatever the bytes.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed step is a failed test, which reads fixtures"
)]

use foldline_session_model::fold::Profile;
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use proptest::prelude::*;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n";

/// Everything that reads a log, on whatever the bytes are.
fn read_all(bytes: &[u8]) {
    for trust in [Trust::Claimed, Trust::Validated] {
        let Ok(log) = SessionLog::load(bytes.to_vec(), trust) else {
            continue;
        };
        for ix in log.entries() {
            assert!(log.path(ix).contains(&ix));
            let _entry = log.entry(ix).is_ok();
            assert!(!log.raw_line(ix).is_empty());
        }
        let _children = log.children();
        let _written = log.to_written_form();
        let Ok(context) = log.context(&Leaf::Last, Profile::Auto) else {
            assert_eq!(trust, Trust::Claimed, "after validation every entry can be read");
            continue;
        };
        let wrappers = Wrappers::default();
        let view = context.llm_view(&wrappers, TrailingCalls::Answer);
        let _size: u64 = context.messages().map(|m| Heuristic.message(m).get()).sum();
        let _state = context.state();
        assert!(view.len() <= 2 * context.items.len() + context.items.iter().map(calls).sum::<usize>());
    }
}

fn calls(item: &foldline_session_model::fold::ContextItem<'_>) -> usize {
    item.message
        .content()
        .map_or(0, |content| content.tool_calls().count())
}

/// Lines that are nearly entries, in which anything may be wrong.
fn line() -> impl Strategy<Value = String> {
    let id = prop_oneof!["[abc]", Just("\\u0061".to_owned()), Just(String::new())];
    let parent = prop_oneof![
        "[abcd]".prop_map(|p| format!("\"{p}\"")),
        Just("null".to_owned()),
        Just("7".to_owned()),
        Just("\"\"".to_owned()),
    ];
    let kind = prop_oneof![
        4 => Just("message"),
        1 => Just("compaction"),
        1 => Just("custom"),
        1 => Just("label"),
        1 => Just("branch_summary"),
        1 => Just("custom_message"),
        1 => Just("model_change"),
        1 => Just("session"),
        1 => Just("entry_patch"),
        1 => Just("new_type"),
    ];
    let body = prop_oneof![
        Just("\"message\":{\"role\":\"user\",\"content\":\"x\\ud83d\"}".to_owned()),
        Just("\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"n\",\"arguments\":[1e999]},{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"\"}],\"stopReason\":\"aborted\"}".to_owned()),
        Just("\"message\":{\"role\":\"toolResult\",\"toolCallId\":\"c\",\"content\":null}".to_owned()),
        Just("\"message\":[]".to_owned()),
        Just("\"summary\":\"s\",\"firstKeptEntryId\":\"b\",\"details\":{\"strategy\":\"verbatim-lines\"}".to_owned()),
        Just("\"summary\":7,\"firstKeptEntryIndex\":-1e300".to_owned()),
        Just("\"customType\":\"foldline/revoke\",\"data\":{\"entryId\":\"a\"}".to_owned()),
        Just("\"customType\":\"foldline/prune\",\"data\":{\"items\":[{\"entryId\":\"c\",\"notice\":\"n\"}]}".to_owned()),
        Just("\"id\":\"b\",\"type\":\"message\"".to_owned()),
    ];
    (kind, id, parent, body, any::<u8>()).prop_map(|(kind, id, parent, body, cut)| {
        let line = format!(
            "{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"t\",{body}}}"
        );
        // Some lines are torn.
        if cut < 16 {
            line[..line.len() * usize::from(cut) / 16].to_owned()
        } else {
            line
        }
    })
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
        let mut session = HEADER.as_bytes().to_vec();
        session.extend(bytes);
        read_all(&session);
    }

    #[test]
    fn lines_that_are_nearly_entries(
        lines in prop::collection::vec(line(), 0..14),
        version in prop_oneof![Just("1"), Just("2"), Just("3"), Just("5"), Just("99"), Just("\"x\"")],
        glue in any::<u8>(),
    ) {
        let mut text = HEADER.replace("\"version\":3", &format!("\"version\":{version}"));
        for (i, line) in lines.iter().enumerate() {
            text.push_str(line);
            // Some lines are glued to the next.
            if (usize::from(glue) + i) % 5 != 0 {
                text.push('\n');
            }
        }
        read_all(text.as_bytes());
    }

    /// A session with some bytes changed.
    #[test]
    fn changed_bytes(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sessions/all-kinds.jsonl");
        let mut bytes = std::fs::read(folder).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&bytes);
    }

    /// Where every line has the usual layout, a claimed log and a validated one are the same.
    #[test]
    fn claims_of_sound_lines_hold(parents in prop::collection::vec(any::<prop::sample::Index>(), 1..30)) {
        let mut text = HEADER.to_owned();
        for (i, parent) in parents.iter().enumerate() {
            let parent = match i {
                0 => "null".to_owned(),
                _ => format!("\"e{}\"", parent.index(i)),
            };
            text.push_str(&format!("{{\"type\":\"message\",\"id\":\"e{i}\",\"parentId\":{parent},\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{i}\"}}}}\n"));
        }
        let claimed = SessionLog::load(text.clone(), Trust::Claimed).unwrap();
        let validated = SessionLog::load(text, Trust::Validated).unwrap();
        prop_assert!(validated.damage().is_empty());
        prop_assert_eq!(claimed.len(), validated.len());
        for ix in claimed.entries() {
            prop_assert_eq!(claimed.id(ix), validated.id(ix));
            prop_assert_eq!(claimed.parent_id(ix), validated.parent_id(ix));
            prop_assert_eq!(claimed.kind(ix), validated.kind(ix));
            prop_assert_eq!(claimed.timestamp(ix), validated.timestamp(ix));
            prop_assert_eq!(claimed.line_number(ix), validated.line_number(ix));
            prop_assert_eq!(claimed.path(ix), validated.path(ix));
        }
    }
}
