//! What of a message is counted (spec "compaction-core", 2.2).

use std::borrow::Cow;

use super::{is_excluded, picture};
use crate::Tokens;
use crate::json::stringify;
use crate::llm::{LlmBlock, LlmMessage};
use crate::message::{Block, Content, Message};

/// Gives each piece of text that counts to `add`, and returns what pictures cost beside it.
pub(super) fn each_fragment(message: &Message<'_>, add: &mut dyn FnMut(&str)) -> Tokens {
    match message {
        message if is_excluded(message) => {}
        // The systems that this estimate comes from charge no picture of the user, no developer message, no
        // Python run and no mentioned file. All of them reach the model, so all of them count (CD9).
        Message::User(m) | Message::Developer(m) => return with_images(&m.content, add),
        Message::Custom(m) | Message::HookMessage(m) => return with_images(&m.content, add),
        Message::Assistant(m) => {
            for block in m.content.blocks() {
                match block {
                    Block::Text { text, .. } => add(text),
                    Block::Thinking { thinking, .. } => add(thinking),
                    Block::ToolCall(call) => {
                        add(&call.name);
                        if let Some(arguments) = &call.arguments {
                            add(&stringify(arguments));
                        }
                    }
                    _ => {}
                }
            }
        }
        Message::ToolResult(m) => return with_images(&m.content, add),
        Message::BashExecution(m) | Message::PythonExecution(m) => {
            add(&m.source);
            add(&m.output);
        }
        Message::BranchSummary(m) | Message::CompactionSummary(m) => add(&m.summary),
        Message::VerbatimBoundary(m) => add(&m.text),
        Message::FileMention(m) => {
            let mut extra = Tokens::ZERO;
            for file in &m.files {
                add(&file.path);
                add(&file.content);
                extra += file.image.as_ref().map_or(Tokens::ZERO, picture::of_block);
            }
            return extra;
        }
        Message::Unknown(_) => {}
    }
    Tokens::ZERO
}

/// Collects what counts of a message of a model call, and returns what its pictures cost.
pub(super) fn of_call<'m>(message: &'m LlmMessage<'_>, fragments: &mut Vec<Cow<'m, str>>) -> Tokens {
    let mut extra = Tokens::ZERO;
    for block in &message.content {
        match block {
            LlmBlock::Text(text) => fragments.push(Cow::Borrowed(text)),
            LlmBlock::Thinking { thinking, .. } => fragments.push(Cow::Borrowed(thinking)),
            LlmBlock::ToolCall { call, .. } => {
                fragments.push(Cow::Borrowed(&call.name));
                fragments.extend(call.arguments.as_deref().map(stringify));
            }
            LlmBlock::RemoteHistory { fallback, .. } => fragments.push(Cow::Borrowed(fallback)),
            LlmBlock::Image { data, .. } => extra += picture::of_data(data),
            LlmBlock::RedactedThinking { .. } | LlmBlock::Unknown { .. } => {}
        }
    }
    extra
}

fn texts(content: &Content<'_>, add: &mut dyn FnMut(&str)) {
    for text in content.texts() {
        add(text);
    }
}

fn with_images(content: &Content<'_>, add: &mut dyn FnMut(&str)) -> Tokens {
    texts(content, add);
    picture::of_content(content)
}
