#![doc = include_str!("../README.md")]

mod abandoned;
mod extractive;
mod job;
mod navigation;
mod preparation;
mod stored;
#[cfg(test)]
mod testing;

pub use abandoned::Abandoned;
pub use extractive::extractive;
pub use job::{BranchSummaryJob, Instructions, JobOptions, PlanError};
pub use navigation::Navigation;
pub use preparation::{Budget, LeftOut, LeftOutReason, Preparation, PrepareOptions, prepare};
pub use stored::BranchSummary;
