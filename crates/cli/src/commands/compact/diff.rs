//! What a verbatim compaction removed: as data, and as text for people.

use std::fmt::Write as _;

use foldline_compaction_core::verbatim::{Preparation, Removed, SectionKind, ValidatedRanges, reconstruct};
use foldline_session_model::{EntryId, LineNumber};
use serde::Serialize;

use crate::output::{BAD, DIM, GOOD};
use crate::view::is_harmless;

/// One stretch of removed lines.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemovedRange {
    /// The first and the last line, as lines of the compacted part before the compaction.
    start: LineNumber,
    end: LineNumber,
    /// The count of the marker that stands there now.
    filtered: u64,
    /// The entries that the lines came from, as far as they are known.
    entry_ids: Vec<EntryId>,
    text: String,
}

/// The removed lines in order.
pub(super) fn removed(preparation: &Preparation<'_, '_>, ranges: &ValidatedRanges) -> Vec<RemovedRange> {
    let region = preparation.region();
    let mut lines = region.lines().peekable();
    let result = reconstruct(region, ranges);
    let range = |removed: Removed<'_>| {
        let mut entry_ids: Vec<EntryId> = Vec::new();
        while lines
            .next_if(|line| line.number < removed.range.start())
            .is_some()
        {}
        while let Some(line) = lines.next_if(|line| line.number <= removed.range.end()) {
            let origin = region
                .messages()
                .get(line.message.index())
                .and_then(|m| m.origin.as_ref());
            if let Some(origin) = origin.filter(|id| entry_ids.last() != Some(*id)) {
                entry_ids.push(origin.clone());
            }
        }
        RemovedRange {
            start: removed.range.start(),
            end: removed.range.end(),
            filtered: removed.count,
            entry_ids,
            text: removed.text.to_owned(),
        }
    };
    result.removed().map(range).collect()
}

/// The removed lines between the line before and the line after, with what stands in their place.
pub(super) fn text(preparation: &Preparation<'_, '_>, ranges: &ValidatedRanges) -> String {
    let region = preparation.region();
    let result = reconstruct(region, ranges);
    let mut kinds = region.lines().peekable();
    let mut out = String::new();
    let mut shown = None;
    for removed in result.removed() {
        let (start, end) = (removed.range.start(), removed.range.end());
        while kinds.next_if(|line| line.number < start).is_some() {}
        let kind = kinds.peek().map_or("", |line| name(line.kind));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{DIM}@@ {start}-{end} {kind} @@{DIM:#}");
        let before = start.index().checked_sub(1).map(LineNumber::from_index);
        if let Some(before) = before.filter(|line| shown != Some(*line)) {
            context(&mut out, region.line_text(before));
        }
        for line in removed.text.split('\n') {
            let _ = writeln!(out, "{BAD}-{}{BAD:#}", visible(line));
        }
        let _ = writeln!(out, "{GOOD}+(filtered {} lines){GOOD:#}", removed.count);
        let after = LineNumber::from_index(end.index() + 1);
        if after.index() < region.line_count() {
            context(&mut out, region.line_text(after));
            shown = Some(after);
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn context(out: &mut String, line: &str) {
    let _ = writeln!(out, "{DIM} {}{DIM:#}", visible(line));
}

const fn name(kind: SectionKind) -> &'static str {
    match kind {
        SectionKind::User => "user",
        SectionKind::AssistantThinking => "thinking",
        SectionKind::Assistant => "assistant",
        SectionKind::ToolCalls => "tool calls",
        SectionKind::ToolResult => "tool result",
        SectionKind::Earlier => "earlier text",
    }
}

/// The line with control characters shown, not sent: it is what some program printed.
fn visible(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if is_harmless(c) || c == '\t' {
            out.push(c);
        } else {
            let _ = write!(out, "{}", c.escape_default());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(visible("a\tb\u{1b}[31mred\r"), "a\tb\\u{1b}[31mred\\r");
        assert_eq!(visible("日本 😀"), "日本 😀");
    }
}
