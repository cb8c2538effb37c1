use foldline_compaction_core::file_ops::ToolTable;
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::SessionLog;
use foldline_session_model::tokens::CharsPerFour;

use super::{Budget, LeftOutReason, Preparation, PrepareOptions, prepare};
use crate::abandoned::Abandoned;
use crate::testing::{assistant, rows, user};

fn prepared(log: &SessionLog, budget: Budget) -> Preparation<'_> {
    let abandoned = Abandoned::between(log, log.leaf(), None);
    let options = PrepareOptions {
        budget,
        profile: Profile::Auto,
        tools: &ToolTable::default(),
        in_editor: None,
    };
    prepare(log, &abandoned, &options, &CharsPerFour).unwrap()
}

fn ids(preparation: &Preparation<'_>) -> String {
    let log = preparation.branch().log;
    let ids: Vec<&str> = preparation.messages().map(|item| log.id(item.source)).collect();
    ids.join(" ")
}

/// A chain: `u10` is a user message of 10 tokens, `B50` a branch summary, `C50` a compaction; ids are counted.
fn chain(kinds: &[&str]) -> SessionLog {
    let mut all: Vec<(String, String, String)> = Vec::new();
    let mut parent = "-".to_owned();
    for (at, kind) in kinds.iter().enumerate() {
        let size: usize = kind[1..].parse().unwrap();
        let text = "x".repeat(size * 4);
        let body = match &kind[..1] {
            "B" => format!("\"type\":\"branch_summary\",\"fromId\":\"root\",\"summary\":\"{text}\""),
            "C" => format!(
                "\"type\":\"compaction\",\"firstKeptEntryId\":null,\"tokensBefore\":1,\"summary\":\"{text}\""
            ),
            _ => user(&text),
        };
        let id = format!("{kind}.{at}");
        all.push((id.clone(), parent, body));
        parent = id;
    }
    let all: Vec<(&str, &str, &str)> = all
        .iter()
        .map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()))
        .collect();
    rows(&all)
}

/// The value table of the specification, 15.3.
#[test]
fn the_newest_that_fit_and_a_summary_at_the_edge() {
    let cases: &[(&[&str], u64, &str, u64)] = &[
        // 20 < 54: the summary is taken although it does not fit.
        (&["B50", "u10", "u10"], 60, "B50.0 u10.1 u10.2", 70),
        // 20 ≥ 19.8.
        (&["B50", "u10", "u10"], 22, "u10.1 u10.2", 20),
        // 20 < 20.7.
        (&["B50", "u10", "u10"], 23, "B50.0 u10.1 u10.2", 70),
        (&["u100", "u5"], 50, "u5.1", 5),
        // After a summary at the edge nothing older is reached.
        (&["u10", "B50", "u10"], 30, "B50.1 u10.2", 60),
        // A compaction is a summary too.
        (&["u10", "C50", "u10"], 30, "C50.1 u10.2", 60),
        // What fits exactly fits.
        (&["u10", "u10"], 20, "u10.0 u10.1", 20),
        (&["u10", "u10"], 19, "u10.1", 10),
        (&["u10"], 1, "", 0),
    ];
    for (kinds, budget, expected, total) in cases {
        let log = chain(kinds);
        let preparation = prepared(&log, Budget::Tokens(Tokens(*budget)));
        assert_eq!(ids(&preparation), *expected, "{kinds:?} in {budget}");
        assert_eq!(preparation.tokens(), Tokens(*total), "{kinds:?} in {budget}");
        let left = preparation.left_out();
        assert_eq!(left.len(), kinds.len() - preparation.messages().count());
        assert!(left.iter().all(|l| l.reason == LeftOutReason::Budget));
    }
    let log = chain(&["u100", "B50", "u10"]);
    assert_eq!(ids(&prepared(&log, Budget::Unlimited)), "u100.0 B50.1 u10.2");
}

#[test]
fn a_small_window_has_a_small_budget_and_not_none() {
    let cases = [
        (Some(200_000), 16_384, 183_616),
        (None, 16_384, 111_616),
        (Some(0), 16_384, 111_616),
        (Some(8_192), 16_384, 4_096),
        (Some(1), 16_384, 1),
        (Some(200_000), 0, 200_000),
    ];
    for (window, reserve, budget) in cases {
        let window = window.map(Tokens);
        assert_eq!(
            Budget::for_window(window, Tokens(reserve)),
            Budget::Tokens(Tokens(budget)),
            "{window:?}"
        );
    }
}

