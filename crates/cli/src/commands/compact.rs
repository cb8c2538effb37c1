//! `foldline compact`: one compaction of a session.

mod diff;
mod planner;
mod summary;

use std::path::Path;
use std::time::Instant;

use foldline_compaction_core::verbatim::{
    self, Demand, NotSmaller, Parameters, Preparation, Share, SmallRegion, reconstruct,
};
use foldline_session_model::model_call::ModelProfile;
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{CompactionDraft, EntryDraft, EntryId};
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::commit::{Backup, Commit};
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::{Model, RequestPreview};
use crate::output::{self, BOLD, Format, GOOD, grouped};
use crate::progress::Progress;
use crate::session::{Damage, Session};

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    reason: Option<String>,
    strategy: &'static str,
    model: String,
    parameters: Option<Asked>,
    rung: Option<&'static str>,
    prompt_version: u32,
    entry_id: Option<EntryId>,
    first_kept_entry_id: Option<EntryId>,
    tokens_before: u64,
    tokens_after: u64,
    stats: Option<verbatim::VerbatimStats>,
    read_files: Vec<String>,
    modified_files: Vec<String>,
    dropped: Vec<verbatim::DroppedLine>,
    /// What was removed, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Vec<diff::RemovedRange>>,
    /// The requests that a dry run would make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestPreview>,
    backup_path: Option<String>,
    output: Option<String>,
    elapsed_ms: u64,
}

/// What was asked for, by strategy.
#[derive(Serialize)]
#[serde(untagged)]
enum Asked {
    Lines(Parameters),
    #[serde(rename_all = "camelCase")]
    Summary {
        keep_recent_tokens: u32,
    },
}

/// What a strategy works with.
struct Work<'w> {
    args: &'w args::Compact,
    model: Option<&'w Model>,
    store: &'w DiskStore,
    session: &'w Session,
    started: Instant,
    format: Format,
}

pub(crate) fn run(args: &args::Compact, format: Format) -> Result<Status, CommandError> {
    let started = Instant::now();
    if let Some(output) = args.output.as_deref().filter(|path| path.exists()) {
        return Err(
            CommandError::new(ErrorKind::Usage, format!("{} exists already", output.display()))
                .hint("name a file that does not exist yet"),
        );
    }
    // Before anything is read: a model that cannot be asked is not worth waiting for.
    let model = if args.dry_run { None } else { args.model.open()? };
    let progress = Progress::start("Reading the session");
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let context = session.context(&Leaf::Last)?;
    if args.strategy() == args::Strategy::ContextFull {
        let work = Work {
            args,
            model: model.as_ref(),
            store: &store,
            session: &session,
            started,
            format,
        };
        return summary::run(&work, &context, progress);
    }
    let query = args.query.clone().or_else(|| context.last_user_text());
    let mut parameters = Parameters::with_query(query.unwrap_or_else(|| verbatim::DEFAULT_QUERY.to_owned()));
    parameters.preserve_recent = args.preserve_recent;
    parameters.budget = args.budget;
    match (args.ratio, args.budget) {
        (Some(ratio), _) => parameters.ratio = ratio,
        // With a budget alone, lines are no limit.
        (None, Some(_)) => parameters.ratio = Share::ALMOST_ALL,
        (None, None) => {}
    }
    let mut document = Document {
        strategy: args.strategy().as_str(),
        model: args.model.model.clone(),
        parameters: Some(Asked::Lines(parameters.clone())),
        prompt_version: verbatim::PROMPT_VERSION,
        ..Document::default()
    };
    let preparation = match verbatim::prepare(&context, parameters, SmallRegion::Refuse, &Heuristic) {
        Ok(preparation) => preparation,
        Err(nothing) => return Ok(skipped(document, &nothing, started, progress, format)),
    };
    if let Some(error) = preparation.provenance_error() {
        output::warning(&format!(
            "the text of the earlier compaction is taken as plain text: {error}"
        ));
    }
    document.tokens_before = preparation.tokens_before().get();
    document.first_kept_entry_id = preparation.first_kept();
    if args.dry_run {
        drop(progress);
        return dry_run(document, &preparation, args, started, format);
    }

    progress.step("Choosing lines");
    let beside = args.output.as_deref().unwrap_or(&session.path);
    let plan = match &model {
        None => planner::extractive(&preparation),
        Some(model) => planner::by_model(&preparation, model, &store, beside)?,
    };
    document.rung = Some(plan.rung.as_str());
    let finished = verbatim::finish(
        &preparation,
        &plan,
        Demand::Any,
        preparation.tokens_before(),
        &Heuristic,
    );
    let compaction = match finished {
        Ok(compaction) => compaction,
        Err(reason) => {
            if let NotSmaller::Insufficient { before, after, .. } = reason {
                document.tokens_after = after.get();
                // What would have grown: only here a reduction can be negative.
                document.stats = Some(reconstruct(preparation.region(), &plan.ranges).stats(before, after));
            }
            document.dropped = plan.dropped;
            return Ok(skipped(document, &reason, started, progress, format));
        }
    };
    progress.step("Writing");
    let written = commit(&store, &session, &compaction.draft, args.output.as_deref())?;
    drop(progress);

    document.outcome = "committed";
    document.entry_id = Some(written.entry);
    document.backup_path = written.backup;
    document.output = args.output.as_ref().map(|path| path.display().to_string());
    document.tokens_after = compaction.stats.tokens_after.get();
    document.dropped = plan.dropped;
    document.stats = Some(compaction.stats);
    if args.diff {
        document.diff = Some(diff::removed(&preparation, &plan.ranges));
    }
    document.elapsed_ms = elapsed(started);
    output::result(format, &document, || {
        let mut text = document
            .diff
            .as_ref()
            .map_or_else(String::new, |_| diff::text(&preparation, &plan.ranges));
        text.push_str(&committed_text(&document, &session));
        text
    });
    Ok(Status::Done)
}

