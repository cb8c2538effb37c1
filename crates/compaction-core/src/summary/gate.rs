//! A last look before a summary is committed: what must not be lost is in the summary or in the tail (D19).

use std::sync::LazyLock;

use foldline_session_model::fold::ContextItem;
use foldline_session_model::message::{Block, Message};
use memchr::memmem;
use regex::Regex;

use super::user_messages::UserMessage;
use crate::redact::redact;
use crate::text::one_line;

/// How many of the newest user messages are looked at for quoted names.
const LAST_TURNS: usize = 3;
/// How long a fact in the list may be, in UTF-16 units.
const FACT_UNITS: usize = 200;

/// What a user quotes: text in backticks, and codes such as `E0308` or `TS2345`.
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"`([^`\n]{2,120})`|\b([A-Z]{1,6}-?[0-9]{2,6})\b").ok());

/// The facts that must survive, in the order in which they are listed: changed files, open todos, what the user
/// quoted in the last turns.
pub(super) fn facts(modified: &[String], open_todos: &[String], said: &[UserMessage]) -> Vec<String> {
    let mut facts: Vec<String> = modified.to_vec();
    facts.extend(open_todos.iter().map(|todo| one_line(&redact(todo), FACT_UNITS)));
    if let Some(quoted) = QUOTED.as_ref() {
        for message in said.iter().rev().take(LAST_TURNS) {
            for found in quoted.captures_iter(&message.text) {
                let fact = found.get(1).or_else(|| found.get(2));
                facts.extend(fact.map(|f| f.as_str().trim().to_owned()));
            }
        }
    }
    let mut seen = rustc_hash::FxHashSet::default();
    facts.retain(|fact| !fact.is_empty() && seen.insert(fact.clone()));
    facts
}

/// The facts that are neither in the summary nor in the tail.
pub(super) fn missing(facts: Vec<String>, summary: &str, kept: &[ContextItem<'_>]) -> Vec<String> {
    facts
        .into_iter()
        .filter(|fact| {
            let finder = memmem::Finder::new(fact);
            finder.find(summary.as_bytes()).is_none()
                && !kept.iter().any(|item| names(&item.message, &finder))
        })
        .collect()
}

fn names(message: &Message<'_>, finder: &memmem::Finder<'_>) -> bool {
    let has = |text: &str| finder.find(text.as_bytes()).is_some();
    match message {
        Message::BashExecution(m) | Message::PythonExecution(m) => has(&m.source) || has(&m.output),
        Message::BranchSummary(m) | Message::CompactionSummary(m) => has(&m.summary),
        Message::VerbatimBoundary(m) => has(&m.text),
        Message::FileMention(m) => m.files.iter().any(|f| has(&f.path) || has(&f.content)),
        message => message.content().is_some_and(|content| {
            content.texts().any(has)
                || content.blocks().iter().any(|block| match block {
                    Block::ToolCall(call) => call.arguments.as_deref().is_some_and(|a| has(a.get())),
                    _ => false,
                })
        }),
    }
}

#[cfg(test)]
mod tests {
    use foldline_session_model::EntryId;

    use super::*;

    fn said(text: &str) -> UserMessage {
        UserMessage {
            entry: EntryId::from("u"),
            text: text.to_owned(),
        }
    }

    #[test]
    fn facts_are_files_todos_and_what_the_user_quoted_last() {
        let messages: Vec<UserMessage> = [
            "old `x_y`",
            "why E0308?",
            "use `parse_all` and `parse_all`",
            "TS2345 now",
        ]
        .map(said)
        .to_vec();
        let facts = facts(&["a.rs".into()], &["write\n the docs".into()], &messages);
        assert_eq!(facts, ["a.rs", "write the docs", "TS2345", "parse_all", "E0308"]);
    }

    #[test]
    fn facts_in_the_summary_are_not_missing() {
        let facts = vec!["a.rs".to_owned(), "b.rs".to_owned()];
        assert_eq!(missing(facts, "changed src/a.rs", &[]), ["b.rs"]);
    }
}
