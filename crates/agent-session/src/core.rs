//! The state of a session that one operation at a time works on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use foldline_compaction_core::accounting::{ContextSize, Limits};
use foldline_compaction_core::decide::{Breaker, Guard};
use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::verbatim::Parameters;
use foldline_llm_client::{EndpointPlace, LanguageModel, RemoteSummary, RetryPolicy, WindowSource};
use foldline_pruning::Policy;
use foldline_session_model::fold::{Context, FoldError, Profile};
use foldline_session_model::log::{Migration, SessionLog};
use foldline_session_model::model_call::{ModelProfile, ModelRef, ReasoningEffort};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryId, Tokens};
use rustc_hash::FxHashSet;
use tokio_util::sync::CancellationToken;

use crate::compaction::Oversized;
use crate::compaction::ahead::Ahead;
use crate::hooks::{HookActions, HookContext, HookRunner};
use crate::journal::{CommitError, Committed, Group, LoadSessionError, Pending};
use crate::queue::{QueueMode, queued_entry};
use crate::shared::Shared;
use crate::tool::Tool;
use crate::work::WorkState;

/// The models of a session.
#[derive(Clone)]
pub struct Models {
    /// The one that the agent runs on. Without one nothing can be asked, and compactions are planned by the embedded
    /// planner.
    pub current: Option<Arc<dyn LanguageModel>>,
    /// Models that take over for a turn when the current one fails, in order.
    pub fallbacks: Vec<Arc<dyn LanguageModel>>,
    /// The model that summarises; `None`: the one that works (`compaction.model`).
    pub summariser: Option<Arc<dyn LanguageModel>>,
    /// Models that summarise when that one cannot, in order.
    pub summarisers: Vec<Arc<dyn LanguageModel>>,
    /// An endpoint that writes summaries and is asked first, if the settings allow it (`compaction.remoteEndpoint`).
    pub remote: Option<Arc<RemoteSummary>>,
    /// Who says how large the windows of these models are. What a server refuses corrects a catalogue, and not a user.
    pub window_source: WindowSource,
    /// Where the current model is.
    pub place: EndpointPlace,
    /// A model with a larger window, to move to before anything is compacted.
    pub promotion: Option<Arc<dyn LanguageModel>>,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            current: None,
            fallbacks: Vec::new(),
            summariser: None,
            summarisers: Vec::new(),
            remote: None,
            window_source: WindowSource::Catalogue,
            place: EndpointPlace::Remote,
            promotion: None,
        }
    }
}

/// How a session behaves.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// `compaction.*`.
    pub compaction: CompactionSettings,
    /// How lines are chosen, where they are deleted; the query is the newest user message if it is empty.
    pub lines: LineSettings,
    /// `branchSummary.reserveTokens`.
    pub branch_reserve: Tokens,
    /// `retry.*`.
    pub retry: RetryPolicy,
    /// Limits of maintenance calls.
    pub maintenance_budget: Duration,
    /// How hard the summarising model thinks (`compaction.thinkingLevel`); unset: as the session's model does.
    pub summary_reasoning: ReasoningEffort,
    /// What tool output may be pruned.
    pub pruning: Policy,
    /// `steeringMode`.
    pub steering: QueueMode,
    /// `followUpMode`.
    pub follow_up: QueueMode,
    /// Whether steering skips the calls that have not begun.
    pub interrupt: Interrupt,
    /// Who plans compactions.
    pub planner: PlannerChoice,
    /// Text that is added to the instructions for a handoff document.
    pub handoff_prompt_extension: Option<String>,
    /// Whether the document of an automatic handoff is kept as an artifact too (`compaction.handoffSaveToDisk`).
    pub handoff_copy: HandoffCopy,
    /// Whether the context is looked at between two requests of a run (`compaction.midTurnEnabled`).
    pub mid_turn: MidTurn,
    /// From where on a compaction is prepared beside the agent; `None`: none is (`compaction.background`).
    pub background: Option<SoftLine>,
    /// Whether who moves in the tree is asked about a summary; asking is the host's (`branchSummary.enabled`).
    pub branch_question: BranchQuestion,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            compaction: CompactionSettings::default(),
            lines: LineSettings::default(),
            branch_reserve: Tokens(16_384),
            retry: RetryPolicy::TURN,
            maintenance_budget: Duration::from_secs(600),
            summary_reasoning: ReasoningEffort::Unset,
            pruning: Policy::default(),
            steering: QueueMode::OneAtATime,
            follow_up: QueueMode::OneAtATime,
            interrupt: Interrupt::Immediate,
            planner: PlannerChoice::Models,
            handoff_prompt_extension: None,
            handoff_copy: HandoffCopy::None,
            mid_turn: MidTurn::On,
            background: None,
            branch_question: BranchQuestion::Never,
        }
    }
}