fn call(tool: &str, path: &str, id: &str) -> String {
    format!(
        "\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"stopReason\":\"toolUse\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"{id}\",\"name\":\"{tool}\",\"arguments\":{{\"path\":\"{path}\"}}}}]}}"
    )
}

fn result(id: &str, error: bool) -> String {
    format!(
        "\"type\":\"message\",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"{id}\",\"toolName\":\"t\",\"isError\":{error},\"content\":[{{\"type\":\"text\",\"text\":\"out\"}}]}}"
    )
}

/// Files of all entries count, whatever the budget reaches: of calls, of earlier branch summaries and of compactions
/// (CD13); lists of extensions and calls that failed do not.
#[test]
fn file_operations_come_from_the_whole_branch() {
    let summary = |more: &str| {
        format!(
            "\"type\":\"branch_summary\",\"fromId\":\"x\",\"summary\":\"s\",\"details\":{{\"readFiles\":[\"by-branch.rs\"],\"modifiedFiles\":[\"m-branch.rs\"]}}{more}"
        )
    };
    let compaction = "\"type\":\"compaction\",\"summary\":\"s\",\"firstKeptEntryId\":null,\"tokensBefore\":1,\"details\":{\"readFiles\":[\"by-compaction.rs\"],\"modifiedFiles\":[]}";
    let extension = summary(",\"fromExtension\":true")
        .replace("by-branch", "by-extension")
        .replace("m-branch", "m-extension");
    let (own, read, edit, failed) = (
        summary(""),
        call("read", "src/a.rs", "c1"),
        call("edit", "src/b.rs", "c2"),
        call("write", "src/c.rs", "c3"),
    );
    let (r1, r2, r3, last) = (
        result("c1", false),
        result("c2", false),
        result("c3", true),
        user(&"x".repeat(400)),
    );
    let log = rows(&[
        ("e1", "-", &own),
        ("e2", "e1", compaction),
        ("e3", "e2", &extension),
        ("e4", "e3", &read),
        ("e5", "e4", &r1),
        ("e6", "e5", &edit),
        ("e7", "e6", &r2),
        ("e8", "e7", &failed),
        ("e9", "e8", &r3),
        ("e10", "e9", &last),
    ]);
    let preparation = prepared(&log, Budget::Tokens(Tokens(100)));
    assert_eq!(ids(&preparation), "e10");
    let lists = preparation.file_ops().lists();
    assert_eq!(lists.read_files, ["by-branch.rs", "by-compaction.rs", "src/a.rs"]);
    assert_eq!(lists.modified_files, ["m-branch.rs", "src/b.rs"]);
    let reasons: Vec<LeftOutReason> = preparation.left_out().iter().map(|l| l.reason).collect();
    assert_eq!(
        reasons
            .iter()
            .filter(|r| **r == LeftOutReason::ToolResult)
            .count(),
        3
    );
    assert_eq!(reasons.len(), 9);
}

#[test]
fn what_goes_back_to_the_editor_and_what_was_revoked_is_not_summarised() {
    let (u1, a1, c1, u2) = (
        user("first"),
        assistant("answer"),
        "\"type\":\"compaction\",\"summary\":\"bad\",\"firstKeptEntryId\":null,\"tokensBefore\":1",
        user("second"),
    );
    let log = rows(&[
        ("u1", "-", &u1),
        ("a1", "u1", &a1),
        ("c1", "a1", c1),
        (
            "r1",
            "c1",
            "\"type\":\"custom\",\"customType\":\"foldline/revoke\",\"data\":{\"entryId\":\"c1\"}",
        ),
        ("u2", "r1", &u2),
    ]);
    let abandoned = Abandoned::between(&log, log.leaf(), None);
    let options = PrepareOptions {
        budget: Budget::Unlimited,
        profile: Profile::Auto,
        tools: &ToolTable::default(),
        in_editor: log.find("u1"),
    };
    let preparation = prepare(&log, &abandoned, &options, &CharsPerFour).unwrap();
    assert_eq!(ids(&preparation), "a1 u2");
    assert_eq!(preparation.left_out().len(), 1);
    assert_eq!(preparation.left_out()[0].reason, LeftOutReason::InEditor);
}
