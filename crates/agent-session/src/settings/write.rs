//! Changing one value in the text of a settings file: every other byte stays.
#![expect(clippy::disallowed_types, reason = "a setting is a small value")]

use foldline_session_model::json::{DecodeError, Edit, edit, object, write_string};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The text with a value at a path; `None` takes the member out.
pub(super) fn with_value(text: &str, path: &[String], value: Option<&Value>) -> Result<String, DecodeError> {
    let Some((name, rest)) = path.split_first() else {
        return Ok(text.to_owned());
    };
    let Some(inner) = member(text, name) else {
        let Some(value) = value else {
            return Ok(text.to_owned());
        };
        return inserted(text, name, &nested(rest, value));
    };
    let edits = match (rest, value) {
        ([], None) => Edit::Remove { key: name },
        ([], Some(value)) => set(name, value.to_string()),
        (rest, value) if inner.trim_start().starts_with('{') => set(name, with_value(&inner, rest, value)?),
        // Something else stands where an object should: it counted for nothing.
        (rest, Some(value)) => set(name, nested(rest, value).to_string()),
        (_, None) => return Ok(text.to_owned()),
    };
    edit(text.as_bytes(), &[edits])
}

const fn set(key: &str, json: String) -> Edit<'_> {
    Edit::Set { key, json, after: "" }
}

/// The text of a member's value; the last one, as readers see it.
fn member(text: &str, name: &str) -> Option<String> {
    let object = object(serde_json::from_str::<&RawValue>(text).ok()?)?;
    let last = object.into_iter().rev().find(|(key, _)| key == name);
    last.map(|(_, value)| value.get().to_owned())
}

fn nested(path: &[String], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |value, name| {
        Value::Object(Map::from_iter([(name.clone(), value)]))
    })
}

/// The text with a new member at its end, laid out as the members before it are.
fn inserted(text: &str, name: &str, value: &Value) -> Result<String, DecodeError> {
    let open = text.find('{').unwrap_or_default();
    let close = text.rfind('}').unwrap_or(text.len());
    let inside = text.get(open + 1..close).unwrap_or_default();
    let mut key = String::new();
    write_string(&mut key, name);
    if inside.trim().is_empty() {
        let body = format!("{value:#}").replace('\n', "\n  ");
        let (before, after) = (
            text.get(..open).unwrap_or_default(),
            text.get(close + 1..).unwrap_or_default(),
        );
        return Ok(format!("{before}{{\n  {key}: {body}\n}}{after}"));
    }
    let mut text = edit(text.as_bytes(), &[set(name, value.to_string())])?;
    let indent: String = inside.chars().take_while(|c| c.is_whitespace()).collect();
    if indent.contains('\n') {
        let compact = format!(",{key}:{value}");
        let step = indent.rsplit('\n').next().unwrap_or_default();
        let body = format!("{value:#}").replace('\n', &format!("\n{step}"));
        if let Some(at) = text.rfind(&compact) {
            text.replace_range(at..at + compact.len(), &format!(",\n{step}{key}: {body}"));
        }
    }
    Ok(text)
}
