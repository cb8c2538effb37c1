//! Our styles, and what becomes of them and of the text between them.

use std::fmt;
use std::sync::LazyLock;

use anstyle::Style;

use crate::view::is_harmless;

/// A style of ours. In a format string `{BOLD}` begins it and `{BOLD:#}` ends it.
///
/// It stands in the text as a mark with a number that is new in every process, so that nothing that comes from outside
/// can pass for one. What is not a mark is content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    code: char,
    style: Style,
}

pub(crate) const BOLD: Paint = Paint::new('b', styles::BOLD);
pub(crate) const DIM: Paint = Paint::new('d', styles::DIM);
pub(crate) const GOOD: Paint = Paint::new('g', styles::GOOD);
pub(crate) const NOTE: Paint = Paint::new('n', styles::NOTE);
pub(crate) const BAD: Paint = Paint::new('r', styles::BAD);
pub(super) const WARNING: Paint = Paint::new('w', styles::NOTE.bold());
pub(super) const ERROR: Paint = Paint::new('e', styles::BAD.bold());

/// The same styles as sequences, for screens that draw themselves and make harmless what they show.
pub(crate) mod styles {
    use anstyle::{AnsiColor, Style};

    pub(crate) const BOLD: Style = Style::new().bold();
    pub(crate) const DIM: Style = Style::new().dimmed();
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
    pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
    pub(crate) const BAD: Style = AnsiColor::Red.on_default();
}

const ALL: [Paint; 7] = [BOLD, DIM, GOOD, NOTE, BAD, WARNING, ERROR];
/// The code that ends a style.
const END: char = '0';

static MARK: LazyLock<String> = LazyLock::new(|| format!("\u{1}{}", uuid::Uuid::new_v4().simple()));

impl Paint {
    const fn new(code: char, style: Style) -> Self {
        Self { code, style }
    }
}

impl fmt::Display for Paint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = if f.alternate() { END } else { self.code };
        write!(f, "{}{code}", *MARK)
    }
}

/// What becomes of our styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Styles {
    /// They are drawn.
    Drawn,
    /// They are left out.
    Left,
}

/// What becomes of the text between our styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// It loses what could command a terminal.
    Harmless,
    /// It stays as it is.
    Whole,
}

/// A text as it is written.
pub(super) fn drawn(text: &str, styles: Styles, content: Content) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split(MARK.as_str());
    let push = |piece: &str, out: &mut String| match content {
        Content::Harmless => out.push_str(&harmless(piece)),
        Content::Whole => out.push_str(piece),
    };
    push(pieces.next().unwrap_or_default(), &mut out);
    for piece in pieces {
        let mut rest = piece.chars();
        let code = rest.next();
        if styles == Styles::Drawn {
            match ALL.iter().find(|paint| Some(paint.code) == code) {
                Some(paint) => out.push_str(&paint.style.to_string()),
                None => out.push_str(&anstyle::Reset.to_string()),
            }
        }
        push(rest.as_str(), &mut out);
    }
    out
}

/// Content without what could command a terminal.
pub(super) fn harmless(content: &str) -> String {
    let stays = |c: &char| is_harmless(*c) || matches!(c, '\n' | '\t');
    content.chars().filter(stays).collect()
}

/// The same JSON, with the control characters escaped that JSON allows in its strings.
pub(super) fn json_for_terminals(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmless(c) {
            out.push(c);
        } else {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a hostile transcript may hold: a title, a screen cleared, a bell, steps back, C1 in both forms, a colour,
    /// text that runs backward, and something like a mark.
    const HOSTILE: &str = "a\u{1b}]0;t\u{7}b\u{1b}[2Jc\u{8}\r\u{9b}31md\u{7f}\u{202e}e\u{1}00000000000000000000000000000000b\n\tf";

    #[test]
    fn on_a_terminal_only_our_styles_are_left() {
        let text = format!("{GOOD}Wrote{GOOD:#} {HOSTILE}");
        assert_eq!(
            drawn(&text, Styles::Drawn, Content::Harmless),
            "\u{1b}[32mWrote\u{1b}[0m a]0;tb[2Jc31mde00000000000000000000000000000000b\n\tf"
        );
        assert_eq!(
            drawn(&text, Styles::Left, Content::Harmless),
            "Wrote a]0;tb[2Jc31mde00000000000000000000000000000000b\n\tf"
        );
    }

    #[test]
    fn in_a_pipe_content_is_what_it_is() {
        let text = format!("{BOLD}{HOSTILE}{BOLD:#}");
        assert_eq!(drawn(&text, Styles::Left, Content::Whole), HOSTILE);
        assert_eq!(
            drawn(&text, Styles::Drawn, Content::Whole),
            format!("\u{1b}[1m{HOSTILE}\u{1b}[0m")
        );
    }

    #[test]
    fn every_style_has_a_code_of_its_own() {
        let codes: std::collections::BTreeSet<char> = ALL.iter().map(|paint| paint.code).collect();
        assert_eq!(codes.len(), ALL.len());
        assert!(!codes.contains(&END));
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = serde_json::to_string(HOSTILE).unwrap();
        let shown = json_for_terminals(&json);
        assert!(shown.chars().all(is_harmless), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), HOSTILE);
    }
}
