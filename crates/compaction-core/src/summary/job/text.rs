//! What a request shows.

use foldline_session_model::llm::{LlmMessage, Wrappers};

use super::super::prepare::Preparation;

/// The messages of a preparation as a model sees them; those that it does not see are missing.
pub(super) struct Seen<'s> {
    pub(super) history: Vec<LlmMessage<'s>>,
    pub(super) prefix: Vec<LlmMessage<'s>>,
}

impl<'s> Seen<'s> {
    pub(super) fn new(preparation: &'s Preparation<'_, '_>, wrappers: &'s Wrappers) -> Self {
        let context = preparation.context();
        let visible = (0..)
            .zip(&context.items)
            .filter(|(_, item)| item.message.is_visible());
        let mut seen = Self {
            history: Vec::new(),
            prefix: Vec::new(),
        };
        for ((at, _), message) in visible.zip(context.converted(wrappers)) {
            if preparation.history_range().contains(&at) {
                seen.history.push(message);
            } else if preparation.prefix_range().contains(&at) {
                seen.prefix.push(message);
            }
        }
        seen
    }
}

/// Transcript, earlier summary, context, instructions: in this order, apart by blank lines.
pub(super) fn prompt_text(conversation: &str, previous: Option<&str>, context: &str, base: &str) -> String {
    let mut text = String::with_capacity(conversation.len() + base.len() + 256);
    text.push_str("<conversation>\n");
    text.push_str(conversation);
    text.push_str("\n</conversation>\n\n");
    if let Some(previous) = previous.filter(|p| !p.is_empty()) {
        text.push_str("<previous-summary>\n");
        text.push_str(previous);
        text.push_str("\n</previous-summary>\n\n");
    }
    if !context.is_empty() {
        text.push_str("<additional-context>\n");
        text.push_str(context);
        text.push_str("</additional-context>\n\n");
    }
    text.push_str(base);
    text
}
