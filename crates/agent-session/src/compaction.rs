//! One compaction of a session: planned on what was read, asked of models, committed if the session is still the same
//! (DESIGN, rule 2; spec "Orchestrator and clients", 6 and 7).

mod hooked;
mod lines;
mod remote;
mod room;
mod summary;

pub(crate) use hooked::raw_entry;
pub(crate) use lines::class_of_text;

use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use foldline_compaction_core::accounting::{Limits, RatioUse};
use foldline_compaction_core::decide::{Reason, Urgency};
use foldline_compaction_core::settings::{CompactionSettings, Fallback, Planner};
use foldline_compaction_core::verbatim::{Demand, Parameters, SmallRegion};
use foldline_llm_client::{LanguageModel, RetryPolicy};
use foldline_session_model::fold::Profile;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{ErrorClass, LlmRequest, ModelProfile, ReasoningEffort};
use foldline_session_model::{Author, CompactionDraft, EntryDraft, EntryId, Tokens};
use rustc_hash::{FxHashSet, FxHasher};
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::continuation::Came;
use crate::core::{Core, PlannerChoice, context};
use crate::event::{
    CompactionAction, CompactionEnd, CompactionResult, CompactionStart, Event, FailureKind, OperationOutcome,
    Unpaid, reason_name,
};
use crate::hooks::SessionCompactEvent;
use crate::journal::{CommitError, Group, Pending, PlannedFor};
use crate::patience::watched;
use crate::queue::Queued;
use crate::shared::{Lease, Part};
use crate::state_lines;
use room::Room;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) reason: Reason,
    pub(crate) urgency: Urgency,
    pub(crate) mid_turn: bool,
    /// The estimate of what is about to be sent with the context.
    pub(crate) pending: Tokens,
    /// `None`: what the settings say.
    pub(crate) action: Option<CompactionAction>,
    pub(crate) planner: Option<Planner>,
    pub(crate) instructions: Option<String>,
    pub(crate) parameters: Option<Parameters>,
    pub(crate) keep_recent: Option<Tokens>,
    pub(crate) backup: BackupChoice,
}

impl Order {
    /// A compaction that nobody asked for.
    pub(crate) const fn automatic(reason: Reason, urgency: Urgency) -> Self {
        Self {
            reason,
            urgency,
            mid_turn: false,
            pending: Tokens::ZERO,
            action: None,
            planner: None,
            instructions: None,
            parameters: None,
            keep_recent: None,
            backup: BackupChoice::Before,
        }
    }

    fn is_manual(&self) -> bool {
        self.reason == Reason::Manual
    }

    fn is_load_bearing(&self) -> bool {
        self.urgency == Urgency::LoadBearing
    }

    fn demand(&self) -> Demand {
        if self.is_manual() {
            Demand::Any
        } else {
            Demand::FivePercent
        }
    }

    fn small(&self) -> SmallRegion {
        if self.is_load_bearing() {
            SmallRegion::Allow
        } else {
            SmallRegion::Refuse
        }
    }
}

/// Whether the session is copied before it is compacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackupChoice {
    /// It is, beside itself (DESIGN, 4).
    #[default]
    Before,
    /// It is not: it is a copy itself.
    None,
}

/// A compaction that has ended. Whoever asked for it fills in what follows, and tells the end.
#[must_use]
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: CompactionEnd,
    pub(crate) came: Came,
    /// The size of the context now.
    pub(crate) residual: Tokens,
}

/// A compaction that is ready to be committed.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) draft: CompactionDraft,
    pub(crate) tokens_before: Tokens,
    pub(crate) tokens_after: Tokens,
    pub(crate) planner: String,
    pub(crate) rung: &'static str,
    pub(crate) extras: Extras,
}

/// What a planner says beside the entry, for whoever shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Figures of a verbatim compaction.
    pub stats: Option<foldline_compaction_core::verbatim::VerbatimStats>,
    /// Files that were only read.
    pub read_files: Vec<String>,
    /// Files that were changed.
    pub modified_files: Vec<String>,
    /// Lines that ranked first and had no room.
    pub dropped_lines: Vec<foldline_compaction_core::verbatim::DroppedLine>,
    /// The lines that a verbatim compaction deletes, as lines of its region.
    pub deleted: Option<foldline_compaction_core::verbatim::ValidatedRanges>,
    /// What is wrong with the text of an earlier compaction, which was taken as plain text then.
    pub provenance: Option<String>,
}

