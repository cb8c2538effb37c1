//! The text of a stored summary: prose, then marked blocks (D19). The blocks are taken off before the text is handed on,
//! so nothing nests.

use std::sync::LazyLock;

use regex::Regex;

use super::TURN_CONTEXT;
use super::user_messages::{self, UserMessage};
use crate::file_ops::strip_file_tags;
use crate::inert::{Wrapper, restored};

/// The parts of a stored summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSummary {
    /// The notes themselves; what was a merged split turn is plain text.
    pub prose: String,
    /// What the user said.
    pub user_messages: Vec<UserMessage>,
}

/// The name of the block of facts that were missing.
pub(super) const GATE_TAG: &str = "must-keep";

static USER_BLOCK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)<user-messages>\n.*?\n?</user-messages>\s*").ok());
static OTHER_BLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?s)<must-keep>.*?</must-keep>\s*",
        r"|<compaction-state>.*?</compaction-state>\s*"
    ))
    .ok()
});

impl StoredSummary {
    /// Takes a stored summary of any writer apart.
    pub fn parse(summary: &str) -> Self {
        let blocks = USER_BLOCK
            .as_ref()
            .into_iter()
            .flat_map(|block| block.find_iter(summary));
        let user_messages = blocks
            .flat_map(|found| user_messages::parse(found.as_str()))
            .collect();
        Self {
            prose: restored(&stripped(summary), Wrapper::Stored).into_owned(),
            user_messages,
        }
    }
}

/// A text without any block of a stored summary.
pub(super) fn stripped(text: &str) -> String {
    let mut prose = text.to_owned();
    for block in [USER_BLOCK.as_ref(), OTHER_BLOCK.as_ref()].into_iter().flatten() {
        prose = block.replace_all(&prose, "").into_owned();
    }
    flat(&strip_file_tags(&prose)).trim().to_owned()
}

/// A stored summary as it is handed on to a summariser, a branch summary or a region: prose only.
pub fn handed_on(summary: &str) -> String {
    StoredSummary::parse(summary).prose
}

/// The text without the seam of a merged split turn, so that merging again does not nest (FB-127).
pub(super) fn flat(text: &str) -> String {
    if !text.contains(TURN_CONTEXT) {
        return text.to_owned();
    }
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.trim() == TURN_CONTEXT {
            while lines
                .last()
                .is_some_and(|l| l.trim().is_empty() || l.trim() == "---")
            {
                lines.pop();
            }
            if lines.last().is_some_and(|l| l.trim() == super::NO_PRIOR_HISTORY) {
                lines.pop();
            }
            continue;
        }
        lines.push(line);
    }
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_all_writers_are_taken_off() {
        let text = "Notes.\n\n<user-messages>\n<message entry=\"u1\">\nDo it\n</message>\n</user-messages>\n\n<must-keep>\n- a.rs\n</must-keep>\n\n<read-files>\na\n</read-files>\n\n<modified-files>\nb\n</modified-files>\n<files>\n# x\n</files>\n\n<compaction-state>\ns\n</compaction-state>";
        let stored = StoredSummary::parse(text);
        assert_eq!(stored.prose, "Notes.");
        assert_eq!(stored.user_messages.len(), 1);
        assert_eq!(stored.user_messages[0].text, "Do it");
        assert_eq!(handed_on("plain"), "plain");
    }

    #[test]
    fn the_seam_of_a_split_turn_goes() {
        assert_eq!(flat("A\n\n---\n\n**Turn Context (split turn):**\n\nB"), "A\n\nB");
        assert_eq!(
            flat("No prior history.\n\n---\n\n**Turn Context (split turn):**\n\nB"),
            "B"
        );
        assert_eq!(flat("A\n\n---\n\nB"), "A\n\n---\n\nB");
    }
}
