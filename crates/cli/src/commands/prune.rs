//! `foldline prune`: notices in the place of old and stale tool output (D4).

use std::fmt::Write as _;

use foldline_agent_session::event::OperationOutcome;
use foldline_agent_session::settings::PruneStorage as Storage;
use foldline_agent_session::{EditMode, PruneOptions, Pruned};
use foldline_pruning::{Outcome, Plan, Policy, Rewrite, ToolTotal};
use foldline_session_model::{EntryId, EntryIx, Tokens};
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args::{self, PruneStorage};
use crate::commit;
use crate::door::{Door, session_error};
use crate::error::{CommandError, Status};
use crate::output::{self, BOLD, Format, GOOD, grouped};
use crate::progress::Progress;
use crate::session::{Damage, Session};
use crate::setup::Setup;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    reason: Option<String>,
    storage: &'static str,
    /// The mask; `null` for a rewrite.
    entry_id: Option<EntryId>,
    pruned_count: usize,
    tokens_saved: Tokens,
    /// Oldest first.
    pruned: Vec<Row>,
    /// Results that stay because their originals could not be stored.
    kept: Vec<EntryId>,
    cost: CostFields,
    backup_path: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    entry_id: EntryId,
    tool_name: String,
    notice: String,
    tokens: Tokens,
}

/// Dollars are `null` where the prices of the model are not known.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CostFields {
    sent_anew: Tokens,
    now: Option<f64>,
    gain_per_request: Option<f64>,
}

pub(crate) fn run(args: &args::Prune, format: Format) -> Result<Status, CommandError> {
    let setup = Setup::without_model()?;
    let settings = &setup.settings().pruning;
    let default = settings.policy();
    let policy = Policy {
        protect_tokens: args.protect_tokens.map_or(default.protect_tokens, Tokens),
        minimum_savings: args.minimum_savings.map_or(default.minimum_savings, Tokens),
        protect_recent_turns: args.protect_turns.unwrap_or(default.protect_recent_turns),
        ..default
    };
    let storage = args.storage.map_or(settings.storage, Storage::from);
    let mode = if args.dry_run {
        EditMode::DryRun
    } else {
        EditMode::Commit
    };
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let path = session.path.display().to_string();
    commit::not_read_only(&session)?;
    let door = match mode {
        EditMode::Commit => Door::of(session, setup.options_without_models())?,
        EditMode::DryRun => Door::of_any(session, setup.options_without_models())?,
    };
    let options = PruneOptions {
        policy: Some(policy),
        storage,
        mode,
    };
    let progress = Progress::start("Pruning");
    let pruned = door.run(&progress, door.session.prune(options));
    drop(progress);
    let pruned = pruned.map_err(|e| session_error(&e))?;
    let document = Document::of(&pruned, storage, mode);
    let tools = pruned.plan.by_tool();
    output::result(format, &document, || text(&document, &tools, &path));
    Ok(Status::Done)
}

impl Document {
    fn of(pruned: &Pruned, storage: Storage, mode: EditMode) -> Self {
        let plan = &pruned.plan;
        let mut document = Self {
            outcome: "skipped",
            reason: skipped(plan, mode),
            storage: match storage {
                Storage::Mask => "mask",
                Storage::Rewrite => "rewrite",
            },
            entry_id: pruned.entry_id.clone(),
            pruned_count: plan.replacements.len(),
            tokens_saved: plan.tokens_saved,
            pruned: rows(plan, |_| true),
            kept: Vec::new(),
            cost: CostFields {
                sent_anew: pruned.cost.sent_anew,
                now: pruned.cost.now,
                gain_per_request: pruned.cost.gain_per_request,
            },
            backup_path: pruned.backup_path.as_ref().map(|path| path.display().to_string()),
        };
        if pruned.outcome == OperationOutcome::Committed {
            document.outcome = "committed";
        }
        if let Some(rewrite) = &pruned.rewrite {
            let stored = |ix: &EntryIx| rewrite.entries.iter().any(|entry| entry.source == *ix);
            document.pruned = rows(plan, stored);
            for row in &mut document.pruned {
                row.notice = notice_of(rewrite, &row.entry_id).unwrap_or_default();
            }
            document.pruned_count = rewrite.entries.len();
            document.tokens_saved = rewrite.tokens_saved;
            document.kept.clone_from(&rewrite.kept);
        }
        document
    }
}