/// Why there is nothing to commit.
#[derive(Debug)]
pub(crate) enum NotPlanned {
    /// There is nothing to do, or it would not pay.
    Skipped(String),
    /// There is a plan, and it would not pay.
    Unpaid {
        reason: String,
        figures: Box<Unpaid>,
    },
    Cancelled,
    /// A hook forbids it.
    Vetoed,
    Failed(String),
    /// It failed for a reason that whoever asked can do something about.
    FailedBy {
        kind: FailureKind,
        cause: String,
    },
}

impl NotPlanned {
    /// What failed, and why, if something did.
    fn into_failure(self) -> Option<(FailureKind, String)> {
        match self {
            Self::Failed(cause) => Some((FailureKind::Other, cause)),
            Self::FailedBy { kind, cause } => Some((kind, cause)),
            Self::Skipped(_) | Self::Unpaid { .. } | Self::Cancelled | Self::Vetoed => None,
        }
    }

    /// Why, if it was not stopped.
    fn cause(&self) -> Option<&str> {
        match self {
            Self::Failed(cause) | Self::FailedBy { cause, .. } => Some(cause),
            Self::Skipped(reason) | Self::Unpaid { reason, .. } => Some(reason),
            Self::Cancelled | Self::Vetoed => None,
        }
    }
}

/// Maintenance requests that did not fit. The same request is not sent to the same model again (R03); a commit changes
/// every request.
#[derive(Debug, Default)]
pub(crate) struct Oversized(Mutex<FxHashSet<u64>>);

impl Oversized {
    fn mark(model: &ModelProfile, requests: &[LlmRequest<'_>]) -> u64 {
        let mut hasher = FxHasher::default();
        model.model_ref().to_string().hash(&mut hasher);
        for request in requests {
            serde_json::to_string(request)
                .unwrap_or_default()
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    fn holds(&self, mark: u64) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&mark)
    }

    fn remember(&self, mark: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(mark);
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Why such a request is not sent.
const UNCHANGED: &str = "previous unchanged maintenance request exceeded the model context window; change or reduce the \
                         conversation before retrying maintenance.";

/// What a plan is made from. It owns everything that a thread of its own needs.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) log: Arc<SessionLog>,
    pub(crate) profile: Profile,
    pub(crate) settings: CompactionSettings,
    pub(crate) limits: Option<Limits>,
    /// What the rebuilt context must fit into, if it must.
    room: Option<Room>,
    pub(crate) ratio: RatioUse,
    pub(crate) small: SmallRegion,
    pub(crate) demand: Demand,
    pub(crate) overhead: Tokens,
    pub(crate) todos: Vec<String>,
    pub(crate) lines: Vec<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) prompt_override: Option<String>,
    pub(crate) preserve_data: Option<String>,
    pub(crate) reasoning: ReasoningEffort,
}

/// What a compaction entry says about how it came to be.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'r> {
    reason: &'static str,
    phase: &'static str,
    strategy: CompactionAction,
    rung: &'static str,
    planner: &'r str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    fallback_reasons: &'r [String],
    ms: u64,
    tokens_before: Tokens,
    tokens_after: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<Tokens>,
    /// Messages that wait, so that a resume from here on finds them.
    #[serde(skip_serializing_if = "<[Queued]>::is_empty")]
    waiting: &'r [Queued],
}

impl Core {
    /// Who plans this session's compactions.
    pub(crate) fn planner(&self) -> Planner {
        let has_model = !self.candidates().is_empty() || self.remote().is_some();
        if has_model && self.options.settings.planner == PlannerChoice::Models {
            Planner::Model
        } else {
            Planner::Extractive
        }
    }

