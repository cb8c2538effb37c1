//! Commands that answer the same question each time (spec "Pruning", 5.1; defect 4).

use std::borrow::Cow;

use crate::text::{is_space, trim};

/// The command with its blanks folded, if it is one that only looks: a test run, a build, `git status`. Whatever
/// joins, redirects or substitutes is not looked into.
pub(super) fn idempotent(written: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let command = trim(&written);
    if command.contains([';', '&', '|', '\n', '\r', '`', '<', '>']) || command.contains("$(") {
        return None;
    }
    let mut words = command.split(is_space).filter(|word| !word.is_empty());
    let program = words.next()?;
    let mut subcommand = words.next()?;
    let known: &[&str] = match program {
        "bun" | "npm" | "pnpm" | "yarn" => {
            if subcommand == "run" {
                subcommand = words.next()?;
            }
            &["test", "build"]
        }
        "git" => &["status"],
        "cargo" | "make" | "just" => &["build"],
        _ => return None,
    };
    if !begins_with(subcommand, known) {
        return None;
    }
    if written
        .split(' ')
        .all(|word| !word.is_empty() && !word.contains(is_space))
    {
        return Some(written);
    }
    let words = command.split(is_space).filter(|word| !word.is_empty());
    Some(Cow::Owned(words.collect::<Vec<_>>().join(" ")))
}

/// Whether a word is one of these, or goes on behind one with something that is no part of a word.
fn begins_with(word: &str, subcommands: &[&str]) -> bool {
    subcommands.iter().any(|name| {
        word.strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::idempotent;

    #[test]
    fn commands_that_only_look() {
        for (command, expected) in [
            ("  bun   test packages/agent ", Some("bun test packages/agent")),
            ("npm run test:unit", Some("npm run test:unit")),
            ("bun test-foo", Some("bun test-foo")),
            ("pnpm build", Some("pnpm build")),
            ("git status -s", Some("git status -s")),
            ("cargo build", Some("cargo build")),
            ("just build x", Some("just build x")),
            ("cargo test", None),
            ("npm t", None),
            ("npm testing", None),
            ("npm run", None),
            ("FOO=1 bun test", None),
            ("git log --oneline", None),
            ("bun test && echo done", None),
            ("bun run build > out", None),
            ("bun test\nrm -r x", None),
            ("bun test $(cat x)", None),
            ("bun test `x`", None),
            ("bun test < x", None),
            ("", None),
        ] {
            assert_eq!(idempotent(command.into()).as_deref(), expected, "{command}");
        }
    }
}
