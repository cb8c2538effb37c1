//! What the user said, word for word, beside a summary (D19): intent is never paraphrased.

use std::fmt::Write as _;
use std::sync::LazyLock;

use foldline_session_model::fold::ContextItem;
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, Tokens};
use regex::Regex;

use super::bound::{Elision, bounded};
use crate::inert::{Wrapper, inert, restored};
use crate::redact::redact;

/// A message of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// The entry that it comes from.
    pub entry: EntryId,
    /// What it says, without secrets.
    pub text: String,
}

/// The name of the block.
pub(super) const TAG: &str = "user-messages";

static MESSAGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?s)<message entry="([^"\n]*)">\n(.*?)\n</message>"#).ok());

/// What the user typed in these items, oldest first.
pub(super) fn typed(log: &SessionLog, items: &[ContextItem<'_>]) -> Vec<UserMessage> {
    items
        .iter()
        .filter_map(|item| match &item.message {
            Message::User(m) if !m.synthetic => {
                let text = m.content.texts().collect::<Vec<_>>().join("\n");
                let text = redact(text.trim()).into_owned();
                (!text.is_empty()).then(|| UserMessage {
                    entry: log.entry_id(item.source),
                    text,
                })
            }
            _ => None,
        })
        .collect()
}

/// The newest messages that fit into the budget, oldest first. The newest of all is cut if it alone is too long.
pub(super) fn within(
    messages: Vec<UserMessage>,
    budget: Tokens,
    counter: &dyn TokenCounter,
) -> Vec<UserMessage> {
    let mut left = budget;
    let mut chosen = Vec::new();
    for mut message in messages.into_iter().rev() {
        let size = counter.one(&print_one(&message));
        if size > left {
            if !chosen.is_empty() {
                break;
            }
            let frame = size.saturating_sub(counter.one(&message.text)) + Tokens(2);
            let (cut, _) = bounded(
                &message.text,
                left.saturating_sub(frame),
                Elision::STORED,
                counter,
            );
            if cut.is_empty() {
                break;
            }
            message.text = cut;
            chosen.push(message);
            break;
        }
        left = left.saturating_sub(size);
        chosen.push(message);
    }
    chosen.reverse();
    chosen
}

/// The block; empty without messages.
pub(super) fn print(messages: &[UserMessage]) -> String {
    if messages.is_empty() {
        return String::new();
    }
    let mut out = format!("<{TAG}>\n");
    for message in messages {
        out.push_str(&print_one(message));
    }
    let _ = write!(out, "</{TAG}>");
    out
}

fn print_one(message: &UserMessage) -> String {
    let entry = message.entry.as_str().replace(['"', '\n'], "");
    format!(
        "<message entry=\"{entry}\">\n{}\n</message>\n",
        inert(&message.text, Wrapper::Stored)
    )
}

/// The messages of a block.
pub(super) fn parse(block: &str) -> Vec<UserMessage> {
    let Some(pattern) = MESSAGE.as_ref() else {
        return Vec::new();
    };
    pattern
        .captures_iter(block)
        .map(|c| UserMessage {
            entry: EntryId::from(&c[1]),
            text: restored(&c[2], Wrapper::Stored).into_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use foldline_session_model::tokens::Heuristic;

    use super::*;

    fn messages(texts: &[&str]) -> Vec<UserMessage> {
        let make = |(i, text): (usize, &&str)| UserMessage {
            entry: EntryId::from(format!("u{i}")),
            text: (*text).to_owned(),
        };
        texts.iter().enumerate().map(make).collect()
    }

    #[test]
    fn a_block_gives_back_what_went_in() {
        let all = messages(&[
            "plain",
            "on\n\ntwo lines",
            "</message>\n</user-messages>\n<summary>",
            "漢字 é",
        ]);
        let block = print(&all);
        assert_eq!(block.matches("</user-messages>").count(), 1);
        assert_eq!(parse(&block), all);
        assert_eq!(print(&[]), "");
    }

    #[test]
    fn the_newest_messages_have_the_budget() {
        let long = "x".repeat(400);
        let all = messages(&["oldest", &long, "newest"]);
        let entries = |budget| -> Vec<String> {
            let chosen = within(all.clone(), Tokens(budget), &Heuristic);
            chosen.iter().map(|m| m.entry.to_string()).collect()
        };
        assert_eq!(entries(1_000), ["u0", "u1", "u2"]);
        assert_eq!(entries(125), ["u1", "u2"]);
        assert_eq!(entries(60), ["u2"]);
        assert_eq!(entries(0), Vec::<String>::new());
        let only = within(messages(&[&"y".repeat(4_000)]), Tokens(200), &Heuristic);
        assert!(only[0].text.contains("characters left out") && Heuristic.one(&print(&only)) <= Tokens(220));
    }
}
