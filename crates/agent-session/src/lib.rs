#![doc = include_str!("../README.md")]

pub mod hooks;
pub mod settings;
pub mod tool;
pub mod tools;
mod ask;
mod compaction;
pub mod continuation;
mod core;
pub mod event;
mod journal;
mod maintenance;
mod message;
mod queue;
pub mod retry;
mod run;
mod session;
mod shared;
mod state_lines;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tool_calls;
pub mod work;

pub use compaction::Extras;
pub use core::{Interrupt, LineSettings, Models, PlannerChoice, SessionOptions, SessionSettings};
pub use journal::{CommitError, LoadSessionError};
pub use queue::{Delivery, QueueMode, Queued};
pub use run::{FinalAnswer, RunReport};
pub use session::{AgentSession, CompactOptions, Prompt, Prompted, SessionError, SessionState};
pub use shared::OperationKind;
