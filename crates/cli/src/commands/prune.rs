//! `foldline prune`: notices in the place of old and stale tool output (D4).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use foldline_llm_client::Catalogue;
use foldline_pruning::cost::{Cost, Prices};
use foldline_pruning::{
    Original, Originals, Outcome, Plan, Policy, ReferenceBudget, Rewrite, Stamp, ToolTotal, View, plan,
};
use foldline_session_model::fold::Context;
use foldline_session_model::model_call::ModelRef;
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryId, EntryIx, Tokens};
use foldline_session_store::{Artifacts, DiskStore, SessionStore as _, StoredArtifact};
use serde::Serialize;

use crate::args::{self, PruneStorage};
use crate::commit::{self, Backup, Commit};
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, Format, GOOD, grouped};
use crate::session::{Damage, Session};

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
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let context = session.context(&Leaf::Last)?;
    let (plan, cost) = planned(args, &context);
    let mut document = Document {
        outcome: "skipped",
        reason: skipped(args, &plan),
        storage: args.storage.as_str(),
        entry_id: None,
        pruned_count: plan.replacements.len(),
        tokens_saved: plan.tokens_saved,
        pruned: rows(&plan, |_| true),
        kept: Vec::new(),
        cost: CostFields {
            sent_anew: cost.sent_anew,
            now: cost.now,
            gain_per_request: cost.gain_per_request,
        },
        backup_path: None,
    };
    if document.reason.is_none() {
        document.outcome = "committed";
        match args.storage {
            PruneStorage::Mask => mask(&store, &session, &plan, &mut document)?,
            PruneStorage::Rewrite => rewrite(&store, &session, &plan, &mut document)?,
        }
    }
    let tools = plan.by_tool();
    output::result(format, &document, || text(&document, &tools, &session));
    Ok(Status::Done)
}

fn planned(args: &args::Prune, context: &Context<'_>) -> (Plan, Cost) {
    let default = Policy::default();
    let policy = Policy {
        protect_tokens: args.protect_tokens.map_or(default.protect_tokens, Tokens),
        minimum_savings: args.minimum_savings.map_or(default.minimum_savings, Tokens),
        protect_recent_turns: args.protect_turns.unwrap_or(default.protect_recent_turns),
        ..default
    };
    let originals = match args.storage {
        PruneStorage::Mask => Originals::InLog,
        PruneStorage::Rewrite => Originals::Artifacts {
            budget: ReferenceBudget::DEFAULT,
        },
    };
    let view = View::of_context(context);
    let plan = plan(&view, &policy, originals, &Heuristic);
    let cost = plan.cost(&view, prices(context), &Heuristic);
    (plan, cost)
}

/// The prices of the model that the session goes on with; `None` if the session names none or nothing is known of it.
fn prices(context: &Context<'_>) -> Option<Prices> {
    let state = context.state();
    let model = state.model()?;
    let name = ModelRef {
        provider: model.provider.to_string(),
        id: model.model.to_string(),
    };
    let known = Catalogue::built_in().profile(&name, None)?.prices?;
    Some(Prices {
        input: known.input,
        cache_read: known.cache_read,
        cache_write: known.cache_write,
    })
}

/// Why nothing is written, if nothing is.
fn skipped(args: &args::Prune, plan: &Plan) -> Option<String> {
    match plan.outcome {
        Outcome::NothingToPrune => Some("there is no tool output to prune".to_owned()),
        Outcome::BelowMinimum { results, would_save } => Some(format!(
            "{} tokens in {results} results are less than the minimum",
            grouped(would_save.get())
        )),
        Outcome::Prune => args.dry_run.then(|| "dry run".to_owned()),
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

fn mask(
    store: &DiskStore,
    session: &Session,
    plan: &Plan,
    document: &mut Document,
) -> Result<(), CommandError> {
    let Some(draft) = plan.mask() else {
        return Ok(());
    };
    let mut commit = Commit::on(session);
    let leaf = session.log.leaf().map(|leaf| session.log.entry_id(leaf));
    document.entry_id = Some(commit.add(leaf, &draft));
    let backup = commit.append(store, Backup::OnlyToMigrate)?;
    document.backup_path = backup.map(|path| path.display().to_string());
    Ok(())
}

/// Artifacts first, then the session in one step. If that fails, the artifacts go again.
fn rewrite(
    store: &DiskStore,
    session: &Session,
    plan: &Plan,
    document: &mut Document,
) -> Result<(), CommandError> {
    let mut artifacts = store.artifacts(&session.path);
    let stored = store_originals(&mut artifacts, session, plan);
    let numbers: BTreeMap<EntryIx, u64> = stored.iter().map(|(ix, a)| (*ix, a.id.get())).collect();
    let written = plan
        .rewrite(&session.log, &numbers, now(), &Heuristic)
        .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))
        .and_then(|rewrite| {
            if rewrite.entries.is_empty() {
                return Err(CommandError::new(
                    ErrorKind::Failed,
                    "no original could be stored",
                ));
            }
            let backup = commit::rewrite(session, store, &rewrite.lines(), "prune")?;
            Ok((rewrite, backup))
        });
    let (rewrite, backup) = match written {
        Ok(written) => written,
        Err(error) => {
            for artifact in stored.values() {
                if let Err(e) = artifacts.remove(artifact) {
                    output::warning(&e.to_string());
                }
            }
            return Err(error);
        }
    };
    document.pruned = rows(plan, |ix| numbers.contains_key(ix));
    for row in &mut document.pruned {
        row.notice = notice_of(&rewrite, &row.entry_id).unwrap_or_default();
    }
    document.pruned_count = rewrite.entries.len();
    document.tokens_saved = rewrite.tokens_saved;
    document.kept = rewrite.kept;
    document.backup_path = Some(backup.display().to_string());
    Ok(())
}

/// The originals that are safe, by entry. One that cannot be stored whole is a warning, and its result stays.
fn store_originals(
    artifacts: &mut Artifacts,
    session: &Session,
    plan: &Plan,
) -> BTreeMap<EntryIx, StoredArtifact> {
    let mut stored = BTreeMap::new();
    for replacement in &plan.replacements {
        let Some(original) = Original::of(&session.log, replacement.source) else {
            continue;
        };
        match artifacts.save(&replacement.tool, original.as_str()) {
            Ok(artifact) if artifact.omitted == 0 => {
                stored.insert(replacement.source, artifact);
            }
            Ok(artifact) => {
                output::warning(&format!(
                    "the output of {} is too long to be stored",
                    plan.entry(replacement)
                ));
                if let Err(e) = artifacts.remove(&artifact) {
                    output::warning(&e.to_string());
                }
            }
            Err(e) => output::warning(&format!("the output of {} stays: {e}", plan.entry(replacement))),
        }
    }
    stored
}

/// The notice as it was written.
fn notice_of(rewrite: &Rewrite, id: &EntryId) -> Option<String> {
    let entry = rewrite.entries.iter().find(|entry| entry.entry == *id)?;
    let line: serde_json::Value = serde_json::from_str(&entry.line).ok()?;
    line.pointer("/message/content/0/text")
        .and_then(serde_json::Value::as_str)
        .map(str::to_owned)
}

fn now() -> Stamp {
    let millis = jiff::Timestamp::now().as_millisecond();
    Stamp(u64::try_from(millis).unwrap_or_default())
}

fn text(document: &Document, tools: &[ToolTotal], session: &Session) -> String {
    let path = session.path.display();
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
