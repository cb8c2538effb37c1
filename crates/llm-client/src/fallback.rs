//! A chain of models for the turns of an agent: who answers next when one fails (spec "Orchestrator and clients",
//! 8.4). Plain data: the caller sends the requests and knows the time.
//!
//! [`Candidates`](crate::Candidates) does the same below one call, for summaries and plans.

use std::fmt::{self, Write as _};
use std::num::NonZeroU32;
use std::time::Duration;

use foldline_session_model::model_call::{ErrorClass, ModelRef, OtherCause, ReasoningEffort, TransientCause};

use crate::LlmError;
use crate::classify::TransportFacts;
use crate::retry::turn::FIRST_EVENT_TIMEOUT;

/// Why an attempt of a chain failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FallbackTrigger {
    /// Credit, budget or plan used up.
    Quota,
    /// The credentials were refused; others may pass.
    Auth,
    /// The account may not do this, whatever its credentials.
    Forbidden,
    /// Too much for now.
    RateLimit,
    /// The provider failed or did not begin to answer.
    Server,
    /// The model or the request is at fault.
    Model,
    /// Nothing typed tells.
    Unknown,
}

impl FallbackTrigger {
    /// Whether the same model may pass if it is asked again.
    pub const fn may_pass(self) -> bool {
        matches!(self, Self::RateLimit | Self::Server | Self::Unknown)
    }

    /// Whether other credentials of the same provider may help.
    pub const fn rotates_credentials(self) -> bool {
        matches!(self, Self::Quota | Self::Auth | Self::RateLimit)
    }
}

/// What the typed facts of a failure say; texts are not read here.
pub fn fallback_trigger(facts: &TransportFacts<'_>) -> FallbackTrigger {
    let has = |known: &[&str]| {
        facts
            .codes
            .iter()
            .any(|code| known.iter().any(|known| known.eq_ignore_ascii_case(code)))
    };
    if has(&[
        "insufficient_quota",
        "quota_exceeded",
        "quota_exhausted",
        "usage_limit_reached",
        "usage_not_included",
        "out_of_credits",
        "billing_error",
    ]) || facts.status == Some(402)
    {
        FallbackTrigger::Quota
    } else if facts.status == Some(401)
        || has(&[
            "authentication_error",
            "invalid_api_key",
            "invalid_token",
            "token_expired",
            "unauthorized",
        ])
    {
        FallbackTrigger::Auth
    } else if has(&["forbidden"]) {
        FallbackTrigger::Forbidden
    } else if facts.status == Some(403) {
        FallbackTrigger::Auth
    } else if facts.status == Some(429)
        || has(&[
            "rate_limit",
            "rate_limit_error",
            "rate_limit_exceeded",
            "too_many_requests",
        ])
    {
        FallbackTrigger::RateLimit
    } else if matches!(facts.status, Some(500..=599))
        || has(&[
            FIRST_EVENT_TIMEOUT,
            "server_error",
            "api_error",
            "internal_server_error",
            "overloaded_error",
            "server_is_overloaded",
        ])
    {
        FallbackTrigger::Server
    } else {
        FallbackTrigger::Unknown
    }
}

/// What an error at hand says.
pub fn fallback_trigger_of(error: &LlmError) -> FallbackTrigger {
    match error.class {
        ErrorClass::Quota => FallbackTrigger::Quota,
        ErrorClass::Auth if is_forbidden(error) => FallbackTrigger::Forbidden,
        ErrorClass::Auth => FallbackTrigger::Auth,
        ErrorClass::RateLimit => FallbackTrigger::RateLimit,
        ErrorClass::Transient(
            TransientCause::Server | TransientCause::Overloaded | TransientCause::FirstEventTimeout,
        ) => FallbackTrigger::Server,
        ErrorClass::Other(OtherCause::InvalidRequest | OtherCause::NotFound | OtherCause::Configuration) => {
            FallbackTrigger::Model
        }
        _ => FallbackTrigger::Unknown,
    }
}

fn is_forbidden(error: &LlmError) -> bool {
    error
        .code
        .as_deref()
        .is_some_and(|code| code.eq_ignore_ascii_case("forbidden"))
}

