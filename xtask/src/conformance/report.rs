//! The report: one line a file, and differences in full when someone asks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::Value;

use super::Difference;
use super::canonical::sha256;

/// How many differing cases `--show` prints.
const SHOWN_CASES: usize = 5;
/// How many places of a case `--show` prints.
const SHOWN_PLACES: usize = 10;

/// The longest value that is pinned in full.
const LONGEST_PIN: usize = 100;

/// What all files came to.
pub(super) struct Report {
    pub(super) files: Vec<FileReport>,
    /// Entries of known.toml that no case met.
    pub(super) stale: Vec<String>,
}

/// What the cases of one file came to.
#[derive(Default)]
pub(super) struct FileReport {
    pub(super) name: String,
    pub(super) passed: usize,
    pub(super) known: usize,
    unsupported: BTreeMap<&'static str, usize>,
    findings: Vec<Finding>,
}

/// A case that differs.
pub(super) struct Finding {
    pub(super) case: String,
    pub(super) note: Option<String>,
    pub(super) differences: Vec<Difference>,
}

impl FileReport {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn unsupported(&mut self, reason: &'static str) {
        *self.unsupported.entry(reason).or_default() += 1;
    }

    pub(super) fn differs(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Passed, known, differing and unsupported cases.
    pub(super) fn counts(&self) -> [usize; 4] {
        [
            self.passed,
            self.known,
            self.findings.len(),
            self.unsupported.values().sum(),
        ]
    }
}

impl Report {
    /// Whether nothing is left to explain.
    pub(super) fn is_clean(&self) -> bool {
        self.total()[2] == 0 && self.stale.is_empty()
    }

    pub(super) fn total(&self) -> [usize; 4] {
        let mut total = [0; 4];
        for file in &self.files {
            for (sum, count) in total.iter_mut().zip(file.counts()) {
                *sum += count;
            }
        }
        total
    }

    /// A line for each file, the total, and the stale entries.
    pub(super) fn summary(&self) -> String {
        let mut out = String::new();
        for file in &self.files {
            out += &line(&file.name, file.counts());
        }
        out += &line("total", self.total());
        for stale in &self.stale {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "known.toml covers no case: {stale}");
        }
        out
    }

    /// The first differences of one file, and why its unsupported cases are.
    pub(super) fn details(&self, name: &str) -> anyhow::Result<String> {
        let file = self.file(name)?;
        let mut out = String::new();
        for (reason, count) in &file.unsupported {
            let _ = writeln!(out, "\n{count} unsupported: {reason}");
        }
        for finding in file.findings.iter().take(SHOWN_CASES) {
            let _ = writeln!(out, "\n{}: {}", file.name, finding.case);
            if let Some(note) = &finding.note {
                let _ = writeln!(out, "  {note}");
            }
            for difference in finding.differences.iter().take(SHOWN_PLACES) {
                let _ = writeln!(out, "  at {:?}", difference.at);
                let _ = writeln!(out, "    expected {}", shown(difference.expected.as_ref()));
                let _ = writeln!(out, "    returned {}", shown(difference.returned.as_ref()));
            }
            let more = finding.differences.len().saturating_sub(SHOWN_PLACES);
            if more > 0 {
                let _ = writeln!(out, "  and at {more} more places");
            }
        }
        let more = file.findings.len().saturating_sub(SHOWN_CASES);
        if more > 0 {
            let _ = writeln!(out, "\nand {more} more cases:");
            for finding in file.findings.iter().skip(SHOWN_CASES) {
                let _ = writeln!(out, "  {}", finding.case);
            }
        }
        Ok(out)
    }

    /// The differences of one file as lines of known.toml, to be put below a reason if they are decisions.
    pub(super) fn pins(&self, name: &str) -> anyhow::Result<String> {
        let mut out = String::new();
        for finding in &self.file(name)?.findings {
            let mut places: Vec<String> = Vec::new();
            for difference in &finding.differences {
                let pin = difference
                    .returned
                    .as_ref()
                    .map_or_else(|| "\"absent\"".to_owned(), pin);
                places.push(format!("{} = {pin}", quoted(&difference.at)));
            }
            let _ = writeln!(out, "{} = {{ {} }}", quoted(&finding.case), places.join(", "));
        }
        Ok(out)
    }

    fn file(&self, name: &str) -> anyhow::Result<&FileReport> {
        let file = self.files.iter().find(|file| file.name == name);
        file.with_context(|| format!("no vector file {name:?}"))
    }

    /// Why the run fails, in one line.
    pub(super) fn complaint(&self) -> String {
        format!(
            "{} differences are not explained, {} entries of known.toml cover no case",
            self.total()[2],
            self.stale.len()
        )
    }
}

fn line(name: &str, [passed, known, differs, unsupported]: [usize; 4]) -> String {
    format!("{name}: passed {passed}, known {known}, differs {differs}, unsupported {unsupported}\n")
}

/// A value as known.toml has it: long ones by their hash.
fn pin(value: &Value) -> String {
    let json = value.to_string();
    match value {
        Value::Bool(_) | Value::Number(_) => json,
        Value::String(text) if text.len() <= LONGEST_PIN => quoted(text),
        _ if json.len() <= LONGEST_PIN => quoted(&format!("json:{json}")),
        _ => quoted(&format!("sha256:{}", sha256(&json))),
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    if text.contains('\'') || text.contains(char::is_control) {
        // JSON's escapes are TOML's.
        Value::String(text.to_owned()).to_string()
    } else {
        format!("'{text}'")
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}
