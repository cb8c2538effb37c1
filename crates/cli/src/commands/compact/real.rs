//! The compaction itself, through the library's door.

use foldline_agent_session::event::{
    CompactionAction, CompactionEnd, CompactionResult, FailureKind, OperationOutcome,
};
use foldline_agent_session::{BackupChoice, CompactOptions, SessionOptions};
use foldline_compaction_core::verbatim::{SmallRegion, ValidatedRanges, prepare};
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

use super::{Asked, Document, Work, diff, elapsed, skipped};
use crate::args::Strategy;
use crate::commit::Draft;
use crate::door::{Door, session_error};
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::failure_error;
use crate::output::{self, BOLD, GOOD, grouped};
use crate::progress::Progress;
use crate::session::Session;

pub(super) fn run(
    work: &Work<'_>,
    session: Session,
    options: SessionOptions,
    progress: Progress,
) -> Result<Status, CommandError> {
    let args = work.args;
    let document = {
        let context = session.context(&Leaf::Last)?;
        work.document(&context)
    };
    let source = session.path.display().to_string();
    let leaf = session.log.leaf().map(|ix| session.log.entry_id(ix));
    let (door, draft) = match &args.output {
        None => (Door::of(session, options)?, None),
        Some(output) => {
            let draft = Draft::of(&session, output)?;
            drop(session);
            (Door::at(draft.path(), options)?, Some(draft))
        }
    };
    let done = door.run(&progress, door.session.compact(wanted(work, &document)));
    drop(progress);
    let end = done.map_err(|e| session_error(&e))?;
    match end.outcome {
        OperationOutcome::Committed => draft.map_or(Ok(()), Draft::publish)?,
        OperationOutcome::Failed => return Err(failure(&end)),
        OperationOutcome::Skipped => return Ok(unpaid(work, document, &end)),
        OperationOutcome::Cancelled => {
            let mut document = document;
            document.outcome = "cancelled";
            document.reason = Some("it was cancelled".to_owned());
            document.elapsed_ms = elapsed(work.started);
            output::ended(work.format, &document, "Compaction cancelled");
            return Ok(Status::Ended(ErrorKind::Cancelled));
        }
    }
    let Some(result) = end.result else {
        return Err(CommandError::new(ErrorKind::Failed, "nothing was written"));
    };
    if let Some(error) = &result.extras.provenance {
        output::warning(&format!(
            "the text of the earlier compaction is taken as plain text: {error}"
        ));
    }
    let mut document = document;
    document.fill(&result, end.action);
    document.output = args.output.as_ref().map(|path| path.display().to_string());
    document.backup_path = match (&args.output, &result.backup_path) {
        // The source is the backup: it is not touched.
        (Some(_), _) => Some(source.clone()),
        (None, backup) => backup.as_ref().map(|path| path.display().to_string()),
    };
    let mut shown = String::new();
    if let (true, Some(deleted)) = (args.diff, &result.extras.deleted) {
        let before = leaf.map_or(Leaf::BeforeFirst, Leaf::Entry);
        door.look(|log| {
            let Ok(context) = log.context(&before, Profile::Auto) else {
                return;
            };
            shown = document.show_removed(work, &context, deleted);
        });
    }
    document.elapsed_ms = elapsed(work.started);
    output::result(work.format, &document, || {
        shown.push_str(&committed_text(&document, &source));
        shown
    });
    Ok(Status::Done)
}

fn wanted(work: &Work<'_>, document: &Document) -> CompactOptions {
    let args = work.args;
    let mut options = CompactOptions {
        instructions: args.instructions.clone(),
        action: Some(match work.strategy {
            Strategy::VerbatimLines => CompactionAction::VerbatimLines,
            Strategy::ContextFull => CompactionAction::ContextFull,
        }),
        planner: Some(work.setup.summariser()),
        backup: match args.output {
            Some(_) => BackupChoice::None,
            None => BackupChoice::Before,
        },
        ..CompactOptions::default()
    };
    match &document.parameters {
        Some(Asked::Lines(parameters)) => options.parameters = Some(parameters.clone()),
        Some(Asked::Summary { keep_recent_tokens }) => {
            options.keep_recent = Some(Tokens(u64::from(*keep_recent_tokens)));
        }
        None => {}
    }
    options
}

fn failure(end: &CompactionEnd) -> CommandError {
    let message = end.error_message.clone().unwrap_or_default();
    let error = failure_error(end.failure.as_ref().unwrap_or(&FailureKind::Other), message);
    match error.kind {
        ErrorKind::Busy => error.hint("try again when it is done, or write a copy with --output FILE"),
        _ => error,
    }
}

fn unpaid(work: &Work<'_>, mut document: Document, end: &CompactionEnd) -> Status {
    if let Some(unpaid) = &end.unpaid {
        // The reason says what it would have become.
        document.tokens_before = unpaid.tokens_before.get();
        document.tokens_after = document.tokens_before;
        document.rung = Some(unpaid.rung);
        document.stats.clone_from(&unpaid.extras.stats);
        document.dropped.clone_from(&unpaid.extras.dropped_lines);
    }
    let reason = end
        .error_message
        .as_deref()
        .unwrap_or("there is nothing to compact");
    skipped(document, reason, work.started, work.format)
}

impl Document {
    fn fill(&mut self, result: &CompactionResult, action: CompactionAction) {
        self.outcome = "committed";
        self.strategy = match action {
            CompactionAction::VerbatimLines => Strategy::VerbatimLines.as_str(),
            _ => Strategy::ContextFull.as_str(),
        };
        self.model.clone_from(&result.planner);
        self.rung = Some(result.rung);
        self.entry_id = Some(result.entry_id.clone());
        self.first_kept_entry_id.clone_from(&result.first_kept_entry_id);
        self.tokens_before = result.tokens_before.get();
        self.tokens_after = result.tokens_after.get();
        self.stats.clone_from(&result.extras.stats);
        self.read_files.clone_from(&result.extras.read_files);
        self.modified_files.clone_from(&result.extras.modified_files);
        self.dropped.clone_from(&result.extras.dropped_lines);
    }

    /// Adds the removed lines; returns them as text too.
    fn show_removed(
        &mut self,
        work: &Work<'_>,
        context: &foldline_session_model::fold::Context<'_>,
        deleted: &ValidatedRanges,
    ) -> String {
        let prepared = prepare(context, work.parameters(context), SmallRegion::Refuse, &Heuristic);
        let Ok(preparation) = prepared else {
            return String::new();
        };
        self.diff = Some(diff::removed(&preparation, deleted));
        diff::text(&preparation, deleted)
    }
}

fn committed_text(document: &Document, path: &str) -> String {
    let target = document.output.clone().unwrap_or_else(|| path.to_owned());
    let mut out = format!("{GOOD}Compacted{GOOD:#} {BOLD}{target}{BOLD:#}\n");
    let saved =
        document.tokens_before.saturating_sub(document.tokens_after) * 100 / document.tokens_before.max(1);
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
