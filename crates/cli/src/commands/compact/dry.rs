//! What a compaction would do: the boundary, the tokens of each request and its price. No model and no planner is asked.

use foldline_compaction_core::accounting::{ContextSize, Limits, RatioUse, correction_ratio};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_compaction_core::settings::Planner;
use foldline_compaction_core::summary::{
    self, CommitOptions, JobOptions, PrepareOptions, SummaryJob, Window,
};
use foldline_compaction_core::verbatim::{
    self, Candidate, Climb, Credentials, Demand, Ladder, LastRung, Preparation, RangePrompts, SmallRegion,
    Step,
};
use foldline_session_model::Tokens;
use foldline_session_model::fold::Context;
use foldline_session_model::model_call::{ModelProfile, ReasoningEffort};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

use super::{Asked, Document, Work, elapsed, skipped};
use crate::args::Strategy;
use crate::commit;
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::RequestPreview;
use crate::output::{self, grouped};
use crate::progress::Progress;
use crate::session::Session;

pub(super) fn run(work: &Work<'_>, session: &Session, progress: Progress) -> Result<Status, CommandError> {
    commit::not_read_only(session)?;
    let context = session.context(&Leaf::Last)?;
    let document = work.document(&context);
    let profile = work.setup.profile()?;
    match &document.parameters {
        Some(Asked::Lines(parameters)) => {
            let parameters = parameters.clone();
            let prepared = verbatim::prepare(&context, parameters, SmallRegion::Refuse, &Heuristic);
            drop(progress);
            Ok(match prepared {
                Err(nothing) => skipped(document, &nothing.to_string(), work.started, work.format),
                Ok(preparation) => lines(work, document, &preparation, profile.as_ref()),
            })
        }
        _ => summary(work, document, &context, profile.as_ref(), progress),
    }
}

fn lines(
    work: &Work<'_>,
    mut document: Document,
    preparation: &Preparation<'_, '_>,
    profile: Option<&ModelProfile>,
) -> Status {
    if let Some(error) = preparation.provenance_error() {
        output::warning(&format!(
            "the text of the earlier compaction is taken as plain text: {error}"
        ));
    }
    document.tokens_before = preparation.tokens_before().get();
    document.first_kept_entry_id = preparation.first_kept();
    document.requests = profile.iter().filter_map(|p| preview(preparation, p)).collect();
    let text = format!(
        "Would compact {} messages in {} lines; {} newest messages stay, from entry {}.\n\
         The context has about {} tokens.\n",
        grouped(preparation.compacted().len() as u64),
        grouped(preparation.region().line_count() as u64),
        preparation.tail().len(),
        first_kept(&document),
        grouped(document.tokens_before),
    );
    tell(work, document, text, profile)
}

/// The request that would be sent.
fn preview(preparation: &Preparation<'_, '_>, profile: &ModelProfile) -> Option<RequestPreview> {
    let prompts = RangePrompts::default();
    let candidate = Candidate {
        profile: profile.clone(),
        reasoning: ReasoningEffort::Unset,
        credentials: Credentials::Present,
    };
    let candidates = vec![candidate];
    let mut ladder = Ladder::new(
        preparation,
        &prompts,
        candidates,
        Climb::OneRequest,
        LastRung::Fail,
    );
    match ladder.step(&Heuristic) {
        Step::Ask { request, .. } => Some(RequestPreview::new(
            verbatim::estimate(&request, &Heuristic),
            profile,
        )),
        Step::Done(_) | Step::Failed(_) => None,
    }
}

fn summary(
    work: &Work<'_>,
    mut document: Document,
    context: &Context<'_>,
    profile: Option<&ModelProfile>,
    progress: Progress,
) -> Result<Status, CommandError> {
    let mut settings = work.setup.settings().compaction.core.clone();
    settings.keep_recent_tokens = f64::from(work.keep_recent());
    // Without a model there is no window to fit into.
    let limits = profile.and_then(|p| Limits::new(p.context_window, &settings, Tokens::ZERO));
    let options = PrepareOptions {
        settings: &settings,
        limits: limits.as_ref(),
        ratio: correction_ratio(context, Tokens::ZERO, &Heuristic).map_or(RatioUse::None, RatioUse::Manual),
        window: Window::FromFirstKept,
        small: SmallRegion::Refuse,
        room: None,
        tools: &ToolTable::default(),
    };
    let prepared = summary::prepare(context, &options, &Heuristic);
    drop(progress);
    let preparation = match prepared {
        Ok(preparation) => preparation,
        Err(nothing) => return Ok(skipped(document, &nothing.to_string(), work.started, work.format)),
    };
    document.rung = Some(if work.setup.summariser() == Planner::Model {
        "planned"
    } else {
        "extractive"
    });
    document.tokens_before = preparation.tokens_before().get();
    document.first_kept_entry_id = preparation.first_kept();
    let files = preparation.file_ops().lists();
    document.read_files = files.read_files;
    document.modified_files = files.modified_files;
    let prompts = Prompts::default();
    if let Some(profile) = profile {
        let options = JobOptions {
            commit: CommitOptions {
                settings: &settings,
                limits: limits.as_ref(),
                size: ContextSize::of(context, Tokens::ZERO, Tokens::ZERO, &Heuristic),
                open_todos: &[],
                demand: Demand::Any,
                preserve_data: None,
            },
            model: profile,
            prompts: &prompts,
            instructions: work.args.instructions.as_deref(),
            prompt_override: None,
            context_lines: &[],
            reasoning: ReasoningEffort::Unset,
        };
        let job = SummaryJob::new(&preparation, options, &Heuristic)
            .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
        let requests = job.requests().iter();
        document.requests = requests
            .map(|r| RequestPreview::new(r.estimate, profile))
            .collect();
    }
    let text = format!(
        "Would summarise {} messages ({} tokens); {} newest messages stay, from entry {}.\n\
         The context has about {} tokens.\n",
        grouped(preparation.compacted().len() as u64),
        grouped(preparation.compacted_tokens().get()),
        preparation.kept().len(),
        first_kept(&document),
        grouped(document.tokens_before),
    );
    Ok(tell(work, document, text, profile))
}

fn tell(work: &Work<'_>, mut document: Document, mut text: String, profile: Option<&ModelProfile>) -> Status {
    document.outcome = "skipped";
    document.reason = Some("dry run".to_owned());
    document.tokens_after = document.tokens_before;
    document.elapsed_ms = elapsed(work.started);
    output::result(work.format, &document, || {
        if matches!(work.strategy, Strategy::ContextFull)
            && work.setup.summariser() == Planner::Model
            && let Some(address) = work.setup.service_address()
        {
            text.push_str(&format!("  the service at {address} would be asked first\n"));
        } else if profile.is_none() {
            text.push_str("No model would be called.\n");
        }
        text.push_str(&requests_text(&document.requests, profile));
        text
    });
    Status::Done
}

fn first_kept(document: &Document) -> String {
    document
        .first_kept_entry_id
        .as_ref()
        .map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// The requests of a dry run for people.
fn requests_text(requests: &[RequestPreview], profile: Option<&ModelProfile>) -> String {
    let texts = profile.map(|profile| requests.iter().map(|request| request.text(profile)).collect());
    texts.unwrap_or_default()
}
