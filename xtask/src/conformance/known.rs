//! Differences that are decisions, each with what Foldline returns instead.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::canonical::sha256;
use super::compare::{self, Difference};

/// The entries of `known.toml`, and which of them were met.
pub(super) struct Known {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    known: Vec<Entry>,
}

/// One decision and the cases it covers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The vector file, for example `pi.load`.
    file: String,
    /// The decision, or the defect of the recorded system.
    because: String,
    /// By name or pattern of cases (`*` stands for any text): the places that differ, as JSON pointers, and what
    /// Foldline returns there. Every case that a pattern covers must differ at each of them, and nowhere else.
    cases: BTreeMap<String, BTreeMap<String, Value>>,
    #[serde(skip)]
    met: BTreeMap<String, usize>,
}

/// What a case comes to.
pub(super) enum Verdict {
    /// The result is the recorded one.
    Equal,
    /// It differs as `known.toml` says.
    Known,
    /// It differs otherwise, or not where `known.toml` says it does.
    Differs {
        differences: Vec<Difference>,
        note: Option<String>,
    },
}

impl Known {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs_err::read_to_string(path)?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut entries = toml::from_str::<File>(text)?.known;
        for pin in entries.iter_mut().flat_map(|entry| entry.cases.values_mut()) {
            pin.values_mut().try_for_each(read_json)?;
        }
        for entry in &entries {
            let what = format!("{}, {:?}", entry.file, entry.because);
            ensure!(!entry.because.trim().is_empty(), "{what}: no reason");
            ensure!(!entry.cases.is_empty(), "{what}: no case");
            for (pattern, pins) in &entry.cases {
                ensure!(!pins.is_empty(), "{what}, {pattern}: nothing is pinned");
            }
        }
        Ok(Self { entries })
    }

    /// Judges one result.
    pub(super) fn judge(
        &mut self,
        file: &str,
        case: &str,
        returned: &Value,
        differences: Vec<Difference>,
    ) -> Verdict {
        let mut pins: Vec<(&str, &Value)> = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.file == file) {
            for (pattern, places) in &entry.cases {
                if matches(pattern, case) {
                    *entry.met.entry(pattern.clone()).or_default() += 1;
                    pins.extend(places.iter().map(|(at, pin)| (at.as_str(), pin)));
                }
            }
        }
        if pins.is_empty() && differences.is_empty() {
            return Verdict::Equal;
        }
        let mut note = None;
        for (at, pin) in &pins {
            if !differences.iter().any(|d| covers(at, &d.at)) {
                note = Some(format!("known.toml says that {at:?} differs, but it does not"));
            } else if !holds(pin, returned.pointer(at)) {
                note = Some(format!("at {at:?} known.toml pins another value"));
            }
        }
        let explained = |d: &Difference| pins.iter().any(|(at, _)| covers(at, &d.at));
        if note.is_none() && differences.iter().all(explained) {
            return Verdict::Known;
        }
        Verdict::Differs { differences, note }
    }

    /// The patterns that no case was met by.
    pub(super) fn stale(&self) -> Vec<String> {
        let mut stale = Vec::new();
        for entry in &self.entries {
            for pattern in entry.cases.keys() {
                if !entry.met.contains_key(pattern) {
                    stale.push(format!("{}: {pattern} ({})", entry.file, entry.because));
                }
            }
        }
        stale
    }
}

/// Whether a place is the pinned one or lies in it.
fn covers(pinned: &str, at: &str) -> bool {
    at.strip_prefix(pinned)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Replaces texts that begin with `json:` by what follows: TOML has no null.
fn read_json(value: &mut Value) -> anyhow::Result<()> {
    match value {
        Value::String(text) => {
            if let Some(json) = text.strip_prefix("json:") {
                *value = serde_json::from_str(json).with_context(|| json.to_owned())?;
            }
        }
        Value::Array(items) => items.iter_mut().try_for_each(read_json)?,
        Value::Object(members) => members.values_mut().try_for_each(read_json)?,
        _ => {}
    }
    Ok(())
}

/// Whether a pin holds: a value; or as text `sha256:` and the hash of the value's compact JSON with sorted keys,
/// or `absent`.
fn holds(pin: &Value, returned: Option<&Value>) -> bool {
    if let Some(text) = pin.as_str() {
        if text == "absent" {
            return returned.is_none();
        }
        if let Some(hash) = text.strip_prefix("sha256:") {
            return returned.is_some_and(|value| sha256(&value.to_string()) == hash);
        }
    }
    returned.is_some_and(|value| compare::same(pin, value))
}

/// Whether a name is of the form of a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = name.split_once(part) else {
            return false;
        };
        name = after;
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::compare::differences;
    use super::{Known, Verdict, matches};

    const KNOWN: &str = r#"
        [[known]]
        file = "pi.load"
        because = "D1"
        [known.cases]
        "s/*" = { "/version" = 3 }
        "s/b" = { "/entry" = "json:null", "/gone" = "absent" }
    "#;

    fn judge(known: &mut Known, case: &str, expected: &Value, returned: &Value) -> &'static str {
        match known.judge("pi.load", case, returned, differences(expected, returned)) {
            Verdict::Equal => "equal",
            Verdict::Known => "known",
            Verdict::Differs { note: None, .. } => "differs",
            Verdict::Differs { .. } => "wrong pin",
        }
    }

    #[test]
    fn a_pin_explains_its_own_place_only() {
        let mut known = Known::parse(KNOWN).unwrap();
        let expected = json!({ "version": 5, "id": "a" });
        let table = [
            ("s/a", json!({ "version": 3, "id": "a" }), "known"),
            ("s/a", json!({ "version": 3, "id": "b" }), "differs"),
            ("s/a", json!({ "version": 4, "id": "a" }), "wrong pin"),
            ("s/a", json!({ "version": 5, "id": "a" }), "wrong pin"),
            ("t/a", json!({ "version": 5, "id": "a" }), "equal"),
            ("t/a", json!({ "version": 3, "id": "a" }), "differs"),
        ];
        for (case, returned, verdict) in table {
            assert_eq!(
                judge(&mut known, case, &expected, &returned),
                verdict,
                "{case} {returned}"
            );
        }
        let expected = json!({ "version": 5, "entry": 1, "gone": 2 });
        let returned = json!({ "version": 3, "entry": null });
        assert_eq!(judge(&mut known, "s/b", &expected, &returned), "known");
    }

    #[test]
    fn an_entry_that_meets_nothing_is_stale() {
        let mut known = Known::parse(KNOWN).unwrap();
        assert_eq!(known.stale().len(), 2);
        let same = json!({ "version": 3 });
        judge(&mut known, "s/a", &same, &same);
        assert_eq!(known.stale(), ["pi.load: s/b (D1)"]);
    }

    #[test]
    fn an_entry_without_a_pin_is_refused() {
        for text in [
            "[[known]]\nfile = \"a\"\nbecause = \"D1\"\n[known.cases]\n",
            "[[known]]\nfile = \"a\"\nbecause = \"D1\"\n[known.cases]\nx = {}\n",
            "[[known]]\nfile = \"a\"\nbecause = \" \"\n[known.cases]\nx = { \"/a\" = 1 }\n",
        ] {
            assert!(Known::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, is) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*@unknown0", "s/x.jsonl@unknown0", true),
            ("*@unknown0", "s/x.jsonl@unknown01", false),
            ("s/*@*", "s/x@", true),
            ("s/*@*", "s/x", false),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
