//! Asking hooks, one after the other (spec "Orchestrator and clients", 13.2).

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use foldline_session_model::model_call::RawJson;
use futures::FutureExt as _;
use serde::Serialize;

use super::{
    AgentEndEvent, AgentSettledEvent, BeforeAgentStartEvent, BeforeCompactAnswer, BeforeCompactEvent,
    BeforeSwitchEvent, BeforeTreeAnswer, BeforeTreeEvent, CompactingAnswer, CompactingEvent, ContextEvent,
    HookContext, HookError, HookEvent, HookMessage, Hooks, InputAction, InputEvent, SessionCompactEvent,
    SessionShutdownEvent, SessionStartEvent, SessionSwitchEvent, SessionTreeEvent, ToolCallEvent,
    ToolResultAnswer, ToolResultEvent,
};

/// Is told of hooks that failed.
pub type HookReporter = Arc<dyn Fn(&HookFailure) + Send + Sync>;

/// A hook that failed. The work went on without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookFailure {
    /// Which hook.
    pub hook_path: String,
    /// At which event.
    pub event: HookEvent,
    /// Why.
    pub error: String,
}

/// Hooks in the order in which they were loaded.
#[derive(Clone, Default)]
pub struct HookRunner {
    hooks: Arc<[Arc<dyn Hooks>]>,
    reporter: Option<HookReporter>,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolVerdict {
    /// It is run.
    Run,
    /// It is not run, and the model reads why.
    Block {
        /// Why.
        reason: String,
    },
}

/// Whether another session takes the place of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwitchVerdict {
    /// It does.
    Switch,
    /// It does not.
    Keep,
}

/// What becomes of what the user typed.
#[derive(Clone, Debug, PartialEq)]
pub enum InputFate {
    /// It is sent as it is.
    Unchanged,
    /// It is sent as hooks have it.
    Changed {
        /// The text.
        text: String,
        /// The images.
        images: Vec<RawJson<'static>>,
    },
    /// A hook has done with it.
    Handled,
}

/// What hooks change before a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentStartChanges {
    /// Messages to add, in the order of the hooks.
    pub messages: Vec<HookMessage>,
    /// The system prompt of this run, if it changes.
    pub system_prompt: Option<String>,
}

/// Why there is no answer.
enum NoAnswer {
    /// The hook failed; that is reported.
    Failed(HookError),
    /// The work was cancelled: nobody else is asked.
    Cancelled,
}

type Asked<'h, T> = Pin<Box<dyn Future<Output = Result<T, HookError>> + Send + 'h>>;

impl HookRunner {
    /// Hooks in the order in which they are asked.
    pub fn new(hooks: Vec<Arc<dyn Hooks>>) -> Self {
        Self {
            hooks: hooks.into(),
            reporter: None,
        }
    }

    /// The same hooks, with somebody who is told of failures.
    #[must_use]
    pub fn with_reporter(mut self, reporter: HookReporter) -> Self {
        self.reporter = Some(reporter);
        self
    }

    /// Whether anybody wants the event; if not, nothing needs to be made for it.
    pub fn wants(&self, event: HookEvent) -> bool {
        self.wanting(event).next().is_some()
    }

    fn wanting(&self, event: HookEvent) -> impl Iterator<Item = &Arc<dyn Hooks>> {
        self.hooks
            .iter()
            .filter(move |hook| hook.events().contains(&event))
    }

