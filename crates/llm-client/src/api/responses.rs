//! OpenAI Responses.

mod decode;
pub(crate) mod encode;

pub(super) use decode::Decoder;
pub(crate) use decode::{RawUsage, whole_response};
pub(super) use encode::encode;
