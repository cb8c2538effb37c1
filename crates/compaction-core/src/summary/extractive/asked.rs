//! What the user asked for: typed words, without pasted output, commands of the client and mere assent.

use std::sync::LazyLock;

use foldline_session_model::fold::ContextItem;
use foldline_session_model::message::Message;
use regex::Regex;

use super::said::matching;
use super::{LINE_UNITS, QUOTE_UNITS, newest};
use crate::extractive::is_error_line;
use crate::redact::redact;
use crate::text::one_line;

/// Sentences that set a rule.
static RULE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:must|never|always|don't|do not|dont|prefer|avoid|make sure|ensure|no need|without|instead of|",
        r"rather than|should (?:be|not|never|always|only|stay|have)|shouldn't|at (?:most|least))\b|",
        r"^(?:and |but |please |also |ok,? |no,? |yes,? )*(?:only|use|keep|stick to|leave|no)\b"
    ))
    .ok()
});
/// The beginning of a line that a program wrote: prompts, frames of a stack, records, tables, differences.
static PASTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:[➜$%❯›>|│┃┆╭╰├└─━═⠀-⣿→←↑↓]|at \S+ \(|at async |[{}\[\]()^~*]+$|[{\[]\s*\W|\+\s*\d|\d+ [-+|]|[-+]{3} |",
        r"@@ |[\w.-]+@[\w.-]+:|\d{4}-\d\d-\d\d[T ]\d\d|~?/\S+$|~/\S+ \(|node:|Traceback |File \x22|Caused by|thread ')"
    ))
    .ok()
});
/// Tools and clients put words of their own into messages of the user; a mark of an interruption is one.
const INTERRUPTED: &str = "[Request interrupted";

/// After so many tags without an end no more are looked for.
const MOST_UNCLOSED: usize = 16;

/// Words that only agree, greet or urge on.
const ASSENT: [&str; 62] = [
    "a", "again", "agreed", "ahead", "all", "alright", "awesome", "can", "carry", "clear", "continue",
    "cool", "correct", "do", "done", "exactly", "fine", "for", "go", "good", "great", "hello", "hey", "hi",
    "i", "is", "it", "just", "keep", "leave", "lgtm", "like", "looks", "me", "nice", "no", "now", "ok",
    "okay", "on", "perfect", "please", "proceed", "right", "see", "so", "sounds", "sure", "thank", "thanks",
    "that", "thats", "then", "this", "works", "wow", "yeah", "yep", "yes", "yo", "you", "yup",
];

