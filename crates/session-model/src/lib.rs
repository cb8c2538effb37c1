#![doc = include_str!("../README.md")]

pub mod model_call;
mod units;

pub use units::{ByteLen, EntryId, EntryIx, LineNumber, Tokens};
