//! The messages that a text stands for.

use foldline_session_model::fold::ContextItem;
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Block, Content, Message};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use super::compactions::Budget;
use super::numbers::role_name;
use super::shown::Shown;
use crate::view::plain;

/// Messages as the page lists them.
#[derive(Default)]
pub(super) struct Replaced {
    pub(super) messages: Vec<ReplacedMessage>,
    /// How many there was no room for.
    pub(super) more: usize,
}

pub(super) struct ReplacedMessage {
    pub(super) id: Shown,
    pub(super) role: Shown,
    pub(super) tokens: u64,
    pub(super) first: Shown,
    pub(super) text: Shown,
}

const LONGEST: usize = 2000;
const MOST: usize = 1000;

pub(super) fn collect(log: Option<&SessionLog>, items: &[&ContextItem<'_>], budget: &mut Budget) -> Replaced {
    let mut replaced = Replaced::default();
    for item in items {
        let text = text_of(&item.message);
        let message = ReplacedMessage {
            id: Shown::line(log.map_or("", |log| log.id(item.source)), 80),
            role: Shown::line(role_name(&item.message), 30),
            tokens: Heuristic.message(&item.message).get(),
            first: Shown::line(&text, 120),
            text: Shown::text(&text, LONGEST),
        };
        if replaced.messages.len() >= MOST || !budget.take(message.text.len() + message.first.len() + 200) {
            break;
        }
        replaced.messages.push(message);
    }
    replaced.more = items.len() - replaced.messages.len();
    replaced
}

/// A message as text, with its calls.
pub(super) fn text_of(message: &Message<'_>) -> String {
    let Some(Content::Blocks(blocks)) = message.content() else {
        return plain(message).into_owned();
    };
    let mut out = String::new();
    for block in blocks {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            Block::Text { text, .. } => out.push_str(text),
            Block::Thinking { thinking, .. } => out.push_str(&format!("(thinking) {thinking}")),
            Block::RedactedThinking { .. } => out.push_str("(thinking, encrypted)"),
            Block::Image { mime_type, .. } => out.push_str(&format!("(image, {mime_type})")),
            Block::ToolCall(call) => {
                let arguments = call.arguments.as_deref().map_or("", |raw| raw.get());
                out.push_str(&format!("{}({arguments})", call.name));
            }
            _ => {}
        }
    }
    out
}
