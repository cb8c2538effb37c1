//! A move in the tree of a session, with or without a summary of what is left (spec "Orchestrator and clients", 12; seeds,
//! "Branch summarization").

use foldline_branch_summary::{
    BranchSummaryJob, Budget, Instructions, JobOptions, LeftOut, Navigation, PlanError, PrepareOptions,
    extractive, prepare,
};
use foldline_compaction_core::file_ops::{FileLists, ToolTable};
use foldline_compaction_core::prompts::Prompts;
use foldline_compaction_core::settings::Planner;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{ErrorClass, LlmRequest, RawJson};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::{Author, EntryDraft, EntryId, EntryIx};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::compaction::raw_entry;
use crate::core::Core;
use crate::event::{Event, FailureKind, OperationOutcome};
use crate::hooks::{BeforeTreeEvent, HookEvent, HookTreeSummary, SessionTreeEvent, TreePreparation};
use crate::journal::{Group, Pending, PlannedFor};
use crate::session::{AgentSession, SessionError};
use crate::shared::{Lease, OperationKind, Part};

/// What is asked of a move.
#[derive(Clone, Debug, Default)]
pub struct NavigateOptions {
    /// Whether what is left is summed up.
    pub summary: BranchSummaryChoice,
    /// What the summary should look at above all.
    pub instructions: Option<String>,
    /// A prompt in place of the usual one.
    pub replace_instructions: Option<String>,
    /// A label for the place, or for the summary if one is made.
    pub label: Option<String>,
    /// Who sums up; `None`: the session's model if there is one.
    pub planner: Option<Planner>,
}

/// Whether what is left is summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BranchSummaryChoice {
    /// It is not.
    #[default]
    None,
    /// It is.
    Summarize,
}

/// Where a move went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Navigated {
    /// Whether it happened.
    pub outcome: OperationOutcome,
    /// Where the session stood.
    pub old_leaf_id: Option<EntryId>,
    /// Where it stands.
    pub new_leaf_id: Option<EntryId>,
    /// What the user typed at the place, to be edited and sent again.
    pub editor_text: Option<String>,
    /// The summary of what was left.
    pub summary_entry_id: Option<EntryId>,
    /// Who wrote it: `provider/model`, `extractive` or `extension`.
    pub planner: Option<String>,
    /// The files that the summary names.
    pub files: Option<FileLists>,
    /// What the summary is not made from.
    pub left_out: Vec<LeftOut>,
    /// What was left, oldest first.
    pub abandoned: Vec<EntryId>,
    /// A copy of the session, if it had to be brought into today's form.
    pub backup_path: Option<PathBuf>,
}

/// A summary that is ready to be attached.
struct Attached {
    summary: String,
    details: Option<String>,
    author: Author,
    planner: String,
    files: Option<FileLists>,
    left_out: Vec<LeftOut>,
}

impl AgentSession {
    /// Moves the session to an entry: to the entry itself, or, if a user typed it, to the place before it, with its text
    /// for the editor.
    ///
    /// # Errors
    /// The session is busy, the entry is unknown, or the summary failed. Nothing has changed then.
    pub async fn navigate(&self, target: &str, options: NavigateOptions) -> Result<Navigated, SessionError> {
        let lease = match self.begin(OperationKind::Navigate) {
            Err(
                SessionError::AgentBusy
                | SessionError::Busy {
                    holder: OperationKind::Run,
                    ..
                },
            ) => {
                return Err(SessionError::Failed(
                    "Wait for the current response to finish before navigating the session tree.".to_owned(),
                ));
            }
            lease => lease?,
        };
        let core = self.core();
        let target = target.to_owned();
        self.in_task(async move {
            let mut core = core.lock_owned().await;
            let moved = core.navigate(&lease, &target, options).await;
            Self::release(core, lease);
            moved
        })
        .await
    }
}

