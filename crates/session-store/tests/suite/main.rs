//! One suite of tests over both stores, and what only one of them can show.
#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod beside;
mod faults;
mod finding;
mod modes;
mod properties;
mod resuming;
mod shared;
mod support;
mod truncation;
