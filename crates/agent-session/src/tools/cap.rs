//! How much text an answer holds. What does not fit is kept as an artifact, and the answer says where.

use crate::tool::Spill;

/// The most text of an answer. Whichever is reached first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// In UTF-8.
    pub bytes: usize,
    /// Lines.
    pub lines: usize,
}

impl Default for Cap {
    fn default() -> Self {
        Self {
            bytes: 50_000,
            lines: 2_000,
        }
    }
}

/// Which part of a text that is too long stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Its beginning.
    Head,
    /// A quarter of the room for its beginning, the rest for its end: what a command says last matters most.
    HeadAndTail,
}

/// A text that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded {
    /// The text, or what stayed of it, with a note of what is left out and where it is.
    pub text: String,
    /// Whether something is left out.
    pub truncated: bool,
    /// Where the whole text is read, if something is left out and it could be stored.
    pub artifact: Option<String>,
}

/// Makes a text fit. A text that does not is handed to `spill` whole. The note comes on top of the cap.
pub fn bounded(text: String, tool: &str, cap: Cap, keep: Keep, spill: &dyn Spill) -> Bounded {
    let Some((head, tail)) = parts(&text, cap, keep) else {
        return Bounded {
            text,
            truncated: false,
            artifact: None,
        };
    };
    let left_out = &text[head..tail];
    let artifact = spill.spill(tool, &text);
    let shown = joined(
        &text[..head],
        &text[tail..],
        left_out.len(),
        Some(left_out.lines().count()),
        artifact.as_deref(),
    );
    Bounded {
        text: shown,
        truncated: true,
        artifact,
    }
}

/// Two ends of a text with a note of what lies between.
pub(super) fn joined(
    head: &str,
    tail: &str,
    bytes: usize,
    lines: Option<usize>,
    artifact: Option<&str>,
) -> String {
    let mut out = String::with_capacity(head.len() + tail.len() + 120);
    out.push_str(head);
    if !head.is_empty() && !head.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&format!("[{bytes} bytes"));
    if let Some(lines) = lines {
        let s = if lines == 1 { "" } else { "s" };
        out.push_str(&format!(" ({lines} line{s})"));
    }
    out.push_str(" left out");
    if let Some(artifact) = artifact {
        out.push_str(&format!("; all of it: {artifact}"));
    }
    out.push(']');
    if !tail.is_empty() {
        out.push('\n');
        out.push_str(tail);
    }
    out
}

/// Where the beginning that stays ends, and where the end that stays begins; `None` if everything fits.
fn parts(text: &str, cap: Cap, keep: Keep) -> Option<(usize, usize)> {
    if text.len() <= cap.bytes && text.lines().count() <= cap.lines {
        return None;
    }
    Some(match keep {
        Keep::Head => (head(text, cap), text.len()),
        Keep::HeadAndTail => {
            let quarter = Cap {
                bytes: cap.bytes / 4,
                lines: cap.lines / 4,
            };
            let rest = Cap {
                bytes: cap.bytes - quarter.bytes,
                lines: cap.lines - quarter.lines,
            };
            let head = head(text, quarter);
            (head, head + tail(&text[head..], rest))
        }
    })
}

/// Where a beginning ends that fits: after a line, or within the first if that alone is too long.
pub(super) fn head(text: &str, cap: Cap) -> usize {
    let mut newlines = memchr::memchr_iter(b'\n', text.as_bytes());
    let by_lines = match cap.lines {
        0 => 0,
        lines => newlines.nth(lines - 1).map_or(text.len(), |newline| newline + 1),
    };
    if by_lines <= cap.bytes {
        return by_lines;
    }
    let room = boundary_before(text, cap.bytes);
    memchr::memrchr(b'\n', &text.as_bytes()[..room]).map_or(room, |newline| newline + 1)
}

/// Where an end begins that fits: at a line, or within the last if that alone is too long.
pub(super) fn tail(text: &str, cap: Cap) -> usize {
    let bytes = text.as_bytes();
    let body = text.strip_suffix('\n').unwrap_or(text);
    let mut newlines = memchr::memrchr_iter(b'\n', body.as_bytes());
    let by_lines = match cap.lines {
        0 => text.len(),
        lines => newlines.nth(lines - 1).map_or(0, |newline| newline + 1),
    };
    if text.len() - by_lines <= cap.bytes {
        return by_lines;
    }
    let room = boundary_after(text, text.len() - cap.bytes.min(text.len()));
    let begins_line = room > 0 && bytes[room - 1] == b'\n';
    if begins_line {
        return room;
    }
    // The line break at the very end begins nothing.
    match memchr::memchr(b'\n', &bytes[room..body.len().max(room)]) {
        Some(newline) => room + newline + 1,
        None => room,
    }
}

/// The last character boundary at or before a place.
pub(super) fn boundary_before(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first character boundary at or after a place.
pub(super) fn boundary_after(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    struct Kept(Mutex<Vec<String>>);

    impl Spill for Kept {
        fn spill(&self, tool: &str, text: &str) -> Option<String> {
            self.0.lock().ok()?.push(text.to_owned());
            Some(format!("artifact://{tool}"))
        }
    }

    fn cap(bytes: usize, lines: usize) -> Cap {
        Cap { bytes, lines }
    }

    #[test]
    fn what_is_left_out_is_told_and_kept() {
        let kept = Kept(Mutex::default());
        let text = "1\n2\n3\n4\n5\n6\n7\n8\n".to_owned();
        let head = bounded(text.clone(), "grep", cap(100, 3), Keep::Head, &kept);
        assert_eq!(
            head.text,
            "1\n2\n3\n[10 bytes (5 lines) left out; all of it: artifact://grep]"
        );
        let both = bounded(text.clone(), "bash", cap(100, 4), Keep::HeadAndTail, &kept);
        assert_eq!(
            both.text,
            "1\n[8 bytes (4 lines) left out; all of it: artifact://bash]\n6\n7\n8\n"
        );
        assert!(both.truncated);
        assert_eq!(*kept.0.lock().unwrap(), [text.clone(), text.clone()]);
        let whole = bounded(text.clone(), "bash", cap(100, 8), Keep::HeadAndTail, &kept);
        assert_eq!((whole.text, whole.truncated), (text, false));
        assert_eq!(kept.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn one_long_line_is_cut_between_characters() {
        let kept = Kept(Mutex::default());
        let text = "ä".repeat(20);
        let head = bounded(text.clone(), "t", cap(7, 10), Keep::Head, &kept);
        assert!(head.text.starts_with("äää\n["), "{}", head.text);
        let both = bounded(text, "t", cap(9, 10), Keep::HeadAndTail, &kept);
        assert!(both.text.starts_with("ä\n["), "{}", both.text);
        assert!(both.text.ends_with("]\näää"), "{}", both.text);
    }

    proptest! {
        #[test]
        fn what_stays_fits_and_is_of_the_text(
            text in "[aä\n]{0,60}",
            bytes in 0usize..40,
            lines in 0usize..12,
            keep in prop_oneof![Just(Keep::Head), Just(Keep::HeadAndTail)],
        ) {
            match parts(&text, cap(bytes, lines), keep) {
                None => prop_assert!(text.len() <= bytes && text.lines().count() <= lines),
                Some((head, tail)) => {
                    prop_assert!(head <= tail && text.is_char_boundary(head) && text.is_char_boundary(tail));
                    prop_assert!(head + text.len() - tail <= bytes);
                    prop_assert!(text[..head].lines().count() + text[tail..].lines().count() <= lines);
                }
            }
        }
    }
}
