//! What hooks are told when sessions begin, end and take each other's place (spec "Orchestrator and clients", 13.1).

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::AgentSession;
use crate::hooks::{
    BeforeSwitchEvent, HookContext, HookRunner, SessionShutdownEvent, SessionStartEvent, SessionSwitchEvent,
    SwitchVerdict,
};

/// Why another session takes the place of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// A new one is begun.
    New,
    /// Another one is gone on with.
    Resume,
    /// A copy of this one's path is gone on with.
    Fork,
}

impl Switch {
    const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Resume => "resume",
            Self::Fork => "fork",
        }
    }
}

impl AgentSession {
    /// Tells hooks that a program begins to use the session.
    pub async fn tell_startup(&self) {
        self.tell_start("startup", None).await;
    }

    /// Tells hooks that the program ends.
    pub async fn tell_quit(&self) {
        self.tell_shutdown("quit", None).await;
    }

    /// Asks hooks whether another session may take the place of this one. `target` is its file, if there is one.
    pub async fn may_switch(&self, how: Switch, target: Option<&Path>) -> SwitchVerdict {
        let (hooks, cx) = self.hooks().await;
        hooks
            .session_before_switch(&cx, || BeforeSwitchEvent {
                reason: how.name(),
                target_session_file: target,
            })
            .await
    }

    /// Tells hooks that `new` took the place of this session.
    pub async fn tell_switched(&self, new: &Self, how: Switch) {
        let (old, target) = (self.path(), new.path());
        self.tell_shutdown(how.name(), Some(&target)).await;
        let (hooks, cx) = new.hooks().await;
        hooks
            .session_switch(&cx, || SessionSwitchEvent {
                reason: how.name(),
                previous_session_file: Some(&old),
            })
            .await;
        new.tell_start(how.name(), Some(&old)).await;
    }

    async fn tell_start(&self, reason: &str, previous: Option<&Path>) {
        let (hooks, cx) = self.hooks().await;
        hooks
            .session_start(&cx, || SessionStartEvent {
                reason,
                previous_session_file: previous,
            })
            .await;
    }

    async fn tell_shutdown(&self, reason: &str, target: Option<&Path>) {
        let (hooks, cx) = self.hooks().await;
        hooks
            .session_shutdown(&cx, || SessionShutdownEvent {
                reason,
                target_session_file: target,
            })
            .await;
    }

    /// The hooks, so that nothing waits for them that does not have to.
    async fn hooks(&self) -> (HookRunner, HookContext) {
        let core = self.core.lock().await;
        (
            core.options.hooks.clone(),
            core.hook_context(&CancellationToken::new()),
        )
    }
}
