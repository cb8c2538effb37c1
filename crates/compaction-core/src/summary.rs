//! Summaries: old messages become notes, recent ones stay (seeds 000 and 001, "Compaction pipeline").
//!
//! [`prepare()`] cuts the context, [`SummaryJob`] gives the requests and turns their replies into the entry, and
//! [`extractive()`] fills the same form without a model.

mod assemble;
mod bound;
mod chunk;
mod extractive;
mod from_prompt;
mod gate;
mod job;
mod prepare;
mod reply;
mod sections;
mod stored;
mod transcript;
mod user_messages;

pub use assemble::{CommitOptions, Dropped, SummaryCompaction, SummaryError, stored_cap};
pub use bound::{Elision, bounded};
pub use extractive::{EXTRACTED, Extract, extracted_notes, extractive};
pub use from_prompt::PromptParts;
pub use job::{JobOptions, PlanError, Purpose, SummaryJob, SummaryRequest};
pub use prepare::{Nothing, Preparation, PrepareOptions, Window, prepare};
pub use reply::{CheckedNotes, checked_notes};
pub use stored::{StoredSummary, handed_on};
pub use transcript::{Caps, Part, Transcript, serialize_conversation, transcript};
pub use user_messages::UserMessage;

/// Stands in a merged summary where nothing came before the split turn.
pub const NO_PRIOR_HISTORY: &str = "No prior history.";
/// The heading of the part about the beginning of a split turn (seed 000, "Split-turn handling").
pub const TURN_CONTEXT: &str = "**Turn Context (split turn):**";

#[cfg(test)]
mod tests;