    /// One hook's answer, within its time, unless the work is cancelled first. A panic is a failure.
    async fn ask<'h, T>(
        &self,
        hook: &'h dyn Hooks,
        event: HookEvent,
        cx: &HookContext,
        own: &'h HookContext,
        asked: Asked<'h, T>,
    ) -> Result<T, NoAnswer> {
        let limit = hook.time_limit(event);
        let asked = async {
            let work = AssertUnwindSafe(asked).catch_unwind();
            let outcome = match limit {
                Some(limit) => tokio::time::timeout(limit, work)
                    .await
                    .map_err(|_| HookError::TimedOut(limit))?,
                None => work.await,
            };
            outcome.unwrap_or_else(|panic| Err(HookError::Panicked(panic_message(&*panic))))
        };
        let answer = tokio::select! {
            biased;
            () = cx.signal.cancelled() => return Err(NoAnswer::Cancelled),
            answer = asked => answer,
        };
        match answer {
            // An answer to work that is over.
            _ if cx.signal.is_cancelled() => Err(NoAnswer::Cancelled),
            Ok(answer) => Ok(answer),
            Err(error) => {
                own.signal.cancel();
                self.report(hook, event, &error);
                Err(NoAnswer::Failed(error))
            }
        }
    }

    fn report(&self, hook: &dyn Hooks, event: HookEvent, error: &HookError) {
        tracing::warn!(hook = hook.path(), %event, %error, "a hook failed");
        if let Some(reporter) = &self.reporter {
            reporter(&HookFailure {
                hook_path: hook.path().to_owned(),
                event,
                error: error.to_string(),
            });
        }
    }

    /// Before another session takes the place of this one: whether it may. The first cancel ends the questions.
    pub async fn session_before_switch<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> BeforeSwitchEvent<'e> + Send,
    ) -> SwitchVerdict {
        const EVENT: HookEvent = HookEvent::SessionBeforeSwitch;
        if !self.wants(EVENT) {
            return SwitchVerdict::Switch;
        }
        let event = event();
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.session_before_switch(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) if answer.cancel => return SwitchVerdict::Keep,
                Ok(_) | Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return SwitchVerdict::Keep,
            }
        }
        SwitchVerdict::Switch
    }

    /// Before a compaction: the last answer that says anything counts, the first cancel ends the questions. Once the
    /// work is cancelled no answer counts.
    pub async fn session_before_compact<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> BeforeCompactEvent<'e> + Send,
    ) -> BeforeCompactAnswer {
        const EVENT: HookEvent = HookEvent::SessionBeforeCompact;
        let mut last = BeforeCompactAnswer::default();
        if !self.wants(EVENT) {
            return last;
        }
        let event = event();
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.session_before_compact(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) if answer.cancel => return answer,
                Ok(answer) if answer.says_something() => last = answer,
                Ok(_) | Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return BeforeCompactAnswer::default(),
            }
        }
        last
    }

    /// Before a move in the tree: as before a compaction.
    pub async fn session_before_tree<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> BeforeTreeEvent<'e> + Send,
    ) -> BeforeTreeAnswer {
        const EVENT: HookEvent = HookEvent::SessionBeforeTree;
        let mut last = BeforeTreeAnswer::default();
        if !self.wants(EVENT) {
            return last;
        }
        let event = event();
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.session_before_tree(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) if answer.cancel => return answer,
                Ok(answer) if answer.says_something() => last = answer,
                Ok(_) | Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return BeforeTreeAnswer::default(),
            }
        }
        last
    }

    /// Before a request for a summary: lines of context are collected, the last prompt counts, and of data with the
    /// same name the last.
    pub async fn session_compacting<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> CompactingEvent<'e> + Send,
    ) -> CompactingAnswer {
        const EVENT: HookEvent = HookEvent::SessionCompacting;
        let mut all = CompactingAnswer::default();
        if !self.wants(EVENT) {
            return all;
        }
        let event = event();
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.session_compacting(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) => {
                    all.context.extend(answer.context);
                    all.prompt = answer.prompt.or(all.prompt);
                    if let Some(data) = answer.preserve_data {
                        all.preserve_data.get_or_insert_default().extend(data);
                    }
                }
                Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return CompactingAnswer::default(),
            }
        }
        all
    }

    /// Before a run: messages are collected, and each hook sees the system prompt that the one before left.
    pub async fn before_agent_start<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> BeforeAgentStartEvent<'e> + Send,
    ) -> AgentStartChanges {
        const EVENT: HookEvent = HookEvent::BeforeAgentStart;
        let mut changes = AgentStartChanges::default();
        if !self.wants(EVENT) {
            return changes;
        }
        let mut event = event();
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.before_agent_start(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) => {
                    changes.messages.extend(answer.message);
                    if let Some(prompt) = answer.system_prompt {
                        event.system_prompt.clone_from(&prompt);
                        changes.system_prompt = Some(prompt);
                    }
                }
                Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return AgentStartChanges::default(),
            }
        }
        changes
    }

    /// Before a request: each hook sees the messages that the one before left. `None`: they stay as they are.
    pub async fn context<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> ContextEvent<'e> + Send,
    ) -> Option<Vec<RawJson<'static>>> {
        const EVENT: HookEvent = HookEvent::Context;
        if !self.wants(EVENT) {
            return None;
        }
        let mut event = event();
        let mut changed = None;
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.context(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) => {
                    if let Some(messages) = answer.messages {
                        event.messages.clone_from(&messages);
                        changed = Some(messages);
                    }
                }
                Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return None,
            }
        }
        changed
    }

    /// Before a call of a tool: the first block ends the questions. A hook that fails blocks too, and so does a cancel:
    /// what nobody allowed is not run.
    pub async fn tool_call<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> ToolCallEvent<'e> + Send,
    ) -> ToolVerdict {
        const EVENT: HookEvent = HookEvent::ToolCall;
        if !self.wants(EVENT) {
            return ToolVerdict::Run;
        }
        let event = event();
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.tool_call(&event, &own);
            let reason = match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) if answer.block => answer
                    .reason
                    .unwrap_or_else(|| format!("Blocked by hook {}", hook.path())),
                Ok(_) => continue,
                Err(NoAnswer::Failed(error)) => format!("Hook {} failed: {error}", hook.path()),
                Err(NoAnswer::Cancelled) => "Cancelled before a hook allowed the call".to_owned(),
            };
            return ToolVerdict::Block { reason };
        }
        ToolVerdict::Run
    }

    /// After a call of a tool: each hook sees what the one before left; fields that are set count.
    pub async fn tool_result<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> ToolResultEvent<'e> + Send,
    ) -> ToolResultAnswer {
        const EVENT: HookEvent = HookEvent::ToolResult;
        let mut all = ToolResultAnswer::default();
        if !self.wants(EVENT) {
            return all;
        }
        let mut event = event();
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.tool_result(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) => {
                    if let Some(content) = answer.content {
                        event.content = content.clone();
                        all.content = Some(content);
                    }
                    if let Some(details) = answer.details {
                        event.details = Some(details.clone());
                        all.details = Some(details);
                    }
                    if let Some(is_error) = answer.is_error {
                        event.is_error = is_error;
                        all.is_error = Some(is_error);
                    }
                }
                Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return ToolResultAnswer::default(),
            }
        }
        all
    }

    /// When the user typed something: each hook sees the text that the one before left; the first that has done with
    /// it ends the questions.
    pub async fn input<'e>(
        &self,
        cx: &HookContext,
        event: impl FnOnce() -> InputEvent<'e> + Send,
    ) -> InputFate {
        const EVENT: HookEvent = HookEvent::Input;
        if !self.wants(EVENT) {
            return InputFate::Unchanged;
        }
        let mut event = event();
        let mut is_changed = false;
        for hook in self.wanting(EVENT) {
            let own = cx.for_one_hook();
            let asked = hook.input(&event, &own);
            match self.ask(&**hook, EVENT, cx, &own, asked).await {
                Ok(answer) => match answer.action {
                    InputAction::Handled => return InputFate::Handled,
                    InputAction::Continue => {}
                    InputAction::Transform => {
                        is_changed |= answer.text.is_some() || answer.images.is_some();
                        event.text = answer.text.unwrap_or(event.text);
                        event.images = answer.images.unwrap_or(event.images);
                    }
                },
                Err(NoAnswer::Failed(_)) => {}
                Err(NoAnswer::Cancelled) => return InputFate::Unchanged,
            }
        }
        if !is_changed {
            return InputFate::Unchanged;
        }
        InputFate::Changed {
            text: event.text,
            images: event.images.into_iter().map(RawJson::into_owned).collect(),
        }
    }
}

