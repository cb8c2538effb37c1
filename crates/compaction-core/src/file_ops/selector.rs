//! Selectors of a part of a file: `src/a.rs:50-200`, `log.txt:raw`, `a.rs:L5..9`.

use std::sync::LazyLock;

use regex::Regex;

/// `None` cannot happen, the pattern is constant; a test holds it to that.
static SELECTOR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:raw|conflicts|L?\d+(?:(?:-|\.\.|\+)L?\d*)?(?:,L?\d+(?:(?:-|\.\.|\+)L?\d*)?)*)$").ok()
});

/// The path without selectors at its end.
pub(super) fn stripped(path: &str) -> &str {
    let Some(selector) = SELECTOR.as_ref() else {
        return path;
    };
    let mut path = path;
    while let Some((before, last)) = path.rsplit_once(':') {
        if before.is_empty() || !selector.is_match(last) {
            break;
        }
        path = before;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_go_and_everything_else_stays() {
        assert!(SELECTOR.is_some());
        for (path, expected) in [
            ("src/a.rs:50-200", "src/a.rs"),
            ("src/a.rs:50", "src/a.rs"),
            ("src/a.rs:50-", "src/a.rs"),
            ("src/a.rs:5-16,960-973", "src/a.rs"),
            ("src/a.rs:L5..L9", "src/a.rs"),
            ("src/a.rs:50+150", "src/a.rs"),
            ("src/a.rs:raw", "src/a.rs"),
            ("src/a.rs:1-50:raw", "src/a.rs"),
            ("src/a.rs:conflicts", "src/a.rs"),
            ("archive.zip:dir/file.ts:50-60", "archive.zip:dir/file.ts"),
            ("db.sqlite:users", "db.sqlite:users"),
            ("C:\\w\\a.rs", "C:\\w\\a.rs"),
            (":50", ":50"),
        ] {
            assert_eq!(stripped(path), expected, "{path}");
        }
    }
}
