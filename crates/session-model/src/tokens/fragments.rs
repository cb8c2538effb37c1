//! What of a message is counted (spec "compaction-core", 2.2).

use super::{is_excluded, picture};
use crate::Tokens;
use crate::json::stringify;
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

fn texts(content: &Content<'_>, add: &mut dyn FnMut(&str)) {
    for text in content.texts() {
        add(text);
    }
}

fn with_images(content: &Content<'_>, add: &mut dyn FnMut(&str)) -> Tokens {
    texts(content, add);
    picture::of_content(content)
}
