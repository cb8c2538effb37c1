//! Short changes that no model takes part in: a prune by hand, an undo, a label (seed 000, "Pre-compaction pruning";
//! DESIGN, D4 and D15).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use foldline_llm_client::Catalogue;
use foldline_pruning::cost::{Cost, Prices};
use foldline_pruning::{
    Original, Originals, Outcome, Plan, Policy, ReferenceBudget, Rewrite, Stamp, View, plan,
};
use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::Context;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::ModelRef;
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::{EntryDraft, EntryId, EntryIx};
use foldline_session_store::{ArtifactError, Artifacts, StoredArtifact};
use futures::FutureExt as _;

use crate::compaction::on_thread;
use crate::core::{Core, context};
use crate::event::{Event, NoticeLevel, OperationOutcome};
use crate::journal::{Group, Pending, PlannedFor, full_text_of, now_ms};
use crate::navigate::find;
use crate::session::{AgentSession, SessionError};
use crate::settings::PruneStorage;

/// What is asked of a prune by hand.
#[derive(Clone, Debug, Default)]
pub struct PruneOptions {
    /// What may be pruned; `None`: as the settings of the session say.
    pub policy: Option<Policy>,
    /// Where the originals are kept.
    pub storage: PruneStorage,
    /// Whether it is done.
    pub mode: EditMode,
}

/// Whether a change is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EditMode {
    /// It is.
    #[default]
    Commit,
    /// It is only planned.
    DryRun,
}

/// A prune by hand.
#[derive(Clone, Debug)]
#[must_use]
pub struct Pruned {
    /// Whether it happened. A dry run, and a plan that is empty or saves too little, are skipped.
    pub outcome: OperationOutcome,
    /// What was planned.
    pub plan: Plan,
    /// What it costs to send the changed context.
    pub cost: Cost,
    /// The mask, if there is one.
    pub entry_id: Option<EntryId>,
    /// The notices as they were written, if the session was rewritten.
    pub rewrite: Option<Rewrite>,
    /// A copy of the session from before, if one was made.
    pub backup_path: Option<PathBuf>,
}

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Undone {
    /// The compaction or the prune.
    pub entry_id: EntryId,
    /// Which of them.
    pub kind: UndoneKind,
    /// How.
    pub how: UndoneHow,
    /// The entry that says so.
    pub mark_entry_id: EntryId,
    /// Where the session stands.
    pub new_leaf_id: Option<EntryId>,
    /// A copy of the session, if it had to be brought into today's form.
    pub backup_path: Option<PathBuf>,
}

/// What kind of entry was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UndoneKind {
    /// A compaction.
    Compaction,
    /// A prune.
    Prune,
}

/// How an entry is taken back (D15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UndoneHow {
    /// The session stands before it: nothing came after.
    Moved,
    /// It counts as absent, and the later turns stay.
    Revoked,
}

impl AgentSession {
    /// Replaces old and stale tool output by notices.
    ///
    /// # Errors
    /// The session is busy or cannot be read, or the change could not be written.
    pub async fn prune(&self, options: PruneOptions) -> Result<Pruned, SessionError> {
        self.edit(move |core| async move { core.prune_by_hand(options).await }.boxed())
            .await
    }

    /// Takes back the newest compaction or prune that is in force; `None` if there is none.
    ///
    /// # Errors
    /// The session is busy or cannot be read, or the change could not be written.
    pub async fn undo(&self) -> Result<Option<Undone>, SessionError> {
        self.edit(|core| core.undo().boxed()).await
    }

    /// Puts a label on an entry, or takes it away. Returns the entry that says so.
    ///
    /// # Errors
    /// The session is busy, the entry is unknown, or the change could not be written.
    pub async fn set_label(&self, entry: &str, label: Option<&str>) -> Result<EntryId, SessionError> {
        let (entry, label) = (entry.to_owned(), label.map(str::to_owned));
        self.edit(move |core| {
            async move {
                core.reload().map_err(|error| failed(&error))?;
                let target = core.log.entry_id(find(&core.log, &entry)?);
                Ok(core.append(EntryDraft::label(&target, label.as_deref())).await?)
            }
            .boxed()
        })
        .await
    }
}

