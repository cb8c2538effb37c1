//! Paths as what they mean: two spellings of one file are one path (spec "Pruning", 5.3; defect 5).

use std::borrow::Cow;

use rustc_hash::FxHashMap;

/// A path within one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathId(u32);

/// The paths of one plan, by what they mean.
pub(crate) struct Paths<'v> {
    cwd: &'v str,
    /// By absolute path.
    ids: FxHashMap<String, PathId>,
    /// By spelling: most paths are named again and again.
    spellings: FxHashMap<String, PathId>,
}

impl<'v> Paths<'v> {
    pub(crate) fn new(cwd: &'v str) -> Self {
        Self {
            cwd,
            ids: FxHashMap::default(),
            spellings: FxHashMap::default(),
        }
    }

    pub(crate) fn id(&mut self, path: &str) -> PathId {
        if let Some(id) = self.spellings.get(path) {
            return *id;
        }
        let next = PathId(u32::try_from(self.ids.len()).unwrap_or(u32::MAX));
        let absolute = normalized(self.cwd, path).into_owned();
        let id = *self.ids.entry(absolute).or_insert(next);
        self.spellings.insert(path.to_owned(), id);
        id
    }
}

/// The absolute path by its text alone: joined to the working folder, `.` and `..` folded. Addresses (`scheme://`) and
/// paths from `~` stay as they are. Nothing is looked up, and no letter changes its case.
fn normalized<'p>(cwd: &str, path: &'p str) -> Cow<'p, str> {
    if path.starts_with('~') || path.contains("://") {
        return Cow::Borrowed(path);
    }
    let absolute = path.starts_with('/');
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if absolute && path.len() > 1 && path[1..].split('/').all(is_plain) {
        return Cow::Borrowed(path);
    }
    let mut parts: Vec<&str> = Vec::new();
    let base = if absolute { "" } else { cwd };
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut out = String::with_capacity(base.len() + path.len() + 2);
    for part in parts {
        out.push('/');
        out.push_str(part);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn spellings_of_one_file_are_one_path() {
        for (path, expected) in [
            ("a.ts", "/w/p/a.ts"),
            ("./a.ts", "/w/p/a.ts"),
            ("src/../a.ts", "/w/p/a.ts"),
            ("../a.ts", "/w/a.ts"),
            ("../../../../a.ts", "/a.ts"),
            ("/w/p/a.ts", "/w/p/a.ts"),
            ("/w/p//a.ts", "/w/p/a.ts"),
            ("/w/./p/a.ts/", "/w/p/a.ts"),
            ("A.ts", "/w/p/A.ts"),
            ("~/a", "~/a"),
            ("skill://x/../y", "skill://x/../y"),
            (".", "/w/p"),
            ("/", ""),
        ] {
            assert_eq!(normalized("/w/p", path), expected, "{path}");
        }
        assert_eq!(normalized("", "a"), "/a");
    }
}
