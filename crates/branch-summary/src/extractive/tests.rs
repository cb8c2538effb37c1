use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_session_model::fold::Profile;
use foldline_session_model::tokens::Heuristic;

use super::extractive;
use crate::abandoned::Abandoned;
use crate::preparation::{Budget, PrepareOptions, prepare};
use crate::testing::{assistant, rows, user};

#[test]
fn quotes_and_counts_without_a_model() {
    let (u1, a2) = (
        user("Try a table-driven parser in src/parse.rs"),
        assistant(
            "I decided against the table because error recovery needs look-ahead. Next I will go back to recursion.",
        ),
    );
    let edit = "\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"stopReason\":\"toolUse\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c1\",\"name\":\"edit\",\"arguments\":{\"path\":\"src/parse.rs\"}},{\"type\":\"toolCall\",\"id\":\"c2\",\"name\":\"bash\",\"arguments\":{\"command\":\"cargo test parse\"}}]}";
    let r1 = "\"type\":\"message\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":\"c1\",\"toolName\":\"edit\",\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":\"edited\"}]}";
    let r2 = "\"type\":\"message\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":\"c2\",\"toolName\":\"bash\",\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"error[E0308]: mismatched types\"}]}";
    let log = rows(&[
        ("u1", "-", &u1),
        ("a1", "u1", edit),
        ("r1", "a1", r1),
        ("r2", "r1", r2),
        ("a2", "r2", &a2),
    ]);
    let abandoned = Abandoned::between(&log, log.leaf(), None);
    let options = PrepareOptions {
        budget: Budget::Unlimited,
        profile: Profile::Auto,
        tools: &ToolTable::default(),
        in_editor: None,
    };
    let preparation = prepare(&log, &abandoned, &options, &Heuristic).unwrap();
    let summary = extractive(&preparation, &Prompts::default(), &Heuristic).unwrap();
    for needle in [
        "table-driven parser",
        "Changed `src/parse.rs`",
        "error[E0308]",
        "decided against",
        "<modified-files>\nsrc/parse.rs\n</modified-files>",
    ] {
        assert!(summary.summary.contains(needle), "{needle}: {}", summary.summary);
    }
    assert!(summary.details.contains("\"rung\":\"extractive\""));
    insta::assert_snapshot!(summary.summary);
}

#[test]
fn nothing_comes_from_nothing() {
    let log = rows(&[("m1", "-", "\"type\":\"custom\",\"customType\":\"t\"")]);
    let abandoned = Abandoned::between(&log, log.leaf(), None);
    let options = PrepareOptions {
        budget: Budget::Unlimited,
        profile: Profile::Auto,
        tools: &ToolTable::default(),
        in_editor: None,
    };
    let preparation = prepare(&log, &abandoned, &options, &Heuristic).unwrap();
    assert_eq!(extractive(&preparation, &Prompts::default(), &Heuristic), None);
}