impl Core {
    async fn prune_by_hand(&mut self, options: PruneOptions) -> Result<Pruned, SessionError> {
        let log = self.checked_log().map_err(|error| failed(&error))?;
        let policy = options
            .policy
            .unwrap_or_else(|| self.options.settings.pruning.clone());
        let originals = match options.storage {
            PruneStorage::Mask => Originals::InLog,
            PruneStorage::Rewrite => Originals::Artifacts {
                budget: ReferenceBudget::DEFAULT,
            },
        };
        let (plan, cost) = {
            let context = context(&log, self.options.profile).map_err(|error| failed(&error))?;
            let view = View::of_context(&context);
            let plan = plan(&view, &policy, originals, &Heuristic);
            let cost = plan.cost(&view, prices(&context), &Heuristic);
            (plan, cost)
        };
        let mut pruned = Pruned {
            outcome: OperationOutcome::Skipped,
            plan,
            cost,
            entry_id: None,
            rewrite: None,
            backup_path: None,
        };
        if options.mode == EditMode::DryRun || pruned.plan.outcome != Outcome::Prune {
            return Ok(pruned);
        }
        match options.storage {
            PruneStorage::Mask => {
                let Some(draft) = pruned.plan.mask() else {
                    return Ok(pruned);
                };
                let group = Group {
                    entries: vec![Pending::from(draft)],
                    planned_for: PlannedFor::Leaf(self.shared.journal().content_leaf()),
                    ..Group::default()
                };
                let committed = self.commit(group).await?;
                pruned.backup_path = committed.backup;
                pruned.entry_id = committed.ids.into_iter().next();
            }
            PruneStorage::Rewrite => self.prune_files(log, &mut pruned).await?,
        }
        pruned.outcome = OperationOutcome::Committed;
        self.live.quiet_at = None;
        if let Some(entry_id) = pruned.entry_id.clone() {
            self.restate_queues().await?;
            self.shared.emit(Event::Pruned {
                entry_id,
                results: pruned.plan.replacements.len(),
                tokens_saved: pruned.plan.tokens_saved,
            });
        }
        Ok(pruned)
    }

    /// Originals into files first, then the session in one step. If that fails, the files go again.
    async fn prune_files(&mut self, log: Arc<SessionLog>, pruned: &mut Pruned) -> Result<(), SessionError> {
        let log = if log.to_written_form().is_some() {
            log
        } else {
            // All of it is written anew, so all of it is read.
            drop(log);
            self.reload().map_err(|error| failed(&error))?;
            Arc::clone(&self.log)
        };
        let plan = pruned.plan.clone();
        let shared = Arc::clone(&self.shared);
        let (rewrite, backup) = on_thread(move || {
            let journal = shared.journal();
            let warn = |text: String| shared.events.notice(NoticeLevel::Warning, Some("prune"), text);
            let mut artifacts = journal.store().artifacts(journal.path());
            let StoredOriginals { stored, refused } = store_originals(&mut artifacts, &log, &plan, &warn);
            let numbers: BTreeMap<EntryIx, u64> = stored.iter().map(|(ix, a)| (*ix, a.id.get())).collect();
            let written = plan
                .rewrite(&log, &numbers, now(), &Heuristic)
                .map_err(|error| failed(&error))
                .and_then(|rewrite| {
                    if rewrite.entries.is_empty() {
                        let nothing = || SessionError::Failed("no original could be stored".to_owned());
                        return Err(refused
                            .as_ref()
                            .map_or_else(nothing, |e| SessionError::refused(e)));
                    }
                    let backup = journal.rewrite_now(&log, &rewrite.lines(), "prune")?;
                    Ok((rewrite, backup))
                });
            if written.is_err() {
                for artifact in stored.values() {
                    if let Err(error) = artifacts.remove(artifact) {
                        warn(error.to_string());
                    }
                }
            }
            written
        })
        .await?;
        pruned.rewrite = Some(rewrite);
        pruned.backup_path = Some(backup);
        self.reload().map_err(|error| failed(&error))
    }

