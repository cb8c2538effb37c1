//! Stopping what is in progress, or a part of it (spec "Orchestrator and clients", 10.1; R11).

use std::time::Duration;

use super::AgentSession;
use crate::shared::{OperationKind, Part};

impl AgentSession {
    /// Cancels whatever is in progress. Messages that wait stay.
    pub fn abort(&self) {
        self.shared.abort();
    }

    /// Cancels the compaction in progress and what is prepared beside the agent, and nothing else. Says whether there was
    /// one.
    pub fn abort_compaction(&self) -> bool {
        let ahead = self.shared.stop_ahead();
        if let Some(current) = &*self.shared.current()
            && current.kind == OperationKind::Compact
        {
            // All of it is the compaction, also before the plan is begun.
            current.cancel.cancel();
            return true;
        }
        self.shared.stop(Part::Compaction) || self.shared.stop(Part::Handoff) || ahead
    }

    /// Ends the wait before a retry; the retry does not happen. Says whether there was one.
    pub fn abort_retry(&self) -> bool {
        self.shared.stop(Part::Retry)
    }

    /// Cancels the summary of a branch. Says whether there was one.
    pub fn abort_branch_summary(&self) -> bool {
        self.shared.stop(Part::BranchSummary)
    }

    /// Cancels the handoff in progress. Says whether there was one.
    pub fn abort_handoff(&self) -> bool {
        self.shared.stop(Part::Handoff)
    }

    /// Waits until nothing is in progress.
    pub async fn wait_for_idle(&self) {
        self.shared.wait_for_idle().await;
    }

    /// Waits until nothing is in progress, but not longer than this. Says whether it is so.
    pub async fn wait_for_idle_within(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.wait_for_idle()).await.is_ok()
    }
}
