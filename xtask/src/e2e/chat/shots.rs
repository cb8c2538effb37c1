//! Screens as text, without what differs from run to run.

use std::path::{Path, PathBuf};

use anyhow::ensure;

use super::Update;

/// The screens of a pass, in order.
pub(super) struct Shots {
    /// Where they are stored.
    stored: PathBuf,
    home: String,
    taken: Vec<(&'static str, String)>,
}

impl Shots {
    pub(super) fn new(stored: &Path, home: &Path) -> Self {
        Self {
            stored: stored.to_path_buf(),
            home: home.display().to_string(),
            taken: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, name: &'static str, screen: &str) {
        self.taken.push((name, filtered(screen, &self.home)));
    }

    /// Stores the screens, or compares them with those that are stored. Those that differ are left in a folder.
    pub(super) fn finish(self, update: Update, left: &Path) -> anyhow::Result<()> {
        if update == Update::Store {
            fs_err::create_dir_all(&self.stored)?;
            for (name, screen) in &self.taken {
                fs_err::write(self.file(name), screen)?;
            }
            return Ok(());
        }
        let mut different = Vec::new();
        for (name, screen) in &self.taken {
            let stored = fs_err::read_to_string(self.file(name)).unwrap_or_default();
            if stored != *screen {
                fs_err::create_dir_all(left)?;
                fs_err::write(left.join(format!("{name}.txt")), screen)?;
                different.push(format!("{name}:\n--- stored\n{stored}--- now\n{screen}"));
            }
        }
        ensure!(
            different.is_empty(),
            "{} screens are not as they were (in {}; `cargo xtask e2e --scripted --update` stores them):\n{}",
            different.len(),
            left.display(),
            different.join("\n")
        );
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.stored.join(format!("{name}.txt"))
    }
}

/// A screen without places, ids and times.
fn filtered(screen: &str, home: &str) -> String {
    let mut out = String::new();
    for line in screen.replace(home, "[HOME]").lines() {
        let words: Vec<String> = line.split(' ').map(word).collect();
        out.push_str(without_age(&words.join(" ")).trim_end());
        out.push('\n');
    }
    out
}

fn word(word: &str) -> String {
    // The name of a session, of a backup or of a diagnostic.
    if let Some((folder, name)) = word.rsplit_once('/')
        && name.starts_with("20")
        && folder.contains("/sessions/--")
    {
        let end = [".jsonl", "-compaction-"].iter().find_map(|end| name.find(end));
        let end = end.and_then(|at| name.get(at..)).unwrap_or_default();
        let project = folder
            .find("--")
            .and_then(|at| folder.get(..at))
            .unwrap_or(folder);
        return format!("{project}[PROJECT]/[SESSION]{}", without_numbers(end));
    }
    if let Some(rest) = word.strip_prefix("entry=\"")
        && let Some((_, rest)) = rest.split_once('"')
    {
        return format!("entry=\"[ID]\"{rest}");
    }
    let digits = word.strip_suffix('s').unwrap_or_default();
    if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) {
        return "[N]s".to_owned();
    }
    word.to_owned()
}

/// How long ago something was stands in parentheses.
fn without_age(line: &str) -> String {
    let Some((before, rest)) = line.rsplit_once(" (") else {
        return line.to_owned();
    };
    match rest.split_once(')') {
        Some((age, after)) if age == "just now" || age.ends_with(" ago") => {
            format!("{before} ([AGO]){after}")
        }
        _ => line.to_owned(),
    }
}

/// Parts of a file's name with digits are times and ids.
fn without_numbers(name: &str) -> String {
    let parts = name.split_inclusive(['-', '.']);
    let is_name = |part: &&str| !part.contains(|c: char| c.is_ascii_digit());
    parts.filter(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_left_out() {
        let screen =
            "m in /tmp/x/sessions/--tmp-x--/2026-01-01T00-00_01ab.jsonl\nin 12s (esc) entry=\"1f\"> 4 words";
        assert_eq!(without_age("hello (just now)"), "hello ([AGO])");
        assert_eq!(without_age("hello (you) (2 days ago) x"), "hello (you) ([AGO]) x");
        assert_eq!(without_age("hello (you)"), "hello (you)");
        assert_eq!(
            filtered(screen, "/tmp/x"),
            "m in [HOME]/sessions/[PROJECT]/[SESSION].jsonl\nin [N]s (esc) entry=\"[ID]\"> 4 words\n"
        );
    }
}