    async fn undo(&mut self) -> Result<Option<Undone>, SessionError> {
        self.reload().map_err(|error| failed(&error))?;
        let (undo, kind, old_leaf_id) = {
            let log = &self.log;
            let context = context(log, self.options.profile).map_err(|error| failed(&error))?;
            let Some(undo) = context.undo() else {
                return Ok(None);
            };
            let kind = match log.find(undo.target.as_str()).map(|ix| log.kind(ix)) {
                Some(EntryKind::Compaction) => UndoneKind::Compaction,
                _ => UndoneKind::Prune,
            };
            (undo, kind, log.stands_at().map(|ix| log.entry_id(ix)))
        };
        let how = if undo.append.draft == EntryDraft::revocation(&undo.target) {
            UndoneHow::Revoked
        } else {
            UndoneHow::Moved
        };
        let parent = undo.append.parent.clone();
        let group = Group {
            entries: vec![Pending::from(undo.append)],
            planned_for: PlannedFor::Leaf(self.shared.journal().content_leaf()),
            ..Group::default()
        };
        let committed = self.commit(group).await?;
        let mark = committed
            .ids
            .into_iter()
            .next()
            .ok_or_else(|| SessionError::Failed("nothing was written".to_owned()))?;
        self.restate_queues().await?;
        self.live.quiet_at = None;
        let new_leaf_id = match how {
            UndoneHow::Revoked => Some(mark.clone()),
            UndoneHow::Moved => parent
                .and_then(|id| self.log.find(id.as_str()))
                .and_then(|ix| self.log.stands_for(ix))
                .map(|ix| self.log.entry_id(ix)),
        };
        self.drop_ahead("something was taken back");
        self.shared.emit(Event::Navigated {
            old_leaf_id,
            new_leaf_id: new_leaf_id.clone(),
        });
        Ok(Some(Undone {
            entry_id: undo.target,
            kind,
            how,
            mark_entry_id: mark,
            new_leaf_id,
            backup_path: committed.backup,
        }))
    }
}

/// What became of the originals.
struct StoredOriginals {
    /// Those that are safe, by entry.
    stored: BTreeMap<EntryIx, StoredArtifact>,
    /// Why the last one that is not was refused.
    refused: Option<ArtifactError>,
}

/// Puts originals into files. One that cannot be stored whole is a warning, and its result stays.
fn store_originals(
    artifacts: &mut Artifacts,
    log: &SessionLog,
    plan: &Plan,
    warn: &dyn Fn(String),
) -> StoredOriginals {
    let mut stored = BTreeMap::new();
    // A folder that refuses one refuses all of them: that is told once.
    let mut stay: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut refused = None;
    for replacement in &plan.replacements {
        let Some(original) = Original::of(log, replacement.source) else {
            continue;
        };
        match artifacts.save(&replacement.tool, original.as_str()) {
            Ok(artifact) if artifact.omitted == 0 => {
                stored.insert(replacement.source, artifact);
            }
            Ok(artifact) => {
                warn(format!(
                    "the output of {} is too long to be stored",
                    plan.entry(replacement)
                ));
                if let Err(error) = artifacts.remove(&artifact) {
                    warn(error.to_string());
                }
            }
            Err(error) => {
                let entries = stay.entry(full_text_of(&error)).or_default();
                entries.push(plan.entry(replacement));
                refused = Some(error);
            }
        }
    }
    for (cause, entries) in stay {
        warn(match entries.as_slice() {
            [entry] => format!("the output of {entry} stays: {cause}"),
            entries => format!("{} outputs stay: {cause}", entries.len()),
        });
    }
    StoredOriginals { stored, refused }
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

fn now() -> Stamp {
    Stamp(u64::try_from(now_ms()).unwrap_or_default())
}

fn failed(error: &dyn std::error::Error) -> SessionError {
    SessionError::Failed(error.to_string())
}