impl Core {
    async fn navigate(
        &mut self,
        lease: &Lease,
        target: &str,
        mut options: NavigateOptions,
    ) -> Result<Navigated, SessionError> {
        // The tree is all of the file.
        self.reload()
            .map_err(|error| SessionError::Failed(error.to_string()))?;
        let log = Arc::clone(&self.log);
        let target = find(&log, target)?;
        let navigation = Navigation::plan(&log, target);
        let mut moved = Navigated {
            outcome: OperationOutcome::Committed,
            old_leaf_id: navigation.old_leaf.map(|ix| log.entry_id(ix)),
            new_leaf_id: navigation.new_leaf.map(|ix| log.entry_id(ix)),
            editor_text: navigation.editor_text.clone(),
            summary_entry_id: None,
            planner: None,
            files: None,
            left_out: Vec::new(),
            abandoned: navigation
                .abandoned
                .entries()
                .iter()
                .map(|ix| log.entry_id(*ix))
                .collect(),
            backup_path: None,
        };
        if navigation.is_at_target() && options.label.is_none() {
            moved.outcome = OperationOutcome::Skipped;
            return Ok(moved);
        }
        let wants_summary = options.summary == BranchSummaryChoice::Summarize && !navigation.is_at_target();
        let planner = options.planner.unwrap_or_else(|| self.writer());
        let part = lease.part(Part::BranchSummary);
        let token = part.token.clone();
        let asked = self
            .tree_hooks(&log, target, &navigation, wants_summary, &mut options, &token)
            .await;
        let Ok(hook_summary) = asked else {
            moved.outcome = OperationOutcome::Cancelled;
            moved.new_leaf_id = moved.old_leaf_id.clone();
            return Ok(moved);
        };
        let attached = match hook_summary {
            Some(summary) if wants_summary => Some(Attached {
                summary: summary.summary,
                details: summary.details.map(|details| details.get().to_owned()),
                author: Author::Extension,
                planner: "extension".to_owned(),
                files: None,
                left_out: Vec::new(),
            }),
            _ if wants_summary => {
                self.shared.emit(Event::BranchSummaryStart);
                let made = self
                    .branch_summary(&log, &navigation, &options, planner, &token)
                    .await;
                let outcome = match &made {
                    Ok(Some(_)) => OperationOutcome::Committed,
                    Ok(None) => OperationOutcome::Skipped,
                    Err(SessionError::Cancelled { .. }) => OperationOutcome::Cancelled,
                    Err(_) => OperationOutcome::Failed,
                };
                self.shared.emit(Event::BranchSummaryEnd {
                    outcome,
                    error_message: match &made {
                        Ok(_) | Err(SessionError::Cancelled { .. }) => None,
                        Err(error) => Some(error.to_string()),
                    },
                });
                match made {
                    Err(SessionError::Cancelled { .. }) => {
                        moved.outcome = OperationOutcome::Cancelled;
                        moved.new_leaf_id = moved.old_leaf_id.clone();
                        return Ok(moved);
                    }
                    made => made?,
                }
            }
            _ => None,
        };
        drop(part);
        if lease.is_cancelled() {
            moved.outcome = OperationOutcome::Cancelled;
            moved.new_leaf_id = moved.old_leaf_id.clone();
            return Ok(moved);
        }
        let from_extension = attached
            .as_ref()
            .map(|attached| attached.author == Author::Extension);
        self.commit_move(&log, &navigation, attached, options.label.as_deref(), &mut moved)
            .await?;
        drop(log);
        self.restate_queues().await?;
        self.live.quiet_at = None;
        self.drop_ahead("the session stands elsewhere");
        self.shared.emit(Event::Navigated {
            old_leaf_id: moved.old_leaf_id.clone(),
            new_leaf_id: moved.new_leaf_id.clone(),
        });
        let summary_entry = moved
            .summary_entry_id
            .as_ref()
            .and_then(|id| self.log.find(id.as_str()));
        let cx = self.hook_context(&lease.cancel);
        self.options
            .hooks
            .session_tree(&cx, || SessionTreeEvent {
                new_leaf_id: moved.new_leaf_id.clone(),
                old_leaf_id: moved.old_leaf_id.clone(),
                summary_entry: summary_entry.and_then(|ix| raw_entry(&self.log, ix)),
                from_extension: summary_entry.and(from_extension),
            })
            .await;
        Ok(moved)
    }

