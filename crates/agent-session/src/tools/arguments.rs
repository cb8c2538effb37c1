//! The arguments of a call. Unknown ones are ignored, `null` counts as absent, of equal names the last counts.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use foldline_session_model::json;
use foldline_session_model::model_call::RawJson;
use serde_json::value::RawValue;

use super::answer::Failure;

/// The spellings of the argument that names a file.
const PATHS: [&str; 3] = ["path", "file_path", "filePath"];

/// The arguments of one call.
pub(super) struct Arguments<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Arguments<'a> {
    pub(super) fn of(raw: &'a RawJson<'_>) -> Result<Self, Failure> {
        Self::of_value(raw.raw()).ok_or_else(|| Failure("The arguments must be one JSON object.".to_owned()))
    }

    /// The members of an object within the arguments.
    pub(super) fn of_value(raw: &'a RawValue) -> Option<Self> {
        json::object(raw).map(Self)
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.0.iter().rev().find(|(known, _)| known == name)?;
        (raw.get() != "null").then_some(*raw)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        let Some(raw) = self.get(name) else {
            return Ok(None);
        };
        json::text(raw)
            .map(Some)
            .ok_or_else(|| wrong(name, "a string", raw))
    }

    pub(super) fn required_text(&self, name: &str) -> Result<Cow<'a, str>, Failure> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    /// The path that the call names, by the first spelling that is there.
    pub(super) fn path(&self) -> Result<Option<Cow<'a, str>>, Failure> {
        let name = PATHS.into_iter().find(|name| self.get(name).is_some());
        let path = name.map_or(Ok(None), |name| self.text(name))?;
        if path.as_deref() == Some("") {
            return Err(Failure("`path` must not be empty.".to_owned()));
        }
        Ok(path)
    }

    pub(super) fn required_path(&self) -> Result<Cow<'a, str>, Failure> {
        self.path()?.ok_or_else(|| missing("path"))
    }

    /// A whole number within the range.
    pub(super) fn whole(&self, name: &str, range: &RangeInclusive<u64>) -> Result<Option<u64>, Failure> {
        let Some(raw) = self.get(name) else {
            return Ok(None);
        };
        let expected = || {
            let (least, most) = (range.start(), range.end());
            let kind = match *most {
                u64::MAX => format!("a whole number of at least {least}"),
                most => format!("a whole number from {least} to {most}"),
            };
            wrong(name, &kind, raw)
        };
        let value = json::number(raw).ok_or_else(expected)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be whole, positive and exact"
        )]
        let whole = (value.fract() == 0.0 && (0.0..9e15).contains(&value)).then_some(value as u64);
        let whole = whole.filter(|whole| range.contains(whole));
        whole.map(Some).ok_or_else(expected)
    }

    /// Whether a switch is on; absent is off.
    pub(super) fn is_on(&self, name: &str) -> Result<bool, Failure> {
        match self.get(name) {
            None => Ok(false),
            Some(raw) => match raw.get() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(wrong(name, "true or false", raw)),
            },
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<&'a RawValue>>, Failure> {
        let Some(raw) = self.get(name) else {
            return Ok(None);
        };
        json::elements(raw)
            .map(Some)
            .ok_or_else(|| wrong(name, "a list", raw))
    }
}

pub(super) fn missing(name: &str) -> Failure {
    Failure(format!("`{name}` is missing."))
}

fn wrong(name: &str, expected: &str, raw: &RawValue) -> Failure {
    Failure(format!("`{name}` must be {expected}, not {}.", got(raw)))
}

/// What a value is, in words; numbers as they are.
pub(super) fn got(raw: &RawValue) -> String {
    match raw.get().as_bytes().first() {
        Some(b'"') => "a string".to_owned(),
        Some(b'{') => "an object".to_owned(),
        Some(b'[') => "a list".to_owned(),
        _ => raw.get().chars().take(30).collect(),
    }
}
