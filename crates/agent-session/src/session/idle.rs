//! Compacting a session that nobody uses (seed 000, "Triggers"; spec "Orchestrator and clients", 3.8).

use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::AgentSession;
use crate::event::Event;

/// Keeps an eye on an idle session until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct IdleWatch(AbortHandle);

impl Drop for IdleWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl AgentSession {
    /// Compacts the session whenever it has been idle for as long as `compaction.idleTimeoutSeconds` says, if
    /// `compaction.idleEnabled` says so. `may` is asked right before that: a host says no while somebody types.
    ///
    /// Must be called within a runtime.
    pub fn watch_idle(&self, may: impl Fn() -> bool + Send + 'static) -> IdleWatch {
        let session = self.clone();
        let task = tokio::spawn(async move { session.watch(may).await });
        IdleWatch(task.abort_handle())
    }

    async fn watch(self, may: impl Fn() -> bool) {
        let mut events = self.subscribe();
        let mut deadline: Option<Instant> = None;
        loop {
            let due = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = events.recv() => match event.as_deref() {
                    None => return,
                    Some(Event::AgentSettled) => {
                        deadline = self.idle_time().await.map(|time| Instant::now() + time);
                    }
                    // What begins or has just been compacted is not idle.
                    Some(Event::AgentStart | Event::CompactionStart(_) | Event::CompactionEnd(_)) => deadline = None,
                    Some(_) => {}
                },
                () = due => {
                    deadline = None;
                    if may() && let Err(error) = self.compact_idle().await {
                        tracing::warn!(%error, "the idle session could not be compacted");
                    }
                }
            }
        }
    }

    /// How long the session must lie idle; `None`: it is left alone.
    async fn idle_time(&self) -> Option<Duration> {
        let core = self.core.lock().await;
        let settings = &core.options.settings.compaction;
        settings
            .idle_enabled
            .then(|| Duration::from_secs_f64(settings.idle_timeout()))
    }
}
