//! The extractive planner: chooses the lines to keep without a model.
//!
//! It covers, line by line, the references that an agent is most likely to need again: paths, identifiers,
//! error codes, quoted literals and rare words. [`balanced`] ranks the lines of a region, [`plan`] packs them
//! into a target. Integers only, no randomness: one input has one result.

pub mod anchors;
mod error_line;
mod floors;
mod focus;
mod kept_lines;
mod need;
pub mod pack;
mod plan;
mod rank;

pub(crate) use error_line::is_error as is_error_line;
pub use floors::{Dropped, FloorInput, FloorKind, Floors};
pub use pack::{Packed, Target};
pub use plan::{ExtractivePlan, plan};
pub use rank::{Ranking, balanced};
