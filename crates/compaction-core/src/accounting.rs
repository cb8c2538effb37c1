//! How large a context is, and how large it may become (D9, D10; spec "Compaction core", 2 and 4).

mod context_size;
mod emergency;
mod keep;
mod limits;
mod maintenance;

pub use context_size::{ContextSize, SizeSource, correction_ratio, measured_overhead, usage_tokens};
pub use emergency::{EmergencyLimits, EmergencyReason, ResourceSample};
pub use keep::{KeepWindow, RatioUse};
pub use limits::{Clamp, Limits};
pub use maintenance::{MaintenancePrune, prune_pays};
