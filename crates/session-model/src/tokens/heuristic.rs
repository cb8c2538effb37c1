//! The estimate by script (spec "Pruning", 2): a CJK character or a supplementary one costs a token, four other
//! UTF-16 units cost one.

use super::{IMAGE_TOKENS, TokenCounter};
use crate::Tokens;
use crate::json::stringify;
use crate::message::{Block, Content, Message};

/// The default estimator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heuristic;

/// Dense characters, and UTF-16 units of all others.
#[derive(Clone, Copy, Default)]
struct Count {
    dense: u64,
    other: u64,
}

impl Count {
    fn add(&mut self, text: &str) {
        let mut bytes = text.as_bytes();
        while !bytes.is_empty() {
            // Whole runs of ASCII are one unit a byte.
            let ascii = ascii_prefix(bytes);
            self.other += ascii as u64;
            bytes = &bytes[ascii..];
            let rest = bytes.iter().position(u8::is_ascii).unwrap_or(bytes.len());
            let (run, after) = bytes.split_at(rest);
            for c in std::str::from_utf8(run).unwrap_or_default().chars() {
                if is_dense(c) {
                    self.dense += 1;
                } else {
                    self.other += 1;
                }
            }
            bytes = after;
        }
    }

    /// One rounding up, over everything that was added.
    fn tokens(self) -> Tokens {
        Tokens(self.dense + self.other.div_ceil(4))
    }
}

fn ascii_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let mut at = 0;
    while let Some(block) = bytes.get(at..at + BLOCK) {
        if !block.is_ascii() {
            break;
        }
        at += BLOCK;
    }
    at + bytes[at..]
        .iter()
        .position(|b| !b.is_ascii())
        .unwrap_or(bytes.len() - at)
}

const fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11FF}' | '\u{3000}'..='\u{30FF}' | '\u{3130}'..='\u{318F}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}'
        | '\u{10000}'..)
}

impl TokenCounter for Heuristic {
    fn text(&self, fragments: &mut dyn Iterator<Item = &str>) -> Tokens {
        let mut count = Count::default();
        for fragment in fragments {
            count.add(fragment);
        }
        count.tokens()
    }

    fn message(&self, message: &Message<'_>) -> Tokens {
        let mut count = Count::default();
        let mut extra = Tokens::ZERO;
        match message {
            Message::User(m) => add_texts(&mut count, &m.content),
            Message::Custom(m) => add_texts(&mut count, &m.content),
            Message::Assistant(m) => {
                for block in m.content.blocks() {
                    match block {
                        Block::Text { text, .. } => count.add(text),
                        Block::Thinking { thinking, .. } => count.add(thinking),
                        Block::ToolCall(call) => {
                            count.add(&call.name);
                            if let Some(arguments) = &call.arguments {
                                count.add(&stringify(arguments));
                            }
                        }
                        _ => {}
                    }
                }
            }
            Message::ToolResult(m) => extra = with_images(&mut count, &m.content),
            Message::HookMessage(m) => extra = with_images(&mut count, &m.content),
            Message::BashExecution(m) => {
                count.add(&m.source);
                count.add(&m.output);
            }
            Message::BranchSummary(m) | Message::CompactionSummary(m) => count.add(&m.summary),
            Message::VerbatimBoundary(m) => count.add(&m.text),
            // The systems that this estimate comes from count nothing here, so their sizes are too small.
            // A context must not be: these roles reach the model.
            Message::Developer(m) => add_texts(&mut count, &m.content),
            Message::PythonExecution(m) => {
                count.add(&m.source);
                count.add(&m.output);
            }
            Message::FileMention(m) => {
                for file in &m.files {
                    count.add(&file.path);
                    count.add(&file.content);
                    if file.image.is_some() {
                        extra += IMAGE_TOKENS;
                    }
                }
            }
            Message::Unknown(_) => {}
        }
        count.tokens() + extra
    }
}

fn add_texts(count: &mut Count, content: &Content<'_>) {
    for text in content.texts() {
        count.add(text);
    }
}

fn with_images(count: &mut Count, content: &Content<'_>) -> Tokens {
    add_texts(count, content);
    (0..content.image_count()).map(|_| IMAGE_TOKENS).sum()
}
