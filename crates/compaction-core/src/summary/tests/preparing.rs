use foldline_session_model::tokens::TokenCounter as _;

use super::*;
use crate::testing::filler;

/// `u` and `a` messages of ten tokens, with ids by position.
fn rows(text: &str) -> Rows {
    let mut rows = Rows::new();
    for (i, c) in text.chars().enumerate() {
        let id = format!("{c}{i}");
        rows = match c {
            'u' => rows.user(&id, &filler(10)),
            'a' => rows.assistant(&id, &filler(10)),
            'C' => rows.compaction(&id, Some("u2"), "Earlier notes."),
            _ => rows.label(&id),
        };
    }
    rows
}

/// History, prefix and kept ids.
fn parts(text: &str, keep: u64, rule: Window) -> Result<(String, String, String), Nothing> {
    let log = rows(text).log();
    let context = context(&log);
    let mut setup = Setup::new(1, keep);
    setup.window = None;
    setup.rule = rule;
    let preparation = setup.prepare(&context)?;
    let join = |items| ids(&log, items).join(" ");
    Ok((
        join(preparation.history()),
        join(preparation.turn_prefix()),
        join(preparation.kept()),
    ))
}

#[allow(clippy::unnecessary_wraps, reason = "compared with results")]
fn all(h: &str, p: &str, k: &str) -> Result<(String, String, String), Nothing> {
    Ok((h.to_owned(), p.to_owned(), k.to_owned()))
}

#[test]
fn history_prefix_and_tail_by_budget() {
    use Window::FromFirstKept as Ours;
    assert_eq!(parts("uaua", 1, Ours), all("u0 a1", "u2", "a3"));
    assert_eq!(parts("uaua", 20, Ours), all("u0 a1", "", "u2 a3"));
    assert_eq!(parts("uaua", 40, Ours), Err(Nothing::AllKept { messages: 4 }));
    assert_eq!(parts("", 1, Ours), Err(Nothing::Empty));
    assert_eq!(parts("mm", 1, Ours), Err(Nothing::Empty));
}

#[test]
fn cd3_what_the_earlier_compaction_kept_is_not_lost() {
    // The earlier compaction kept u2 and a3.
    assert_eq!(
        parts("uauaCua", 1, Window::FromFirstKept),
        all("u2 a3", "u5", "a6")
    );
    assert_eq!(parts("uauaCua", 1, Window::AfterCompaction), all("", "u5", "a6"));
    // A tail may reach back over the earlier compaction.
    assert_eq!(
        parts("uauaCua", 30, Window::FromFirstKept),
        all("", "u2", "a3 u5 a6")
    );
}

#[test]
fn fb_033_already_compacted_means_that_no_message_followed() {
    for rule in [Window::FromFirstKept, Window::AfterCompaction] {
        assert_eq!(parts("uauaC", 1, rule), Err(Nothing::AlreadyCompacted));
        assert_eq!(parts("uauaCm", 1, rule), Err(Nothing::AlreadyCompacted));
    }
    assert_eq!(
        parts("uauaCmua", 1, Window::FromFirstKept),
        all("u2 a3", "u6", "a7")
    );
    assert_eq!(
        parts("uauaCu", 1, Window::AfterCompaction),
        Err(Nothing::AllKept { messages: 3 })
    );
}

#[test]
fn fb_031_a_region_that_is_hardly_worth_it_is_left_alone() {
    let log = Rows::new()
        .user("u1", &filler(300))
        .assistant("a1", &filler(300))
        .user("u2", &filler(60))
        .log();
    let context = context(&log);
    let mut setup = Setup::new(200_000, 100);
    setup.small = SmallRegion::Refuse;
    let nothing = setup.prepare(&context).unwrap_err();
    assert_eq!(
        nothing,
        Nothing::TooSmall {
            tokens: Tokens(300),
            least: Tokens(1_000)
        }
    );
}

#[test]
fn fb_011_a_session_with_nothing_to_remove_is_not_compacted() {
    let log = Rows::new()
        .user("u1", &filler(20))
        .assistant("a1", &filler(30))
        .user("u2", &filler(20))
        .log();
    let context = context(&log);
    let nothing = Setup::new(200_000, 20_000).prepare(&context).unwrap_err();
    assert_eq!(nothing, Nothing::AllKept { messages: 3 });
}

