//! Secrets leave a text wherever a transcript is made of it: for summaries, regions, diagnostics and reports (D18, R18).
//!
//! The rules are data. One pass looks for the fixed beginnings that all rules have; only the rules whose beginning was
//! found run, and text without any costs that one pass. A secret becomes `[REDACTED:kind]`, names and keys around it
//! stay, and redacted text is not redacted again.

mod entropy;
mod rules;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

pub use rules::{Check, RULES, Rule};

/// Finds secrets in text.
#[derive(Debug)]
pub struct Redactor {
    anchors: AhoCorasick,
    /// For each anchor the rule that it belongs to.
    rule_of: Vec<usize>,
    rules: Vec<(Rule, Regex)>,
}

/// Why a set of rules cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The pattern is no regular expression.
    #[error("the rule {kind} has a broken pattern: {cause}")]
    Pattern {
        /// The rule.
        kind: String,
        /// What is wrong.
        cause: String,
    },
    /// The rules have no anchor, or too many.
    #[error("the anchors of the rules cannot be searched for: {0}")]
    Anchors(String),
}

static BUILTIN: LazyLock<Option<Redactor>> = LazyLock::new(|| Redactor::new(RULES).ok());

/// The text without secrets, by the rules that come with this crate.
pub fn redact(text: &str) -> Cow<'_, str> {
    match BUILTIN.as_ref() {
        Some(redactor) => redactor.redact(text),
        // The rules are constant and a test builds them.
        None => Cow::Borrowed(text),
    }
}

/// The text without secrets, piece by piece: what a cut takes away is never copied.
pub(crate) fn redact_into(text: &str, write: impl FnMut(&str)) {
    match BUILTIN.as_ref() {
        Some(redactor) => redactor.redact_into(text, write),
        None => [text].into_iter().for_each(write),
    }
}

impl Redactor {
    /// A redactor of these rules.
    ///
    /// # Errors
    /// [`RuleError`] if a pattern is broken.
    pub fn new(rules: &[Rule]) -> Result<Self, RuleError> {
        let mut built = Vec::with_capacity(rules.len());
        let mut anchors: Vec<&str> = Vec::new();
        let mut rule_of = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let pattern = Regex::new(rule.pattern).map_err(|e| RuleError::Pattern {
                kind: rule.kind.to_owned(),
                cause: e.to_string(),
            })?;
            built.push((*rule, pattern));
            for anchor in rule.anchors {
                anchors.push(anchor);
                rule_of.push(index);
            }
        }
        let anchors = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(anchors)
            .map_err(|e| RuleError::Anchors(e.to_string()))?;
        Ok(Self {
            anchors,
            rule_of,
            rules: built,
        })
    }

    /// The text without secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        pieces(text, &spans, |piece| out.push_str(piece));
        Cow::Owned(out)
    }

    fn redact_into(&self, text: &str, write: impl FnMut(&str)) {
        pieces(text, &self.spans(text), write);
    }

    /// Where secrets stand, in order, not overlapping; of overlapping ones the one that begins first counts, and covers
    /// the others.
    pub fn spans(&self, text: &str) -> Vec<(Range<usize>, &'static str)> {
        let mut first: Vec<Option<usize>> = vec![None; self.rules.len()];
        for found in self.anchors.find_overlapping_iter(text) {
            let rule = self.rule_of.get(found.pattern().as_usize()).copied();
            if let Some(slot) = rule.and_then(|rule| first.get_mut(rule)) {
                slot.get_or_insert(found.start());
            }
        }
        let mut spans: Vec<(Range<usize>, &'static str)> = Vec::new();
        for ((rule, pattern), anchor) in self.rules.iter().zip(first) {
            let Some(anchor) = anchor else { continue };
            // A match begins on the line of its anchor.
            let from = text
                .get(..anchor)
                .and_then(|before| before.rfind('\n'))
                .map_or(0, |at| at + 1);
            for found in pattern.captures_iter(text.get(from..).unwrap_or_default()) {
                let Some(secret) = found.get(1).or_else(|| found.get(0)) else {
                    continue;
                };
                if secret.as_str().contains("[REDACTED:") || !rule.check.accepts(secret.as_str()) {
                    continue;
                }
                spans.push((from + secret.start()..from + secret.end(), rule.kind));
            }
        }
        spans.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        spans.dedup_by(|later, first| {
            let overlaps = later.0.start < first.0.end;
            if overlaps {
                first.0.end = first.0.end.max(later.0.end);
            }
            overlaps
        });
        spans
    }
}

/// Writes a text with names in the place of the spans.
fn pieces(text: &str, spans: &[(Range<usize>, &'static str)], mut write: impl FnMut(&str)) {
    let mut at = 0;
    for (span, kind) in spans {
        write(text.get(at..span.start).unwrap_or_default());
        write("[REDACTED:");
        write(kind);
        write("]");
        at = span.end;
    }
    write(text.get(at..).unwrap_or_default());
}

#[cfg(test)]
mod tests;