    /// Runs a compaction to its end. Its start is told here, its end by the caller.
    pub(crate) async fn compact(&mut self, lease: &Lease, order: Order) -> Ended {
        let started = Instant::now();
        let planner = order.planner.unwrap_or_else(|| self.planner());
        let action = order.action.unwrap_or_else(|| {
            use foldline_compaction_core::settings::Strategy;
            match self.options.settings.compaction.strategy.manual(planner) {
                Strategy::VerbatimLines => CompactionAction::VerbatimLines,
                _ => CompactionAction::ContextFull,
            }
        });
        // The token is in place before anyone hears of the start, so that whoever hears of it can cancel.
        let part = lease.part(Part::Compaction);
        let token = part.token.clone();
        self.shared.emit(Event::CompactionStart(CompactionStart {
            reason: order.reason,
            action,
            mid_turn: order.mid_turn,
        }));
        let mut size_before = None;
        let mut failures = Vec::new();
        let planned = if token.is_cancelled() {
            Err(NotPlanned::Cancelled)
        } else {
            self.planned(&order, action, planner, &token, &mut failures, &mut size_before)
                .await
        };
        let outcome = match planned {
            Ok(_) if token.is_cancelled() => Err(NotPlanned::Cancelled),
            Ok(planned) => {
                self.commit_compaction(&order, action, planned, failures, started)
                    .await
            }
            Err(not) => Err(not),
        };
        drop(part);
        let mut end = CompactionEnd::new(order.reason, action, OperationOutcome::Committed);
        end.mid_turn = order.mid_turn;
        let came = match outcome {
            Ok(result) => {
                end.result = Some(result);
                Came::Committed
            }
            Err(NotPlanned::Skipped(reason)) => {
                end.outcome = OperationOutcome::Skipped;
                end.skipped = true;
                end.error_message = Some(reason);
                Came::Skipped
            }
            Err(NotPlanned::Unpaid { reason, figures }) => {
                end.outcome = OperationOutcome::Skipped;
                end.skipped = true;
                end.error_message = Some(reason);
                end.unpaid = Some(figures);
                Came::Skipped
            }
            Err(NotPlanned::Cancelled) => {
                end.outcome = OperationOutcome::Cancelled;
                end.aborted = true;
                Came::Cancelled
            }
            Err(NotPlanned::Vetoed) => {
                end.outcome = OperationOutcome::Cancelled;
                end.aborted = true;
                Came::Vetoed
            }
            Err(failed) => {
                let (kind, cause) = failed
                    .into_failure()
                    .unwrap_or((FailureKind::Other, String::new()));
                end.outcome = OperationOutcome::Failed;
                end.error_message = Some(format!("{}{cause}", failure_prefix(order.reason)));
                end.failure = Some(kind);
                Came::Failed
            }
        };
        self.remember(&order, came, size_before);
        // What was not written changed nothing.
        let residual = match came {
            Came::Committed => self.size_now(),
            _ => size_before.unwrap_or(Tokens::ZERO),
        };
        Ended { end, came, residual }
    }

    /// What an outcome means for the attempts to come: a success clears the way, everything else keeps the trigger quiet
    /// until the context has grown (R02, R11). Skips are no failures.
    fn remember(&mut self, order: &Order, came: Came, size: Option<Tokens>) {
        match came {
            Came::Committed => {
                self.live.failures = 0;
                self.live.quiet_at = None;
                self.live.oversized.clear();
            }
            Came::Failed if !order.is_manual() => {
                self.live.failures += 1;
                self.live.stay_quiet(size);
            }
            Came::Skipped | Came::Cancelled | Came::Vetoed | Came::Failed => {
                self.live.stay_quiet(size);
            }
        }
        if order.is_manual() && came != Came::Failed {
            self.live.failures = 0;
        }
    }

    /// The size of the context as triggers see it.
    pub(crate) fn size_now(&self) -> Tokens {
        context(&self.log, self.options.profile)
            .map_or(Tokens::ZERO, |context| self.size(&context, Tokens::ZERO).tokens)
    }

    async fn planned(
        &mut self,
        order: &Order,
        action: CompactionAction,
        planner: Planner,
        token: &CancellationToken,
        failures: &mut Vec<String>,
        size: &mut Option<Tokens>,
    ) -> Result<Planned, NotPlanned> {
        let (mut ground, last_user_text) = self.ground(order, token, size).await?;
        let models = if planner == Planner::Model {
            watched(self.candidates())
        } else {
            Vec::new()
        };
        let parameters = self.parameters(order, last_user_text);
        if let Some(planned) = self
            .ask_hooks(order, action, &parameters, &mut ground, token)
            .await?
        {
            return Ok(planned);
        }
        let budget = self.options.settings.maintenance_budget;
        let plan = async {
            match action {
                CompactionAction::VerbatimLines => {
                    self.plan_lines(order, &ground, parameters, models, token, failures)
                        .await
                }
                _ => {
                    let remote = self.remote().filter(|_| planner == Planner::Model);
                    self.plan_summary(order, &ground, remote, models, token, failures)
                        .await
                }
            }
        };
        tokio::select! {
            biased;
            () = token.cancelled() => Err(NotPlanned::Cancelled),
            planned = tokio::time::timeout(budget, plan) => planned.unwrap_or_else(|_| {
                Err(NotPlanned::Failed(format!("no plan came within {} seconds", budget.as_secs())))
            }),
        }
    }

