//! What the store looks at in a line: whether it is one whole JSON object, its type and its id. Bodies are
//! skipped, never decoded.

use std::borrow::Cow;

use serde::Deserialize;

/// The two fields of a record that matter for appending.
#[derive(Debug, Deserialize)]
pub(crate) struct LineHead<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) id: Option<Cow<'a, str>>,
}

/// Why a line may not be appended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLine {
    /// It holds a line break, so it would be two lines.
    #[error("the line holds a line break at byte {at}")]
    LineBreak {
        /// Where.
        at: usize,
    },
    /// It is not one JSON object.
    #[error("the line is not one JSON object: {0}")]
    NotAnObject(serde_json::Error),
    /// It has no `type`, or an entry has no `id`.
    #[error("the line has no `{0}`")]
    Missing(&'static str),
}

/// Checks a line that is about to be written.
pub(crate) fn check(line: &str) -> Result<LineHead<'_>, InvalidLine> {
    if let Some(at) = memchr::memchr2(b'\n', b'\r', line.as_bytes()) {
        return Err(InvalidLine::LineBreak { at });
    }
    if !line.starts_with('{') {
        // A JSON array would pass for a struct otherwise.
        let error = serde::de::Error::custom("it does not start with a brace");
        return Err(InvalidLine::NotAnObject(error));
    }
    let head: LineHead<'_> = serde_json::from_str(line).map_err(InvalidLine::NotAnObject)?;
    match (&head.kind, &head.id) {
        (None, _) => Err(InvalidLine::Missing("type")),
        (_, None) => Err(InvalidLine::Missing("id")),
        _ => Ok(head),
    }
}

/// Whether bytes are one whole JSON object in UTF-8, with white space around it at most.
#[cfg(test)]
pub(crate) fn is_object(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.first() == Some(&b'{')
        && std::str::from_utf8(line).is_ok()
        && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_lines_pass() {
        let head = check(r#"{"type":"message","id":"a1","parentId":null,"message":{"deep":[[]]}}"#).unwrap();
        assert_eq!(head.kind.as_deref(), Some("message"));
        assert_eq!(head.id.as_deref(), Some("a1"));
    }

    #[test]
    fn lines_that_would_damage_the_file_do_not_pass() {
        for line in [
            "",
            "[]",
            r#"["message","a"]"#,
            r#"{"type":"message"}"#,
            r#"{"id":"a"}"#,
            r#"{"type":"message","id":"a""#,
            "{\"type\":\"message\",\n\"id\":\"a\"}",
            r#"{"type":"message","id":"a"}{"type":"message","id":"b"}"#,
            r#"{"type":"message","id":7}"#,
        ] {
            assert!(check(line).is_err(), "{line}");
        }
    }

    #[test]
    fn nesting_has_no_limit() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
        assert!(is_object(deep.as_bytes()));
        assert!(is_object(br#"{"lone":"\ud800"}"#));
    }
}
