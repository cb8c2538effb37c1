//! Which lines of a file a read asks for: `file:10-20`, `file:10+5`, `file:10-`, `file:10`, `file:1-5,90-99`, `file:raw`.

/// Lines, first and last, counted from 1; without a last to the end of the file, or as far as an answer reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) last: Option<u64>,
}

/// The path before its selector, and the lines that this asks for; none means all. `None` if the path has no selector.
pub(super) fn split(path: &str) -> Option<(&str, Vec<Range>)> {
    let (base, last) = split_last(path)?;
    match (split_last(base), &last) {
        // `raw` says nothing more here: lines are always shown as they are.
        (Some((inner, Part::Lines(ranges))), Part::Raw) => Some((inner, ranges)),
        (Some((inner, Part::Raw)), Part::Lines(ranges)) => Some((inner, ranges.clone())),
        _ => Some(match last {
            Part::Raw => (base, Vec::new()),
            Part::Lines(ranges) => (base, ranges),
        }),
    }
}

enum Part {
    Raw,
    Lines(Vec<Range>),
}

fn split_last(path: &str) -> Option<(&str, Part)> {
    let (base, selector) = path.rsplit_once(':')?;
    if base.is_empty() {
        return None;
    }
    if selector.eq_ignore_ascii_case("raw") {
        return Some((base, Part::Raw));
    }
    let ranges = selector.split(',').map(range).collect::<Option<Vec<_>>>()?;
    Some((base, Part::Lines(ranges)))
}

/// One range. Lines that do not exist (`9-5`, line 0) make it no range.
fn range(text: &str) -> Option<Range> {
    let sign = text.find(['-', '+', '.']);
    let Some(at) = sign else {
        let first = line(text)?;
        return Some(Range { first, last: None });
    };
    let first = line(&text[..at])?;
    let rest = &text[at..];
    let last = if rest == "-" || rest == ".." {
        None
    } else if let Some(count) = rest.strip_prefix('+') {
        Some(first.checked_add(line(count)? - 1)?)
    } else {
        Some(line(rest.strip_prefix("..").or_else(|| rest.strip_prefix('-'))?)?)
    };
    last.is_none_or(|last| last >= first)
        .then_some(Range { first, last })
}

fn line(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(['L', 'l']).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|line| plain && *line >= 1)
}

#[cfg(test)]
mod tests {
    use super::{Range, split};

    #[test]
    fn paths_and_lines() {
        let lines = |ranges: &[(u64, u64)]| -> Vec<Range> {
            let last = |last| (last > 0).then_some(last);
            ranges
                .iter()
                .map(|(first, end)| Range {
                    first: *first,
                    last: last(*end),
                })
                .collect()
        };
        for (path, expected) in [
            ("f", None),
            ("f:50-60", Some(("f", lines(&[(50, 60)])))),
            ("f:L50-l60", Some(("f", lines(&[(50, 60)])))),
            ("f:L5..L9", Some(("f", lines(&[(5, 9)])))),
            ("f:50+11", Some(("f", lines(&[(50, 60)])))),
            ("f:3", Some(("f", lines(&[(3, 0)])))),
            ("f:3-", Some(("f", lines(&[(3, 0)])))),
            ("f:5-16,20-22", Some(("f", lines(&[(5, 16), (20, 22)])))),
            ("f:RAW", Some(("f", lines(&[])))),
            ("f:1-5:raw", Some(("f", lines(&[(1, 5)])))),
            ("f:raw:1-5", Some(("f", lines(&[(1, 5)])))),
            ("f:9-5", None),
            ("f:0-5", None),
            ("f:5+0", None),
            ("f:1,", None),
            ("f:", None),
            (":5", None),
            ("f:conflicts", None),
            ("C:\\w\\a.rs", None),
            ("f:+5", None),
            ("f:99999999999999999999", None),
        ] {
            assert_eq!(split(path), expected, "{path}");
        }
    }
}