struct Written {
    entry: EntryId,
    backup: Option<String>,
}

/// Appends the entry: to the session after a backup, or to a new copy of it.
fn commit(
    store: &DiskStore,
    session: &Session,
    draft: &CompactionDraft,
    output: Option<&Path>,
) -> Result<Written, CommandError> {
    let log = &session.log;
    let mut commit = Commit::on(session);
    let leaf = log.leaf().map(|leaf| log.entry_id(leaf));
    let entry = commit.add(leaf, &EntryDraft::compaction(draft));
    let backup = match output {
        // The source is the backup: it is not touched.
        Some(output) => commit
            .write_copy(store, output)
            .map(|()| Some(session.path.clone()))?,
        None => commit
            .append(store, Backup::Before("compact"))
            .map_err(|e| match e.kind {
                ErrorKind::Busy => e.hint("try again when it is done, or write a copy with --output FILE"),
                _ => e,
            })?,
    };
    Ok(Written {
        entry,
        backup: backup.map(|path| path.display().to_string()),
    })
}

fn elapsed(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn skipped(
    mut document: Document,
    reason: &dyn std::error::Error,
    started: Instant,
    progress: Progress,
    format: Format,
) -> Status {
    drop(progress);
    document.outcome = "skipped";
    document.reason = Some(reason.to_string());
    document.elapsed_ms = elapsed(started);
    output::result(format, &document, || format!("Nothing was changed: {reason}\n"));
    Status::Done
}

fn dry_run(
    mut document: Document,
    preparation: &Preparation<'_, '_>,
    args: &args::Compact,
    started: Instant,
    format: Format,
) -> Result<Status, CommandError> {
    document.outcome = "skipped";
    document.reason = Some("dry run".to_owned());
    document.tokens_after = document.tokens_before;
    let profile = args.model.profile()?;
    document.requests = profile
        .iter()
        .filter_map(|p| planner::preview(preparation, p))
        .collect();
    document.elapsed_ms = elapsed(started);
    output::result(format, &document, || {
        let first = preparation
            .first_kept()
            .map_or_else(|| "none".to_owned(), |id| id.to_string());
        let mut text = format!(
            "Would compact {} messages in {} lines; {} newest messages stay, from entry {first}.\n\
             The context has about {} tokens.\n",
            grouped(preparation.compacted().len() as u64),
            grouped(preparation.region().line_count() as u64),
            preparation.tail().len(),
            grouped(document.tokens_before),
        );
        text.push_str(&requests_text(&document.requests, profile.as_ref()));
        text
    });
    Ok(Status::Done)
}

/// The requests of a dry run for people.
fn requests_text(requests: &[RequestPreview], profile: Option<&ModelProfile>) -> String {
    match profile {
        None => "No model would be called.\n".to_owned(),
        Some(profile) => requests.iter().map(|request| request.text(profile)).collect(),
    }
}

fn committed_text(document: &Document, session: &Session) -> String {
    let target = document
        .output
        .clone()
        .unwrap_or_else(|| session.path.display().to_string());
    let mut out = format!("{GOOD}Compacted{GOOD:#} {BOLD}{target}{BOLD:#}\n");
    let saved = 100 - document.tokens_after * 100 / document.tokens_before.max(1);
    out.push_str(&format!(
        "  tokens  {} → {} ({saved} % less)\n",
        grouped(document.tokens_before),
        grouped(document.tokens_after)
    ));
    if let Some(stats) = &document.stats {
        out.push_str(&format!(
            "  lines   {} → {} kept word for word, {} gaps\n",
            grouped(stats.lines_before as u64),
            grouped(stats.lines_kept as u64),
            grouped(stats.range_count as u64)
        ));
    }
    if document.stats.is_none() {
        out.push_str(&format!(
            "  files   {} changed, {} only read\n",
            grouped(document.modified_files.len() as u64),
            grouped(document.read_files.len() as u64)
        ));
    }
    out.push_str(&format!("  by      {} ({})\n", document.strategy, document.model));
    if !document.dropped.is_empty() {
        let lines: u64 = document.dropped.iter().map(|d| u64::from(d.lines)).sum();
        out.push_str(&format!(
            "  no room {} lines that rank first; --json lists them\n",
            grouped(lines)
        ));
    }
    match (&document.output, &document.backup_path) {
        (None, Some(backup)) => out.push_str(&format!("  backup  {backup}\n")),
        _ => out.push_str("  source  unchanged\n"),
    }
    out
}
