//! Text of a session on its way into the page. There is no other way: what a session says is untrusted, and the page
//! only takes this type.

use foldline_compaction_core::redact::redact;
use maud::Render;

/// Text without secrets, and without characters that hide, reorder or end anything. Markup in it is escaped when it is
/// written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    text: String,
    /// How many characters are not there.
    pub(super) cut: usize,
}

/// Secrets are looked for this far beyond what is shown, so that one at the cut is still recognised.
const MARGIN: usize = 16 * 1024;

impl Shown {
    /// The text, at most `most` characters of it.
    pub(super) fn text(text: &str, most: usize) -> Self {
        let all = text.chars().count();
        let whole = all <= most.saturating_add(MARGIN);
        let near = match text.char_indices().nth(most.saturating_add(MARGIN)) {
            Some((at, _)) if !whole => text.get(..at).unwrap_or(text),
            _ => text,
        };
        let redacted = redact(near);
        let shown: String = redacted.chars().take(most).collect();
        let left = if whole {
            redacted.chars().count().saturating_sub(most)
        } else {
            all - most
        };
        Self {
            text: visible(&shown),
            cut: left,
        }
    }

    /// The text on one line, at most `most` characters of it, with an ellipsis where it was cut.
    pub(super) fn line(text: &str, most: usize) -> Self {
        let near: String = text.chars().take(most + MARGIN).collect();
        let mut line = String::new();
        for word in redact(&near).split_whitespace() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        let length = line.chars().count();
        if length <= most {
            return Self {
                text: visible(&line),
                cut: 0,
            };
        }
        let short: String = line.chars().take(most.saturating_sub(1)).collect();
        Self {
            text: visible(&short) + "…",
            cut: length - most + 1,
        }
    }

    /// A line of a text whose secrets are gone already, at most `most` characters of it.
    pub(super) fn redacted_line(line: &str, most: usize) -> Self {
        let mut chars = line.chars();
        let shown: String = chars.by_ref().take(most).collect();
        Self {
            text: visible(&shown),
            cut: chars.count(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// How many bytes it takes in the page, about.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }
}

impl Render for Shown {
    fn render_to(&self, buffer: &mut String) {
        self.text.render_to(buffer);
    }
}

/// A timestamp as people read it; anything else stays as it is.
pub(super) fn time(text: &str) -> String {
    match (text.get(..10), text.get(10..11), text.get(11..16)) {
        (Some(date), Some("T"), Some(clock)) if text.ends_with('Z') => format!("{date} {clock} UTC"),
        _ => text.to_owned(),
    }
}

/// The text with signs in the place of control characters, and of those that change the direction of what follows.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            // As terminals name them: ^[ for an escape.
            '\0'..='\u{1f}' | '\u{7f}' => {
                out.push('^');
                out.extend(char::from_u32(c as u32 ^ 0x40));
            }
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => out.push_str(&format!("⟨U+{:04X}⟩", c as u32)),
            '\u{fdd0}'..='\u{fdef}' => out.push('\u{fffd}'),
            c if c as u32 & 0xfffe == 0xfffe => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(shown: &Shown) -> String {
        shown.render().into_string()
    }

    #[test]
    fn markup_controls_and_directions_become_text() {
        for (text, expected) in [
            ("</script><img onerror=x>", "&lt;/script&gt;&lt;img onerror=x&gt;"),
            ("\" ' & `", "&quot; ' &amp; `"),
            ("a\0b\u{1b}[31mc\u{7f}", "a^@b^[[31mc^?"),
            ("x\u{202e}y\u{2066}z", "x⟨U+202E⟩y⟨U+2066⟩z"),
            (
                "\u{85}\u{feff}\u{ffff}\u{fdd0}",
                "⟨U+0085⟩⟨U+FEFF⟩\u{fffd}\u{fffd}",
            ),
            ("one\r\ntwo\rthree\t", "one\ntwo^Mthree\t"),
            ("日本 👩‍💻", "日本 👩‍💻"),
        ] {
            assert_eq!(html(&Shown::text(text, 100)), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_and_counted() {
        let text = Shown::text(&"é".repeat(1000), 10);
        assert_eq!((text.text.chars().count(), text.cut), (10, 990));
        assert_eq!(Shown::text("short", 10).cut, 0);
        let huge = Shown::text(&"x".repeat(100_000), 10);
        assert_eq!((huge.text.len(), huge.cut), (10, 99_990));
        let line = Shown::line("a\n  b\tc d e f", 6);
        assert_eq!((html(&line).as_str(), line.cut), ("a b c…", 6));
    }

    #[test]
    fn a_secret_at_the_cut_is_still_one() {
        let key = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for most in [20, 30, 60, 200] {
            let text = format!("the token is {key} here");
            for shown in [Shown::text(&text, most), Shown::line(&text, most)] {
                assert!(!shown.text.contains("a1B2"), "{shown:?}");
            }
        }
    }
}
