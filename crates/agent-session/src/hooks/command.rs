//! Hooks that are programs: one JSON object in, one out or nothing (docs/hooks.md).
//!
//! They come from settings, and only from those of the user and of projects that the user trusts (design page,
//! D12): [`Settings`](crate::settings::Settings) holds no others.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::process::{Finished, Program, minimal_environment};
use super::{
    AgentEndEvent, AgentSettledEvent, AgentStartAnswer, BeforeAgentStartEvent, BeforeCompactAnswer,
    BeforeCompactEvent, BeforeSwitchAnswer, BeforeSwitchEvent, BeforeTreeAnswer, BeforeTreeEvent,
    CompactingAnswer, CompactingEvent, ContextAnswer, ContextEvent, HookContext, HookError, HookEvent, Hooks,
    InputAnswer, InputEvent, SessionCompactEvent, SessionShutdownEvent, SessionStartEvent,
    SessionSwitchEvent, SessionTreeEvent, ToolCallAnswer, ToolCallEvent, ToolResultAnswer, ToolResultEvent,
};
use crate::settings::{HookSettings, Settings};

/// With this code a program blocks a call of a tool, and says why on its standard error.
const BLOCK: i32 = 2;

/// A hook that is a program.
#[derive(Clone, Debug)]
pub struct CommandHook {
    path: String,
    settings: HookSettings,
}

/// The hooks of settings, in the order of their names.
pub fn command_hooks(settings: &Settings) -> Vec<Arc<dyn Hooks>> {
    let hooks = settings.hooks.iter();
    hooks
        .map(|(name, settings)| Arc::new(CommandHook::new(name, settings.clone())) as Arc<dyn Hooks>)
        .collect()
}

/// What a program reads: the event, and where it happens.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'w, E> {
    r#type: HookEvent,
    session_id: &'w str,
    cwd: &'w std::path::Path,
    #[serde(flatten)]
    event: &'w E,
}

impl CommandHook {
    /// A hook of this name in the settings.
    pub fn new(name: &str, settings: HookSettings) -> Self {
        Self {
            path: format!("hooks.{name}"),
            settings,
        }
    }

    async fn run<E: Serialize + Sync>(
        &self,
        kind: HookEvent,
        event: &E,
        cx: &HookContext,
    ) -> Result<Finished, HookError> {
        let wire = Wire {
            r#type: kind,
            session_id: &cx.session_id,
            cwd: &cx.cwd,
            event,
        };
        let input = serde_json::to_vec(&wire).map_err(|e| HookError::Failed(e.to_string()))?;
        let mut environment = minimal_environment();
        environment.push(("FOLDLINE_HOOK_EVENT".into(), kind.name().into()));
        let program = Program {
            command: &self.settings.command,
            args: &self.settings.args,
            environment,
            cwd: &cx.cwd,
        };
        program.run(input).await
    }

    async fn answer<E: Serialize + Sync, T: DeserializeOwned + Default>(
        &self,
        kind: HookEvent,
        event: &E,
        cx: &HookContext,
    ) -> Result<T, HookError> {
        read_answer(&self.run(kind, event, cx).await?)
    }

    /// For events that take no answer: whatever a program that succeeds writes is fine.
    async fn tell<E: Serialize + Sync>(
        &self,
        kind: HookEvent,
        event: &E,
        cx: &HookContext,
    ) -> Result<(), HookError> {
        self.run(kind, event, cx).await?.succeeded()
    }
}

fn read_answer<T: DeserializeOwned + Default>(finished: &Finished) -> Result<T, HookError> {
    finished.succeeded()?;
    let output = finished.stdout.trim_ascii();
    if output.is_empty() {
        return Ok(T::default());
    }
    // A list would be read as the fields in order.
    if !output.starts_with(b"{") {
        return Err(HookError::Output("it is no JSON object".to_owned()));
    }
    serde_json::from_slice(output).map_err(|error| HookError::Output(error.to_string()))
}

#[async_trait]
impl Hooks for CommandHook {
    fn path(&self) -> &str {
        &self.path
    }