/// What the user typed, oldest first, redacted.
pub(super) fn typed<'m>(items: &'m [ContextItem<'_>]) -> impl DoubleEndedIterator<Item = String> + 'm {
    items.iter().filter_map(|item| match &item.message {
        Message::User(m) if !m.synthetic => {
            let text = m.content.texts().collect::<Vec<_>>().join("\n");
            let text = redact(&text).into_owned();
            (!text.trim().is_empty()).then_some(text)
        }
        _ => None,
    })
}

/// The newest message that asks for something.
pub(super) fn latest_request(items: &[ContextItem<'_>]) -> Option<String> {
    typed(items).rev().find_map(|text| request(&text))
}

/// The first message that asks for something.
pub(super) fn first_request(items: &[ContextItem<'_>]) -> Option<String> {
    typed(items).find_map(|text| request(&text))
}

/// Sentences that set a rule, of all requests but a single one, which is the goal as a whole.
pub(super) fn rules(items: &[ContextItem<'_>]) -> Vec<String> {
    let texts: Vec<String> = typed(items).map(|text| spoken(&text)).collect();
    if texts.len() < 2 {
        return Vec::new();
    }
    let rules = texts.iter().flat_map(|text| matching(text, RULE.as_ref()));
    // A question sets no rule.
    newest(rules.filter(|rule| !rule.trim_end().ends_with('?')), 12)
}

/// A message on one line, if it asks for something.
fn request(text: &str) -> Option<String> {
    let spoken = spoken(text);
    let words = one_line(&spoken, QUOTE_UNITS);
    if is_idle(&words) {
        // What was pasted without a word is a request to look at it.
        let pasted = without_wrappers(text);
        let error = pasted.lines().find(|line| is_error_line(line))?;
        return Some(format!("(pasted) {}", one_line(error, LINE_UNITS)));
    }
    Some(words)
}

/// Whether a line asks for nothing: a command of the client, a word, or mere assent.
fn is_idle(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return true };
    let alone = words.next().is_none();
    if alone && first.starts_with('/') && !first.trim_start_matches('/').contains(['/', '.']) {
        return true;
    }
    // One word of a script without blanks can be a whole sentence.
    if alone && first.is_ascii() && first.len() < 16 && !first.contains(|c: char| c.is_ascii_digit()) {
        return true;
    }
    line.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .all(|word| {
            let word = word.replace('\'', "").to_lowercase();
            ASSENT.binary_search(&word.as_str()).is_ok()
        })
}

/// A message without what was pasted into it, and without what tools put around it.
fn spoken(text: &str) -> String {
    let text = without_wrappers(text);
    let mut out = String::new();
    let (mut fence, mut in_paste) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        in_paste &= !trimmed.is_empty();
        if trimmed.starts_with("```") {
            fence = !fence;
            continue;
        }
        let is_pasted = fence
            || PASTED.as_ref().is_some_and(|pasted| pasted.is_match(trimmed))
            || trimmed.starts_with(INTERRUPTED)
            || (is_error_line(trimmed) && !trimmed.ends_with('?') && line.len() != text.len())
            || !trimmed.contains(char::is_alphanumeric)
            // A record of a log has no end.
            || trimmed.len() > 2_000;
        // What follows in the same paragraph was pasted with it.
        in_paste |= is_pasted && !trimmed.is_empty();
        if !in_paste && !is_pasted {
            out.push_str(trimmed);
            out.push('\n');
        }
    }
    out
}

/// Blocks such as `<system-reminder>`, which a tool or a hook wrote: from a tag with a dash or an underscore in its
/// name at the beginning of a line to its end.
fn without_wrappers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut searches = 0;
    while let Some(at) = rest.find('<').filter(|_| searches < MOST_UNCLOSED) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let name = from
            .get(1..)
            .and_then(|tag| tag.split_once(['>', ' ']))
            .map(|(name, _)| name)
            .filter(|name| {
                name.contains(['-', '_'])
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || matches!(b, b'-' | b'_'))
                    && (out.is_empty() || out.ends_with('\n') || out.ends_with('>'))
            });
        let end = name.and_then(|name| {
            let close = format!("</{name}>");
            from.find(&close).map(|at| at + close.len())
        });
        let skip = match end {
            Some(end) => end,
            None => {
                searches += usize::from(name.is_some());
                out.push('<');
                1
            }
        };
        rest = from.get(skip..).unwrap_or_default();
        if end.is_some() {
            rest = rest.trim_start_matches(['\n', ' ']);
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_assent_are_in_order() {
        assert!(ASSENT.is_sorted());
        assert!(RULE.is_some() && PASTED.is_some());
    }

    #[test]
    fn commands_and_assent_are_no_requests() {
        for idle in [
            "/mode",
            "/",
            "ok",
            "OK!",
            "can leave it",
            "yes go on",
            "looks good, thanks",
            "ls",
            "yo",
            "wow",
            "  ",
            "<command-name>/clear</command-name>\n<command-message>clear</command-message>",
            "<system-reminder>\nUse the tool.\n</system-reminder>",
            "<local-command-stdout>text of a program</local-command-stdout>",
            "[Request interrupted by user]",
        ] {
            assert_eq!(request(idle), None, "{idle}");
        }
        for asked in [
            "fix it",
            "/src/main.rs is broken",
            "f0c674",
            "yes, and add a test",
            "are we done?",
            "続けてください",
            "use Vec<u8> or a <my-tag> here",
        ] {
            assert_eq!(request(asked).as_deref(), Some(asked));
        }
    }

    #[test]
    fn what_was_pasted_is_not_what_was_said() {
        let text = "<hook-output>\nnoise\n</hook-output>\nlook at this, it must not crash\n\n➜  app git:(main) ✗ node cli.js\nError: ENOENT: no such file\n    at readFileSync (node:fs:443:20)\n{\"type\":\"message\",\"a\":1}\n```\nlet never = 1;\n```\nnever seen by a person\n\nNode never sleeps";
        assert_eq!(
            request(text).as_deref(),
            Some("look at this, it must not crash Node never sleeps")
        );
        assert_eq!(
            request("➜  app node cli.js\nError: ENOENT: no such file").as_deref(),
            Some("(pasted) Error: ENOENT: no such file")
        );
    }
}