/// A line below the threshold, as a share of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftLine(f64);

impl SoftLine {
    /// A share in percent; what is none lies at the threshold.
    pub fn percent(percent: f64) -> Self {
        Self(if percent > 0.0 && percent < 100.0 {
            percent / 100.0
        } else {
            1.0
        })
    }

    /// The line below this threshold.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1 of a whole number"
    )]
    pub(crate) fn of(self, threshold: Tokens) -> Tokens {
        Tokens((threshold.get() as f64 * self.0) as u64)
    }
}

/// Parameters of a verbatim compaction as settings have them.
#[derive(Clone, Debug, Default)]
pub struct LineSettings {
    /// Everything but the query.
    pub parameters: Option<Parameters>,
    /// What the lines that stay are about.
    pub query: Option<String>,
}

/// Whether steering skips the calls that have not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interrupt {
    /// It does.
    #[default]
    Immediate,
    /// It waits for all of them.
    Wait,
}

/// Whether a handoff document is kept outside of the new session too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HandoffCopy {
    /// It is not.
    #[default]
    None,
    /// As an artifact of the new session.
    Artifact,
}

/// Whether the context is looked at between two requests of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MidTurn {
    /// It is.
    #[default]
    On,
    /// Only before and after runs.
    Off,
}

/// Whether a host asks about a summary of the branch that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BranchQuestion {
    /// It does not, and none is made.
    #[default]
    Never,
    /// It does.
    Ask,
}

/// Who plans compactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlannerChoice {
    /// The session's models; the embedded planner without one.
    #[default]
    Models,
    /// The embedded planner.
    Extractive,
}

/// What a session is opened with.
#[derive(Clone)]
pub struct SessionOptions {
    /// System text, in order.
    pub system: Vec<String>,
    /// The tools that the model may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The models.
    pub models: Models,
    /// How hard the model thinks.
    pub reasoning: ReasoningEffort,
    /// How it behaves.
    pub settings: SessionSettings,
    /// Who is told and may change things.
    pub hooks: HookRunner,
    /// What the work stands at.
    pub work: Arc<dyn WorkState>,
    /// The working folder of tools.
    pub cwd: PathBuf,
    /// Which compactions count.
    pub profile: Profile,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            system: Vec::new(),
            tools: Vec::new(),
            models: Models::default(),
            reasoning: ReasoningEffort::Unset,
            settings: SessionSettings::default(),
            hooks: HookRunner::default(),
            work: Arc::new(crate::work::NoWork),
            cwd: PathBuf::from("."),
            profile: Profile::Auto,
        }
    }
}

/// The state of a session. Whoever holds it runs the one operation.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: Arc<SessionLog>,
    pub(crate) options: SessionOptions,
    pub(crate) live: Live,
}

/// What is true of this process's part of the session only.
#[derive(Debug)]
pub(crate) struct Live {
    /// Whether this turn has had its recovery from an overflow.
    pub(crate) overflow_guard: Guard,
    /// Whether this turn has had its recovery from an answer that the window cut off.
    pub(crate) length_guard: Guard,
    /// Answers in a row that were cut off at the model's output limit and continued.
    pub(crate) length_continuations: u32,
    /// Maintenance requests that were too large.
    pub(crate) oversized: Oversized,
    /// Automatic compactions that failed in a row.
    pub(crate) failures: u32,
    /// The size at which the last attempt ended without relief.
    pub(crate) quiet_at: Option<Tokens>,
    /// An attempt ended before the size was known: the next look is the one that counts.
    pub(crate) quiet_unmeasured: bool,
    /// Entries whose pictures a provider refused.
    pub(crate) without_media: FxHashSet<EntryId>,
    /// The most bytes of pictures that a request carries.
    pub(crate) media_budget: Option<usize>,
    /// The last failed answer and its class, of this process.
    pub(crate) last_failure: Option<(EntryId, foldline_session_model::model_call::ErrorClass)>,
    /// Windows that servers named when they refused a request, by model.
    pub(crate) windows: BTreeMap<ModelRef, Tokens>,
    /// How many tokens a model counted for each of the estimate, when that was last known.
    pub(crate) density: Option<(ModelRef, f64)>,
    /// Whether the next request is the first one behind a compaction within a run.
    pub(crate) compacted_mid_run: bool,
    /// How many fallback models this turn has used; the current one comes back with the next prompt.
    pub(crate) fallback: usize,
    /// Whether the promotion was tried.
    pub(crate) promoted: bool,
    /// The system text of this run, if a hook replaced it.
    pub(crate) system: Option<String>,
    /// A compaction that is prepared beside the agent.
    pub(crate) ahead: Option<Ahead>,
    /// Whether the provider's own compaction failed when it was asked last; that is told once.
    pub(crate) native_down: AtomicBool,
}

