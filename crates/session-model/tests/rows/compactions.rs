//! Rows 42 to 57: compactions, kept tails, remote history, branch summaries.

use foldline_session_model::fold::Profile;
use foldline_session_model::llm::{LlmBlock, LlmMessage, LlmRole, TrailingCalls, Wrappers};
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{Api, MessageContent, Origin};
use foldline_session_model::tree::Leaf;

use crate::support::*;

/// `A B cmp(S, kept) D`.
fn kept(kept: &str) -> SessionLog {
    load(file(&[
        user("A", ""),
        assistant("B", "A"),
        prose("c", "B", "S", kept),
        user("D", "c"),
    ]))
}

#[test]
fn row_42_a_compaction_on_another_branch_does_not_count() {
    let log = load(file(&[
        user("A", ""),
        assistant("B", "A"),
        prose("c", "B", "S", "\"B\""),
        user("D", "B"),
    ]));
    assert_eq!(says(&log, Profile::Auto), "A B D");
}

#[test]
fn row_43_no_first_kept_entry_keeps_nothing() {
    for value in ["null", "\"\"", "\"unknown\"", "7"] {
        assert_eq!(says(&kept(value), Profile::Auto), "[S] D", "{value}");
    }
    let absent = kept("null").bytes().to_vec();
    let absent = String::from_utf8(absent)
        .unwrap()
        .replace("\"firstKeptEntryId\":null,", "");
    assert_eq!(says(&load(absent), Profile::Auto), "[S] D");
    assert_eq!(damage(&kept("\"unknown\"")), "4:unknown_first_kept");
    // Golden vectors: what stands before the compaction is kept from there on.
    assert_eq!(says(&kept("\"B\""), Profile::Auto), "[S] B D");
    assert_eq!(says(&kept("\"A\""), Profile::Auto), "[S] A B D");
}

#[test]
fn row_44_a_first_kept_entry_after_the_compaction_keeps_nothing() {
    for value in ["\"c\"", "\"D\""] {
        assert_eq!(says(&kept(value), Profile::Auto), "[S] D", "{value}");
    }
}

#[test]
fn row_45_the_id_of_the_first_kept_entry_twice() {
    // The last copy counts, for the path and for the boundary alike.
    let lines = [
        user("A", ""),
        user("B", "A"),
        prose("c", "B", "S", "\"B\""),
        user("D", "c"),
        user("B", "A"),
        user("E", "D"),
    ];
    let log = load(file(&lines));
    assert_eq!(
        (says(&log, Profile::Auto), damage(&log)),
        ("[S] B D E".into(), "6:duplicate_id".into())
    );
}

#[test]
fn row_46_a_kept_tail_that_starts_with_a_result() {
    let log = load(file(&[
        user("u", ""),
        calls("a", "u", "toolUse", &["x"]),
        result("r", "a", "x"),
        prose("c", "r", "S", "\"r\""),
        user("v", "c"),
    ]));
    let context = context(&log);
    let wrappers = Wrappers::default();
    let view = context.llm_view(&wrappers, TrailingCalls::Answer);
    let roles: Vec<&str> = view.iter().map(LlmMessage::role_name).collect();
    assert_eq!(roles, ["user", "user", "user"]);
    let text: String = view[1].texts().collect();
    assert!(
        text.contains("read") && text.contains("call x") && text.ends_with('r'),
        "{text}"
    );
}

#[test]
fn row_47_an_older_compaction_in_the_tail_emits_nothing() {
    let log = load(file(&[
        user("A", ""),
        prose("c1", "A", "S1", "\"A\""),
        user("B", "c1"),
        prose("c2", "B", "S2", "\"A\""),
        user("C", "c2"),
    ]));
    assert_eq!(says(&log, Profile::Auto), "[S2] A B C");
    // Between the two, the first one holds.
    let between = log.context(&Leaf::Entry("B".into()), Profile::Auto).unwrap();
    assert_eq!(said(&between), "[S1] A B");
}

