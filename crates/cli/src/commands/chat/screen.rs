//! Where the chat is drawn: text that stays, and below it a few lines that are drawn again and again while something
//! runs.

use std::io::Write;
use std::time::Instant;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::markdown::{Colours, Layout, Markdown};
use crate::output::styles::{BAD, BOLD, DIM, GOOD, NOTE};
use crate::view::harmless;

/// What the chat is drawn on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Surface {
    /// A terminal: its columns and rows, asked each time.
    Terminal(fn() -> (usize, usize)),
    /// A file, a pipe or a terminal that cannot move its cursor: nothing is drawn twice.
    Stream,
}

/// Text is broken here even if the terminal is wider.
const WIDEST: usize = 120;

/// The chat as it is seen.
pub(super) struct Screen {
    out: Box<dyn Write>,
    surface: Surface,
    colours: Colours,
    /// Whether a line break needs a carriage return.
    raw: bool,
    pub(super) markdown: Markdown,
    loader: Option<Loader>,
    /// What is being typed while something runs.
    typed: String,
    /// What is drawn below the text that stays, and how many rows that is.
    drawn: (String, usize),
    /// Why the last request failed.
    pub(super) failure: Option<String>,
    /// What the user said at the editor, which stands there already.
    pub(super) said: Option<String>,
}

struct Loader {
    text: String,
    since: Instant,
}

impl Screen {
    pub(super) fn new(out: Box<dyn Write>, surface: Surface, colours: Colours) -> Self {
        Self {
            out,
            surface,
            colours,
            raw: false,
            markdown: Markdown::default(),
            loader: None,
            typed: String::new(),
            drawn: (String::new(), 0),
            failure: None,
            said: None,
        }
    }

    /// How text is laid out now.
    pub(super) fn layout(&self) -> Layout {
        let width = match self.surface {
            // The last column stays free: some terminals break the line behind it.
            Surface::Terminal(size) => size().0.saturating_sub(1).clamp(20, WIDEST),
            Surface::Stream => 80,
        };
        Layout {
            width,
            colours: self.colours,
        }
    }

    /// Something begins to run, in a terminal that does what it is told, or not.
    pub(super) fn begin(&mut self, mode: Mode) {
        self.raw = mode == Mode::Raw;
        self.wait("Working...");
    }

    /// It has ended.
    pub(super) fn end(&mut self) {
        self.end_answer();
        self.loader = None;
        self.typed.clear();
        self.write("");
        self.raw = false;
    }

    /// Says what is waited for; its clock begins.
    pub(super) fn wait(&mut self, text: impl Into<String>) {
        self.loader = Some(Loader {
            text: text.into(),
            since: Instant::now(),
        });
        self.tick();
    }

    /// Draws again what moves, if it has moved.
    pub(super) fn tick(&mut self) {
        if self.live().0 != self.drawn.0 {
            self.write("");
        }
    }

    /// Shows what is being typed.
    pub(super) fn typed(&mut self, text: &str) {
        text.clone_into(&mut self.typed);
        self.tick();
    }

    /// A piece of an answer.
    pub(super) fn piece(&mut self, piece: &str) {
        let layout = self.layout();
        let lines = self.markdown.push(piece, layout);
        if !lines.is_empty() {
            self.write(&lines);
        }
    }

    /// The answer is whole, or broken off.
    pub(super) fn end_answer(&mut self) {
        let layout = self.layout();
        let rest = self.markdown.finish(layout);
        if !rest.is_empty() {
            self.write(&rest);
        }
    }

    /// Text of ours, which may be styled.
    pub(super) fn text(&mut self, text: &str) {
        self.write(&format!("{}\n", text.trim_end()));
    }

    pub(super) fn note(&mut self, text: &str) {
        self.lines(DIM, text);
    }

    pub(super) fn good(&mut self, text: &str) {
        self.lines(GOOD, text);
    }

    pub(super) fn warning(&mut self, text: &str) {
        self.lines(NOTE, text);
    }

    pub(super) fn error(&mut self, text: &str) {
        let text = wrap(text, self.layout().width.saturating_sub(7)).join("\n       ");
        self.write(&format!("{BAD}{BOLD}error{BOLD:#}{BAD:#}: {text}\n"));
    }

    fn lines(&mut self, style: Style, text: &str) {
        let mut out = String::new();
        for line in wrap(text, self.layout().width) {
            out.push_str(&format!("{style}{line}{style:#}\n"));
        }
        self.write(&out);
    }

    /// Writes styled text above what is drawn again, and draws that.
    fn write(&mut self, styled: &str) {
        let mut bytes = String::new();
        if self.drawn.1 > 0 {
            bytes.push('\r');
            if self.drawn.1 > 1 {
                bytes.push_str(&format!("\u{1b}[{}A", self.drawn.1 - 1));
            }
            bytes.push_str("\u{1b}[J");
        }
        bytes.push_str(&self.finished(styled));
        self.drawn = self.live();
        bytes.push_str(&self.finished(&self.drawn.0));
        // A terminal that is gone cannot be told anything.
        self.out
            .write_all(bytes.as_bytes())
            .and_then(|()| self.out.flush())
            .ok();
    }

    /// Text as the terminal wants it.
    fn finished(&self, styled: &str) -> String {
        let text = match self.colours {
            Colours::Shown => styled.to_owned(),
            Colours::None => anstream::adapter::strip_str(styled).to_string(),
        };
        if self.raw {
            text.replace('\n', "\r\n")
        } else {
            text
        }
    }

    /// What is drawn again: what came of an answer, what is waited for, what is being typed.
    fn live(&self) -> (String, usize) {
        let (Some(loader), Surface::Terminal(size)) = (&self.loader, self.surface) else {
            return (String::new(), 0);
        };
        let (columns, rows) = size();
        let width = columns.saturating_sub(1).max(20);
        let room = (rows / 3).clamp(1, 8);
        let coming: Vec<String> = self
            .markdown
            .rest()
            .filter(|line| !line.is_empty())
            .flat_map(|line| wrap(line, width.min(WIDEST)))
            .collect();
        let mut lines: Vec<String> = coming
            .get(coming.len().saturating_sub(room)..)
            .unwrap_or_default()
            .to_vec();
        let seconds = loader.since.elapsed().as_secs();
        let line = clip(&format!("{} {seconds}s (esc to cancel)", loader.text), width);
        lines.push(format!("{DIM}{line}{DIM:#}"));
        if !self.typed.is_empty() {
            let tail = clip_start(&harmless(&self.typed), width.saturating_sub(2));
            lines.push(format!("> {tail}"));
        }
        (lines.join("\n"), lines.len())
    }
}

/// What the terminal does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Raw,
    Cooked,
}

/// Text from elsewhere as lines of at most this width; words that are longer are left whole.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in harmless(text).trim_end().split('\n') {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let mut out = indent.clone();
        for word in line.split_whitespace() {
            let is_first = out.len() == indent.len();
            if !is_first && out.width() + 1 + word.width() > width {
                lines.push(std::mem::replace(&mut out, indent.clone()));
            } else if !is_first {
                out.push(' ');
            }
            out.push_str(word);
        }
        lines.push(out);
    }
    lines
}

/// As much of a line as has room.
pub(super) fn clip(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut column = 0;
    for c in line.chars() {
        column += c.width().unwrap_or_default();
        if column >= width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// The same for its end.
fn clip_start(line: &str, width: usize) -> String {
    let mut from = line.len();
    let mut column = 0;
    for (at, c) in line.char_indices().rev() {
        column += c.width().unwrap_or_default();
        if column > width {
            break;
        }
        from = at;
    }
    line.get(from..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
