//! Vector files: cases of one function of one system.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;

const FORMAT: &str = "foldline-oracle/1";

/// A vector file.
#[derive(Deserialize)]
pub(super) struct VectorFile {
    format: String,
    system: String,
    function: String,
    /// `system.function`.
    #[serde(skip)]
    pub(super) name: String,
    pub(super) cases: Vec<Case>,
}

/// One computation, and what the recorded system made of it.
#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) input: Value,
    #[serde(default)]
    pub(super) params: Value,
    pub(super) expected: Value,
}

impl VectorFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = Self::parse(&fs_err::read(path)?).with_context(|| path.display().to_string())?;
        ensure!(
            path.file_stem().is_some_and(|stem| stem == file.name.as_str()),
            "{}: holds {}",
            path.display(),
            file.name
        );
        Ok(file)
    }

    pub(super) fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut file: Self = serde_json::from_slice(bytes)?;
        ensure!(file.format == FORMAT, "not of format {FORMAT}");
        file.name = format!("{}.{}", file.system, file.function);
        for case in &mut file.cases {
            decode_texts(&mut case.input);
            decode_texts(&mut case.expected);
        }
        Ok(file)
    }
}

/// Text that is no valid Unicode is written as `{"utf16be": "<hex>"}`. Foldline shows half a surrogate pair as
/// U+FFFD, so that is how such text is read.
fn decode_texts(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let (1, Some(Value::String(hex))) = (object.len(), object.get("utf16be")) {
                if let Some(text) = utf16(hex) {
                    *value = Value::String(text);
                }
                return;
            }
            object.values_mut().for_each(decode_texts);
        }
        Value::Array(items) => items.iter_mut().for_each(decode_texts),
        _ => {}
    }
}

fn utf16(hex: &str) -> Option<String> {
    let units: Option<Vec<u16>> = (0..hex.len())
        .step_by(4)
        .map(|at| u16::from_str_radix(hex.get(at..at + 4)?, 16).ok())
        .collect();
    Some(String::from_utf16_lossy(&units?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::decode_texts;

    #[test]
    fn half_a_surrogate_pair_is_read_as_the_replacement_character() {
        let mut value = json!({ "text": { "utf16be": "0063d83d" }, "list": [{ "utf16be": "d83dde00" }] });
        decode_texts(&mut value);
        assert_eq!(value, json!({ "text": "c\u{FFFD}", "list": ["😀"] }));
    }
}
