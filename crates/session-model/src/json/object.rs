//! Writing an object member by member.

use std::fmt::{Display, Write as _};

use super::write_string;

/// An object that is being written at the end of a text.
pub(crate) struct Object<'o> {
    out: &'o mut String,
    empty: bool,
}

impl<'o> Object<'o> {
    pub(crate) fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        let out = self.key(key);
        write_string(out, value);
        self
    }

    /// A member whose value is `null` where there is no text.
    pub(crate) fn nullable(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(key, value),
            None => self.raw(key, "null"),
        }
    }

    /// A member whose value prints as JSON: JSON text, a number, a boolean.
    pub(crate) fn raw(&mut self, key: &str, json: impl Display) -> &mut Self {
        let out = self.key(key);
        // Writing to a String cannot fail.
        let _ = write!(out, "{json}");
        self
    }

    /// A member whose value is written by `value`.
    pub(crate) fn with(&mut self, key: &str, value: impl FnOnce(&mut String)) -> &mut Self {
        value(self.key(key));
        self
    }

    /// A member whose value is an object.
    pub(crate) fn object(&mut self, key: &str, members: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.with(key, |out| {
            let mut object = Object::begin(out);
            members(&mut object);
            object.end();
        })
    }

    pub(crate) fn end(self) {
        self.out.push('}');
    }

    fn key(&mut self, key: &str) -> &mut String {
        if !std::mem::take(&mut self.empty) {
            self.out.push(',');
        }
        write_string(self.out, key);
        self.out.push(':');
        self.out
    }
}