/// A model of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainModel {
    /// The model.
    pub model: ModelRef,
    /// How hard it thinks; `Unset` leaves it to the session.
    pub reasoning: ReasoningEffort,
}

impl ChainModel {
    /// Reads `provider/model` or `provider/model:level`, with a level of reasoning as settings name it.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, reasoning) = match text.rsplit_once(':') {
            Some((name, level)) => match level_of(level) {
                Some(reasoning) => (name, reasoning),
                // Ids of models hold colons too (`qwen3:8b`).
                None => (text, ReasoningEffort::Unset),
            },
            None => (text, ReasoningEffort::Unset),
        };
        Some(Self {
            model: ModelRef::parse(name)?,
            reasoning,
        })
    }
}

/// Levels by name; the first name is the one that is shown.
const LEVELS: [(&str, ReasoningEffort); 7] = [
    ("off", ReasoningEffort::Off),
    ("minimal", ReasoningEffort::Minimal),
    ("low", ReasoningEffort::Low),
    ("medium", ReasoningEffort::Medium),
    ("high", ReasoningEffort::High),
    ("max", ReasoningEffort::Max),
    ("xhigh", ReasoningEffort::Max),
];

fn level_of(name: &str) -> Option<ReasoningEffort> {
    LEVELS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, level)| *level)
}

impl fmt::Display for ChainModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match LEVELS.iter().find(|(_, level)| *level == self.reasoning) {
            Some((name, _)) => write!(f, "{}:{name}", self.model),
            None => write!(f, "{}", self.model),
        }
    }
}

/// Whether a chain returns to its first model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RevertPolicy {
    /// Once the first model may be asked again.
    #[default]
    CooldownExpiry,
    /// Never by itself.
    Never,
}

/// What follows a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainStep {
    /// The same model again, after [`fallback_delay`](crate::fallback_delay).
    Retry,
    /// Another model, at once.
    Advance(FallbackSwitch),
    /// No model is left.
    Exhausted,
}

/// A change of the model that answers, as listeners are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackSwitch {
    /// The model that answered so far.
    pub from: ChainModel,
    /// The one that answers from now on.
    pub to: ChainModel,
    /// Why; `None` for the return to the first model.
    pub reason: Option<FallbackTrigger>,
    /// The position of `to` in the chain.
    pub active_index: usize,
    /// The models of the chain.
    pub chain_length: usize,
    /// The attempts of this turn so far.
    pub attempts_used: u32,
}

/// Models in the order in which they answer.
///
/// An attempt is charged when it starts. A start that came to nothing (an overflow, which another model would
/// meet too) is given back. Each model may once have an attempt restored, when its credentials were replaced.
#[derive(Clone, Debug)]
pub struct FallbackChain {
    entries: Vec<Entry>,
    active: usize,
    max_attempts: NonZeroU32,
    revert: RevertPolicy,
    /// When the first model may be asked again.
    head_ready_at: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Entry {
    model: ChainModel,
    attempts_used: u32,
    tried: bool,
    restored: bool,
    left_out: bool,
}

impl FallbackChain {
    /// The attempts of each model that settings give by default.
    pub const MAX_ATTEMPTS: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

    /// A chain that begins with `head`; a model that is named twice with the same level is in it once.
    pub fn new(
        head: ChainModel,
        fallbacks: impl IntoIterator<Item = ChainModel>,
        max_attempts: NonZeroU32,
        revert: RevertPolicy,
    ) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for model in std::iter::once(head).chain(fallbacks) {
            if entries.iter().all(|known| known.model != model) {
                entries.push(Entry {
                    model,
                    attempts_used: 0,
                    tried: false,
                    restored: false,
                    left_out: false,
                });
            }
        }
        Self {
            entries,
            active: 0,
            max_attempts,
            revert,
            head_ready_at: None,
        }
    }

    /// The model that answers now.
    pub fn active(&self) -> &ChainModel {
        &self.entry().model
    }

    /// Its position.
    pub const fn active_index(&self) -> usize {
        self.active
    }

    /// The attempts of this turn so far.
    pub fn attempts_used(&self) -> u32 {
        self.entries.iter().map(|entry| entry.attempts_used).sum()
    }

