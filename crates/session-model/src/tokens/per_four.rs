//! A quarter of the UTF-16 length: the estimate of pi, atomic and oh-my-pi.

use super::{TokenCounter, is_excluded};
use crate::Tokens;
use crate::json::stringify;
use crate::message::{Block, Content, Message};

/// Four UTF-16 units cost a token; a picture costs 1,200.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CharsPerFour;

const IMAGE_UNITS: u64 = 4800;

/// UTF-16 units of a text.
fn units(text: &str) -> u64 {
    crate::text::utf16_len(text) as u64
}

fn content_units(content: &Content<'_>) -> u64 {
    content.texts().map(units).sum::<u64>() + content.image_count() as u64 * IMAGE_UNITS
}

impl TokenCounter for CharsPerFour {
    fn text(&self, fragments: &mut dyn Iterator<Item = &str>) -> Tokens {
        Tokens(fragments.map(units).sum::<u64>().div_ceil(4))
    }

    fn pictures(&self, content: &Content<'_>) -> Tokens {
        Tokens(content.image_count() as u64 * IMAGE_UNITS / 4)
    }

    fn message(&self, message: &Message<'_>) -> Tokens {
        let units = match message {
            message if is_excluded(message) => 0,
            Message::User(m) | Message::Developer(m) => content_units(&m.content),
            Message::Assistant(m) => m
                .content
                .blocks()
                .iter()
                .map(|block| match block {
                    Block::Text { text, .. } => units(text),
                    Block::Thinking { thinking, .. } => units(thinking),
                    Block::ToolCall(call) => {
                        units(&call.name) + call.arguments.as_deref().map_or(0, |a| units(&stringify(a)))
                    }
                    _ => 0,
                })
                .sum(),
            Message::ToolResult(m) => content_units(&m.content),
            Message::Custom(m) | Message::HookMessage(m) => content_units(&m.content),
            Message::BashExecution(m) | Message::PythonExecution(m) => units(&m.source) + units(&m.output),
            Message::BranchSummary(m) | Message::CompactionSummary(m) => units(&m.summary),
            Message::VerbatimBoundary(m) => units(&m.text),
            Message::FileMention(m) => m
                .files
                .iter()
                .map(|f| units(&f.path) + units(&f.content) + u64::from(f.image.is_some()) * IMAGE_UNITS)
                .sum(),
            Message::Unknown(_) => 0,
        };
        Tokens(units.div_ceil(4))
    }
}
