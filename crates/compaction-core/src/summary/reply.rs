//! What a model wrote, before it counts as a summary (CD7, R13).

use std::sync::LazyLock;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{LlmReply, StopReason};
use foldline_session_model::tokens::TokenCounter;
use regex::Regex;

use super::assemble::SummaryError;
use super::job::{Purpose, SummaryRequest};
use super::sections::Sections;
use super::stored;
use crate::inert::{Wrapper, restored};
use crate::redact::redact;

/// A reply as the text of a summary, and whether it is whole.
pub(super) fn checked(
    request: &SummaryRequest,
    reply: &LlmReply,
    own_words: &[String],
    counter: &dyn TokenCounter,
) -> Result<(String, bool), SummaryError> {
    if request.purpose == Purpose::Short {
        return Ok((answer(reply, own_words)?, true));
    }
    let notes = checked_notes(reply, request.estimate, own_words, counter)?;
    Ok((notes.text, !notes.cut_off))
}

/// The notes that a model wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedNotes {
    /// The text, without what does not belong into it.
    pub text: String,
    /// Whether the output limit cut it. It has its required sections all the same.
    pub cut_off: bool,
}

/// The notes in a reply. `input` is the estimate of the request, and `own_words` are the texts of the request that are
/// no part of the session: neither may come back.
///
/// # Errors
/// [`SummaryError`] if they are no summary: cancelled, failed, empty, too short, longer than what they sum up, or cut
/// off before their required sections.
pub fn checked_notes(
    reply: &LlmReply,
    input: Tokens,
    own_words: &[String],
    counter: &dyn TokenCounter,
) -> Result<CheckedNotes, SummaryError> {
    let text = answer(reply, own_words)?;
    let chars = text.chars().count();
    if chars < LEAST_CHARS {
        return Err(SummaryError::TooShort { chars });
    }
    let output = counter.one(&text);
    if output > input {
        return Err(SummaryError::LargerThanInput { input, output });
    }
    let cut_off = reply.stop == StopReason::Length;
    if cut_off && !Sections::parse(&text).are_whole() {
        return Err(SummaryError::CutOff);
    }
    Ok(CheckedNotes { text, cut_off })
}

fn answer(reply: &LlmReply, own_words: &[String]) -> Result<String, SummaryError> {
    match reply.stop {
        StopReason::Aborted => return Err(SummaryError::Cancelled),
        StopReason::Error => return Err(SummaryError::Failed),
        StopReason::Stop | StopReason::Length | StopReason::ToolUse => {}
    }
    let text = cleaned(&reply.text(), own_words);
    if text.is_empty() {
        return Err(SummaryError::Empty);
    }
    Ok(text)
}

/// A summary shorter than this says nothing.
const LEAST_CHARS: usize = 40;

/// Blocks of a request that a model copied, and what it thought aloud.
static COPIED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?s)<conversation>.*?</conversation>\s*|<additional-context>.*?</additional-context>\s*",
        r"|<think>.*?</think>\s*|</?(?:previous-summary|summary)>[ \t]*\n?"
    ))
    .ok()
});

/// A reply without blocks of the request, our own instructions, blocks of stored summaries, and secrets (R13, R18).
fn cleaned(text: &str, instructions: &[String]) -> String {
    let mut text = match COPIED.as_ref() {
        Some(copied) => copied.replace_all(text, "").into_owned(),
        None => text.to_owned(),
    };
    for ours in instructions.iter().filter(|ours| ours.len() > LEAST_CHARS) {
        if text.contains(ours.as_str()) {
            text = text.replace(ours.as_str(), "");
        }
    }
    let text = unfenced(text.trim());
    let text = stored::stripped(text);
    let text = restored(&text, Wrapper::Request);
    redact(text.trim()).into_owned()
}

/// The content of a text that is one code block as a whole.
fn unfenced(text: &str) -> &str {
    let inner = text
        .strip_prefix("```markdown\n")
        .or_else(|| text.strip_prefix("```md\n"))
        .or_else(|| text.strip_prefix("```\n"))
        .and_then(|rest| rest.strip_suffix("```"));
    inner
        .filter(|inner| !inner.contains("```"))
        .unwrap_or(text)
        .trim()
}

/// Adds a part to the notes before it, heading by heading.
pub(super) fn joined(notes: &mut Option<String>, part: &str, of: usize) {
    match notes {
        Some(text) if of > 1 => {
            let mut sections = Sections::parse(text);
            sections.append(Sections::parse(part));
            *text = sections.text();
        }
        _ => *notes = Some(part.to_owned()),
    }
}