    /// A new prompt of the user: all attempts are free again, and models that were left out are asked again.
    pub fn begin_turn(&mut self) {
        for entry in &mut self.entries {
            entry.attempts_used = 0;
            entry.tried = false;
            entry.restored = false;
            entry.left_out = false;
        }
    }

    /// Charges the active model with an attempt.
    pub fn start_attempt(&mut self) {
        let entry = self.entry_mut();
        entry.attempts_used = entry.attempts_used.saturating_add(1);
        entry.tried = true;
    }

    /// Gives the newest attempt back.
    pub fn discard_start(&mut self) {
        let entry = self.entry_mut();
        entry.attempts_used = entry.attempts_used.saturating_sub(1);
    }

    /// Credentials of the active model were replaced: one more attempt, once per turn and model. `true` means
    /// that the request is to be sent again at once.
    pub fn restore_after_rotation(&mut self) -> bool {
        let entry = self.entry_mut();
        if entry.restored {
            return false;
        }
        entry.restored = true;
        entry.attempts_used = entry.attempts_used.saturating_sub(1);
        true
    }

    /// Leaves a model out for this turn, with all its levels of reasoning: it has no credentials, or a failure
    /// showed that it cannot answer.
    pub fn leave_out(&mut self, model: &ModelRef) {
        for entry in &mut self.entries {
            entry.left_out |= entry.model.model == *model;
        }
    }

    /// What follows the failure of the attempt that was started last. `ready_at` is when the model may be asked
    /// again, on the caller's clock.
    ///
    /// A model that fails for a reason that stays is left out at once, with all its levels of reasoning.
    pub fn on_attempt_failure(&mut self, trigger: FallbackTrigger, ready_at: Duration) -> ChainStep {
        if trigger.may_pass() && self.entry().attempts_used < self.max_attempts.get() {
            return ChainStep::Retry;
        }
        if !trigger.may_pass() {
            let failed = self.entry().model.model.clone();
            self.leave_out(&failed);
        }
        if self.active == 0 {
            self.head_ready_at = Some(ready_at);
        }
        let limit = self.max_attempts.get();
        let next = self
            .entries
            .iter()
            .enumerate()
            .skip(self.active + 1)
            .find(|(_, entry)| !entry.left_out && entry.attempts_used < limit)
            .map(|(index, _)| index);
        match next {
            Some(index) => ChainStep::Advance(self.switch_to(index, Some(trigger))),
            None => ChainStep::Exhausted,
        }
    }

    /// Returns to the first model when its time has come. Asked before a prompt, not within a turn.
    pub fn revert(&mut self, now: Duration) -> Option<FallbackSwitch> {
        let due = self.revert == RevertPolicy::CooldownExpiry
            && self.active != 0
            && self.head_ready_at.is_none_or(|ready| now >= ready);
        due.then(|| {
            self.head_ready_at = None;
            self.switch_to(0, None)
        })
    }

    /// The error of a chain whose models all failed.
    pub fn exhausted_message(&self) -> String {
        let names = |tried: bool| {
            let mut names = String::new();
            for entry in self.entries.iter().filter(|entry| entry.tried == tried) {
                let separator = if names.is_empty() { "" } else { ", " };
                // Writing to a String cannot fail.
                let _ok = write!(names, "{separator}{}", entry.model);
            }
            if names.is_empty() {
                names.push_str("none");
            }
            names
        };
        format!(
            "Model fallback chain exhausted; models tried: {}; models skipped: {}",
            names(true),
            names(false)
        )
    }

    fn switch_to(&mut self, index: usize, reason: Option<FallbackTrigger>) -> FallbackSwitch {
        let from = self.entry().model.clone();
        self.active = index;
        FallbackSwitch {
            from,
            to: self.entry().model.clone(),
            reason,
            active_index: index,
            chain_length: self.entries.len(),
            attempts_used: self.attempts_used(),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "`active` is the position of an entry, and entries never go"
    )]
    fn entry(&self) -> &Entry {
        &self.entries[self.active]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "`active` is the position of an entry, and entries never go"
    )]
    fn entry_mut(&mut self) -> &mut Entry {
        &mut self.entries[self.active]
    }
}

#[cfg(test)]
mod tests;
