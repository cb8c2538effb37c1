//! The stored form of a branch summary: preamble, notes, file tags, and the details beside them (D14, D19, R13).

use foldline_compaction_core::file_ops::{FileLists, with_file_tags};
use foldline_compaction_core::inert::{Wrapper, inert};
use foldline_compaction_core::summary::{Elision, bounded};
use foldline_session_model::Tokens;
use foldline_session_model::tokens::TokenCounter;
use serde::Serialize;

use crate::preparation::{LeftOut, Preparation};

/// A summary that is ready to be attached to the new leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct BranchSummary {
    /// The text of the entry.
    pub summary: String,
    /// The details of the entry, as JSON of an object.
    pub details: String,
    /// The files, all of them; the text names the first ones.
    pub files: FileLists,
    /// What the summary is not made from.
    pub left_out: Vec<LeftOut>,
    /// Whether the reply was cut off by the output limit and is whole enough all the same.
    pub cut_off: bool,
}

/// What a summariser wrote, and who it was.
pub(crate) struct Written {
    pub(crate) notes: String,
    /// `provider/model`, or `extractive`.
    pub(crate) planner: String,
    pub(crate) rung: &'static str,
    pub(crate) prompt_version: Option<u32>,
    pub(crate) cut_off: bool,
}

/// The most tokens of the notes, and of them at most a tenth of the window.
const MOST: u64 = 8_000;
const LEAST: u64 = 256;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'d> {
    rung: &'static str,
    planner: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_version: Option<u32>,
    read_files: &'d [String],
    modified_files: &'d [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_off: Option<bool>,
    /// Messages for which there was no room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<&'d LeftOut>,
}

pub(crate) fn assemble(
    preparation: &Preparation<'_>,
    preamble: &str,
    written: &Written,
    left_out: Vec<LeftOut>,
    window: Option<Tokens>,
    counter: &dyn TokenCounter,
) -> BranchSummary {
    let cap = Tokens(
        window
            .map_or(MOST, |window| MOST.min(window.get() / 10))
            .max(LEAST),
    );
    let (notes, elided) = bounded(written.notes.trim(), cap, Elision::STORED, counter);
    let notes = inert(&notes, Wrapper::Stored);
    // A blank line: the first heading must not follow the colon of the preamble (CD5).
    let text = format!("{}\n\n{notes}", preamble.trim_end());
    let files = preparation.file_ops().lists();
    let summary = with_file_tags(text.trim_start(), &files);
    let details = Details {
        rung: written.rung,
        planner: &written.planner,
        prompt_version: written.prompt_version,
        read_files: &files.read_files,
        modified_files: &files.modified_files,
        cut_off: (written.cut_off || elided > 0).then_some(true),
        dropped: left_out
            .iter()
            .filter(|left| left.reason == crate::LeftOutReason::Budget)
            .collect(),
    };
    let details = serde_json::to_string(&details).unwrap_or_else(|_| "{}".to_owned());
    BranchSummary {
        summary,
        details,
        files,
        left_out,
        cut_off: written.cut_off,
    }
}