impl From<PruneStorage> for Storage {
    fn from(storage: PruneStorage) -> Self {
        match storage {
            PruneStorage::Mask => Self::Mask,
            PruneStorage::Rewrite => Self::Rewrite,
        }
    }
}

/// Why nothing is written, if nothing is.
fn skipped(plan: &Plan, mode: EditMode) -> Option<String> {
    match plan.outcome {
        Outcome::NothingToPrune => Some("there is no tool output to prune".to_owned()),
        Outcome::BelowMinimum { results, would_save } => Some(format!(
            "{} tokens in {results} results are less than the minimum",
            grouped(would_save.get())
        )),
        Outcome::Prune => (mode == EditMode::DryRun).then(|| "dry run".to_owned()),
    }
}

fn rows(plan: &Plan, goes: impl Fn(&EntryIx) -> bool) -> Vec<Row> {
    let replacements = plan.replacements.iter().rev();
    replacements
        .filter(|replacement| goes(&replacement.source))
        .map(|replacement| Row {
            entry_id: plan.entry(replacement).into(),
            tool_name: replacement.tool.to_string(),
            notice: plan.mask_notice(replacement),
            tokens: replacement.tokens,
        })
        .collect()
}

/// The notice as it was written.
fn notice_of(rewrite: &Rewrite, id: &EntryId) -> Option<String> {
    let entry = rewrite.entries.iter().find(|entry| entry.entry == *id)?;
    let line: serde_json::Value = serde_json::from_str(&entry.line).ok()?;
    line.pointer("/message/content/0/text")
        .and_then(serde_json::Value::as_str)
        .map(str::to_owned)
}

fn text(document: &Document, tools: &[ToolTotal], path: &str) -> String {
    let mut out = match &document.reason {
        Some(reason) => format!("Nothing was changed: {reason}\n"),
        None => format!("{GOOD}Pruned{GOOD:#} {BOLD}{path}{BOLD:#}\n"),
    };
    if document.pruned_count == 0 {
        return out;
    }
    let name_width = tools
        .iter()
        .map(|total| total.tool.chars().count())
        .max()
        .unwrap_or(0);
    // Writing to a String cannot fail.
    for total in tools {
        let _ = writeln!(
            out,
            "  {:name_width$}  {:>5} results  {:>9} tokens  {:>9} saved",
            total.tool,
            total.results,
            grouped(total.tokens.get()),
            grouped(total.saved.get())
        );
    }
    let _ = writeln!(
        out,
        "  {} results, {} tokens saved; the next request sends {} tokens anew",
        document.pruned_count,
        grouped(document.tokens_saved.get()),
        grouped(document.cost.sent_anew.get())
    );
    let dollars = match (document.cost.now, document.cost.gain_per_request) {
        (Some(now), Some(gain)) => format!("costs ${now:.4} now, saves ${gain:.4} per request"),
        _ => "cost and gain in dollars: the prices of the model are not known".to_owned(),
    };
    let _ = writeln!(out, "  {dollars}");
    if !document.kept.is_empty() {
        let _ = writeln!(
            out,
            "  {} results stay: their originals could not be stored",
            document.kept.len()
        );
    }
    if document.entry_id.is_some() {
        let _ = writeln!(out, "  `foldline undo {path}` takes it back");
    }
    if let Some(backup) = &document.backup_path {
        let _ = writeln!(out, "  backup {backup}");
    }
    out
}
