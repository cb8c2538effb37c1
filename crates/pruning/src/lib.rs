#![doc = include_str!("../README.md")]

mod arguments;
pub mod cost;
mod digest;
mod mask;
mod mentions;
mod notice;
mod original;
mod pictures;
mod plan;
mod policy;
mod reminders;
mod rewrite;
mod staleness;
mod text;
mod turn_fence;
mod view;

pub use arguments::{ArgumentPlan, PrunedArguments, PrunedCall, plan_arguments};
pub use mentions::{MentionPlan, PrunedMention, plan_mentions};
pub use original::Original;
pub use pictures::mask_pictures;
pub use plan::{Outcome, Plan, Replacement, ToolTotal, Why, plan, stale};
pub use policy::{Digests, Originals, Policy, ReferenceBudget, Staleness};
pub use reminders::{MAINTENANCE_REMINDERS, ReminderPlan, SUPERSEDED, VOLATILE_CONTEXT, plan_reminders};
pub use rewrite::{Rewrite, RewriteError, RewrittenEntry, Stamp};
pub use view::{Item, Masking, View};
