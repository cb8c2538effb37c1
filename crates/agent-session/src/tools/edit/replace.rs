//! Exact replacements in a text, by places that are unique.
//!
//! Line breaks are compared as one thing: a model that reads `\r\n` as a line break writes `\n`. What is not replaced
//! stays byte for byte.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::Finder;

/// How many places are counted, at most.
const COUNTED: usize = 1_000;
/// How many lines an error names.
const NAMED: usize = 5;

/// One replacement, as the model writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) old: String,
    pub(super) new: String,
}

/// Why nothing is replaced. Edits are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReplaceError {
    #[error("edit {edit}: `oldText` is empty. To fill an empty file use write.")]
    Empty { edit: usize },
    #[error("edit {edit}: `oldText` and `newText` are the same.")]
    Same { edit: usize },
    #[error("edit {edit}: `oldText` is not in the file.{}", hint(*near))]
    NotFound { edit: usize, near: Option<usize> },
    #[error(
        "edit {edit}: `oldText` is in the file {} times, at {}. Put more of what is around it into `oldText`.",
        count(*times), lines_of(lines)
    )]
    NotUnique {
        edit: usize,
        times: usize,
        lines: Vec<usize>,
    },
    #[error("edits {first} and {second} change the same place. Make them one edit.")]
    Overlap { first: usize, second: usize },
}

fn hint(near: Option<usize>) -> String {
    near.map_or_else(String::new, |line| {
        format!(" Line {line} begins a place that differs in white space only; read it again.")
    })
}

fn count(times: usize) -> String {
    if times >= COUNTED {
        format!("at least {COUNTED}")
    } else {
        times.to_string()
    }
}

fn lines_of(lines: &[usize]) -> String {
    let named = lines.iter().take(NAMED).map(usize::to_string);
    let named = named.collect::<Vec<_>>().join(", ");
    let more = if lines.len() > NAMED { ", …" } else { "" };
    format!("lines {named}{more}")
}

/// The text with all replacements made. Each is looked for in the text as it was.
pub(super) fn replace(text: &str, edits: &[Replacement]) -> Result<String, ReplaceError> {
    let view = View::of(text);
    let mut spans: Vec<(Range<usize>, usize)> = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        spans.push((view.find(edit, index + 1)?, index));
    }
    spans.sort_by_key(|(span, _)| span.start);
    for pair in spans.windows(2) {
        if let [(before, a), (after, b)] = pair
            && before.end > after.start
        {
            let (first, second) = (a.min(b) + 1, a.max(b) + 1);
            return Err(ReplaceError::Overlap { first, second });
        }
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (span, index) in spans {
        out.push_str(&text[done..span.start]);
        let old = &text[span.clone()];
        out.push_str(&view.with_breaks_of(old, &edits[index].new));
        done = span.end;
    }
    out.push_str(&text[done..]);
    Ok(out)
}

/// The text with every `\r\n` as `\n`, and the way back.
struct View<'t> {
    plain: Cow<'t, str>,
    /// Where in `plain` the `\n` are that were `\r\n`.
    pairs: Vec<usize>,
    breaks: usize,
}

impl<'t> View<'t> {
    fn of(text: &'t str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let plain = one_break(text);
        let mut pairs = Vec::new();
        if matches!(plain, Cow::Owned(_)) {
            let found = memchr::memmem::find_iter(text.as_bytes(), b"\r\n");
            pairs.extend(found.enumerate().map(|(before, at)| at - before));
        }
        Self { plain, pairs, breaks }
    }

    /// Where in the text the one place is that an edit replaces.
    fn find(&self, edit: &Replacement, number: usize) -> Result<Range<usize>, ReplaceError> {
        let old = one_break(&edit.old);
        if old.is_empty() {
            return Err(ReplaceError::Empty { edit: number });
        }
        if old == one_break(&edit.new) {
            return Err(ReplaceError::Same { edit: number });
        }
        let places = self.places(&old);
        match places[..] {
            [] => Err(ReplaceError::NotFound {
                edit: number,
                near: self.nearly(&old),
            }),
            [at] => Ok(self.original(at)..self.original(at + old.len())),
            _ => Err(ReplaceError::NotUnique {
                edit: number,
                times: places.len(),
                lines: places.iter().take(NAMED + 1).map(|at| self.line(*at)).collect(),
            }),
        }
    }