/// D8: both kinds are active and the newest wins; under the profile of atomic the older verbatim one does.
#[test]
fn row_48_an_older_verbatim_and_a_newer_prose_compaction() {
    let log = load(file(&[
        user("A", ""),
        user("B", "A"),
        verbatim("c1", "B", "S1", "\"B\""),
        user("D", "c1"),
        prose("c2", "D", "S2", "\"D\""),
        user("E", "c2"),
    ]));
    assert_eq!(says(&log, Profile::Atomic), "lines(S1) B D E");
    assert_eq!(says(&log, Profile::Auto), "[S2] D E");
    assert_eq!(says(&log, Profile::Pi), "[S2] D E");
}

#[test]
fn row_49_each_profile_sees_its_own_kind() {
    let prose_only = kept("\"B\"");
    assert_eq!(says(&prose_only, Profile::Atomic), "A B D");
    let log = load(file(&[
        user("A", ""),
        verbatim("c", "A", "L", "\"A\""),
        user("D", "c"),
    ]));
    assert_eq!(says(&log, Profile::Pi), "[L] A D");
    assert_eq!(says(&log, Profile::Auto), "lines(L) A D");
    let context = context(&log);
    let wrappers = Wrappers::default();
    let view = context.llm_view(&wrappers, TrailingCalls::Answer);
    assert!(!view[0].texts().any(|t| t.contains("<summary>")));
}

/// D8: such an entry is inert, and says that atomic wrote last. A compaction after it says otherwise.
#[test]
fn row_50_logical_deletions_are_inert() {
    let deletion = |id: &str, parent: &str| {
        entry(
            "context_compaction",
            id,
            parent,
            r#""promptVersion":1,"deletedTargets":[{"kind":"entry","entryId":"A"}]"#,
        )
    };
    let log = load(file(&[user("A", ""), deletion("x", "A"), user("B", "x")]));
    assert_eq!(
        (says(&log, Profile::Auto), context(&log).profile),
        ("A B".into(), Profile::Atomic)
    );
    let lines = [
        user("A", ""),
        prose("c", "A", "S", "null"),
        deletion("x", "c"),
        user("B", "x"),
    ];
    assert_eq!(says(&load(file(&lines)), Profile::Auto), "A B");
    let lines = [
        user("A", ""),
        deletion("x", "A"),
        prose("c", "x", "S", "null"),
        user("B", "c"),
    ];
    assert_eq!(says(&load(file(&lines)), Profile::Auto), "[S] B");
}

#[test]
fn row_51_an_empty_summary_emits_no_message() {
    let log = load(file(&[
        user("A", ""),
        prose("c", "A", "", "\"A\""),
        user("D", "c"),
    ]));
    assert_eq!(says(&log, Profile::Auto), "A D");
    assert!(context(&log).compaction.is_some());
}

fn remote(provider: &str, history: &str) -> SessionLog {
    let data = format!(
        r#","preserveData":{{"openaiRemoteCompaction":{{"provider":"{provider}","replacementHistory":{history}}}}}"#
    );
    load(file(&[
        user("A", ""),
        assistant("B", "A"),
        compaction("c", "B", "S", "\"A\"", &data),
        user("D", "c"),
    ]))
}

fn view_for(log: &SessionLog, provider: &str) -> Vec<String> {
    let target = Origin {
        api: Api::OpenAiResponses,
        provider: provider.into(),
        model: "m".into(),
    };
    let wrappers = Wrappers::default();
    let context = context(log);
    let view = context.llm_view_for(&wrappers, TrailingCalls::Answer, &target);
    view.iter()
        .map(|message| match &message.content[0] {
            LlmBlock::RemoteHistory { history, .. } => history.items.get().to_owned(),
            LlmBlock::Text(text) if text.contains("<summary>\nS\n</summary>") => "[S]".into(),
            _ => message.texts().collect(),
        })
        .collect()
}

#[test]
fn row_52_remote_history_without_a_provider_is_ignored() {
    for profile in [Profile::Auto, Profile::Gajae] {
        assert_eq!(says(&remote("", "[{\"a\":1}]"), profile), "[S] A B D");
    }
    assert_eq!(view_for(&remote("", "[{\"a\":1}]"), ""), ["[S]", "A", "B", "D"]);
}

