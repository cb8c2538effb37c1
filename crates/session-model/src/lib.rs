#![doc = include_str!("../README.md")]

mod units;

pub use units::{ByteLen, EntryId, EntryIx, LineNumber, Tokens};
