//! `foldline navigate`: moves the leaf to another entry.

use foldline_agent_session::event::OperationOutcome;
use foldline_agent_session::{BranchSummaryChoice, NavigateOptions, Navigated};
use foldline_branch_summary::LeftOut;
use foldline_session_model::EntryId;
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::door::{Door, session_error};
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, DIM, Format, GOOD, grouped};
use crate::progress::Progress;
use crate::session::{Damage, Session};
use crate::setup::{Purpose, Setup};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    reason: Option<&'static str>,
    old_leaf_id: Option<EntryId>,
    new_leaf_id: Option<EntryId>,
    editor_text: Option<String>,
    summary_entry_id: Option<EntryId>,
    abandoned: Vec<EntryId>,
    /// Who summarized; null without a summary.
    model: Option<String>,
    read_files: Vec<String>,
    modified_files: Vec<String>,
    /// What the summary is not made from, and why.
    left_out: Vec<LeftOut>,
    backup_path: Option<String>,
}

pub(crate) fn run(args: &args::Navigate, format: Format) -> Result<Status, CommandError> {
    // Before anything is read: a model that cannot be asked is not worth waiting for.
    let (setup, options) = if args.summarize {
        let setup = Setup::new(&args.model, Purpose::Work)?;
        let options = setup.options()?;
        (setup, options)
    } else {
        let setup = Setup::without_model()?;
        let options = setup.options_without_models();
        (setup, options)
    };
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let target = session.log.entry_id(session.find(&args.target)?);
    let path = session.path.display().to_string();
    let door = Door::of(session, options)?;
    let wanted = NavigateOptions {
        summary: if args.summarize {
            BranchSummaryChoice::Summarize
        } else {
            BranchSummaryChoice::None
        },
        instructions: args.instructions.clone(),
        replace_instructions: args.replace_instructions.clone(),
        label: args.label.clone(),
        planner: Some(setup.planner()),
    };
    let progress = Progress::start("Moving");
    let moved = door.run(&progress, door.session.navigate(target.as_str(), wanted));
    drop(progress);
    let moved = moved.map_err(|e| {
        let error = session_error(&e);
        match error.kind {
            ErrorKind::Provider if error.hint.is_none() => error.hint("nothing was changed"),
            _ => error,
        }
    })?;
    let document = Document::of(moved, args.summarize.then(|| setup.name()));
    output::result(format, &document, || text(&document, &path));
    Ok(match document.outcome {
        "cancelled" => Status::Ended(ErrorKind::Cancelled),
        _ => Status::Done,
    })
}

impl Document {
    fn of(moved: Navigated, model: Option<String>) -> Self {
        let (outcome, reason) = match moved.outcome {
            OperationOutcome::Committed => ("committed", None),
            OperationOutcome::Skipped => ("skipped", Some("the session stands there already")),
            OperationOutcome::Cancelled => ("cancelled", Some("it was cancelled")),
            OperationOutcome::Failed => ("failed", None),
        };
        let (read_files, modified_files) = moved
            .files
            .map(|files| (files.read_files, files.modified_files))
            .unwrap_or_default();
        Self {
            outcome,
            reason,
            old_leaf_id: moved.old_leaf_id,
            new_leaf_id: moved.new_leaf_id,
            editor_text: moved.editor_text,
            summary_entry_id: moved.summary_entry_id,
            abandoned: moved.abandoned,
            model: moved.planner.or(model),
            read_files,
            modified_files,
            left_out: moved.left_out,
            backup_path: moved.backup_path.map(|path| path.display().to_string()),
        }
    }
}

fn text(document: &Document, path: &str) -> String {
    let place = match &document.new_leaf_id {
        Some(id) => format!("at {BOLD}{id}{BOLD:#}"),
        None => "before its first entry".to_owned(),
    };
    let mut out = match document.reason {
        Some(reason) => format!("Nothing was changed: {reason}\n"),
        None => format!("{GOOD}Moved{GOOD:#} {path} stands {place}\n"),
    };
    match (document.abandoned.len(), &document.old_leaf_id) {
        (0, _) | (_, None) => {}
        (count, Some(old)) => out.push_str(&format!(
            "  left    {} entries; `foldline navigate` to {old} brings them back\n",
            grouped(count as u64)
        )),
    }
    if let (Some(id), Some(model)) = (&document.summary_entry_id, &document.model) {
        out.push_str(&format!("  summary {id} ({model})\n"));
    }
    if let Some(text) = &document.editor_text {
        out.push_str(&format!(
            "  editor  {DIM}the message that you typed there{DIM:#}\n{text}\n"
        ));
    }
    out
}
