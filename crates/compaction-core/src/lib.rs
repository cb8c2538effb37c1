#![doc = include_str!("../README.md")]

pub mod accounting;
pub mod cut_point;
pub mod decide;
pub mod extractive;
pub mod file_ops;
pub mod inert;
pub mod livelock;
mod open_errors;
pub mod prompts;
pub mod redact;
pub mod remote;
pub mod settings;
pub mod summary;
#[cfg(test)]
mod testing;
mod text;
pub mod verbatim;
