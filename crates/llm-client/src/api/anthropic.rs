//! Anthropic Messages.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::encode;

/// The version of the API that is spoken.
pub(crate) const VERSION: &str = "2023-06-01";

/// The beta in which a model with a thinking budget may also think between calls of tools.
pub(crate) const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";
