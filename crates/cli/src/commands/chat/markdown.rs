//! Markdown as it streams: a block is rendered when it is whole, a line of code at once. Until then it is shown as it is.

mod block;

use crate::view::is_harmless;

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Columns of a line.
    pub(super) width: usize,
    pub(super) colours: Colours,
}

/// Whether styles are shown; without them marks of Markdown stay where they carry meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    Shown,
    None,
}

/// An answer that is still coming. What a model says never becomes an escape sequence.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// The block so far: whole lines.
    block: String,
    /// The line so far.
    line: String,
    /// Whether the block ends in an empty line, which a list survives.
    paused: bool,
    /// The fence of the code that is coming: its mark, and how many.
    fence: Option<(char, usize)>,
    /// Whether something was returned, so that a gap comes before the next block.
    begun: bool,
}

impl Markdown {
    /// Takes a piece of text and returns what it completes: styled lines, each with its line break.
    pub(super) fn push(&mut self, piece: &str, layout: Layout) -> String {
        let mut out = String::new();
        for c in piece.chars() {
            match c {
                '\n' => {
                    let line = std::mem::take(&mut self.line);
                    self.take(&line, layout, &mut out);
                }
                '\t' => self.line.push_str("    "),
                c if is_harmless(c) => self.line.push(c),
                _ => {}
            }
        }
        out
    }

    /// The answer is whole. Returns the rest of it.
    pub(super) fn finish(&mut self, layout: Layout) -> String {
        let mut out = String::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take(&line, layout, &mut out);
        }
        self.flush(layout, &mut out);
        *self = Self::default();
        out
    }

    /// What came and is not rendered yet.
    pub(super) fn rest(&self) -> impl Iterator<Item = &str> {
        self.block.lines().chain(std::iter::once(self.line.as_str()))
    }

    fn take(&mut self, line: &str, layout: Layout, out: &mut String) {
        if let Some(fence) = self.fence {
            if closes(line, fence) {
                self.fence = None;
            } else {
                block::code(line, layout, out);
            }
            return;
        }
        if line.trim().is_empty() {
            if is_list(&self.block) {
                self.block.push('\n');
                self.paused = true;
            } else {
                self.flush(layout, out);
            }
            return;
        }
        if self.paused
            && !line.starts_with("  ")
            && list_mark(line) != self.block.lines().next().and_then(list_mark)
        {
            self.flush(layout, out);
        }
        self.paused = false;
        if let Some(fence) = opens(line) {
            self.flush(layout, out);
            self.gap(out);
            self.fence = Some(fence);
            return;
        }
        if is_heading(line) {
            self.flush(layout, out);
            self.block.push_str(line);
            self.flush(layout, out);
            return;
        }
        self.block.push_str(line);
        self.block.push('\n');
    }

    /// Renders the block.
    fn flush(&mut self, layout: Layout, out: &mut String) {
        self.paused = false;
        if !self.block.trim().is_empty() {
            self.gap(out);
            out.push_str(&block::render(&self.block, layout));
        }
        self.block.clear();
    }

    fn gap(&mut self, out: &mut String) {
        if std::mem::replace(&mut self.begun, true) {
            out.push('\n');
        }
    }
}

/// A fence at the margin; one within a list belongs to its block.
fn opens(line: &str) -> Option<(char, usize)> {
    let rest = line.trim_start_matches(' ');
    if line.len() - rest.len() > 3 {
        return None;
    }
    let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let count = rest.chars().take_while(|c| *c == mark).count();
    // Code within a line may begin with as many ticks.
    let is_fence = count >= 3 && !rest.trim_start_matches(mark).contains('`');
    is_fence.then_some((mark, count))
}

fn closes(line: &str, (mark, count): (char, usize)) -> bool {
    let line = line.trim();
    line.chars().count() >= count && line.chars().all(|c| c == mark)
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && rest.starts_with(' ')
}

fn is_list(block: &str) -> bool {
    block.lines().next().is_some_and(|line| list_mark(line).is_some())
}

/// The mark of a list item: that behind its number, or its bullet. Items with the same mark are one list.
fn list_mark(line: &str) -> Option<char> {
    let line = line.trim_start_matches(' ');
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[char] = if rest.len() < line.len() {
        &['.', ')']
    } else {
        &['-', '*', '+']
    };
    let mark = rest.chars().next().filter(|c| marks.contains(c))?;
    rest.get(1..)
        .is_some_and(|rest| rest.starts_with(' '))
        .then_some(mark)
}

#[cfg(test)]
mod tests;
