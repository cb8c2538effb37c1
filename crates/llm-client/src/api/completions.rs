//! OpenAI Chat Completions, as OpenAI and the many servers that imitate it speak it.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::encode;
