//! The marker line `(filtered N lines)` that stands for deleted lines (spec "Verbatim", sections 2 and 5.2).

const HEAD: &str = "(filtered ";
const TAIL: &str = " lines)";
const MAX_DIGITS: usize = 19;

/// The largest count a marker can carry: the greatest number of 19 digits. Sums stop there, so that a written
/// marker can always be read again (longer digit strings are not markers; spec "Verbatim", section 20, 6).
pub const MAX_COUNT: u64 = 9_999_999_999_999_999_999;

/// The count of a line that has the form of a marker; says nothing of who wrote the line.
pub fn parse(line: &str) -> Option<u64> {
    let digits = line.strip_prefix(HEAD)?.strip_suffix(TAIL)?;
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Appends the marker for `count` lines.
pub fn write(out: &mut String, count: u64) {
    // There may be one for every few lines of a text, so the digits are not left to the formatting machinery.
    let mut digits = [0; MAX_DIGITS];
    let mut from = MAX_DIGITS;
    let mut rest = count.min(MAX_COUNT);
    while let Some(digit) = from.checked_sub(1).and_then(|at| digits.get_mut(at)) {
        *digit = b"0123456789"[(rest % 10) as usize];
        from -= 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.push_str(HEAD);
    out.push_str(
        digits
            .get(from..)
            .and_then(|digits| str::from_utf8(digits).ok())
            .unwrap_or_default(),
    );
    out.push_str(TAIL);
}

/// The length of the marker for `count` lines; all of its characters are ASCII.
pub const fn len(count: u64) -> usize {
    let count = if count > MAX_COUNT { MAX_COUNT } else { count };
    let digits = if count == 0 {
        1
    } else {
        count.ilog10() as usize + 1
    };
    HEAD.len() + digits + TAIL.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_form_is_a_marker() {
        for (line, count) in [
            ("(filtered 3 lines)", Some(3)),
            ("(filtered 0 lines)", Some(0)),
            ("(filtered 007 lines)", Some(7)),
            ("(filtered 1 lines)", Some(1)),
            ("(filtered 9999999999999999999 lines)", Some(MAX_COUNT)),
            ("(filtered 10000000000000000000 lines)", None),
            ("(filtered 1 line)", None),
            (" (filtered 1 lines)", None),
            ("(filtered 1 lines) ", None),
            ("(filtered 1 lines)\r", None),
            ("(Filtered 1 lines)", None),
            ("(filtered  lines)", None),
            ("(filtered +1 lines)", None),
            ("(filtered 1e3 lines)", None),
            ("(filtered １ lines)", None),
            ("(filtered lines)", None),
        ] {
            assert_eq!(parse(line), count, "{line:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for count in [0, 1, 9, 10, 99, 100, 12_345, MAX_COUNT - 1, MAX_COUNT, u64::MAX] {
            let mut text = String::new();
            write(&mut text, count);
            assert_eq!(parse(&text), Some(count.min(MAX_COUNT)));
            assert_eq!(text.len(), len(count));
        }
    }
}
