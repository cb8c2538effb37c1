//! How many tokens something costs: estimates, and what providers measured.

#[cfg(feature = "bpe")]
mod bpe;
mod context;
mod fragments;
mod heuristic;
mod per_four;
mod picture;
#[cfg(test)]
mod tests;

use crate::Tokens;
use crate::llm::LlmMessage;
use crate::message::{Content, Message};

#[cfg(feature = "bpe")]
pub use bpe::{Bpe, Vocabulary};
pub use context::{ContextTokens, TokenSource};
pub use heuristic::Heuristic;
pub use per_four::CharsPerFour;
pub use picture::PixelSize;

/// The estimate of a picture whose size in pixels is unknown, however long its encoding (R16).
pub const IMAGE_TOKENS: Tokens = Tokens(1200);

/// Estimates the tokens of texts and messages. Deterministic, and never less for more text.
pub trait TokenCounter {
    /// The estimate for pieces of text that are counted together.
    fn text(&self, fragments: &mut dyn Iterator<Item = &str>) -> Tokens;

    /// The estimate for one message of a context; nothing for a message that the model does not see.
    fn message(&self, message: &Message<'_>) -> Tokens;

    /// The estimate for one message of a model call: the same parts count as in the message that it was made of.
    fn call_message(&self, message: &LlmMessage<'_>) -> Tokens {
        let mut fragments = Vec::new();
        let extra = fragments::of_call(message, &mut fragments);
        self.text(&mut fragments.iter().map(|text| &**text)) + extra
    }

    /// The part of a message's estimate that its pictures make.
    fn pictures(&self, content: &Content<'_>) -> Tokens {
        picture::of_content(content)
    }

    /// The estimate for one piece of text.
    fn one(&self, text: &str) -> Tokens {
        self.text(&mut std::iter::once(text))
    }
}

/// Whether a message is kept from the model (spec "Session model", 12 row 60).
fn is_excluded(message: &Message<'_>) -> bool {
    match message {
        Message::BashExecution(m) | Message::PythonExecution(m) => m.excluded,
        Message::Custom(m) | Message::HookMessage(m) => m.excluded,
        _ => false,
    }
}
