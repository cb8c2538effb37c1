//! JSON values that servers write in more than one way.

use std::borrow::Cow;
use std::fmt;

use foldline_session_model::Tokens;
use serde::de::{Deserialize, Deserializer, Visitor};

/// A count of tokens: whole, fractional, negative (read as 0), null or of a wrong type (read as unknown).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<Tokens>);

impl Count {
    pub(super) fn or_zero(self) -> Tokens {
        self.0.unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl Visitor<'_> for CountVisitor {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E>(self, n: u64) -> Result<Count, E> {
                Ok(Count(Some(Tokens(n))))
            }
            fn visit_i64<E>(self, n: i64) -> Result<Count, E> {
                Ok(Count(Some(Tokens(u64::try_from(n).unwrap_or(0)))))
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates: negative and NaN become 0"
            )]
            fn visit_f64<E>(self, n: f64) -> Result<Count, E> {
                Ok(Count(Some(Tokens(n as u64))))
            }
            fn visit_unit<E>(self) -> Result<Count, E> {
                Ok(Count(None))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
                Ok(Count(None))
            }
            fn visit_str<E>(self, text: &str) -> Result<Count, E> {
                Ok(Count(text.parse().ok().map(Tokens)))
            }
        }
        deserializer.deserialize_any(CountVisitor)
    }
}

/// A string or null, in which a lone surrogate is read as U+FFFD: a server that cuts its text by UTF-16
/// units writes half an emoji into a delta, and that must not fail the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
                Ok(Text(decode(bytes)))
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(decode(bytes).into_owned())))
            }
        }
        deserializer.deserialize_bytes(TextVisitor)
    }
}

/// Text from the JSON reader's bytes, in which a lone surrogate stands as its three-byte form.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Err(error) = std::str::from_utf8(rest) {
        let (valid, bad) = rest.split_at(error.valid_up_to());
        decoded.push_str(&String::from_utf8_lossy(valid));
        decoded.push('\u{fffd}');
        let skip = if matches!(bad, [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..]) {
            3
        } else {
            error.error_len().unwrap_or(bad.len())
        };
        rest = bad.get(skip..).unwrap_or_default();
    }
    decoded.push_str(&String::from_utf8_lossy(rest));
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_any_form() {
        for (json, expected) in [
            ("7", Some(7)),
            ("7.9", Some(7)),
            ("-3", Some(0)),
            ("null", None),
            ("\"12\"", Some(12)),
            ("\"x\"", None),
            ("1e300", Some(u64::MAX)),
        ] {
            let count: Count = serde_json::from_str(json).unwrap();
            assert_eq!(count.0, expected.map(Tokens), "{json}");
        }
    }

    #[test]
    fn lone_surrogates_become_one_replacement_character() {
        for (json, expected) in [
            (r#""plain""#, "plain"),
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\udc4d""#, "\u{fffd}"),
            (r#""\ud83d\udc4d""#, "👍"),
        ] {
            let text: Text<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(&*text, expected, "{json}");
        }
    }
}
