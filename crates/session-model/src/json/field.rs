//! Fields and objects: hand-written visitors in which the last duplicate key wins and unknown keys cost
//! nothing.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{DecodeError, Raw};

/// A value that can stand in a field.
pub(crate) trait Field<'de>: Sized {
    /// Reads the value; an unexpected type is an error.
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error>;

    /// Reads the value from valid JSON; an unexpected type is `None`.
    fn lenient(raw: &'de RawValue) -> Option<Self>;
}

/// Turns borrowed data into data of its own.
pub(crate) trait Own {
    type Static: 'static;
    fn own(self) -> Self::Static;
}

/// Reads a whole line strictly.
pub(crate) fn read_strict<'a, T: Field<'a>>(line: &'a [u8]) -> Result<T, DecodeError> {
    let mut d = serde_json::Deserializer::from_slice(line);
    let value = T::strict(&mut d)?;
    d.end()?;
    Ok(value)
}

/// Reads a whole text leniently. An error means that it is no JSON, or not of `T`'s type at all.
pub(crate) fn read_lenient<'a, T: Field<'a>>(text: &'a str) -> Result<T, DecodeError> {
    let raw: &RawValue = serde_json::from_str(text)?;
    T::lenient(raw).ok_or_else(|| serde_json::Error::custom("not of the expected type").into())
}

/// Reads `null` as `None`.
pub(crate) struct Nullable<T>(PhantomData<T>);

impl<T> Nullable<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Field<'de>> DeserializeSeed<'de> for Nullable<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_option(self)
    }
}

impl<'de, T: Field<'de>> Visitor<'de> for Nullable<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        T::strict(d).map(Some)
    }
}

/// Text of a JSON string: decoded bytes, which are WTF-8 where the file holds lone surrogates.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let mut bytes = bytes.to_vec();
            let mut i = 0;
            while i + 2 < bytes.len() {
                if bytes[i] == 0xED && (0xA0..=0xBF).contains(&bytes[i + 1]) {
                    bytes[i..i + 3].copy_from_slice("\u{FFFD}".as_bytes());
                    i += 3;
                } else {
                    i += 1;
                }
            }
            String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
        }
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, v: &'de [u8]) -> Result<Self::Value, E> {
        Ok(match std::str::from_utf8(v) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(text_of(v)),
        })
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text_of(v)))
    }
}

impl<'de> Field<'de> for Cow<'de, str> {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_bytes(TextVisitor)
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        let quoted = raw.get().strip_prefix('"')?;
        if let Some(text) = quoted.strip_suffix('"').filter(|text| !text.contains('\\')) {
            return Some(Cow::Borrowed(text));
        }
        Self::strict(&mut serde_json::Deserializer::from_str(raw.get())).ok()
    }
}

impl Own for Cow<'_, str> {
    type Static = Cow<'static, str>;
    fn own(self) -> Self::Static {
        Cow::Owned(self.into_owned())
    }
}

impl<'de> Field<'de> for Raw<'de> {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        <&RawValue as serde::Deserialize>::deserialize(d).map(Cow::Borrowed)
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        Some(Cow::Borrowed(raw))
    }
}

impl Own for Raw<'_> {
    type Static = Raw<'static>;
    fn own(self) -> Self::Static {
        Cow::Owned(self.into_owned())
    }
}

impl<'de> Field<'de> for bool {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        serde::Deserialize::deserialize(d)
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        match raw.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

impl Own for bool {
    type Static = Self;
    fn own(self) -> Self {
        self
    }
}

impl<'de> Field<'de> for f64 {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        serde::Deserialize::deserialize(d)
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        let text = raw.get();
        if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            text.parse().ok()
        } else {
            None
        }
    }
}

impl Own for f64 {
    type Static = Self;
    fn own(self) -> Self {
        self
    }
}

impl<T: Own> Own for Option<T> {
    type Static = Option<T::Static>;
    fn own(self) -> Self::Static {
        self.map(Own::own)
    }
}

impl<T: Own> Own for Vec<T> {
    type Static = Vec<T::Static>;
    fn own(self) -> Self::Static {
        self.into_iter().map(Own::own).collect()
    }
}