    /// Asks the hooks about a move. `Err`: one of them forbids it.
    async fn tree_hooks(
        &self,
        log: &SessionLog,
        target: EntryIx,
        navigation: &Navigation,
        wants_summary: bool,
        options: &mut NavigateOptions,
        token: &CancellationToken,
    ) -> Result<Option<HookTreeSummary>, ()> {
        if !self.options.hooks.wants(HookEvent::SessionBeforeTree) {
            return Ok(None);
        }
        let cx = self.hook_context(token);
        let answer = {
            let entries: Vec<RawJson<'static>> = navigation
                .abandoned
                .entries()
                .iter()
                .filter_map(|ix| raw_entry(log, *ix))
                .collect();
            let instructions = options
                .replace_instructions
                .as_deref()
                .or(options.instructions.as_deref());
            self.options
                .hooks
                .session_before_tree(&cx, || BeforeTreeEvent {
                    preparation: TreePreparation {
                        target_id: log.entry_id(target),
                        old_leaf_id: navigation.old_leaf.map(|ix| log.entry_id(ix)),
                        common_ancestor_id: navigation.abandoned.common_ancestor().map(|ix| log.entry_id(ix)),
                        entries_to_summarize: entries,
                        user_wants_summary: wants_summary,
                        custom_instructions: instructions,
                        replace_instructions: instructions.map(|_| options.replace_instructions.is_some()),
                        label: options.label.as_deref(),
                    },
                })
                .await
        };
        if answer.cancel || token.is_cancelled() {
            return Err(());
        }
        if let Some(label) = answer.label {
            options.label = Some(label);
        }
        if let Some(instructions) = answer.custom_instructions {
            if answer.replace_instructions == Some(true) {
                options.replace_instructions = Some(instructions);
            } else {
                options.instructions = Some(instructions);
            }
        }
        Ok(answer.summary)
    }

