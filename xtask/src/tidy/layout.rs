//! Every crate explains itself, and is in `ARCHITECTURE.md` with the sentence about what it never does.

use std::path::Path;

use super::{Finding, dependencies::PURE};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let architecture = fs_err::read_to_string(root.join(ARCHITECTURE))?;
    let mut findings = Vec::new();
    for folder in crate_folders(root)? {
        let path = root.join("crates").join(&folder);
        if !path.join("README.md").is_file() {
            findings.push(format!("crates/{folder}: has no README.md"));
        }
        let manifest = fs_err::read_to_string(path.join("Cargo.toml"))?;
        if !manifest.contains("[lints]\nworkspace = true") {
            findings.push(format!(
                "crates/{folder}: does not take the lints of the workspace"
            ));
        }
        if !manifest.contains(&format!("name = \"foldline-{folder}\"")) {
            findings.push(format!(
                "crates/{folder}: the package is not called foldline-{folder}"
            ));
        }
        if PURE.contains(&format!("foldline-{folder}").as_str()) && path.join("clippy.toml").exists() {
            findings.push(format!(
                "crates/{folder}: a pure crate may not replace the bans of clippy.toml"
            ));
        }
        match section(&architecture, &folder) {
            None => findings.push(format!("{ARCHITECTURE}: has no section `crates/{folder}`")),
            Some(section) if !says_never(section) => {
                findings.push(format!(
                    "{ARCHITECTURE}: crates/{folder} lacks its sentence \"This crate never …\""
                ));
            }
            Some(_) => {}
        }
    }
    Ok(findings)
}

/// The names of the folders in `crates/`.
fn crate_folders(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut folders = Vec::new();
    for entry in fs_err::read_dir(root.join("crates"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    Ok(folders)
}

/// The text under the heading of a crate.
fn section<'a>(architecture: &'a str, folder: &str) -> Option<&'a str> {
    let heading = format!("\n### `crates/{folder}`\n");
    let start = architecture.find(&heading)? + heading.len();
    let rest = architecture.get(start..)?;
    let end = rest.find("\n#").unwrap_or(rest.len());
    rest.get(..end)
}

/// Whether a sentence begins with the words.
fn says_never(section: &str) -> bool {
    const WORDS: &str = "This crate never ";
    section.match_indices(WORDS).any(|(index, _)| {
        let before = section.get(..index).unwrap_or_default().trim_end();
        before.is_empty() || before.ends_with('.') || before.ends_with('\n')
    })
}

#[cfg(test)]
mod tests {
    use super::{check, says_never, section};
    use crate::workspace;

    #[test]
    fn every_crate_explains_itself() {
        let findings = check(&workspace::root()).unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn a_section_ends_at_the_next_heading() {
        let text =
            "# A\n\n### `crates/one`\n\nFirst.\n\n### `crates/two`\n\nSecond. This crate never sleeps.\n";
        assert_eq!(section(text, "one"), Some("\nFirst.\n"));
        assert_eq!(section(text, "three"), None);
        assert!(section(text, "two").is_some_and(says_never));
        assert!(!section(text, "one").is_some_and(says_never));
    }

    #[test]
    fn the_sentence_begins_with_the_words() {
        assert!(says_never("This crate never writes."));
        assert!(!says_never("We hope that This crate never writes."));
    }
}
