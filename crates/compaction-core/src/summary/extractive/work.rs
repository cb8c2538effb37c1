//! What was done and what failed, from the tool calls.

use std::sync::LazyLock;

use foldline_session_model::fold::ContextItem;
use foldline_session_model::message::{Message, ToolCall};
use regex::Regex;
use rustc_hash::FxHashMap;

use super::{Extract, LINE_UNITS, newest};
use crate::extractive::is_error_line;
use crate::file_ops::{FailedCalls, ToolTable, changes_of};
use crate::open_errors::open_errors;
use crate::redact::redact;
use crate::text::one_line;

/// Commands whose success is progress.
static CHECK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:test|tests|check|build|lint|clippy|tsc|tsgo|pytest|push|merge|install|deploy|migrate|release|publish|tag|version\S*)\b")
        .ok()
});
/// Programs that only look, or that move things about.
const LOOKING: [&str; 26] = [
    "awk", "cat", "cd", "code", "cp", "curl", "diff", "echo", "find", "grep", "head", "jq", "ls", "mkdir",
    "mv", "open", "printf", "pwd", "rg", "rm", "sed", "tail", "touch", "tree", "wc", "which",
];
/// The message of a commit on a command line.
static COMMIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?s)\bgit\b[^|;&]*?\bcommit\b.*?\s-[a-zA-Z]*m\s*(?:"\$\(cat <<-?\s*'?\w+'?\s*|["'])\s*([^"'\n\\]+)"#,
    )
    .ok()
});

