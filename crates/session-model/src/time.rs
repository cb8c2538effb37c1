//! Timestamps of entries: just enough of RFC 3339 to order them.

/// Unix time in milliseconds of a timestamp like `2026-01-01T00:00:01.000Z`; `None` for anything else.
///
/// Only UTC and whole-minute offsets are read; the fraction may have any number of digits.
pub(crate) fn unix_millis(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
    };
    let literal = |at: usize, b: u8| {
        bytes
            .get(at)
            .is_some_and(|c| c.eq_ignore_ascii_case(&b))
            .then_some(())
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    literal(4, b'-')?;
    literal(7, b'-')?;
    literal(10, b'T')?;
    literal(13, b':')?;
    literal(16, b':')?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let mut at = 19;
    let mut millis = 0;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        for place in 0..3 {
            let digit = if start + place < at {
                i64::from(bytes[start + place] - b'0')
            } else {
                0
            };
            millis = millis * 10 + digit;
        }
    }
    let offset = match bytes.get(at)? {
        b'Z' | b'z' => 0,
        sign @ (b'+' | b'-') => {
            let minutes = number(at + 1, at + 3)? * 60 + number(at + 4, at + 6)?;
            literal(at + 3, b':')?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    // Days since 1970-01-01 of a date in the Gregorian calendar, with years that begin in March.
    let (y, m) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let days =
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + hour * 3_600 + (minute - offset) * 60 + second;
    Some((seconds * 1_000 + millis) as f64)
}

#[cfg(test)]
mod tests {
    use super::unix_millis;

    #[test]
    fn timestamps_become_unix_time() {
        let table = [
            ("1970-01-01T00:00:00.000Z", Some(0.0)),
            ("2026-01-01T00:00:01.000Z", Some(1_767_225_601_000.0)),
            ("2024-02-29T12:30:15.5Z", Some(1_709_209_815_500.0)),
            ("2026-01-01T01:00:01.123456+01:00", Some(1_767_225_601_123.0)),
            ("1969-12-31T23:59:59.999Z", Some(-1.0)),
            ("2026-01-01", None),
            ("2026-13-01T00:00:00Z", None),
            ("", None),
            ("yesterday at noon, UTC", None),
        ];
        for (text, expected) in table {
            assert_eq!(unix_millis(text), expected, "{text}");
        }
    }
}
