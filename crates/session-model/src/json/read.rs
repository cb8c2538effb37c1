//! Looking into values that are kept raw, without copying what is not asked for.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Field, text_of};

/// The members of an object in the order they are written, values raw; a key that comes again is listed again.
/// `None` if the value is no object. The last duplicate wins: look members up from the end.
pub fn object(raw: &RawValue) -> Option<Vec<Member<'_>>> {
    let mut members = Vec::new();
    object_into(raw, &mut members).then_some(members)
}

/// As [`object`], into a list that is used again and again; empty if the value is no object. Whether it is one.
pub fn object_into<'a>(raw: &'a RawValue, members: &mut Vec<Member<'a>>) -> bool {
    members.clear();
    let is_object = raw.get().starts_with('{')
        && serde_json::Deserializer::from_str(raw.get())
            .deserialize_map(Members(members))
            .is_ok();
    if !is_object {
        members.clear();
    }
    is_object
}

/// A key with its value as written.
pub type Member<'a> = (Cow<'a, str>, &'a RawValue);

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

struct Members<'m, 'de>(&'m mut Vec<Member<'de>>);

impl<'de> Visitor<'de> for Members<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            self.0.push((member.0.0, member.1));
        }
        Ok(())
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
