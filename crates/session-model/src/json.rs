//! Reading JSON the way session files need it: lossless where bytes are kept, lenient where they are read.
//!
//! Writers of session files are JavaScript programs. They write lone surrogates, numbers that are no
//! doubles, duplicate keys and deep nesting. `serde_json` does the parsing; this module gives it visitors that
//! survive all of that (DESIGN, rule 4).

mod field;
pub(crate) mod js;
mod object;
mod read;
mod repair;
pub(crate) mod splice;
#[cfg(test)]
mod tests;

pub(crate) use field::{Field, Nullable, Own, Strictly, json_object, read_lenient, read_strict, text_of};
pub use js::{members, stringify, write_string};
pub(crate) use object::Object;
pub use read::{Member, elements, number, object, object_into, text};
pub(crate) use repair::repaired;
pub use splice::{Edit, edit};

use std::borrow::Cow;

use serde_json::value::RawValue;

/// JSON text that is kept as it was written.
pub type Raw<'a> = Cow<'a, RawValue>;

/// Why a line could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    message: String,
}

impl DecodeError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self {
            message: error.to_string(),
        }
    }
}