/// Events that are only told.
macro_rules! told {
    ($($(#[$doc:meta])* $name:ident: $variant:ident($payload:ident $(<$life:lifetime>)?);)+) => {
        impl HookRunner {$(
            $(#[$doc])*
            pub async fn $name $(<$life>)? (
                &self,
                cx: &HookContext,
                event: impl FnOnce() -> $payload $(<$life>)? + Send,
            ) {
                const EVENT: HookEvent = HookEvent::$variant;
                if !self.wants(EVENT) {
                    return;
                }
                let event = event();
                for hook in self.wanting(EVENT) {
                    let own = cx.for_one_hook();
                    let asked = hook.$name(&event, &own);
                    if let Err(NoAnswer::Cancelled) = self.ask(&**hook, EVENT, cx, &own, asked).await {
                        return;
                    }
                }
            }
        )+}
    };
}

told! {
    /// Tells that a session begins to be used.
    session_start: SessionStart(SessionStartEvent<'e>);
    /// Tells that another session took the place of the one before.
    session_switch: SessionSwitch(SessionSwitchEvent<'e>);
    /// Tells that the session is left.
    session_shutdown: SessionShutdown(SessionShutdownEvent<'e>);
    /// Tells that a run has ended.
    agent_end: AgentEnd(AgentEndEvent<'e>);
    /// Tells that a compaction is in the session.
    session_compact: SessionCompact(SessionCompactEvent<'e>);
    /// Tells that a move in the tree was made.
    session_tree: SessionTree(SessionTreeEvent<'e>);
    /// Tells that nothing is left to do.
    agent_settled: AgentSettled(AgentSettledEvent);
}

impl HookContext {
    /// The same, with a signal that can be given to one hook alone.
    fn for_one_hook(&self) -> Self {
        Self {
            signal: self.signal.child_token(),
            ..self.clone()
        }
    }
}

impl fmt::Debug for HookRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.hooks.iter().map(|hook| hook.path()))
            .finish()
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
