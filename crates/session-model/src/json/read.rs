//! Looking into values that are kept raw, without copying what is not asked for.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Field, text_of};

/// The members of an object in the order they are written, values raw; a key that comes again is listed again.
/// `None` if the value is no object. The last duplicate wins: look members up from the end.
pub fn object(raw: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    if !raw.get().starts_with('{') {
        return None;
    }
    serde_json::Deserializer::from_str(raw.get())
        .deserialize_map(Members)
        .ok()
}

/// The elements of a list, raw. `None` if the value is no list.
pub fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if !raw.get().starts_with('[') {
        return None;
    }
    serde_json::from_str(raw.get()).ok()
}

/// The text of a string, lone surrogates replaced by U+FFFD. `None` if the value is no string.
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    Cow::lenient(raw)
}

/// The value of a number. `None` if the value is no number.
pub fn number(raw: &RawValue) -> Option<f64> {
    f64::lenient(raw)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            members.push((member.0.0, member.1));
        }
        Ok(members)
    }
}

struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_bytes<E>(self, key: &'de [u8]) -> Result<Key<'de>, E> {
                Ok(Key(match std::str::from_utf8(key) {
                    Ok(key) => Cow::Borrowed(key),
                    Err(_) => Cow::Owned(text_of(key)),
                }))
            }
            fn visit_bytes<E>(self, key: &[u8]) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text_of(key))))
            }
        }
        d.deserialize_bytes(KeyVisitor)
    }
}