    /// What a plan is made from, and the text of the newest user message.
    async fn ground(
        &mut self,
        order: &Order,
        token: &CancellationToken,
        size: &mut Option<Tokens>,
    ) -> Result<(Ground, Option<String>), NotPlanned> {
        let work = state_lines::read(&*self.options.work);
        let seen = self.look(order, token).await?;
        *size = Some(seen.size);
        let mut settings = self.options.settings.compaction.clone();
        if let Some(keep) = order.keep_recent {
            settings.keep_recent_tokens = keep.get() as f64;
        }
        if let (Some(limits), false) = (&seen.limits, order.is_manual()) {
            // Nobody asked: the trigger says that the context is too large, so a setting that would keep all of it
            // cannot hold (D9).
            settings.keep_recent_tokens = settings.keep_recent_tokens.min(limits.keep().get() as f64);
        }
        let ground = Ground {
            log: Arc::clone(&self.log),
            profile: self.options.profile,
            limits: seen.limits,
            room: seen.room,
            settings,
            ratio: match seen.ratio {
                None => RatioUse::None,
                Some(ratio) if order.is_manual() => RatioUse::Manual(ratio),
                Some(ratio) => RatioUse::Automatic(ratio),
            },
            small: order.small(),
            demand: order.demand(),
            overhead: self.overhead(),
            todos: work.open_todos,
            lines: work.lines,
            instructions: order.instructions.clone(),
            prompt_override: None,
            preserve_data: None,
            reasoning: self.options.settings.summary_reasoning,
        };
        Ok((ground, seen.last_user_text))
    }

    /// The models that may plan, for every reason in the same order: the one that the settings name, the current one,
    /// then those that roles name (FB-066). Each once.
    pub(crate) fn candidates(&self) -> Vec<Arc<dyn LanguageModel>> {
        let all = &self.options.models;
        let first = all.summariser.as_ref().into_iter().chain(self.model());
        let mut models: Vec<Arc<dyn LanguageModel>> = Vec::new();
        for model in first.chain(&all.summarisers) {
            let name = model.profile().model_ref();
            if models.iter().all(|known| known.profile().model_ref() != name) {
                models.push(Arc::clone(model));
            }
        }
        models
    }

    fn parameters(&self, order: &Order, last_user_text: Option<String>) -> Parameters {
        if let Some(parameters) = &order.parameters {
            return parameters.clone();
        }
        let lines = &self.options.settings.lines;
        let configured = || {
            let parameters = lines.parameters.clone();
            parameters.unwrap_or_else(|| Parameters::with_query(String::new()))
        };
        if let Some(named) = lines.query.as_ref().or(order.instructions.as_ref()) {
            return configured().about(named);
        }
        let query =
            last_user_text.unwrap_or_else(|| foldline_compaction_core::verbatim::DEFAULT_QUERY.to_owned());
        Parameters {
            query,
            ..configured()
        }
    }

