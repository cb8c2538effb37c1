//! What the model said: sentences that decide, and those about what comes.

use std::sync::LazyLock;

use foldline_session_model::fold::ContextItem;
use foldline_session_model::message::{Message, StopReason};
use regex::Regex;

use super::{LINE_UNITS, QUOTE_UNITS, newest};
use crate::redact::redact;
use crate::text::one_line;

/// Sentences that decide or explain.
static DECISION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:decided|because|instead of|rather than|root cause|turns out|",
        r"the (?:fix|problem|issue|reason|bug) (?:is|was)|fixed by)\b"
    ))
    .ok()
});
/// Sentences about what comes.
static NEXT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:next(?: steps?)?\b.{8}|remaining|still (?:need|have|missing)|not yet|to do\b|todo|left to|",
        r"I(?:'ll| will|'m going to| need to)|we(?:'ll| need to| should)|you (?:can|should) now)\b"
    ))
    .ok()
});
/// Words that only announce the call that follows them.
static LEAD_IN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^(?:(?:ah|oh|ok|okay|now|first|good|great|perfect|also|and|then|so|next)[,!.]? )*",
        r"(?:let me|let's|I(?:'ll| will| need to) (?:check|see|find|look|read)|now I (?:see|understand|have|need))\b.{0,120}$"
    ))
    .ok()
});

/// A shorter sentence says nothing by itself.
const LEAST_SENTENCE: usize = 24;
/// The same for the last thing that was said: "Done" and "Perfect" say nothing.
const LEAST_LAST_WORD: usize = 12;

/// Sentences that decide or explain, newest last.
pub(super) fn decisions(items: &[ContextItem<'_>]) -> Vec<String> {
    let texts: Vec<String> = said(items).collect();
    let found = texts.iter().flat_map(|text| matching(text, DECISION.as_ref()));
    newest(found.filter(|sentence| stands_alone(sentence)), 8)
}

/// The newest thing that the model said, beside the announcement of a call.
pub(super) fn last_word(items: &[ContextItem<'_>]) -> Option<String> {
    said(items).rev().take(8).find_map(|text| {
        let told: Vec<&str> = sentences(&text)
            .into_iter()
            .filter(|sentence| sentence.len() >= LEAST_LAST_WORD && !announces(sentence))
            .collect();
        let told = one_line(&told.join(" "), QUOTE_UNITS);
        (!told.is_empty()).then_some(told)
    })
}

/// What the model meant to do, from the last things that it said.
pub(super) fn plans(items: &[ContextItem<'_>]) -> Vec<String> {
    let mut texts: Vec<String> = said(items).rev().take(3).collect();
    texts.reverse();
    let found = texts.iter().flat_map(|text| matching(text, NEXT.as_ref()));
    newest(
        found.filter(|s| s.len() >= LEAST_SENTENCE && !s.ends_with(':')),
        4,
    )
}

fn said<'m>(items: &'m [ContextItem<'_>]) -> impl DoubleEndedIterator<Item = String> + 'm {
    items.iter().filter_map(|item| match &item.message {
        Message::Assistant(m) if m.stop_reason != StopReason::Error => {
            let text = m.content.texts().collect::<Vec<_>>().join("\n");
            let text = redact(&text).into_owned();
            (!text.trim().is_empty()).then_some(text)
        }
        _ => None,
    })
}

/// Whether a sentence says something without what follows it.
pub(super) fn stands_alone(sentence: &str) -> bool {
    sentence.trim().len() >= LEAST_SENTENCE && !announces(sentence)
}

/// Whether a sentence only announces what follows it.
fn announces(sentence: &str) -> bool {
    let sentence = sentence.trim();
    sentence.ends_with(':') || LEAD_IN.as_ref().is_some_and(|lead_in| lead_in.is_match(sentence))
}

/// The sentences of a text that match, each on one line. Code is no sentence.
pub(super) fn matching(text: &str, pattern: Option<&Regex>) -> Vec<String> {
    let Some(pattern) = pattern else { return Vec::new() };
    sentences(text)
        .into_iter()
        .filter(|sentence| sentence.len() > 12 && pattern.is_match(sentence))
        .map(|sentence| one_line(sentence, LINE_UNITS))
        .collect()
}

/// The sentences of a text: lines, and parts of lines that end with a mark before a capital. Dots inside of names end
/// none.
fn sentences(text: &str) -> Vec<&str> {
    let mut fence = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fence = !fence;
            continue;
        }
        if fence {
            continue;
        }
        let mut start = 0;
        let bytes = line.as_bytes();
        for (at, pair) in bytes.windows(3).enumerate() {
            if matches!(pair[0], b'.' | b'!' | b'?') && pair[1] == b' ' && pair[2].is_ascii_uppercase() {
                found.extend(line.get(start..=at));
                start = at + 2;
            }
        }
        found.extend(line.get(start..));
    }
    for sentence in &mut found {
        *sentence = sentence.trim().trim_start_matches(['-', '*', '#', '>', ' ']);
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_say_nothing_by_themselves() {
        assert!(DECISION.is_some() && NEXT.is_some() && LEAD_IN.is_some());
        for idle in [
            "Now let me read the whole of the file",
            "Let me fix this in the parser:",
            "The fix is:",
            "Done.",
        ] {
            assert!(!stands_alone(idle), "{idle}");
        }
        assert!(stands_alone("The root cause is a missing rule in `parse_all`."));
    }

    #[test]
    fn sentences_end_before_a_capital_and_never_in_names() {
        let text = "- See src/a.rs. It has v1.2 now! really\n```\nNot. This\n```\nLast";
        assert_eq!(
            sentences(text),
            ["See src/a.rs.", "It has v1.2 now! really", "Last"]
        );
    }
}