impl<T: Own> Own for Box<T> {
    type Static = Box<T::Static>;
    fn own(self) -> Self::Static {
        Box::new((*self).own())
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Field<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element_seed(Strictly::<T>(PhantomData))? {
            list.push(item);
        }
        Ok(list)
    }
}

/// A seed that reads one list element.
pub(crate) struct Strictly<T>(pub(crate) PhantomData<T>);

impl<'de, T: Field<'de>> DeserializeSeed<'de> for Strictly<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<T, D::Error> {
        T::strict(d)
    }
}

impl<'de, T: Field<'de>> Field<'de> for Vec<T> {
    fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_seq(ListVisitor(PhantomData))
    }

    fn lenient(raw: &'de RawValue) -> Option<Self> {
        if !raw.get().starts_with('[') {
            return None;
        }
        let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        Some(items.into_iter().filter_map(T::lenient).collect())
    }
}

/// Defines an object of optional fields with its visitor, and how it becomes owned.
macro_rules! json_object {
    ($(#[$meta:meta])* struct $name:ident { $( $key:literal => $field:ident : $ty:ty ),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name<'a> {
            $( pub(crate) $field: Option<$ty>, )*
            pub(crate) __lifetime: std::marker::PhantomData<&'a ()>,
        }

        const _: () = {
            use std::fmt;
            use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
            use serde_json::value::RawValue;
            use $crate::json::{DecodeError, Field, Own};

            #[allow(non_camel_case_types, reason = "one variant per field, by the field's own name")]
            enum Key { $( $field, )* __Other }

            struct KeySeed;

            impl<'de> DeserializeSeed<'de> for KeySeed {
                type Value = Key;
                fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Key, D::Error> {
                    d.deserialize_identifier(self)
                }
            }

            impl<'de> Visitor<'de> for KeySeed {
                type Value = Key;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a key")
                }
                fn visit_str<E>(self, key: &str) -> Result<Key, E> {
                    Ok(match key { $( $key => Key::$field, )* _ => Key::__Other })
                }
            }

            struct ObjectVisitor;

            impl<'de> Visitor<'de> for ObjectVisitor {
                type Value = $name<'de>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                    let mut object = $name::default();
                    while let Some(key) = map.next_key_seed(KeySeed)? {
                        match key {
                            $( Key::$field => {
                                object.$field =
                                    map.next_value_seed($crate::json::Nullable::new())?;
                            } )*
                            Key::__Other => { map.next_value::<IgnoredAny>()?; }
                        }
                    }
                    Ok(object)
                }
            }

            struct LenientVisitor;

            impl<'de> Visitor<'de> for LenientVisitor {
                type Value = $name<'de>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                    let mut object = $name::default();
                    while let Some(key) = map.next_key_seed(KeySeed)? {
                        let value: &'de RawValue = map.next_value()?;
                        match key {
                            $( Key::$field => object.$field = Field::lenient(value), )*
                            Key::__Other => {}
                        }
                    }
                    Ok(object)
                }
            }

            impl<'de> Field<'de> for $name<'de> {
                fn strict<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                    d.deserialize_map(ObjectVisitor)
                }
                fn lenient(raw: &'de RawValue) -> Option<Self> {
                    if !raw.get().starts_with('{') {
                        return None;
                    }
                    serde_json::Deserializer::from_str(raw.get()).deserialize_map(LenientVisitor).ok()
                }
            }

            impl Own for $name<'_> {
                type Static = $name<'static>;
                fn own(self) -> Self::Static {
                    $name {
                        $( $field: self.$field.own(), )*
                        __lifetime: std::marker::PhantomData,
                    }
                }
            }

            impl<'a> $name<'a> {
                /// Reads a line: borrowed and strict about types first, then, if a value has an unexpected
                /// type or text is no valid Unicode, from a repaired copy in which each odd value only costs
                /// itself.
                #[allow(dead_code, reason = "not every object is a line of its own")]
                pub(crate) fn decode(line: &'a [u8]) -> Result<Self, DecodeError> {
                    $crate::json::read_strict(line).or_else(|_: DecodeError| {
                        let text = $crate::json::repaired(line);
                        $crate::json::read_lenient::<$name<'_>>(&text).map(Own::own)
                    })
                }
            }
        };
    };
}
pub(crate) use json_object;