    async fn commit_compaction(
        &mut self,
        order: &Order,
        action: CompactionAction,
        mut planned: Planned,
        failures: Vec<String>,
        started: Instant,
    ) -> Result<CompactionResult, NotPlanned> {
        let shared = Arc::clone(&self.shared);
        let books = shared.books().await;
        let waiting: Vec<Queued> = shared.queues().all().cloned().collect();
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = Record {
            reason: reason_name::name(order.reason),
            phase: if order.mid_turn { "midTurn" } else { "boundary" },
            strategy: action,
            rung: planned.rung,
            planner: &planned.planner,
            fallback_reasons: &failures,
            ms: elapsed_ms,
            tokens_before: planned.tokens_before,
            tokens_after: planned.tokens_after,
            cached_tokens: self.cached_tokens(),
            waiting: &waiting,
        };
        planned.draft.details = with_member(&planned.draft.details, "foldline", &record);
        let group = Group {
            entries: vec![Pending::from(EntryDraft::compaction(&planned.draft))],
            planned_for: PlannedFor::Leaf(self.shared.journal().content_leaf()),
            backup: (order.backup == BackupChoice::Before).then_some("compact"),
            ..Group::default()
        };
        let committed = self.commit(group).await.map_err(|error| match error {
            CommitError::Moved => NotPlanned::Skipped(error.to_string()),
            error if error.is_busy() => NotPlanned::FailedBy {
                kind: FailureKind::Busy,
                cause: error.full_text(),
            },
            error => NotPlanned::FailedBy {
                kind: error.system().map_or(FailureKind::Other, FailureKind::System),
                cause: error.full_text(),
            },
        })?;
        drop(books);
        self.forget_replaced().await;
        let entry_id = committed
            .ids
            .into_iter()
            .next()
            .ok_or_else(|| NotPlanned::Failed("nothing was written".to_owned()))?;
        self.tell_compacted(order, &entry_id, planned.draft.author).await;
        Ok(CompactionResult {
            entry_id,
            first_kept_entry_id: planned.draft.first_kept,
            tokens_before: planned.tokens_before,
            tokens_after: planned.tokens_after,
            summary: planned.draft.summary,
            short_summary: planned.draft.short_summary,
            planner: planned.planner,
            rung: planned.rung,
            fallback_reasons: failures,
            elapsed_ms,
            backup_path: committed.backup,
            extras: planned.extras,
        })
    }

    async fn tell_compacted(&self, order: &Order, entry: &EntryId, author: Author) {
        let Some(raw) = self
            .log
            .find(entry.as_str())
            .and_then(|ix| raw_entry(&self.log, ix))
        else {
            return;
        };
        let cx = self.hook_context(&CancellationToken::new());
        self.options
            .hooks
            .session_compact(&cx, || SessionCompactEvent {
                compaction_entry: raw,
                from_extension: author == Author::Extension,
                reason: reason_name::name(order.reason),
                parameters: order.parameters.as_ref(),
                result: None,
            })
            .await;
    }

    /// What the newest request had in the provider's cache.
    fn cached_tokens(&self) -> Option<Tokens> {
        let context = context(&self.log, self.options.profile).ok()?;
        context.items.iter().rev().find_map(|item| match &item.message {
            foldline_session_model::message::Message::Assistant(message) => {
                message.usage.map(|usage| usage.cache_read)
            }
            _ => None,
        })
    }
}

/// How often and how long a summariser is asked (R12): a model that is slow is replaced, not asked again.
const POLICY: RetryPolicy = RetryPolicy::MAINTENANCE;

/// Whether the next candidate may try after a failure.
fn advances(order: &Order, class: &ErrorClass) -> bool {
    match class {
        ErrorClass::Cancelled => false,
        ErrorClass::Auth => true,
        // Someone who asked for this model wants to know what it said.
        _ => !order.is_manual(),
    }
}

/// Whether the planner without a model is the last rung (D6).
fn falls_back(order: &Order, ground: &Ground) -> bool {
    order.is_load_bearing() && ground.settings.fallback == Fallback::Extractive
}

/// Runs pure work on a thread of its own.
pub(crate) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The same; nobody waits for its end if the outcome is not wanted any more (R11).
pub(crate) async fn on_thread_until<T: Send + 'static>(
    token: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NotPlanned> {
    tokio::select! {
        biased;
        () = token.cancelled() => Err(NotPlanned::Cancelled),
        done = on_thread(work) => Ok(done),
    }
}

/// An object with one more member. What is no object is replaced by one.
fn with_member(object: &str, key: &str, value: &impl Serialize) -> String {
    let value = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let body = object
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .map_or("", str::trim);
    if body.is_empty() {
        format!("{{\"{key}\":{value}}}")
    } else {
        format!("{{{body},\"{key}\":{value}}}")
    }
}

const fn failure_prefix(reason: Reason) -> &'static str {
    match reason {
        Reason::Manual => "Compaction failed: ",
        Reason::Overflow => "Context overflow recovery failed: ",
        Reason::Threshold | Reason::Idle => "Auto-compaction failed: ",
    }
}
