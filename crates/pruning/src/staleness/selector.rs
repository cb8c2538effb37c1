//! Selectors of a read: `file:50-60`, `file:raw` and so on (spec "Pruning", 5.3 and 5.4; defect 1).

use foldline_session_model::json;

use super::Members;

/// Which lines of a file a path asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Selector {
    /// All of the file.
    None,
    /// Exactly these lines, first and last.
    Lines(u64, u64),
    /// Anything else: several ranges, open ones, `raw`, `conflicts`. It never covers and is never covered.
    Other(String),
}

/// Splits a path from its selector. A suffix that is no selector belongs to the path. Only a list of lines and `raw`
/// stand together, in either order.
pub(crate) fn split(path: &str) -> (&str, Selector) {
    let Some((base, last)) = split_last(path) else {
        return (path, Selector::None);
    };
    match split_last(base) {
        Some((inner, before)) if (is_raw(last) && is_list(before)) || (is_raw(before) && is_list(last)) => {
            let suffix = path.get(inner.len() + 1..).unwrap_or_default();
            (inner, Selector::Other(suffix.to_ascii_lowercase()))
        }
        _ => (base, single(last)),
    }
}

/// The lines that a read asks for, if it asks for exactly one closed range, in its path or by `offset` and `limit`.
pub(crate) fn lines(selector: &Selector, arguments: &Members<'_>) -> Option<(u64, u64)> {
    match selector {
        Selector::Lines(first, last) => {
            (arguments.get("offset").is_none() && arguments.get("limit").is_none()).then_some((*first, *last))
        }
        Selector::None => {
            let first = whole_number(arguments, "offset")?;
            let count = whole_number(arguments, "limit")?;
            Some((first, first.checked_add(count - 1)?))
        }
        Selector::Other(_) => None,
    }
}

/// A number of lines, at least 1.
fn whole_number(arguments: &Members<'_>, key: &str) -> Option<u64> {
    let value = json::number(arguments.get(key)?)?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole, positive and small"
    )]
    (value.fract() == 0.0 && (1.0..9e15).contains(&value)).then_some(value as u64)
}

/// The path before its last colon and the selector behind it.
fn split_last(path: &str) -> Option<(&str, &str)> {
    let at = path.rfind(':').filter(|at| *at > 0)?;
    let (base, selector) = (&path[..at], &path[at + 1..]);
    let known = is_raw(selector) || selector.eq_ignore_ascii_case("conflicts") || is_list(selector);
    known.then_some((base, selector))
}

fn is_raw(selector: &str) -> bool {
    selector.eq_ignore_ascii_case("raw")
}

fn single(selector: &str) -> Selector {
    match chunk(selector) {
        Some(Chunk::Closed(first, last)) => Selector::Lines(first, last),
        _ => Selector::Other(selector.to_ascii_lowercase()),
    }
}

/// One chunk of a list of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// First and last line.
    Closed(u64, u64),
    /// A bare line, an open range, or lines that do not exist. A list with one of these is no single range, whatever
    /// else it holds.
    Other,
}

/// Whether the text is a list of chunks.
fn is_list(selector: &str) -> bool {
    selector.split(',').all(|text| chunk(text).is_some())
}

fn chunk(text: &str) -> Option<Chunk> {
    let (first, rest) = line(text)?;
    let closed = |first: Option<u64>, last: Option<u64>| match (first, last) {
        (Some(first), Some(last)) if first >= 1 && last >= first => Chunk::Closed(first, last),
        _ => Chunk::Other,
    };
    if rest.is_empty() || rest == "-" {
        return Some(Chunk::Other);
    }
    let sign = rest.chars().next()?;
    let (second, rest) = line(rest.strip_prefix(['-', '+'])?)?;
    if !rest.is_empty() {
        return None;
    }
    Some(if sign == '-' {
        closed(first, second)
    } else {
        let last = first
            .zip(second)
            .and_then(|(first, count)| first.checked_add(count)?.checked_sub(1));
        closed(first, last)
    })
}

/// A line number with or without `L`, and what follows. `None` in place of a number that is too large.
fn line(text: &str) -> Option<(Option<u64>, &str)> {
    let text = text.strip_prefix(['L', 'l']).unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| (text[..digits].parse().ok(), &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::{Selector, split};

    #[test]
    fn paths_and_selectors() {
        let other = |text: &str| Selector::Other(text.to_owned());
        let table = [
            ("f", "f", Selector::None),
            ("f:50-60", "f", Selector::Lines(50, 60)),
            ("f:L50-l60", "f", Selector::Lines(50, 60)),
            ("f:50+11", "f", Selector::Lines(50, 60)),
            ("f:3-3", "f", Selector::Lines(3, 3)),
            ("f:3", "f", other("3")),
            ("f:3-", "f", other("3-")),
            ("f:0-5", "f", other("0-5")),
            ("f:9-5", "f", other("9-5")),
            ("f:5+0", "f", other("5+0")),
            ("f:5-16,20", "f", other("5-16,20")),
            ("f:5-16,20-", "f", other("5-16,20-")),
            ("f:5-16,960-973", "f", other("5-16,960-973")),
            ("f:RAW", "f", other("raw")),
            ("f:Conflicts", "f", other("conflicts")),
            ("f:1-5:raw", "f", other("1-5:raw")),
            ("f:raw:1-5", "f", other("raw:1-5")),
            ("f:raw:raw", "f:raw", other("raw")),
            ("src/a.ts:50-:conflicts", "src/a.ts:50-", other("conflicts")),
            ("f:1-5:conflicts", "f:1-5", other("conflicts")),
            ("a.ts:50-nope", "a.ts:50-nope", Selector::None),
            ("a:", "a:", Selector::None),
            (":5", ":5", Selector::None),
            ("f:1,", "f:1,", Selector::None),
            ("f:99999999999999999999-1", "f", other("99999999999999999999-1")),
        ];
        for (path, base, selector) in table {
            assert_eq!(split(path), (base, selector), "{path}");
        }
    }
}