#[test]
fn fb_009_a_trailing_result_over_the_window_goes_to_the_summary() {
    let log = Rows::new()
        .user("u1", &filler(50))
        .call("a1", "c1", "read", r#"{"path":"/w/big.log"}"#)
        .result("t1", "c1", "read", &filler(260_000))
        .log();
    let context = context(&log);
    let setup = Setup::new(200_000, 20_000);
    let preparation = setup.prepare(&context).unwrap();
    assert_eq!(ids(&log, preparation.compacted()), ["u1", "a1", "t1"]);
    assert_eq!(preparation.first_kept(), None);
    let compaction = setup.compact(&context, |_| reply(NOTES)).unwrap();
    assert!(
        compaction.tokens_after < Tokens(2_000),
        "{}",
        compaction.tokens_after
    );
    assert!(
        compaction.draft.summary.contains(&filler(50)),
        "the request stays word for word"
    );
}

#[test]
fn the_lines_of_a_verbatim_compaction_are_transcript() {
    let log = Rows::new()
        .user("u1", &filler(10))
        .entry(
            "v1",
            "compaction",
            "\"summary\":\"[User]: kept line\\n(filtered 3 lines)\",\"firstKeptEntryId\":null,\"tokensBefore\":1,\"details\":{\"strategy\":\"verbatim-lines\"}",
        )
        .user("u2", &filler(10))
        .assistant("a2", &filler(10))
        .log();
    let context = context(&log);
    let setup = Setup::new(200_000, 1);
    let preparation = setup.prepare(&context).unwrap();
    assert_eq!(ids(&log, preparation.history()), ["v1"]);
    assert_eq!(preparation.previous_summary(), None);
    let limits = setup.limits();
    let job = SummaryJob::new(
        &preparation,
        setup.job_options(limits.as_ref(), &context),
        &Heuristic,
    )
    .unwrap();
    let text = prompt(&job.requests()[0]);
    assert!(
        text.contains("kept line\n(filtered 3 lines)") && !text.contains("<previous-summary>"),
        "{text}"
    );
}

#[test]
fn files_add_up_over_compactions_branches_and_split_turns() {
    let details = "\"details\":{\"readFiles\":[\"r0\"],\"modifiedFiles\":[\"m0\"]}";
    let rows = |from_extension: &str| {
        Rows::new()
            .entry("c0", "compaction", &format!("\"summary\":\"Notes.\",\"firstKeptEntryId\":null,\"tokensBefore\":1,{details}{from_extension}"))
            .entry("b1", "branch_summary", "\"fromId\":\"x\",\"summary\":\"Left.\",\"details\":{\"readFiles\":[\"rb\"],\"modifiedFiles\":[\"mb\"]}")
            .user("u1", "go")
            .call("a1", "k1", "read", r#"{"path":"r1"}"#)
            .result("t1", "k1", "read", "text")
            .call("a2", "k2", "edit", r#"{"path":"r0"}"#)
            .result("t2", "k2", "edit", "ok")
            .assistant("a3", &filler(50))
            .log()
    };
    let lists = |extension: &str| {
        let log = rows(extension);
        let context = context(&log);
        let preparation = Setup::new(200_000, 20).prepare(&context).unwrap();
        assert_eq!(ids(&log, preparation.kept()), ["a3"]);
        preparation.file_ops().lists()
    };
    let ours = lists("");
    assert_eq!(ours.read_files, ["r1", "rb"]);
    assert_eq!(ours.modified_files, ["m0", "mb", "r0"]);
    // The lists of an extension are not believed.
    assert_eq!(lists(",\"fromExtension\":true").modified_files, ["mb", "r0"]);
}

#[test]
fn a_prune_counts_with_its_notice() {
    let log = Rows::new()
        .user("u1", "go")
        .call("a1", "k1", "bash", "{}")
        .result("t1", "k1", "bash", &filler(5_000))
        .user("u2", "more")
        .entry(
            "p1",
            "custom",
            "\"customType\":\"foldline/prune\",\"data\":{\"items\":[{\"entryId\":\"t1\",\"notice\":\"[gone]\",\"tokens\":5000}]}",
        )
        .log();
    let context = context(&log);
    let preparation = Setup::new(200_000, 1).prepare(&context).unwrap();
    assert!(preparation.tokens_before() < Tokens(100));
    assert!(preparation.compacted_tokens() < Tokens(100));
    assert_eq!(preparation.kept_tokens(), Heuristic.one("more"));
}
