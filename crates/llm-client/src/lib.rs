#![doc = include_str!("../README.md")]

mod api;
mod candidates;
mod catalogue;
pub mod classify;
pub mod endpoint;
mod error;
mod event;
mod language_model;
mod provider;
mod remote;
mod retry;
mod sse;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;
pub mod transport;

pub use api::{Decoder, UNKNOWN_MAX_OUTPUT, WireRequest, encode};
pub use candidates::{Advance, CandidateReply, Candidates, CandidatesError, LONG_WAIT};
pub use catalogue::{Catalogue, CatalogueError, Provider};
pub use error::LlmError;
pub use event::{BlockKind, LlmEvent};
pub use language_model::{EventStream, LanguageModel};
pub use provider::{ProviderModel, StreamLimits};
pub use remote::{
    Compacted, CompactedBy, NativeCompaction, NativeForm, NativeHistory, RemoteSummary, compact_or_summarise,
    neutralise,
};
pub use retry::{Jitter, RetryObserver, RetryPolicy, RetryingModel, planned_waits};
pub use sse::{MAX_LINE, SseEvent, decode as decode_sse};
