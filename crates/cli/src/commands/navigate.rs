//! `foldline navigate`: moves the leaf to another entry.

use foldline_branch_summary::{
    BranchSummary, BranchSummaryJob, Budget, Instructions, JobOptions, LeftOut, Navigation, PlanError,
    PrepareOptions, extractive, prepare,
};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_compaction_core::verbatim::CallFailure;
use foldline_session_model::fold::Profile;
use foldline_session_model::model_call::{LlmReply, ReasoningEffort};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::{Author, EntryDraft, EntryId, Tokens};
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::commit::{Backup, Commit};
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::{Model, call_error};
use crate::output::{self, BOLD, DIM, Format, GOOD, grouped};
use crate::progress::Progress;
use crate::session::{Damage, Session};

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
    let model = if args.summarize { args.model.open()? } else { None };
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let log = &session.log;
    let target = session.find(&args.target)?;
    let navigation = Navigation::plan(log, target);
    let mut document = Document {
        outcome: "committed",
        reason: None,
        old_leaf_id: navigation.old_leaf.map(|ix| log.entry_id(ix)),
        new_leaf_id: navigation.new_leaf.map(|ix| log.entry_id(ix)),
        editor_text: navigation.editor_text.clone(),
        summary_entry_id: None,
        model: args.summarize.then(|| args.model.model.clone()),
        read_files: Vec::new(),
        modified_files: Vec::new(),
        left_out: Vec::new(),
        abandoned: navigation
            .abandoned
            .entries()
            .iter()
            .map(|ix| log.entry_id(*ix))
            .collect(),
        backup_path: None,
    };
    let label = args.label.as_deref().zip(navigation.target);
    if navigation.is_at_target() && label.is_none() {
        return Ok(skipped(
            document,
            "the session stands there already",
            &session,
            format,
        ));
    }
    let summary = if args.summarize && !navigation.is_at_target() {
        summarize(&session, &navigation, args, model.as_ref())?
    } else {
        None
    };
    let mut commit = Commit::on(&session);
    if let Some(summary) = &summary {
        let append = navigation
            .with_summary(log, &summary.summary, Some(&summary.details), Author::Foldline)
            .ok_or_else(|| CommandError::new(ErrorKind::Failed, "the place is not in the session"))?;
        let entry = commit.add(append.parent, &append.draft);
        document.summary_entry_id = Some(entry.clone());
        document.new_leaf_id = Some(entry.clone());
        document.read_files.clone_from(&summary.files.read_files);
        document.modified_files.clone_from(&summary.files.modified_files);
        document.left_out.clone_from(&summary.left_out);
        if let Some((label, _)) = label {
            let label = commit.add(Some(entry.clone()), &EntryDraft::label(&entry, Some(label)));
            document.new_leaf_id = Some(label);
        }
    } else {
        if let Some((label, target)) = label {
            // Before the move, which has to be the last record of the file.
            let leaf = log.leaf().map(|ix| log.entry_id(ix));
            let label = commit.add(leaf, &EntryDraft::label(&log.entry_id(target), Some(label)));
            if navigation.new_leaf == navigation.old_leaf {
                document.new_leaf_id = Some(label);
            }
        }
        match navigation.move_leaf(log) {
            Some(append) => {
                commit.add(append.parent, &append.draft);
            }
            None if label.is_some() => {}
            None => {
                return Ok(skipped(
                    document,
                    "the session stands there already",
                    &session,
                    format,
                ));
            }
        }
    }
    let backup = commit.append(&store, Backup::OnlyToMigrate)?;
    document.backup_path = backup.map(|path| path.display().to_string());
    output::result(format, &document, || text(&document, &session));
    Ok(Status::Done)
}

/// Sums up what is left; `None` if there is nothing to say about it.
fn summarize(
    session: &Session,
    navigation: &Navigation,
    args: &args::Navigate,
    model: Option<&Model>,
) -> Result<Option<BranchSummary>, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let options = PrepareOptions {
        budget: model.map_or(Budget::Unlimited, |model| {
            Budget::for_window(model.profile().context_window, RESERVE)
        }),
        profile: Profile::Auto,
        tools: &ToolTable::default(),
        in_editor: navigation.target.filter(|_| navigation.editor_text.is_some()),
    };
    let preparation =
        prepare(&session.log, &navigation.abandoned, &options, &Heuristic).map_err(|e| failed(&e))?;
    let prompts = Prompts::default();
    let Some(model) = model else {
        return Ok(extractive(&preparation, &prompts, &Heuristic));
    };
    let options = JobOptions {
        model: model.profile(),
        prompts: &prompts,
        instructions: match (&args.instructions, &args.replace_instructions) {
            (_, Some(prompt)) => Instructions::Replace(prompt),
            (Some(focus), None) => Instructions::Focus(focus),
            (None, None) => Instructions::Usual,
        },
        reasoning: ReasoningEffort::Unset,
    };
    let job = match BranchSummaryJob::new(&preparation, options, &Heuristic) {
        Ok(job) => job,
        Err(PlanError::Empty) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let progress = Progress::start("Summarising the branch");
    let answers = model.ask_all(job.requests());
    drop(progress);
    let replies: Result<Vec<LlmReply>, CallFailure> = answers.into_iter().collect();
    let replies = replies.map_err(|failure| call_error(&failure))?;
    let summary = job.finish(&replies, &Heuristic).map_err(|e| {
        CommandError::from_error(ErrorKind::Provider, &e)
            .hint("nothing was changed; another model may do better, and `--model extractive` needs none")
    })?;
    Ok(Some(summary))
}

/// What stays free for the rest of a request (`branchSummary.reserveTokens`).
const RESERVE: Tokens = Tokens(16_384);

fn skipped(mut document: Document, reason: &'static str, session: &Session, format: Format) -> Status {
    document.outcome = "skipped";
    document.reason = Some(reason);
    output::result(format, &document, || text(&document, session));
    Status::Done
}

fn text(document: &Document, session: &Session) -> String {
    let place = match &document.new_leaf_id {
        Some(id) => format!("at {BOLD}{id}{BOLD:#}"),
        None => "before its first entry".to_owned(),
    };
    let mut out = match document.reason {
        Some(reason) => format!("Nothing was changed: {reason}\n"),
        None => format!("{GOOD}Moved{GOOD:#} {} stands {place}\n", session.path.display()),
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
