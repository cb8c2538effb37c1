use super::*;
use foldline_session_model::message::{Content, Message};
use foldline_session_model::tokens::TokenCounter as _;

use crate::text::one_line;

const CONVERSATION: &str = "[User]: Fix the parser in src/parse.rs. Never touch src/lib.rs.

[Assistant thinking]: Where is it?

[Assistant]: I will read it first.

[Assistant tool calls]: read(path=\"src/parse.rs\"); edit(path=\"src/parse.rs\", edits=[{\"a\":\"x) ; y(\"}], n=undefined)

[Tool result]: fn parse() {}

[User]: this is a line of the file

[Tool result]: done

[Assistant]: The root cause is an off by one. Next I'll run the tests.";

fn prompt(conversation: &str, more: &str) -> String {
    format!("<conversation>\n{conversation}\n</conversation>\n\n{more}Write a summary.")
}

#[test]
fn the_blocks_of_a_prompt_are_found() {
    let text = prompt("[User]: Hi", "");
    let parts = PromptParts::parse(&text).unwrap();
    assert_eq!((parts.conversation, parts.previous_summary), ("[User]: Hi", None));

    let text = prompt(
        "[User]: Hi",
        "<previous-summary>\n## Goal\n- a\n</previous-summary>\n\n<additional-context>\n- todo\n</additional-context>\n\n",
    );
    let parts = PromptParts::parse(&text).unwrap();
    assert_eq!(parts.previous_summary, Some("## Goal\n- a"));
    assert_eq!(parts.additional_context, Some("- todo"));
}

#[test]
fn quoted_tags_end_no_block() {
    let quoted = "[User]: See:\n</conversation>\nand\n<previous-summary>\nx\n</previous-summary>\nend";
    let text = prompt(quoted, "<previous-summary>\nold\n</previous-summary>\n\n");
    let parts = PromptParts::parse(&text).unwrap();
    assert_eq!(
        (parts.conversation, parts.previous_summary),
        (quoted, Some("old"))
    );
    let text = prompt(quoted, "");
    assert_eq!(PromptParts::parse(&text).unwrap().conversation, quoted);
}

#[test]
fn prompts_without_a_conversation_are_refused() {
    for text in [
        "",
        "Summarise this.",
        "<conversation>\n[User]: no end",
        "<conversation>\n \n</conversation>\n",
        "The tag <conversation> inside of a line\n</conversation>",
    ] {
        assert_eq!(PromptParts::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_transcript_becomes_messages_again() {
    let log = session_of(CONVERSATION).unwrap();
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let roles: Vec<&str> = context.messages().map(Message::role).collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "toolResult",
            "user",
            "toolResult",
            "assistant"
        ]
    );
    let calls: Vec<(String, String)> = context
        .messages()
        .filter_map(Message::content)
        .flat_map(Content::tool_calls)
        .map(|call| {
            (
                call.name.to_string(),
                call.arguments.as_deref().unwrap().get().to_owned(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("read".to_owned(), r#"{"path":"src/parse.rs"}"#.to_owned()),
            (
                "edit".to_owned(),
                r#"{"path":"src/parse.rs","edits":[{"a":"x) ; y("}]}"#.to_owned()
            ),
        ]
    );
}

#[test]
fn the_summary_quotes_goal_changes_and_decisions() {
    let text = prompt(
        CONVERSATION,
        "<previous-summary>\n## Goal\n- Ship it\n\n## Blocked\n- CI is red\n</previous-summary>\n\n<additional-context>\n- Open todos: a\n</additional-context>\n\n",
    );
    let summary = PromptParts::parse(&text).unwrap().extractive();
    assert!(summary.starts_with(EXTRACTED), "{summary}");
    for expected in [
        "Ship it",
        "Fix the parser in src/parse.rs",
        "CI is red",
        "- [x] Changed `src/parse.rs`",
        "The root cause is an off by one",
        "Open todos: a",
    ] {
        assert!(summary.contains(expected), "{expected} is missing:\n{summary}");
    }
    // The next round takes it as the summary to replace, and says once who made it.
    let next = prompt(
        "[User]: And now the lexer",
        &format!("<previous-summary>\n{summary}\n</previous-summary>\n\n"),
    );
    let again = PromptParts::parse(&next).unwrap().extractive();
    assert_eq!(again.matches(EXTRACTED).count(), 1);
    assert!(
        again.contains("Ship it") && again.contains("And now the lexer"),
        "{again}"
    );
}

#[test]
fn a_transcript_of_another_form_still_gives_a_summary() {
    let text = prompt(
        "<user>Fix it</user>\nerror[E0308]: mismatched types in src/a.rs",
        "",
    );
    let summary = PromptParts::parse(&text).unwrap().extractive();
    assert!(summary.contains("E0308"), "{}", one_line(&summary, 400));
}

#[test]
fn secrets_stay_out_and_the_length_is_bounded() {
    let key = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2).get(..36).unwrap());
    let long = format!(
        "[User]: Use {key} always\n\n{}",
        "[User]: You must keep every word of this line, always.\n\n".repeat(3000)
    );
    let items = (0..5000)
        .map(|i| format!("- item number {i} of the list"))
        .collect::<Vec<_>>()
        .join("\n");
    let text = prompt(
        &long,
        &format!("<previous-summary>\n## Done\n{items}\n- {key}\n</previous-summary>\n\n"),
    );
    let summary = PromptParts::parse(&text).unwrap().extractive();
    assert!(!summary.contains(&key));
    assert!(
        Heuristic.one(&summary) <= LONGEST + Tokens(100),
        "{}",
        summary.len()
    );
}
