//! Patch records of version 4 and 5 files: they change the header or replace a message (spec, 1.3).

use std::borrow::Cow;

use crate::json::{self, Field};

/// A patch of valid shape.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    Header {
        cwd: Option<String>,
        title: Option<String>,
        title_source: Option<String>,
    },
    /// The JSON text of the new message, if the patch holds one.
    Entry {
        entry_id: String,
        message: Option<String>,
    },
}

/// Reads a patch record; `None` if its shape is wrong: a violating record is ignored whole.
pub(crate) fn parse(line: &[u8], kind: &[u8]) -> Option<Patch> {
    let text = std::str::from_utf8(line).map_or_else(|_| json::repaired(line), Cow::Borrowed);
    let raw: &serde_json::value::RawValue = serde_json::from_str(&text).ok()?;
    let members = object(raw)?;
    let patch = object(value(&members, "patch")?)?;
    match kind {
        b"header_patch" => {
            only(&members, &["type", "patch"])?;
            only(&patch, &["cwd", "title", "titleSource"])?;
            let title_source = string(&patch, "titleSource")?;
            if title_source
                .as_deref()
                .is_some_and(|s| s != "auto" && s != "user")
            {
                return None;
            }
            Some(Patch::Header {
                cwd: string(&patch, "cwd")?,
                title: string(&patch, "title")?,
                title_source,
            })
        }
        b"entry_patch" => {
            only(&members, &["type", "entryId", "patch"])?;
            only(&patch, &["message"])?;
            let message = match value(&patch, "message") {
                Some(message) if message.get().starts_with('{') => Some(message.get().to_owned()),
                Some(_) => return None,
                None => None,
            };
            Some(Patch::Entry {
                entry_id: string(&members, "entryId")??,
                message,
            })
        }
        _ => None,
    }
}

type Members<'a> = Vec<(Cow<'a, str>, &'a serde_json::value::RawValue)>;

fn object(raw: &serde_json::value::RawValue) -> Option<Members<'_>> {
    let members = json::splice::members_of(raw.get()).ok()?;
    members
        .into_iter()
        .map(|m| {
            let value: &serde_json::value::RawValue = serde_json::from_str(&raw.get()[m.value]).ok()?;
            Some((Cow::Owned(m.key), value))
        })
        .collect()
}

fn value<'a>(members: &Members<'a>, key: &str) -> Option<&'a serde_json::value::RawValue> {
    members.iter().rev().find(|(k, _)| k == key).map(|(_, v)| *v)
}

/// `None`: present but no string. `Some(None)`: absent.
#[allow(
    clippy::option_option,
    reason = "absent and wrong are different answers here, and only here"
)]
fn string(members: &Members<'_>, key: &str) -> Option<Option<String>> {
    match value(members, key) {
        None => Some(None),
        Some(raw) => Cow::<'_, str>::lenient(raw).map(|text| Some(text.into_owned())),
    }
}

fn only(members: &Members<'_>, keys: &[&str]) -> Option<()> {
    members
        .iter()
        .all(|(key, _)| keys.contains(&&**key))
        .then_some(())
}
