//! Rules for the text of source files and documents.

use std::path::{Path, PathBuf};

use super::Finding;

/// A module that is longer holds more than one thing.
const MAX_LINES: usize = 800;

/// Marks of unfinished work. In two parts, so that this file does not hold them itself.
const UNFINISHED: &[(&str, &str)] = &[
    ("TO", "DO"),
    ("FIX", "ME"),
    ("to", "do!("),
    ("unim", "plemented!("),
];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut paths = Vec::new();
    for folder in ["crates", "xtask", "docs"] {
        collect(&root.join(folder), &mut paths)?;
    }
    for name in ["README.md", "ARCHITECTURE.md"] {
        paths.push(root.join(name));
    }
    for path in paths {
        let text = fs_err::read_to_string(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        findings.extend(problems(&shown, &text));
    }
    Ok(findings)
}

/// What is wrong with one file.
fn problems(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES && has_extension(Path::new(path), "rs") {
        findings.push(format!("{path}: {lines} lines, more than {MAX_LINES}"));
    }
    for (index, line) in text.lines().enumerate() {
        for (first, second) in UNFINISHED {
            let mark = format!("{first}{second}");
            if holds_word(line, &mark) {
                findings.push(format!("{path}:{}: {mark} marks unfinished work", index + 1));
            }
        }
    }
    findings
}

/// Whether `mark` stands in the line and is not the end of a longer word.
fn holds_word(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(index, _)| {
        let before = line.get(..index).and_then(|text| text.chars().next_back());
        !before.is_some_and(|char| char.is_alphanumeric() || char == '_')
    })
}

/// All Rust sources and Markdown documents below a folder, in a stable order.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = fs_err::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                collect(&path, paths)?;
            }
        } else if has_extension(&path, "rs") || has_extension(&path, "md") {
            paths.push(path);
        }
    }
    Ok(())
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINES, check, problems};
    use crate::workspace;

    #[test]
    fn files_are_short_and_finished() {
        let findings = check(&workspace::root()).unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn a_long_source_file_is_found() {
        let text = "//\n".repeat(MAX_LINES + 1);
        assert_eq!(problems("a.rs", &text).len(), 1);
        assert!(problems("a.md", &text).is_empty());
        assert!(problems("a.rs", &"//\n".repeat(MAX_LINES)).is_empty());
    }

    #[test]
    fn marks_are_found_as_words() {
        let mark = format!("{}{}", "TO", "DO");
        assert_eq!(problems("a.rs", &format!("// fine\n// {mark}: later\n")).len(), 1);
        assert!(problems("a.rs", &format!("const MY_{mark}: u8 = 1;")).is_empty());
        assert_eq!(problems("a.rs", &format!("    {}{}", "to", "do!()")).len(), 1);
    }
}