/// Files with how often they were changed, commits, and checks whose newest run succeeded. `earlier` are the counts of
/// the summary before.
pub(super) fn done(items: &[ContextItem<'_>], earlier: Vec<(String, usize)>) -> Vec<String> {
    let failed = FailedCalls::of(items.iter().map(|item| &item.message));
    let tools = ToolTable::default();
    let mut order: Vec<String> = Vec::new();
    let mut changes: FxHashMap<String, usize> = FxHashMap::default();
    for (path, count) in earlier {
        order.push(path.clone());
        changes.insert(path, count);
    }
    let (mut commits, mut checks) = (Vec::new(), Vec::<(String, usize)>::new());
    for call in calls(items) {
        let worked = !failed.contains(&call.id);
        if worked {
            for path in changes_of(call, &tools) {
                let count = changes.entry(path.clone()).or_insert(0);
                if *count == 0 {
                    order.push(path);
                }
                *count += 1;
            }
        }
        let Some(command) = command_of(call) else { continue };
        let command = redact(&command).into_owned();
        if worked && let Some(message) = commit_message(&command) {
            commits.push(format!("[x] Committed: {message}"));
        }
        for check in subjects(&command).filter(|c| CHECK.as_ref().is_some_and(|check| check.is_match(c))) {
            let known = checks.iter().position(|(known, _)| *known == check);
            let count = known.map_or(0, |at| checks.remove(at).1);
            if worked {
                checks.push((check, count + 1));
            }
        }
    }
    let mut lines: Vec<String> = order
        .iter()
        .map(|path| match changes.get(path) {
            Some(1) | None => format!("- [x] Changed `{path}`"),
            Some(count) => format!("- [x] Changed `{path}` ({count} times)"),
        })
        .collect();
    lines.extend(newest(commits.into_iter(), 12));
    let checks = checks.into_iter().map(|(check, count)| match count {
        1 => format!("[x] Ran `{check}`"),
        _ => format!("[x] Ran `{check}` ({count} times)"),
    });
    lines.extend(newest(checks, 5));
    lines
}

/// The path and the count of an item that [`done`] wrote.
pub(super) fn counted(item: &str) -> Option<(String, usize)> {
    let (path, rest) = item.strip_prefix("- [x] Changed `")?.rsplit_once('`')?;
    let count = rest.trim().trim_start_matches('(').split(' ').next();
    Some((path.to_owned(), count.and_then(|c| c.parse().ok()).unwrap_or(1)))
}

/// Open errors, each with its command and the line that names it. An error is not open if the same program succeeded
/// later, and looking for something that is not there is none.
pub(super) fn blocked(extract: &Extract<'_, '_>) -> Vec<String> {
    let all = &extract.context.items;
    let open = open_errors(all);
    let failed = FailedCalls::of(all.iter().map(|item| &item.message));
    let by_id: FxHashMap<&str, &ToolCall<'_>> = calls(all).map(|call| (&*call.id, call)).collect();
    // The newest outcome of each program.
    let mut settled: FxHashMap<String, bool> = FxHashMap::default();
    for call in calls(all) {
        for subject in command_of(call).iter().flat_map(|command| subjects(command)) {
            settled.insert(subject, !failed.contains(&call.id));
        }
    }
    let mut found = Vec::new();
    for item in extract.items().iter().filter(|item| open.contains(&item.source)) {
        let Message::ToolResult(m) = &item.message else {
            continue;
        };
        let command = by_id.get(&*m.tool_call_id).and_then(|call| command_of(call));
        let subjects: Vec<String> = command.iter().flat_map(|command| subjects(command)).collect();
        let is_settled = |subject: &String| settled.get(subject) == Some(&true);
        if command.is_some() && subjects.iter().all(is_settled) {
            continue;
        }
        let text = m.content.texts().collect::<Vec<_>>().join("\n");
        let Some(line) = text.lines().find(|line| is_error_line(line)) else {
            continue;
        };
        let line = one_line(&redact(line), LINE_UNITS);
        let subject = subjects
            .first()
            .map(|s| format!(" `{}`", one_line(&redact(s), 80)));
        found.push(format!("{}{}: {line}", m.tool_name, subject.unwrap_or_default()));
    }
    newest(found.into_iter(), 5)
}

/// Whether an item that [`blocked`] wrote still holds: nothing among these messages succeeded with the same command.
pub(super) fn still_open(item: &str, items: &[ContextItem<'_>]) -> bool {
    let Some(subject) = item.split('`').nth(1).filter(|_| item.contains("`: ")) else {
        return false;
    };
    let failed = FailedCalls::of(items.iter().map(|item| &item.message));
    !calls(items)
        .filter(|call| !failed.contains(&call.id))
        .filter_map(command_of)
        .any(|command| subjects(&command).any(|s| one_line(&redact(&s), 80) == subject))
}

fn calls<'m, 'l>(items: &'m [ContextItem<'l>]) -> impl Iterator<Item = &'m ToolCall<'l>> {
    items
        .iter()
        .filter_map(|item| match &item.message {
            Message::Assistant(m) => Some(m.content.tool_calls()),
            _ => None,
        })
        .flatten()
}

fn command_of(call: &ToolCall<'_>) -> Option<String> {
    if !matches!(
        &*call.name.to_ascii_lowercase(),
        "bash" | "shell" | "exec" | "run_command" | "terminal"
    ) {
        return None;
    }
    let members = foldline_session_model::json::members(call.arguments.as_deref()?)?;
    let (_, value) = members
        .iter()
        .find(|(key, _)| matches!(&**key, "command" | "cmd"))?;
    serde_json::from_str(value).ok()
}

/// The first line of the message of a commit.
fn commit_message(command: &str) -> Option<String> {
    let found = COMMIT.as_ref()?.captures(command)?;
    let message = one_line(found.get(1)?.as_str(), 160);
    (!message.is_empty()).then_some(message)
}

/// The commands of a command line that do something, without what their output goes through.
fn subjects(command: &str) -> impl Iterator<Item = String> {
    let first_line = command.trim().lines().next().unwrap_or_default();
    first_line
        .split("&&")
        .flat_map(|part| part.split(';'))
        .filter_map(|part| {
            let part = part.split(" | ").next().unwrap_or_default();
            let part = part.split(" 2>").next().unwrap_or_default();
            let part = part.split(" > ").next().unwrap_or_default().trim();
            let program = part.split_whitespace().next()?;
            let program = program.rsplit('/').next().unwrap_or(program);
            let git_look = part.starts_with("git ") && !part.contains(" push") && !part.contains(" merge");
            // A script on the command line is tried once.
            let one_off = part.contains(" -e ") || part.contains(" -c ");
            (!one_off && LOOKING.binary_search(&program).is_err() && !git_look).then(|| one_line(part, 120))
        })
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_what_they_do() {
        assert!(LOOKING.is_sorted() && CHECK.is_some() && COMMIT.is_some());
        let told = |command| subjects(command).collect::<Vec<_>>();
        assert_eq!(told("cd /w && npm run check 2>&1 | tail -20"), ["npm run check"]);
        assert_eq!(
            told("cargo test -p a; cargo clippy > out.txt"),
            ["cargo test -p a", "cargo clippy"]
        );
        assert_eq!(told("node -e 'test()'"), [""; 0]);
        assert_eq!(told("ls -la && grep -rn test src | head"), [""; 0]);
        assert_eq!(
            told("git add -A && git push origin main"),
            ["git push origin main"]
        );
    }

    #[test]
    fn commits_show_the_first_line_of_their_message() {
        for command in [
            "git add -A && git commit -m \"Fix the parser\"",
            "git commit -qam 'Fix the parser' && git push",
            "git -C /w commit -m \"$(cat <<'EOF'\nFix the parser\n\nWith words.\nEOF\n)\"",
            "git commit -m \"Fix the parser\n\nWith words.\"",
        ] {
            assert_eq!(
                commit_message(command).as_deref(),
                Some("Fix the parser"),
                "{command}"
            );
        }
        assert_eq!(commit_message("git log -m"), None);
    }

    #[test]
    fn counts_are_read_back() {
        assert_eq!(
            counted("- [x] Changed `a b.rs` (12 times)"),
            Some(("a b.rs".to_owned(), 12))
        );
        assert_eq!(counted("- [x] Changed `a.rs`"), Some(("a.rs".to_owned(), 1)));
        assert_eq!(counted("- [x] Ran `make`"), None);
    }
}
