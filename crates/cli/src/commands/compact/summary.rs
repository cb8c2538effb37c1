//! `foldline compact --strategy context-full`: old messages become a summary.

use std::time::Instant;

use foldline_compaction_core::accounting::{ContextSize, Limits, RatioUse};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::{PROMPT_VERSION, Prompts};
use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::summary::{
    self, CommitOptions, JobOptions, Preparation, PrepareOptions, SummaryError, SummaryJob, Window,
};
use foldline_compaction_core::verbatim::{CallFailure, Demand, NotSmaller, SmallRegion};
use foldline_session_model::Tokens;
use foldline_session_model::fold::Context;
use foldline_session_model::model_call::{LlmReply, LlmRequest, ModelProfile, ReasoningEffort};
use foldline_session_model::tokens::Heuristic;

use super::{Asked, Document, Work, commit, committed_text, elapsed, requests_text, skipped};
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::{EXTRACTIVE, RequestPreview, call_error};
use crate::output::{self, Format, grouped};
use crate::progress::Progress;

pub(super) fn run(
    work: &Work<'_>,
    context: &Context<'_>,
    progress: Progress,
) -> Result<Status, CommandError> {
    let &Work {
        args,
        model,
        store,
        session,
        started,
        format,
    } = work;
    let settings = CompactionSettings {
        keep_recent_tokens: f64::from(args.keep_recent),
        ..CompactionSettings::default()
    };
    let mut document = Document {
        strategy: args.strategy().as_str(),
        model: args.model.model.clone(),
        parameters: Some(Asked::Summary {
            keep_recent_tokens: args.keep_recent,
        }),
        rung: Some(if args.model.model == EXTRACTIVE {
            "extractive"
        } else {
            "planned"
        }),
        prompt_version: PROMPT_VERSION,
        ..Document::default()
    };
    let profile = args.model.profile()?;
    // Without a model there is no window to fit into.
    let limits = profile
        .as_ref()
        .and_then(|p| Limits::new(p.context_window, &settings, Tokens::ZERO));
    let options = PrepareOptions {
        settings: &settings,
        limits: limits.as_ref(),
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
    let commit_options = CommitOptions {
        settings: &settings,
        limits: limits.as_ref(),
        size: ContextSize::of(context, Tokens::ZERO, Tokens::ZERO, &Heuristic),
        open_todos: &[],
        demand: Demand::Any,
        preserve_data: None,
    };
    let prompts = Prompts::default();
    let job_options = |model| JobOptions {
        commit: commit_options,
        model,
        prompts: &prompts,
        instructions: args.instructions.as_deref(),
        prompt_override: None,
        context_lines: &[],
        reasoning: ReasoningEffort::Unset,
    };
    let job = match &profile {
        None => None,
        Some(profile) => Some(
            SummaryJob::new(&preparation, job_options(profile), &Heuristic)
                .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?,
        ),
    };
    if args.dry_run {
        drop(progress);
        let planned = job.as_ref().zip(profile.as_ref());
        return Ok(dry_run(document, &preparation, planned, started, format));
    }

    progress.step("Summarising");
    let finished = match job.as_ref().zip(model) {
        None => summary::extractive(&preparation, &commit_options, &Heuristic),
        Some((job, model)) => {
            let requests: Vec<LlmRequest<'_>> = job.requests().iter().map(|r| r.request.clone()).collect();
            let answers = model.ask_all(&requests);
            let replies: Result<Vec<LlmReply>, CallFailure> = answers.into_iter().collect();
            job.finish(&replies.map_err(|failure| call_error(&failure))?, &Heuristic)
        }
    };
    let compaction = match finished {
        Ok(compaction) => compaction,
        Err(SummaryError::NotSmaller(reason)) => {
            if let NotSmaller::Insufficient { after, .. } = reason {
                document.tokens_after = after.get();
            }
            return Ok(skipped(document, &reason, started, progress, format));
        }
        Err(error) if model.is_some() => {
            return Err(CommandError::from_error(ErrorKind::Provider, &error)
                .hint("another model may do better; `--model extractive` needs none"));
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
    planned: Option<(&SummaryJob<'_, '_, '_>, &ModelProfile)>,
    started: Instant,
    format: Format,
) -> Status {
    document.outcome = "skipped";
    document.reason = Some("dry run".to_owned());
    document.tokens_after = document.tokens_before;
    document.requests = planned
        .iter()
        .flat_map(|(job, profile)| {
            job.requests()
                .iter()
                .map(|r| RequestPreview::new(r.estimate, profile))
        })
        .collect();
    document.elapsed_ms = elapsed(started);
    output::result(format, &document, || {
        let first = preparation
            .first_kept()
            .map_or_else(|| "none".to_owned(), |id| id.to_string());
        let mut text = format!(
            "Would summarise {} messages ({} tokens); {} newest messages stay, from entry {first}.\n\
             The context has about {} tokens.\n",
            grouped(preparation.compacted().len() as u64),
            grouped(preparation.compacted_tokens().get()),
            preparation.kept().len(),
            grouped(document.tokens_before),
        );
        text.push_str(&requests_text(
            &document.requests,
            planned.map(|(_, profile)| profile),
        ));
        text
    });
    Status::Done
}