/// So many failures in a row switch automatic compaction off (R01).
const BREAKER: u32 = 3;

impl Live {
    pub(crate) fn new() -> Self {
        Self {
            overflow_guard: Guard::Armed,
            length_guard: Guard::Armed,
            length_continuations: 0,
            oversized: Oversized::default(),
            failures: 0,
            quiet_at: None,
            quiet_unmeasured: false,
            without_media: FxHashSet::default(),
            media_budget: None,
            last_failure: None,
            windows: BTreeMap::new(),
            density: None,
            compacted_mid_run: false,
            fallback: 0,
            promoted: false,
            system: None,
            ahead: None,
            native_down: AtomicBool::new(false),
        }
    }

    /// Keeps the trigger quiet until the context has grown from this size.
    pub(crate) const fn stay_quiet(&mut self, size: Option<Tokens>) {
        match size {
            Some(_) => self.quiet_at = size,
            None => self.quiet_unmeasured = true,
        }
    }

    pub(crate) const fn breaker(&self) -> Breaker {
        if self.failures >= BREAKER {
            Breaker::Open
        } else {
            Breaker::Closed
        }
    }
}

impl Core {
    pub(crate) fn new(shared: Arc<Shared>, log: SessionLog, mut options: SessionOptions) -> Self {
        let told = Arc::downgrade(&shared);
        options.hooks = std::mem::take(&mut options.hooks).with_reporter(Arc::new(move |failure| {
            if let Some(shared) = told.upgrade() {
                shared.emit(crate::event::Event::ExtensionError {
                    extension_path: failure.hook_path.clone(),
                    event: failure.event.to_string(),
                    error: failure.error.clone(),
                });
            }
        }));
        let mut queues = shared.queues();
        queues.steer_mode = options.settings.steering;
        queues.follow_up_mode = options.settings.follow_up;
        drop(queues);
        let model = options.models.current.as_ref();
        *shared.model() = model.map(|model| model.profile().model_ref().to_string());
        Self {
            shared,
            log: Arc::new(log),
            options,
            live: Live::new(),
        }
    }

    /// The model that answers the next request.
    pub(crate) fn model(&self) -> Option<&Arc<dyn LanguageModel>> {
        let models = &self.options.models;
        match self.live.fallback.checked_sub(1) {
            None => models.current.as_ref(),
            Some(at) => models.fallbacks.get(at),
        }
    }

    pub(crate) fn model_ref(&self) -> Option<ModelRef> {
        self.model().map(|model| model.profile().model_ref())
    }

    /// How hard a model thinks that summarises or chooses lines: as the settings say, else as hard as the session's own
    /// model, but nobody waits for as much as it can (R12; FB-067).
    pub(crate) const fn maintenance_reasoning(&self) -> ReasoningEffort {
        match (self.options.settings.summary_reasoning, self.options.reasoning) {
            (ReasoningEffort::Unset, ReasoningEffort::Max) => ReasoningEffort::High,
            (ReasoningEffort::Unset, own) => own,
            (named, _) => named,
        }
    }

