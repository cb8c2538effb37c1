//! The members of a JSON object, looked up by key.

use std::borrow::Cow;

use foldline_session_model::json::{self, Member};
use serde_json::value::RawValue;

/// The members of an object; none if there is no object. Of equal keys the last counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members<'a> {
    members: Vec<Member<'a>>,
    /// The member that names a path, and the path if it is text. Asked for again and again, so it is read once.
    path: Option<(&'static str, Option<Cow<'a, str>>)>,
}

/// The spellings of a path, by rank.
const PATHS: [&str; 3] = ["path", "file_path", "filePath"];

impl<'a> Members<'a> {
    pub(crate) fn of(raw: Option<&'a RawValue>) -> Self {
        let mut members = Self::default();
        members.read(raw);
        members
    }

    /// Takes up the members of another object in place of those that were there.
    pub(crate) fn read(&mut self, raw: Option<&'a RawValue>) {
        match raw {
            Some(raw) => {
                json::object_into(raw, &mut self.members);
            }
            None => self.members.clear(),
        }
        self.path = PATHS.into_iter().find_map(|key| {
            let raw = self.get(key)?;
            Some((key, json::text(raw).filter(|path| !path.is_empty())))
        });
    }

    /// The value; `null` counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.members.iter().rev().find(|(name, _)| name == key)?;
        (raw.get() != "null").then_some(*raw)
    }

    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(json::text)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() == "true")
    }

    pub(crate) fn is_false(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() == "false")
    }

    pub(crate) fn elements(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.get(key).and_then(json::elements)
    }

    /// All members as written, equal keys included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter()
    }

    /// The path that a call names: the first of three spellings that is there, if it is text.
    pub(crate) fn path(&self) -> Option<&Cow<'a, str>> {
        self.path.as_ref()?.1.as_ref()
    }

    /// The spelling that names the path.
    pub(crate) fn path_member(&self) -> Option<&'static str> {
        self.path.as_ref().map(|(member, _)| *member)
    }
}
