//! The binary from the outside: one test program, one module for each command.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed step is a failed test, and tests make files"
)]

mod chat;
mod check;
mod compact;
mod config;
mod documents;
mod door;
mod edges;
mod errors;
mod files;
mod foreign;
mod handoff;
mod housekeeping;
mod model;
mod output;
mod prune;
mod read;
mod recall;
mod report;
mod rpc;
mod run;
mod serve;
mod server;
mod services;
mod support;
mod titles;
mod tree;
