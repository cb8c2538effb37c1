//! The numbers in error texts: limits and what was asked for.

use std::sync::LazyLock;

use foldline_session_model::{ByteLen, Tokens};
use regex::{Captures, Regex};

use super::patterns::one;

/// What an overflow text counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OverflowNumbers {
    pub(super) limit: Option<Tokens>,
    pub(super) input: Option<Tokens>,
    pub(super) output: Option<Tokens>,
}

/// Forms with named groups: `limit`, `input`, `more` (a second part of the input), `output`, `over`
/// (tokens above the limit).
static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Anthropic
        r"context limit: (?<input>[\d,]+) \+ (?<output>[\d,]+) > (?<limit>[\d,]+)",
        r"(?<input>[\d,]+) tokens > (?<limit>[\d,]+)",
        // OpenRouter, OpenAI, vLLM
        r"maximum context length is (?<limit>[\d,]+) tokens.*?\((?<input>[\d,]+) of text input, (?<more>[\d,]+) of tool input, (?<output>[\d,]+) in the output\)",
        r"maximum context length is (?<limit>[\d,]+) tokens.*?\((?<input>[\d,]+) in the messages, (?<output>[\d,]+) in the completion\)",
        r"maximum context length is (?<limit>[\d,]+) tokens.*?(?:requested|resulted in)(?: about)? (?<input>[\d,]+) tokens",
        r"maximum context length is (?<limit>[\d,]+)",
        // LiteLLM and others
        r"input length \(?(?<input>[\d,]+)\)? exceeds .*?\(?(?<limit>[\d,]+)\)?(?: tokens)?\W*$",
        r"maximum context length of (?<limit>[\d,]+)",
        // Together
        r"input \((?<input>[\d,]+) tokens\) is longer than .*?\((?<limit>[\d,]+) tokens\)",
        // llama.cpp
        r"request \((?<input>[\d,]+) tokens\) exceeds the available context size \((?<limit>[\d,]+) tokens\)",
        r"requested tokens \((?<input>[\d,]+)\) exceed.*?(?<limit>[\d,]+)",
        // Google
        r"input token count \((?<input>[\d,]+)\) exceeds the maximum.*?\((?<limit>[\d,]+)\)",
        // xAI
        r"maximum prompt length is (?<limit>[\d,]+).*?contains (?<input>[\d,]+) tokens",
        r"maximum prompt length is (?<limit>[\d,]+)",
        // Copilot
        r"token count of (?<input>[\d,]+) exceeds the limit of (?<limit>[\d,]+)",
        r"exceeds the limit of (?<limit>[\d,]+)",
        // Mistral
        r"prompt contains (?<input>[\d,]+) tokens.*?too large for model with (?<limit>[\d,]+)",
        r"too large for model with (?<limit>[\d,]+)",
        // DS4
        r"prompt has (?<input>[\d,]+) tokens?, but the configured context size is (?<limit>[\d,]+)",
        // Kimi
        r"exceeded model token limit: (?<limit>[\d,]+) \(requested: (?<input>[\d,]+)\)",
    ]
    .into_iter()
    .map(one)
    .collect()
});

static RATE_WINDOW: LazyLock<Regex> =
    LazyLock::new(|| one(r"\blimit:? (?<limit>[\d,]*\d),? [^()\n]{0,60}?\brequested:? (?<requested>[\d,]+)"));
static BYTES: LazyLock<Regex> = LazyLock::new(|| one(r"(?<limit>[\d,]+) ?bytes"));
static MESSAGE: LazyLock<Regex> = LazyLock::new(|| one(r"\b(?:messages|input)[.\[](?<index>\d+)\b"));

/// The numbers of an overflow text.
pub(super) fn overflow(text: &str) -> OverflowNumbers {
    for form in FORMS.iter() {
        if let Some(found) = form.captures(text) {
            let input = match (number(&found, "input"), number(&found, "more")) {
                (Some(input), Some(more)) => Some(input + more),
                (input, _) => input,
            };
            return OverflowNumbers {
                limit: number(&found, "limit"),
                input,
                output: number(&found, "output"),
            };
        }
    }
    OverflowNumbers::default()
}

/// `Limit L, Requested R` of a text about tokens per minute (FB-076).
pub(super) fn rate_window(text: &str) -> Option<(Tokens, Tokens)> {
    let found = RATE_WINDOW.captures(text)?;
    Some((number(&found, "limit")?, number(&found, "requested")?))
}

/// The last number of bytes in a text: `6000000 bytes > 5242880 bytes` names the limit last.
pub(super) fn byte_limit(text: &str) -> Option<ByteLen> {
    let found = BYTES.captures_iter(text).last()?;
    number(&found, "limit").map(|tokens| ByteLen(tokens.get()))
}

/// The position of the refused message, as in `messages.14.content.1.image` (FB-084).
pub(super) fn message_index(text: &str) -> Option<usize> {
    let found = MESSAGE.captures(text)?;
    found.name("index")?.as_str().parse().ok()
}

fn number(found: &Captures<'_>, group: &str) -> Option<Tokens> {
    let digits: String = found
        .name(group)?
        .as_str()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok().map(Tokens)
}
