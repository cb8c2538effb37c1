//! Every start has exactly one end (agent-session, 10.3): a checker for the events of a session.

use serde::{Deserialize, Serialize};

/// What has begun and not ended, and what was wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    open: Vec<(String, String)>,
    wrong: Vec<String>,
    seen: Vec<String>,
}

const BACKGROUND: &str = "background_compaction";

fn outlives_a_run(kind: &str) -> bool {
    kind == "handoff" || kind == BACKGROUND
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    #[serde(rename = "type")]
    name: String,
    tool_call_id: Option<String>,
    attempt: Option<u32>,
}

impl Pairs {
    /// Takes the next event in, and returns its name.
    pub(crate) fn see(&mut self, event: &impl Serialize) -> String {
        let json = serde_json::to_string(event).unwrap();
        let event: Named = serde_json::from_str(&json).unwrap();
        let key = event.tool_call_id.unwrap_or_default();
        if let Some(kind) = event.name.strip_suffix("_start") {
            // Several retries of one request end together.
            let goes_on = kind == "auto_retry" && event.attempt > Some(1);
            let is_open = self.open.iter().any(|open| open.0 == kind && open.1 == key);
            if is_open != goes_on {
                self.wrong
                    .push(format!("{kind} {key} began while it was open: {is_open}"));
            }
            if !is_open {
                self.open.push((kind.to_owned(), key));
            }
        } else if let Some(kind) = event.name.strip_suffix("_end") {
            match self.open.iter().position(|open| open.0 == kind && open.1 == key) {
                Some(at) => drop(self.open.remove(at)),
                None => self.wrong.push(format!("{kind} {key} ended and had not begun")),
            }
            if kind == "agent"
                && let Some(left) = self.open.iter().find(|open| !outlives_a_run(&open.0))
            {
                self.wrong.push(format!("the run ended before {left:?}"));
            }
        }
        if !matches!(event.name.as_str(), "message_update" | "queue_update") {
            self.seen.push(event.name.clone());
        }
        event.name
    }

    /// Checks what was seen, of a session that may be in the midst of something.
    pub(crate) fn check(&self) {
        assert!(self.wrong.is_empty(), "{:?} in {:?}", self.wrong, self.seen);
    }

    /// Checks what was seen, of a session that is idle.
    pub(crate) fn check_idle(&self) {
        self.check();
        // What is prepared beside the agent ends with the session.
        assert!(
            self.open.iter().all(|open| open.0 == BACKGROUND),
            "{:?} did not end in {:?}",
            self.open,
            self.seen
        );
    }
}
