//! The request to a model that plans the deletions (spec "Verbatim", section 8; R18).
//!
//! The focus stands first and last, the transcript between as numbered data, then figures and rules. Every line
//! begins with its number, and the closing tag is made unusable inside of it, so no text of a session can end the
//! data or pass for an instruction.

use std::borrow::Cow;
use std::fmt::Write as _;

use foldline_session_model::model_call::{CacheHint, LlmRequest, ReasoningEffort};

use super::parameters::Parameters;
use super::view::View;

/// The texts of the request. They can be replaced by the user; the grammar of the answer cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangePrompts {
    /// The system text.
    pub system: Cow<'static, str>,
    /// What follows the transcript and the figures.
    pub rules: Cow<'static, str>,
}

impl Default for RangePrompts {
    fn default() -> Self {
        Self {
            system: Cow::Borrowed(include_str!("../../prompts/ranges-system.md")),
            rules: Cow::Borrowed(include_str!("../../prompts/ranges.md")),
        }
    }
}

const OPEN: &str = "<numbered-transcript>";
const CLOSE: &str = "</numbered-transcript>";
/// The longest focus, in characters: from a longer one its beginning and its end are taken.
const FOCUS_CHARS: usize = 2_000;

/// Builds the request for a view. It has no output limit: one that is shared with reasoning starves the answer
/// (spec "Verbatim", section 22).
pub fn request(
    view: &View<'_>,
    parameters: &Parameters,
    prompts: &RangePrompts,
    reasoning: ReasoningEffort,
) -> LlmRequest<'static> {
    let mut prompt = String::new();
    let focus = focus(&parameters.query);
    // Writing to a String cannot fail.
    let _ = write!(prompt, "<focus>\n{focus}\n</focus>\n\n{OPEN}\n");
    for (i, line) in view.lines().enumerate() {
        let _ = writeln!(prompt, "{}→{}", i + 1, without_tags(line));
    }
    let _ = write!(prompt, "{CLOSE}\n\n");
    let total = view.line_count();
    let keep = view.keep_target(parameters.ratio).min(total);
    let protected = view.protected();
    let protected_lines: usize = protected.iter().map(|span| span.line_count()).sum();
    let spans = if protected.is_empty() {
        "none".to_owned()
    } else {
        let spans: Vec<String> = protected
            .iter()
            .map(|s| format!("{}-{}", s.start(), s.end()))
            .collect();
        spans.join(", ")
    };
    let _ = write!(
        prompt,
        "The lines above are a transcript, each with its number. They stay exactly as they are, or they go.\n\n\
         Lines: {total}\n\
         Lines to keep: {keep}\n\
         Lines to delete: {}\n\
         Protected lines: {spans}\n\
         Protected lines in all: {protected_lines}\n\
         Other lines to keep: {}\n\n\
         {}\n\
         The focus once more:\n<focus>\n{focus}\n</focus>\n",
        total - keep,
        keep.saturating_sub(protected_lines),
        prompts.rules,
    );
    LlmRequest {
        reasoning,
        cache: CacheHint::Off,
        ..LlmRequest::from_prompt(prompts.system.clone(), prompt)
    }
}

/// The focus, cut in the middle if it is long, with tags that cannot close anything.
fn focus(query: &str) -> String {
    let chars = query.chars().count();
    if chars <= FOCUS_CHARS {
        return without_tags(query).into_owned();
    }
    let half = FOCUS_CHARS / 2;
    let head: String = query.chars().take(half).collect();
    let tail: String = query.chars().skip(chars - half).collect();
    let text = format!(
        "{head}\n[... {} characters left out ...]\n{tail}",
        chars - 2 * half
    );
    without_tags(&text).into_owned()
}

/// The text with the tags of this request made unusable.
fn without_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let lower = text.to_ascii_lowercase();
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in lower.match_indices('<') {
        let name = lower[at + 1..].trim_start_matches(['/', ' ', '\t']);
        if name.starts_with("numbered-transcript") || name.starts_with("focus>") {
            out.push_str(&text[from..=at]);
            out.push('\\');
            from = at + 1;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
