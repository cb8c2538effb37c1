//! The cases of spec "Pruning", 13, each named by its number there. A name with `defect_N` differs from the system that
//! the number comes from, by defect N of section 14.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]

mod arguments;
mod gate;
mod maintenance;
mod mentions;
mod redteam;
mod staleness;
mod support;
