//! One block of Markdown as styled lines.

use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use super::{Colours, Layout};
use crate::output::styles::{BOLD, DIM, NOTE};
use crate::view::harmless;

const ITALIC: Style = Style::new().italic();
const STRUCK: Style = Style::new().strikethrough();

/// A line of code. It is not broken: who copies it gets it whole.
pub(super) fn code(line: &str, layout: Layout, out: &mut String) {
    let line = harmless(line.trim_end());
    match layout.colours {
        Colours::Shown => out.push_str(&format!("  {NOTE}{line}{NOTE:#}\n")),
        Colours::None => out.push_str(&format!("    {line}\n")),
    }
}

/// A block that is no code.
pub(super) fn render(text: &str, layout: Layout) -> String {
    let mut drawing = Drawing::new(layout);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        drawing.take(event);
    }
    drawing.end_line();
    drawing.out
}

/// A word and how it looks.
struct Word {
    text: String,
    style: Style,
    /// Whether a space comes before it.
    spaced: bool,
}

/// What stands before the lines of a list item or a quotation.
struct Indent {
    first: String,
    rest: String,
    used: bool,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
}

struct Drawing {
    layout: Layout,
    out: String,
    /// The line that is being gathered, before it is broken.
    words: Vec<Word>,
    /// Whether the next word follows a space.
    spaced: bool,
    styles: Vec<Style>,
    indents: Vec<Indent>,
    /// Numbers of the lists around: the next one, or none for bullets.
    lists: Vec<Option<u64>>,
    links: Vec<String>,
    table: Option<Table>,
    in_code: bool,
}

impl Drawing {
    const fn new(layout: Layout) -> Self {
        Self {
            layout,
            out: String::new(),
            words: Vec::new(),
            spaced: false,
            styles: Vec::new(),
            indents: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            table: None,
            in_code: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => {
                for line in text.lines() {
                    let prefix = self.prefix();
                    self.out.push_str(&prefix);
                    code(line, self.layout, &mut self.out);
                }
            }
            Event::Text(text) | Event::InlineHtml(text) => self.text(&text),
            // A block of it comes line by line.
            Event::Html(text) => {
                self.text(&text);
                self.end_line();
            }
            Event::Code(text) => match self.layout.colours {
                Colours::Shown => self.styled(&text, NOTE),
                Colours::None => self.text(&format!("`{text}`")),
            },
            Event::SoftBreak => self.spaced = true,
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.text(&"─".repeat(self.layout.width.min(40)));
                self.end_line();
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.styles.push(BOLD);
                self.text(&"#".repeat(level as usize));
                self.spaced = true;
            }
            Tag::Paragraph => self.end_line(),
            Tag::BlockQuote(_) => {
                self.end_line();
                self.indent("│ ", "│ ");
                self.styles.push(DIM);
            }
            Tag::CodeBlock(kind) => {
                self.end_line();
                self.in_code = true;
                if matches!(kind, CodeBlockKind::Indented) {
                    self.styles.push(Style::new());
                }
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(mark.width());
                self.indent(&mark, &rest);
            }
            Tag::Emphasis => self.styles.push(ITALIC),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Strikethrough => self.styles.push(STRUCK),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
            }
            Tag::Table(_) => self.table = Some(Table::default()),
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.words.clear(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_line();
                self.styles.pop();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.indents.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.in_code = false,
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.end_line();
                self.indents.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                if let Some(target) = self.links.pop()
                    && self.words.last().is_none_or(|word| word.text != target)
                {
                    self.spaced = true;
                    self.styled(&format!("({target})"), DIM);
                }
            }
            TagEnd::TableCell => {
                let cell = line_of(&std::mem::take(&mut self.words));
                self.spaced = false;
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.draw(&table);
                }
            }
            _ => {}
        }
    }

    fn indent(&mut self, first: &str, rest: &str) {
        self.indents.push(Indent {
            first: first.to_owned(),
            rest: rest.to_owned(),
            used: false,
        });
    }

    fn text(&mut self, text: &str) {
        let style = self.styles.iter().fold(Style::new(), |all, style| {
            all.effects(all.get_effects() | style.get_effects())
        });
        self.styled(text, style);
    }

    fn styled(&mut self, text: &str, style: Style) {
        // References such as `&#27;` have become what they stand for by now.
        let text = harmless(text);
        if text.is_empty() {
            return;
        }
        self.spaced |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.words.push(Word {
                text: word.to_owned(),
                style,
                spaced: std::mem::replace(&mut self.spaced, true),
            });
        }
        self.spaced = text.ends_with(char::is_whitespace);
    }

    fn prefix(&mut self) -> String {
        let mut prefix = String::new();
        for indent in &mut self.indents {
            let used = std::mem::replace(&mut indent.used, true);
            prefix.push_str(if used { &indent.rest } else { &indent.first });
        }
        prefix
    }

    /// Breaks the gathered words into lines.
    fn end_line(&mut self) {
        self.spaced = false;
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        let mut line = self.prefix();
        let (mut column, mut is_first) = (line.width(), true);
        for group in words.chunk_by(|_, next| !next.spaced) {
            let width: usize = group.iter().map(|word| word.text.width()).sum();
            if !is_first && column + 1 + width > self.layout.width {
                self.out.push_str(&line);
                self.out.push('\n');
                line = self.prefix();
                column = line.width();
            } else if !is_first {
                line.push(' ');
                column += 1;
            }
            for Word { text, style, .. } in group {
                line.push_str(&format!("{style}{text}{style:#}"));
            }
            column += width;
            is_first = false;
        }
        self.out.push_str(&line);
        self.out.push('\n');
    }

    /// A table with its columns below each other; where it is too wide, its cells one after the other.
    fn draw(&mut self, table: &Table) {
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|i| {
                table
                    .rows
                    .iter()
                    .filter_map(|row| row.get(i))
                    .map(|cell| cell.width())
                    .max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        let whole = widths.iter().sum::<usize>() + 3 * columns.saturating_sub(1);
        let fits = whole <= self.layout.width;
        for (i, row) in table.rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| {
                    let room = if fits { width - cell.width() } else { 0 };
                    format!("{cell}{}", " ".repeat(room))
                })
                .collect();
            let line = cells.join(" │ ");
            let style = if i == 0 { BOLD } else { Style::new() };
            self.out
                .push_str(&format!("{style}{}{style:#}\n", line.trim_end()));
            if i == 0 && fits {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.out.push_str(&format!("{}\n", rule.join("─┼─")));
            }
        }
    }
}

fn line_of(words: &[Word]) -> String {
    let mut line = String::new();
    for (i, word) in words.iter().enumerate() {
        if i > 0 && word.spaced {
            line.push(' ');
        }
        line.push_str(&word.text);
    }
    line
}
