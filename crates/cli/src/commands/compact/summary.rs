//! `foldline compact --strategy context-full`: old messages become a summary.

use std::time::Instant;

use foldline_compaction_core::accounting::{ContextSize, RatioUse};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::PROMPT_VERSION;
use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::summary::{
    self, CommitOptions, Preparation, PrepareOptions, SummaryError, Window,
};
use foldline_compaction_core::verbatim::{Demand, NotSmaller, SmallRegion};
use foldline_session_model::Tokens;
use foldline_session_model::fold::Context;
use foldline_session_model::tokens::Heuristic;
use foldline_session_store::DiskStore;

use super::{Asked, Document, commit, committed_text, elapsed, skipped};
use crate::args;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, Format, grouped};
use crate::progress::Progress;
use crate::session::Session;

pub(super) fn run(
    args: &args::Compact,
    store: &DiskStore,
    session: &Session,
    context: &Context<'_>,
    started: Instant,
    progress: Progress,
    format: Format,
) -> Result<Status, CommandError> {
    let settings = CompactionSettings {
        keep_recent_tokens: f64::from(args.keep_recent),
        ..CompactionSettings::default()
    };
    let mut document = Document {
        strategy: args.strategy.as_str(),
        model: args.model.clone(),
        parameters: Some(Asked::Summary {
            keep_recent_tokens: args.keep_recent,
        }),
        rung: Some("extractive"),
        prompt_version: PROMPT_VERSION,
        ..Document::default()
    };
    let options = PrepareOptions {
        settings: &settings,
        // Without a model there is no window to fit into.
        limits: None,
        ratio: RatioUse::None,
        window: Window::FromFirstKept,
        small: SmallRegion::Refuse,
        tools: &ToolTable::default(),
    };
    let preparation = match summary::prepare(context, &options, &Heuristic) {
        Ok(preparation) => preparation,
        Err(nothing) => return Ok(skipped(document, &nothing, started, progress, format)),
    };
    document.tokens_before = preparation.tokens_before().get();
    document.first_kept_entry_id = preparation.first_kept();
    let files = preparation.file_ops().lists();
    document.read_files = files.read_files;
    document.modified_files = files.modified_files;
    if args.dry_run {
        drop(progress);
        return Ok(dry_run(document, &preparation, started, format));
    }

    progress.step("Summarising");
    let commit_options = CommitOptions {
        settings: &settings,
        limits: None,
        size: ContextSize::of(context, Tokens::ZERO, Tokens::ZERO, &Heuristic),
        open_todos: &[],
        demand: Demand::Any,
        preserve_data: None,
    };
    let compaction = match summary::extractive(&preparation, &commit_options, &Heuristic) {
        Ok(compaction) => compaction,
        Err(SummaryError::NotSmaller(reason)) => {
            if let NotSmaller::Insufficient { after, .. } = reason {
                document.tokens_after = after.get();
            }
            return Ok(skipped(document, &reason, started, progress, format));
        }
        Err(error) => return Err(CommandError::from_error(ErrorKind::Failed, &error)),
    };
    progress.step("Writing");
    let written = commit(store, session, &compaction.draft, args.output.as_deref())?;
    drop(progress);

    document.outcome = "committed";
    document.entry_id = Some(written.entry);
    document.backup_path = written.backup;
    document.output = args.output.as_ref().map(|path| path.display().to_string());
    document.tokens_after = compaction.tokens_after.get();
    document.elapsed_ms = elapsed(started);
    output::result(format, &document, || committed_text(&document, session));
    Ok(Status::Done)
}

fn dry_run(
    mut document: Document,
    preparation: &Preparation<'_, '_>,
    started: Instant,
    format: Format,
) -> Status {
    document.outcome = "skipped";
    document.reason = Some("dry run".to_owned());
    document.tokens_after = document.tokens_before;
    document.elapsed_ms = elapsed(started);
    output::result(format, &document, || {
        let first = preparation
            .first_kept()
            .map_or_else(|| "none".to_owned(), |id| id.to_string());
        format!(
            "Would summarise {} messages ({} tokens); {} newest messages stay, from entry {first}.\n\
             The context has about {} tokens. No model would be called.\n",
            grouped(preparation.compacted().len() as u64),
            grouped(preparation.compacted_tokens().get()),
            preparation.kept().len(),
            grouped(document.tokens_before),
        )
    });
    Status::Done
}
