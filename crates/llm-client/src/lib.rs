#![doc = include_str!("../README.md")]

mod api;
mod candidates;
mod catalogue;
pub mod classify;
pub mod endpoint;
mod error;
mod event;
mod fallback;
mod language_model;
mod provider;
mod remote;
mod retry;
mod sse;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;
pub mod transport;
mod window;

pub use api::{Decoder, UNKNOWN_MAX_OUTPUT, WireRequest, encode};
pub use candidates::{Advance, CandidateReply, Candidates, CandidatesError, LONG_WAIT, candidate_order};
pub use catalogue::{Catalogue, CatalogueError, PromotionRule, Provider};
pub use error::LlmError;
pub use event::{BlockKind, LlmEvent};
pub use fallback::{
    ChainModel, ChainStep, FallbackChain, FallbackSwitch, FallbackTrigger, RevertPolicy, fallback_trigger,
    fallback_trigger_of,
};
pub use language_model::{EventStream, LanguageModel};
pub use provider::{EMPTY_COMPLETION, ProviderModel, StreamLimits};
pub use remote::{NativeCompaction, NativeForm, NativeHistory, RemoteSummary, Tried, neutralise};
pub use retry::turn::{
    EndpointPlace, FIRST_EVENT_TIMEOUT, GiveUp, ReplaySafety, RetryClass, RetryDecision, TurnEnd,
    decide_retry, fallback_delay, maintenance_delay, replay_safety, retry_class, retry_class_of, retry_delay,
};
pub use retry::{Jitter, RetryObserver, RetryPolicy, RetryingModel, planned_waits};
pub use sse::{MAX_LINE, SseEvent, decode as decode_sse};
pub use window::{EffectiveWindow, WindowSource, WindowSources};