#[test]
fn row_53_empty_remote_history_counts_as_absent() {
    for profile in [Profile::Auto, Profile::Gajae] {
        assert_eq!(says(&remote("openai", "[ ]"), profile), "[S] A B D");
    }
    assert_eq!(
        view_for(&remote("openai", "[]"), "openai"),
        ["[S]", "A", "B", "D"]
    );
}

#[test]
fn row_54_remote_history_is_for_its_own_provider() {
    let log = remote("openai", "[{\"a\":1}]");
    assert_eq!(view_for(&log, "openai"), ["[{\"a\":1}]", "D"]);
    assert_eq!(view_for(&log, "anthropic"), ["[S]", "A", "B", "D"]);
    // What pi, oh-my-pi and gajae-code build (golden vector): no tail.
    assert_eq!(says(&log, Profile::Gajae), "[S] D");
    // As a request: the items, and the summary to fall back on once.
    let context = context(&log);
    let target = Origin {
        api: Api::OpenAiResponses,
        provider: "openai".into(),
        model: "m".into(),
    };
    let wrappers = Wrappers::default();
    let view = context.llm_view_for(&wrappers, TrailingCalls::Answer, &target);
    let MessageContent::Opaque { items, fallback, .. } = view[0].to_request(&log).content else {
        panic!()
    };
    assert_eq!((items[0].get(), fallback.contains("\nS\n")), ("{\"a\":1}", true));
    assert!(matches!(view[1].role, LlmRole::User));
}

/// FB-112: where a history says which API and model it is from, all of them must match.
#[test]
fn fb_112_remote_history_is_for_its_own_api_and_model() {
    let from = |api: &str, model: &str| {
        let own = format!("\"api\":\"{api}\",\"model\":\"{model}\",");
        let data = format!(
            r#","preserveData":{{"openaiRemoteCompaction":{{"provider":"openai",{own}"replacementHistory":[{{"a":1}}]}}}}"#
        );
        load(file(&[
            user("A", ""),
            compaction("c", "A", "S", "\"A\"", &data),
            user("D", "c"),
        ]))
    };
    let own = from("openai-responses", "m");
    assert_eq!(view_for(&own, "openai"), ["[{\"a\":1}]", "D"]);
    for foreign in [from("openai-completions", "m"), from("openai-responses", "m2")] {
        assert_eq!(view_for(&foreign, "openai"), ["[S]", "A", "D"]);
    }
}

/// Golden vector: the placeholder of oh-my-pi is no summary while there is something that it stood for.
#[test]
fn row_55_a_superseded_placeholder_counts_as_absent() {
    let gone = "[Superseded compaction summary elided after a newer compaction]";
    let lines = [
        user("u", ""),
        assistant("a", "u"),
        prose("c1", "a", gone, "\"u\""),
        user("v", "c1"),
        prose("c2", "v", "SECOND", "\"v\""),
    ];
    let log = load(file(&lines));
    assert_eq!(says(&log, Profile::Auto), "[SECOND] v");
    let back = log.context(&Leaf::Entry("v".into()), Profile::Auto).unwrap();
    assert_eq!(said(&back), "u a v");
    let alone = load(file(&[prose("c1", "", gone, "null"), user("v", "c1")]));
    assert_eq!(says(&alone, Profile::Auto), format!("[{gone}] v"));
}

fn branch_summary(text: &str) -> SessionLog {
    let summary = entry(
        "branch_summary",
        "b",
        "A",
        &format!(r#""fromId":"A","summary":"{text}""#),
    );
    load(file(&[user("A", ""), summary, user("C", "b")]))
}

#[test]
fn row_56_an_empty_branch_summary_is_skipped() {
    assert_eq!(says(&branch_summary(""), Profile::Auto), "A C");
}

#[test]
fn row_57_a_branch_summary_of_white_space_is_emitted() {
    assert_eq!(says(&branch_summary("  "), Profile::Auto), "A branch(  ) C");
}
