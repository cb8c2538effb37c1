//! At which events hooks are asked.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event that hooks are asked at (spec "Orchestrator and clients", 13.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookEvent {
    /// A session begins to be used.
    SessionStart,
    /// Another session is about to take the place of this one.
    SessionBeforeSwitch,
    /// Another session took the place of the one before.
    SessionSwitch,
    /// The session is left.
    SessionShutdown,
    /// The user typed something.
    Input,
    /// A prompt is about to run.
    BeforeAgentStart,
    /// A request to the model is made.
    Context,
    /// The model wants to call a tool.
    ToolCall,
    /// A tool has answered.
    ToolResult,
    /// A run has ended.
    AgentEnd,
    /// Nothing is left to do: retries, maintenance and continuations have ended too.
    AgentSettled,
    /// A compaction is planned and not made yet.
    SessionBeforeCompact,
    /// The request for a summary is made.
    #[serde(rename = "session.compacting")]
    SessionCompacting,
    /// A compaction is in the session.
    SessionCompact,
    /// A move in the tree is planned and not made yet.
    SessionBeforeTree,
    /// A move in the tree was made.
    SessionTree,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::SessionStart,
        Self::SessionBeforeSwitch,
        Self::SessionSwitch,
        Self::SessionShutdown,
        Self::Input,
        Self::BeforeAgentStart,
        Self::Context,
        Self::ToolCall,
        Self::ToolResult,
        Self::AgentEnd,
        Self::AgentSettled,
        Self::SessionBeforeCompact,
        Self::SessionCompacting,
        Self::SessionCompact,
        Self::SessionBeforeTree,
        Self::SessionTree,
    ];

    /// The name in settings and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::SessionBeforeSwitch => "session_before_switch",
            Self::SessionSwitch => "session_switch",
            Self::SessionShutdown => "session_shutdown",
            Self::Input => "input",
            Self::BeforeAgentStart => "before_agent_start",
            Self::Context => "context",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::AgentEnd => "agent_end",
            Self::AgentSettled => "agent_settled",
            Self::SessionBeforeCompact => "session_before_compact",
            Self::SessionCompacting => "session.compacting",
            Self::SessionCompact => "session_compact",
            Self::SessionBeforeTree => "session_before_tree",
            Self::SessionTree => "session_tree",
        }
    }

    /// How long a hook may take when it says nothing about that itself; `None`: until the work is cancelled. Hooks
    /// before a compaction may ask a model, and a tool waits for whoever has to allow it.
    pub const fn time_limit(self) -> Option<Duration> {
        match self {
            Self::SessionBeforeCompact | Self::SessionBeforeTree | Self::ToolCall => None,
            _ => Some(Duration::from_secs(30)),
        }
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
