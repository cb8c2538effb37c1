#![doc = include_str!("../README.md")]

mod derived;
mod draft;
pub mod entry;
pub mod export;
pub mod fold;
mod head;
pub mod import;
pub mod json;
pub mod llm;
pub mod log;
pub mod message;
pub mod model_call;
#[cfg(any(test, feature = "notation"))]
pub mod notation;
pub mod search;
pub mod tail;
#[cfg(test)]
mod testing;
pub mod text;
mod time;
pub mod tokens;
pub mod tree;
mod units;

pub use draft::{Author, CompactionDraft, Display, EntryDraft, Envelope, HeaderDraft};
pub use units::{ByteLen, EntryId, EntryIx, LineNumber, Tokens};