    /// The limits of the current model.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let window = self.window(self.model()?.profile());
        Limits::new(window, &self.options.settings.compaction, Tokens::ZERO)
    }

    /// The window of a model: what a user says, then what its server said, then what the catalogue knows (R07).
    pub(crate) fn window(&self, profile: &ModelProfile) -> Option<Tokens> {
        let server = self.live.windows.get(&profile.model_ref()).copied();
        match self.options.models.window_source {
            WindowSource::Catalogue => server.or(profile.context_window),
            _ => profile.context_window.or(server),
        }
    }

    /// The window for a request that must fit: also where a user says more, nothing larger than what the server named
    /// is sent again.
    pub(crate) fn hard_window(&self, profile: &ModelProfile) -> Option<Tokens> {
        let server = self.live.windows.get(&profile.model_ref()).copied();
        match (self.window(profile), server) {
            (Some(window), Some(server)) => Some(window.min(server)),
            (window, server) => window.or(server),
        }
    }

    /// What is known about a model, with the window that its requests must fit into.
    pub(crate) fn known(&self, profile: &ModelProfile) -> ModelProfile {
        ModelProfile {
            context_window: self.hard_window(profile),
            ..profile.clone()
        }
    }

    /// What a hook gets beside its event.
    pub(crate) fn hook_context(&self, signal: &CancellationToken) -> HookContext {
        HookContext {
            session_id: self.shared.session_id(),
            cwd: Arc::from(self.options.cwd.as_path()),
            signal: signal.clone(),
            actions: Arc::new(Actions(Arc::downgrade(&self.shared))),
        }
    }

    /// What every request costs besides its messages.
    pub(crate) fn overhead(&self) -> Tokens {
        let specs: Vec<_> = self.options.tools.iter().map(|tool| tool.spec()).collect();
        let mut texts = self.options.system.iter().map(String::as_str).chain(
            specs
                .iter()
                .flat_map(|spec| [&*spec.name, &*spec.description, spec.parameters.get()]),
        );
        Heuristic.text(&mut texts)
    }

    /// Takes in what was written, by this operation or beside it.
    pub(crate) fn absorb(&mut self) -> Result<(), LoadSessionError> {
        let stale = self.log.disk_form().migration != Migration::NotNeeded;
        if !stale
            && let Some(log) = Arc::get_mut(&mut self.log)
            && self.shared.journal().absorb(log).is_ok()
        {
            return Ok(());
        }
        // Somebody still reads the old log, or it was in an old form.
        self.reload()
    }

    /// Reads the whole session again.
    pub(crate) fn reload(&mut self) -> Result<(), LoadSessionError> {
        self.log = Arc::new(self.shared.journal().reload()?);
        Ok(())
    }

    /// Lets go of what the newest compaction replaced.
    pub(crate) async fn forget_replaced(&mut self) {
        let journal = self.shared.journal();
        match journal.reload_tail(self.options.profile).await {
            Ok(Some(log)) => self.log = Arc::new(log),
            Ok(None) => {}
            // The longer log is as good.
            Err(error) => tracing::warn!(%error, "the end of the session could not be read again"),
        }
    }

    /// Writes entries and takes them in.
    pub(crate) async fn commit(&mut self, group: Group) -> Result<Committed, CommitError> {
        let journal = self.shared.journal();
        let committed = journal.commit(&self.log, group).await?;
        self.shared.tell_retries(&committed);
        if let Err(error) = self.absorb() {
            tracing::error!(%error, "the session could not be read again after a commit");
        }
        Ok(committed)
    }

    /// Writes one entry under the leaf.
    pub(crate) async fn append(
        &mut self,
        draft: foldline_session_model::EntryDraft,
    ) -> Result<EntryId, CommitError> {
        let group = Group {
            entries: vec![Pending::from(draft)],
            ..Group::default()
        };
        let committed = self.commit(group).await?;
        committed.ids.into_iter().next().ok_or(CommitError::Moved)
    }

    /// Says again which messages wait, so that a resume which reads the end of the file only finds them.
    pub(crate) async fn restate_queues(&mut self) -> Result<(), CommitError> {
        let shared = Arc::clone(&self.shared);
        let _books = shared.books().await;
        let waiting: Vec<_> = self.shared.queues().all().cloned().collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let group = Group {
            entries: vec![Pending::from(queued_entry(&waiting))],
            bookkeeping: true,
            ..Group::default()
        };
        self.commit(group).await.map(|_| ())
    }

    /// The context at the leaf. A log that was only believed to be whole is read again if it is not.
    pub(crate) fn checked_log(&mut self) -> Result<Arc<SessionLog>, LoadSessionError> {
        if matches!(
            context(&self.log, self.options.profile),
            Err(FoldError::Unreadable { .. })
        ) {
            self.reload()?;
        }
        Ok(Arc::clone(&self.log))
    }

    /// The size of a context of this session.
    pub(crate) fn size(&self, context: &Context<'_>, pending: Tokens) -> ContextSize {
        ContextSize::of(context, self.overhead(), pending, &Heuristic)
    }
}

/// What hooks may ask of a session.
struct Actions(Weak<Shared>);

impl HookActions for Actions {
    fn compact(&self, instructions: Option<String>) {
        if let Some(shared) = self.0.upgrade() {
            shared.request_compaction(instructions);
        }
    }
}

/// The context at the leaf of a log.
pub(crate) fn context(log: &SessionLog, profile: Profile) -> Result<Context<'_>, FoldError> {
    log.context(&Leaf::Last, profile)
}