    async fn branch_summary(
        &self,
        log: &Arc<SessionLog>,
        navigation: &Navigation,
        options: &NavigateOptions,
        planner: Planner,
        token: &CancellationToken,
    ) -> Result<Option<Attached>, SessionError> {
        let failed = |error: &dyn std::error::Error| SessionError::Failed(error.to_string());
        let model =
            match planner {
                Planner::Extractive => None,
                Planner::Model => Some(self.model().cloned().ok_or_else(|| {
                    SessionError::Failed("No model available for summarization".to_owned())
                })?),
            };
        let budget = model.as_ref().map_or(Budget::Unlimited, |model| {
            Budget::for_window(
                self.hard_window(model.profile()),
                self.options.settings.branch_reserve,
            )
        });
        let profile = self.options.profile;
        let tools = ToolTable::default();
        let prompts = Prompts::default();
        let prepared = PrepareOptions {
            budget,
            profile,
            tools: &tools,
            in_editor: navigation.target.filter(|_| navigation.editor_text.is_some()),
        };
        let Some(model) = model else {
            let preparation =
                prepare(log, &navigation.abandoned, &prepared, &Heuristic).map_err(|error| failed(&error))?;
            let made = extractive(&preparation, &prompts, &Heuristic);
            return Ok(made.map(|made| Attached {
                summary: made.summary,
                details: Some(made.details),
                author: Author::Foldline,
                planner: "extractive".to_owned(),
                files: Some(made.files),
                left_out: made.left_out,
            }));
        };
        let instructions = match (&options.instructions, &options.replace_instructions) {
            (_, Some(prompt)) => Instructions::Replace(prompt),
            (Some(focus), None) => Instructions::Focus(focus),
            (None, None) => Instructions::Usual,
        };
        let known = self.known(model.profile());
        let job_options = JobOptions {
            model: &known,
            prompts: &prompts,
            instructions,
            reasoning: self.maintenance_reasoning(),
        };
        let requests: Vec<LlmRequest<'static>> = {
            let preparation =
                prepare(log, &navigation.abandoned, &prepared, &Heuristic).map_err(|error| failed(&error))?;
            match BranchSummaryJob::new(&preparation, job_options, &Heuristic) {
                Ok(job) => job.requests().to_vec(),
                Err(PlanError::Empty) => return Ok(None),
                Err(error) => return Err(failed(&error)),
            }
        };
        let budget = self.options.settings.maintenance_budget;
        let asked = tokio::time::timeout(budget, self.ask_all(&model, &requests, token)).await;
        let replies = asked
            .unwrap_or_else(|_| {
                let text = format!("no summary came within {} seconds", budget.as_secs());
                Err(foldline_llm_client::LlmError::new(crate::handoff::TOO_SLOW, text))
            })
            .map_err(|error| match error.class {
                ErrorClass::Cancelled => SessionError::Cancelled {
                    what: "Branch summarization",
                },
                class => SessionError::Provider {
                    message: error.message.to_string(),
                    kind: FailureKind::Provider(class),
                },
            })?;
        if token.is_cancelled() {
            return Err(SessionError::Cancelled {
                what: "Branch summarization",
            });
        }
        let preparation =
            prepare(log, &navigation.abandoned, &prepared, &Heuristic).map_err(|error| failed(&error))?;
        let job =
            BranchSummaryJob::new(&preparation, job_options, &Heuristic).map_err(|error| failed(&error))?;
        let made = job
            .finish(&replies, &Heuristic)
            .map_err(|error| SessionError::Provider {
                message: error.to_string(),
                kind: FailureKind::Answer,
            })?;
        Ok(Some(Attached {
            summary: made.summary,
            details: Some(made.details),
            author: Author::Foldline,
            planner: model.profile().model_ref().to_string(),
            files: Some(made.files),
            left_out: made.left_out,
        }))
    }

    async fn commit_move(
        &mut self,
        log: &Arc<SessionLog>,
        navigation: &Navigation,
        attached: Option<Attached>,
        label: Option<&str>,
        moved: &mut Navigated,
    ) -> Result<(), SessionError> {
        let mut group = Group {
            planned_for: PlannedFor::Leaf(self.shared.journal().content_leaf()),
            ..Group::default()
        };
        let target = navigation.target.map(|ix| log.entry_id(ix));
        let summarised = attached.is_some();
        if let Some(attached) = attached {
            let append = navigation
                .with_summary(
                    log,
                    &attached.summary,
                    attached.details.as_deref(),
                    attached.author,
                )
                .ok_or_else(|| SessionError::Failed("the place is not in the session".to_owned()))?;
            moved.planner = Some(attached.planner);
            moved.files = attached.files;
            moved.left_out = attached.left_out;
            group.entries.push(Pending::from(append));
            group.label = label.map(str::to_owned);
        } else {
            if let (Some(label), Some(target)) = (label, &target) {
                // Before the move, which has to be the last record of the file.
                group
                    .entries
                    .push(Pending::from(EntryDraft::label(target, Some(label))));
            }
            if let Some(append) = navigation.move_leaf(log) {
                group.entries.push(Pending::from(append));
            }
            if group.entries.is_empty() {
                moved.outcome = OperationOutcome::Skipped;
                return Ok(());
            }
        }
        let journal = self.shared.journal();
        let committed = journal.commit(log, group).await?;
        moved.backup_path = committed.backup;
        if summarised {
            moved.summary_entry_id = committed.ids.first().cloned();
            moved.new_leaf_id = committed.ids.last().cloned();
        } else if navigation.new_leaf == navigation.old_leaf {
            moved.new_leaf_id = committed.ids.first().cloned();
        }
        self.reload()
            .map_err(|error| SessionError::Failed(error.to_string()))
    }
}

/// The entry that is meant: an id, or the start of exactly one.
pub(crate) fn find(log: &SessionLog, name: &str) -> Result<EntryIx, SessionError> {
    let unknown = || SessionError::Failed(format!("Entry {name} not found"));
    if let Some(ix) = log.find(name) {
        return Ok(ix);
    }
    let mut found = log
        .entries()
        .filter(|ix| !name.is_empty() && log.id(*ix).starts_with(name));
    match (found.next(), found.next()) {
        (Some(ix), None) => Ok(ix),
        (Some(_), Some(_)) => Err(SessionError::Failed(format!("several entries begin with {name}"))),
        (None, _) => Err(unknown()),
    }
}