    fn events(&self) -> &[HookEvent] {
        &self.settings.events
    }

    fn time_limit(&self, event: HookEvent) -> Option<Duration> {
        self.settings
            .timeout_ms
            .map(Duration::from_millis)
            .or(event.time_limit())
    }

    async fn session_start(&self, event: &SessionStartEvent<'_>, cx: &HookContext) -> Result<(), HookError> {
        self.tell(HookEvent::SessionStart, event, cx).await
    }

    async fn session_before_switch(
        &self,
        event: &BeforeSwitchEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeSwitchAnswer, HookError> {
        self.answer(HookEvent::SessionBeforeSwitch, event, cx).await
    }

    async fn session_switch(
        &self,
        event: &SessionSwitchEvent<'_>,
        cx: &HookContext,
    ) -> Result<(), HookError> {
        self.tell(HookEvent::SessionSwitch, event, cx).await
    }

    async fn session_shutdown(
        &self,
        event: &SessionShutdownEvent<'_>,
        cx: &HookContext,
    ) -> Result<(), HookError> {
        self.tell(HookEvent::SessionShutdown, event, cx).await
    }

    async fn input(&self, event: &InputEvent<'_>, cx: &HookContext) -> Result<InputAnswer, HookError> {
        self.answer(HookEvent::Input, event, cx).await
    }

    async fn before_agent_start(
        &self,
        event: &BeforeAgentStartEvent<'_>,
        cx: &HookContext,
    ) -> Result<AgentStartAnswer, HookError> {
        self.answer(HookEvent::BeforeAgentStart, event, cx).await
    }

    async fn context(&self, event: &ContextEvent<'_>, cx: &HookContext) -> Result<ContextAnswer, HookError> {
        self.answer(HookEvent::Context, event, cx).await
    }

    async fn tool_call(
        &self,
        event: &ToolCallEvent<'_>,
        cx: &HookContext,
    ) -> Result<ToolCallAnswer, HookError> {
        let finished = self.run(HookEvent::ToolCall, event, cx).await?;
        if finished.status.code() == Some(BLOCK) {
            let reason = (!finished.stderr.is_empty()).then_some(finished.stderr);
            return Ok(ToolCallAnswer { block: true, reason });
        }
        read_answer(&finished)
    }

    async fn tool_result(
        &self,
        event: &ToolResultEvent<'_>,
        cx: &HookContext,
    ) -> Result<ToolResultAnswer, HookError> {
        self.answer(HookEvent::ToolResult, event, cx).await
    }

    async fn agent_end(&self, event: &AgentEndEvent<'_>, cx: &HookContext) -> Result<(), HookError> {
        self.tell(HookEvent::AgentEnd, event, cx).await
    }

    async fn agent_settled(&self, event: &AgentSettledEvent, cx: &HookContext) -> Result<(), HookError> {
        self.tell(HookEvent::AgentSettled, event, cx).await
    }

    async fn session_before_compact(
        &self,
        event: &BeforeCompactEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        self.answer(HookEvent::SessionBeforeCompact, event, cx).await
    }

    async fn session_compacting(
        &self,
        event: &CompactingEvent<'_>,
        cx: &HookContext,
    ) -> Result<CompactingAnswer, HookError> {
        self.answer(HookEvent::SessionCompacting, event, cx).await
    }

    async fn session_compact(
        &self,
        event: &SessionCompactEvent<'_>,
        cx: &HookContext,
    ) -> Result<(), HookError> {
        self.tell(HookEvent::SessionCompact, event, cx).await
    }

    async fn session_before_tree(
        &self,
        event: &BeforeTreeEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeTreeAnswer, HookError> {
        self.answer(HookEvent::SessionBeforeTree, event, cx).await
    }

    async fn session_tree(&self, event: &SessionTreeEvent<'_>, cx: &HookContext) -> Result<(), HookError> {
        self.tell(HookEvent::SessionTree, event, cx).await
    }
}

#[cfg(test)]
mod tests;