    /// All places, also those that overlap.
    fn places(&self, old: &str) -> Vec<usize> {
        let finder = Finder::new(old.as_bytes());
        let step = old.chars().next().map_or(1, char::len_utf8);
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(at) = finder.find(&self.plain.as_bytes()[from..]) {
            places.push(from + at);
            if places.len() == COUNTED {
                break;
            }
            from += at + step;
        }
        places
    }

    fn original(&self, at: usize) -> usize {
        at + self.pairs.partition_point(|pair| *pair < at)
    }

    fn line(&self, at: usize) -> usize {
        1 + memchr::memchr_iter(b'\n', &self.plain.as_bytes()[..at]).count()
    }

    /// The first line of a place that is equal but for the white space around its lines.
    fn nearly(&self, old: &str) -> Option<usize> {
        let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
        let first = wanted.first().filter(|first| !first.is_empty())?;
        let lines: Vec<&str> = self.plain.lines().map(str::trim).collect();
        let starts = lines.windows(wanted.len()).enumerate();
        let mut starts = starts.filter(|(_, window)| window.first() == Some(first));
        starts.find(|(_, window)| *window == wanted).map(|(at, _)| at + 1)
    }

    /// The new text with line breaks as what it replaces has them, or else as most of the file has them.
    fn with_breaks_of<'n>(&self, old: &str, new: &'n str) -> Cow<'n, str> {
        let plain = one_break(new);
        let pairs = if old.contains('\n') {
            old.contains("\r\n")
        } else {
            self.pairs.len() * 2 > self.breaks
        };
        if pairs && plain.contains('\n') {
            Cow::Owned(plain.replace('\n', "\r\n"))
        } else {
            plain
        }
    }
}

fn one_break(text: &str) -> Cow<'_, str> {
    if memchr::memmem::find(text.as_bytes(), b"\r\n").is_some() {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(old: &str, new: &str) -> Replacement {
        Replacement {
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }

    #[test]
    fn places_that_are_unique_are_replaced() {
        let text = "a\r\nb\r\nc\n";
        for (edits, expected) in [
            (vec![edit("b", "x\ny")], "a\r\nx\r\ny\r\nc\n"),
            (vec![edit("a\nb\n", "z\n")], "z\r\nc\n"),
            (vec![edit("c\n", "d\ne\n")], "a\r\nb\r\nd\ne\n"),
            (vec![edit("c", "3"), edit("a", "1")], "1\r\nb\r\n3\n"),
            (vec![edit("a\r\n", "")], "b\r\nc\n"),
            (vec![edit("a", "1"), edit("\nb", "2")], "12\r\nc\n"),
        ] {
            assert_eq!(replace(text, &edits).as_deref(), Ok(expected), "{edits:?}");
        }
    }

    #[test]
    fn what_is_not_unique_is_told_with_its_lines() {
        let text = "aa\nlet x = 1;\n  let y = 2;\naaa\n";
        let why = |edits: &[Replacement]| replace(text, edits).unwrap_err().to_string();
        assert_eq!(
            why(&[edit("aa", "b")]),
            "edit 1: `oldText` is in the file 3 times, at lines 1, 4, 4. Put more of what is around it into `oldText`."
        );
        assert_eq!(why(&[edit("aaaa", "b")]), "edit 1: `oldText` is not in the file.");
        assert_eq!(
            why(&[edit("let x", "let z"), edit("let  x = 1;\nlet y = 2;", "b")]),
            "edit 2: `oldText` is not in the file."
        );
        assert_eq!(
            why(&[edit("    let x = 1;\n    let y = 2;\n", "b")]),
            "edit 1: `oldText` is not in the file. Line 2 begins a place that differs in white space only; read it again."
        );
        assert_eq!(
            why(&[edit("y = 2", "b"), edit("let y", "c")]),
            "edits 1 and 2 change the same place. Make them one edit."
        );
        assert!(why(&[edit("", "b")]).contains("is empty"));
        assert!(why(&[edit("x\r\n", "x\n")]).contains("the same"));
    }

    proptest! {
        #[test]
        fn what_is_not_replaced_stays_byte_for_byte(
            before in "[ab\r\n]{0,30}", old in "[X][ab\r\n]{0,6}[Y]", after in "[ab\r\n]{0,30}", new in "[cd\n]{0,8}",
        ) {
            let text = format!("{before}{old}{after}");
            let replaced = replace(&text, &[edit(&old, &new)]).unwrap();
            prop_assert!(replaced.starts_with(&before) && replaced.ends_with(&after));
            let middle = &replaced[before.len()..replaced.len() - after.len()];
            prop_assert_eq!(one_break(middle), new);
        }
    }
}
