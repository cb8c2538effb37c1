#![doc = include_str!("../README.md")]

mod ask;
mod compaction;
pub mod continuation;
mod core;
mod editing;
pub mod event;
mod handoff;
pub mod hooks;
mod journal;
mod maintenance;
mod message;
mod navigate;
mod patience;
mod queue;
pub mod retry;
pub mod rpc;
mod run;
mod session;
pub mod settings;
mod shared;
mod state_lines;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod tool;
mod tool_calls;
pub mod tools;
pub mod work;

pub use compaction::{BackupChoice, Extras, Prepared};
pub use core::{
    BranchQuestion, HandoffCopy, Interrupt, LineSettings, MidTurn, Models, PlannerChoice, SessionOptions,
    SessionSettings, SoftLine,
};
pub use editing::{EditMode, PruneOptions, Pruned, Undone, UndoneHow, UndoneKind};
pub use handoff::{HandedOff, HandoffDocument, HandoffOptions};
pub use journal::{CommitError, LoadSessionError};
pub use navigate::{BranchSummaryChoice, NavigateOptions, Navigated};
pub use queue::{Delivery, QueueMode, Queued};
pub use run::{FinalAnswer, RunReport};
pub use session::{
    AgentSession, CompactOptions, IdleWatch, Prompt, Prompted, Renamed, SessionError, SessionState, Switch,
};
pub use shared::OperationKind;
