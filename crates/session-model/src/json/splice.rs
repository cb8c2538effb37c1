//! Editing top-level members of an object while every other byte stays.

use std::ops::Range;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{DecodeError, repaired};

/// One member of an object: its key and where key and value stand in the line.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) key: String,
    /// From the key's opening quote to the end of the value.
    pub(crate) span: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// The members of the object that `text` is, in order.
pub(crate) fn members_of(text: &str) -> Result<Vec<Member>, DecodeError> {
    struct Members<'t>(&'t str);
    impl<'de> Visitor<'de> for Members<'de> {
        type Value = Vec<Member>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let base = self.0.as_ptr() as usize;
            let mut members = Vec::new();
            let mut from = self.0.find('{').map_or(0, |at| at + 1);
            while let Some(key) = map.next_key::<String>()? {
                let value: &'de RawValue = map.next_value()?;
                let start = value.get().as_ptr() as usize - base;
                let value = start..start + value.get().len();
                // The key is the first thing after the previous value that is neither comma nor space.
                let quote = self.0[from..].find('"').map_or(from, |at| from + at);
                from = value.end;
                members.push(Member {
                    key,
                    span: quote..value.end,
                    value,
                });
            }
            Ok(members)
        }
    }
    let mut d = serde_json::Deserializer::from_str(text);
    let members = d.deserialize_map(Members(text))?;
    d.end()?;
    Ok(members)
}

/// An edit of one top-level member.
#[derive(Clone, Debug)]
pub enum Edit<'e> {
    /// Sets the member's value, wherever it stands; a new one goes right after `after`.
    Set {
        /// The member.
        key: &'e str,
        /// Its new value as JSON.
        json: String,
        /// Where a new member goes; at the end if there is no such member.
        after: &'e str,
    },
    /// Removes the member.
    Remove {
        /// The member.
        key: &'e str,
    },
}

/// Applies edits to a text that is one object; every other byte stays. Text that is no valid Unicode is edited in
/// its repaired form: bytes that no reader could decode are the only ones that change.
///
/// # Errors
/// [`DecodeError`] if the text is no object.
pub fn edit(line: &[u8], edits: &[Edit<'_>]) -> Result<String, DecodeError> {
    let mut text = match std::str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        Err(_) => repaired(line).into_owned(),
    };
    for edit in edits {
        // Members are looked up anew for each edit: migration does few of them, and offsets stay simple.
        let members = match members_of(&text) {
            Ok(members) => members,
            Err(_) => {
                let fixed = repaired(text.as_bytes()).into_owned();
                let members = members_of(&fixed)?;
                text = fixed;
                members
            }
        };
        match edit {
            Edit::Set { key, json, after } => {
                // A repeated key gets the value each time: readers differ in which one they take.
                let mut found = members.iter().rev().filter(|m| m.key == *key).peekable();
                if found.peek().is_some() {
                    for member in found {
                        text.replace_range(member.value.clone(), json);
                    }
                    continue;
                }
                let mut member = String::new();
                super::write_string(&mut member, key);
                member.push(':');
                member.push_str(json);
                match members.iter().rev().find(|m| m.key == *after).or(members.last()) {
                    Some(place) => text.insert_str(place.span.end, &format!(",{member}")),
                    None => text.insert_str(text.find('{').map_or(0, |at| at + 1), &member),
                }
            }
            Edit::Remove { key } => {
                for (i, member) in members.iter().enumerate().rev() {
                    if member.key != *key {
                        continue;
                    }
                    let range = match (i.checked_sub(1).and_then(|p| members.get(p)), members.get(i + 1)) {
                        (Some(before), _) => before.span.end..member.span.end,
                        (None, Some(next)) => member.span.start..next.span.start,
                        (None, None) => member.span.clone(),
                    };
                    text.replace_range(range, "");
                }
            }
        }
    }
    Ok(text)
}
