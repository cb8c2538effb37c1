//! One compaction of a session: planned on what was read, asked of models, committed if the session is still the same
//! (DESIGN, rule 2; spec "Orchestrator and clients", 6 and 7).

pub(crate) mod ahead;
mod commit;
mod hooked;
mod lines;
mod native;
mod oversized;
mod remote;
mod room;
mod summary;

pub(crate) use hooked::raw_entry;
pub(crate) use lines::class_of_text;
pub(crate) use oversized::Oversized;

use commit::with_member;
use native::Summarisers;
use oversized::UNCHANGED;

use std::sync::Arc;

use foldline_compaction_core::accounting::{Limits, RatioUse};
use foldline_compaction_core::decide::{Reason, Urgency};
use foldline_compaction_core::settings::{CompactionSettings, Fallback, Planner};
use foldline_compaction_core::verbatim::{Demand, Parameters, SmallRegion};
use foldline_llm_client::{LanguageModel, NativeForm, RetryPolicy};
use foldline_session_model::fold::Profile;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{ErrorClass, ReasoningEffort};
use foldline_session_model::{CompactionDraft, Tokens};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::continuation::Came;
use crate::core::{Core, PlannerChoice, context};
use crate::event::{
    CompactionAction, CompactionEnd, CompactionStart, Event, FailureKind, OperationOutcome, Unpaid,
};
use crate::patience::watched;
use crate::shared::Lease;
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
    pub(crate) timing: Timing,
}

/// When a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Now that it is due.
    Due,
    /// Before it is due. What is said between plan and commit is in no history of the provider's, so none is asked for.
    Ahead,
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
            timing: Timing::Due,
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
    /// The form in which the provider's own history came, if the entry holds one.
    pub native: Option<NativeForm>,
    /// When the plan was made.
    pub prepared: Prepared,
}

/// When a plan was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prepared {
    /// When it was due.
    #[default]
    WhenDue,
    /// Beside the agent, before it was due.
    InBackground,
}

impl Prepared {
    /// The name in records; nothing where it is a matter of course.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::WhenDue => None,
            Self::InBackground => Some("background"),
        }
    }
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

impl Core {
    /// Who plans this session's compactions.
    pub(crate) fn planner(&self) -> Planner {
        self.planner_among(!self.candidates().is_empty() || self.remote().is_some())
    }

    /// Who writes what no service writes: handoff documents and summaries of branches.
    pub(crate) fn writer(&self) -> Planner {
        self.planner_among(self.model().is_some())
    }

    fn planner_among(&self, has_model: bool) -> Planner {
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
        let part = lease.compaction(order.reason);
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
        } else if let Some((planned, before)) = self.take_ahead(&order, action, planner, &token).await {
            failures = before;
            Ok(planned)
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
                    let by_model = planner == Planner::Model;
                    let who = Summarisers {
                        remote: self.remote().filter(|_| by_model),
                        models,
                        native: self.native().filter(|_| by_model && order.timing == Timing::Due),
                    };
                    self.plan_context(order, &ground, who, token, failures).await
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
            reasoning: self.maintenance_reasoning(),
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

const fn failure_prefix(reason: Reason) -> &'static str {
    match reason {
        Reason::Manual => "Compaction failed: ",
        Reason::Overflow => "Context overflow recovery failed: ",
        Reason::Threshold | Reason::Idle => "Auto-compaction failed: ",
    }
}
