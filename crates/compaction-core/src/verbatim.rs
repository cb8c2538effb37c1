//! Verbatim line compaction (seed 002): lines are deleted or stay byte for byte, nothing is rewritten.
//!
//! A [`Region`] holds the lines with their origin beside the text, [`ranges`] turns a planner's answer into
//! [`ValidatedRanges`], and [`reconstruct()`] deletes them and leaves `(filtered N lines)` in their place.

pub mod diagnostic;
pub mod finish;
pub mod keep_context;
pub mod ladder;
pub mod line;
pub mod line_set;
pub mod marker;
mod model_free;
mod numbered;
pub mod outcome;
pub mod parameters;
pub mod plan;
pub mod prepare;
pub mod provenance;
pub mod ranges;
pub mod reconstruct;
pub mod request;
pub mod serialize;
pub mod view;

pub use finish::{
    Demand, DroppedLine, NotSmaller, OverrideError, PROMPT_VERSION, Planner, RangePlan, Rung, TailFate,
    VerbatimCompaction, finish, finish_override,
};
pub use ladder::{
    Attempt, Candidate, Climb, Credentials, FailedAttempt, Ladder, LastRung, RangePlanError, Step, estimate,
};
pub use line::{
    Author, EarlierOrigin, Line, LinePart, Message, MessageIndex, Region, RegionBuilder, RegionTooLarge,
    SectionKind, SectionText,
};
pub use line_set::{LineRange, LineSet};
pub use outcome::{CallFailure, Category, Outcome, Retries, outcome};
pub use parameters::{BadParameter, DEFAULT_QUERY, ParameterLayer, Parameters, QuerySource, Share};
pub use plan::{ExtractiveRanges, extractive};
pub use prepare::{Nothing, Preparation, SmallRegion, prepare, prepare_with};
pub use provenance::{Provenance, ProvenanceError};
pub use ranges::{RawRange, RecordsError, ValidatedRanges, parse_records, print_records, recover_records};
pub use reconstruct::{Reconstruction, Removed, VerbatimStats, reconstruct};
pub use request::RangePrompts;
pub use view::View;
