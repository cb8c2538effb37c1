//! A branch summary without a model: the same sections, filled with quotes and counts from the branch.

use foldline_compaction_core::prompts::{Prompt, Prompts, Variables};
use foldline_compaction_core::summary::{EXTRACTED, Extract, extracted_notes};
use foldline_session_model::Tokens;
use foldline_session_model::tokens::TokenCounter;

use crate::preparation::Preparation;
use crate::stored::{self, BranchSummary, Written};

#[cfg(test)]
mod tests;

/// The most tokens of quoted lines.
const QUOTED: Tokens = Tokens(2_000);

/// Sums up a branch without a model. `None` if it holds nothing that could be summarised.
pub fn extractive(
    preparation: &Preparation<'_>,
    prompts: &Prompts,
    counter: &dyn TokenCounter,
) -> Option<BranchSummary> {
    if preparation.is_empty() {
        return None;
    }
    let source = preparation.readable();
    let notes = extracted_notes(&Extract {
        context: &source,
        items: 0..source.items.len(),
        open_todos: &[],
        cap: QUOTED,
    });
    let written = Written {
        notes: format!("{EXTRACTED}\n\n{notes}"),
        planner: "extractive".to_owned(),
        rung: "extractive",
        prompt_version: None,
        cut_off: false,
    };
    let preamble = prompts
        .render(Prompt::BranchPreamble, &Variables::default())
        .unwrap_or_default();
    Some(stored::assemble(
        preparation,
        &preamble,
        &written,
        preparation.left_out().to_vec(),
        None,
        counter,
    ))
}
