//! `/tree`: the places of a session, one of which is chosen (spec "Orchestrator and clients", 16).

mod rows;

use std::io;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use rows::RowKind;
pub(super) use rows::{Row, rows};

/// What the user wants of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Picked {
    /// To go there.
    Entry(String),
    /// To give an entry another label; an empty one takes it away.
    Label {
        entry: String,
        label: String,
    },
    Nothing,
}

/// Which rows are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Filter {
    #[default]
    Default,
    NoTools,
    UserOnly,
    LabeledOnly,
    All,
}

impl Filter {
    const fn next(self) -> Self {
        match self {
            Self::Default => Self::NoTools,
            Self::NoTools => Self::UserOnly,
            Self::UserOnly => Self::LabeledOnly,
            Self::LabeledOnly => Self::All,
            Self::All => Self::Default,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::NoTools => "no-tools",
            Self::UserOnly => "user-only",
            Self::LabeledOnly => "labeled-only",
            Self::All => "all",
        }
    }

    fn shows(self, row: &Row) -> bool {
        if row.is_leaf {
            return true;
        }
        match self {
            Self::All => true,
            Self::Default => !matches!(row.kind, RowKind::Bookkeeping | RowKind::Calls),
            Self::NoTools => !matches!(row.kind, RowKind::Bookkeeping | RowKind::Calls | RowKind::Tool),
            Self::UserOnly => row.kind == RowKind::User,
            Self::LabeledOnly => row.label.is_some(),
        }
    }
}

/// What the user sees of the tree, and does to it.
struct View<'r> {
    rows: &'r [Row],
    filter: Filter,
    search: String,
    /// The label that is being typed.
    label: Option<String>,
    /// Positions in `rows` that are shown.
    shown: Vec<usize>,
    /// Position in `shown`.
    at: usize,
}

impl<'r> View<'r> {
    /// Begins at an entry, or where the session stands.
    fn new(rows: &'r [Row], at: Option<&str>) -> Self {
        let mut view = Self {
            rows,
            filter: Filter::default(),
            search: String::new(),
            label: None,
            shown: Vec::new(),
            at: 0,
        };
        view.refresh();
        let wanted = |row: &Row| at.map_or(row.is_leaf, |id| row.id == id);
        view.at = view
            .shown
            .iter()
            .position(|i| rows.get(*i).is_some_and(wanted))
            .unwrap_or_default();
        view
    }

    /// Shows what filter and search let through; the chosen row stays if it is among them.
    fn refresh(&mut self) {
        let chosen = self.shown.get(self.at).copied();
        let words: Vec<String> = self
            .search
            .to_lowercase()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let is_found = |row: &Row| {
            let text = format!("{} {}", row.label.as_deref().unwrap_or_default(), row.text).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.shown = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| self.filter.shows(row) && is_found(row))
            .map(|(i, _)| i)
            .collect();
        let stays = chosen.and_then(|chosen| self.shown.iter().position(|i| *i == chosen));
        self.at = stays.unwrap_or_else(|| self.shown.len().saturating_sub(1));
    }

    fn show(&mut self, filter: Filter) {
        self.filter = filter;
        self.refresh();
    }

    /// One row up or down; behind the last comes the first.
    fn step(&mut self, down: bool) {
        let count = self.shown.len();
        if count > 0 {
            self.at = (self.at + if down { 1 } else { count - 1 }) % count;
        }
    }

    fn page(&mut self, down: bool, rows: usize) {
        let last = self.shown.len().saturating_sub(1);
        self.at = if down {
            (self.at + rows).min(last)
        } else {
            self.at.saturating_sub(rows)
        };
    }

    fn chosen(&self) -> Option<&'r Row> {
        self.shown.get(self.at).and_then(|i| self.rows.get(*i))
    }

    /// What a key does. Something is returned when the tree is done with.
    fn press(&mut self, key: KeyEvent, height: usize) -> Option<Picked> {
        if self.label.is_some() {
            return self.press_in_label(key);
        }
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc if !self.search.is_empty() => {
                self.search.clear();
                self.refresh();
            }
            KeyCode::Esc => return Some(Picked::Nothing),
            KeyCode::Char('c' | 'd') if control => return Some(Picked::Nothing),
            KeyCode::Enter => {
                return self.chosen().map(|row| Picked::Entry(row.id.clone()));
            }
            KeyCode::Up => self.step(false),
            KeyCode::Down => self.step(true),
            KeyCode::Left | KeyCode::PageUp => self.page(false, height),
            KeyCode::Right | KeyCode::PageDown => self.page(true, height),
            KeyCode::Char('o') if control => self.show(self.filter.next()),
            KeyCode::Char(c) if alt => match c {
                'd' => self.show(Filter::Default),
                't' => self.show(Filter::NoTools),
                'u' => self.show(Filter::UserOnly),
                'l' => self.show(Filter::LabeledOnly),
                'a' => self.show(Filter::All),
                _ => {}
            },
            KeyCode::Char('L') => {
                self.label = self.chosen().map(|row| row.label.clone().unwrap_or_default());
            }
            KeyCode::Backspace => {
                self.search.pop();
                self.refresh();
            }
            KeyCode::Char(c) if !control => {
                self.search.push(c);
                self.refresh();
            }
            _ => {}
        }
        None
    }

    fn press_in_label(&mut self, key: KeyEvent) -> Option<Picked> {
        let label = self.label.as_mut()?;
        match key.code {
            KeyCode::Esc => self.label = None,
            KeyCode::Enter => {
                let label = self.label.take().unwrap_or_default();
                return self.chosen().map(|row| Picked::Label {
                    entry: row.id.clone(),
                    label: label.trim().to_owned(),
                });
            }
            KeyCode::Backspace => {
                label.pop();
            }
            KeyCode::Char(c) => label.push(c),
            _ => {}
        }
        None
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let parts = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
        let [head, list, foot] = Layout::vertical(parts).areas(frame.area());
        let title = match &self.label {
            Some(label) => format!("Label: {label}▏"),
            None => format!(
                "Session tree   filter: {}   search: {}▏",
                self.filter.name(),
                self.search
            ),
        };
        frame.render_widget(
            Paragraph::new(title).style(Style::new().add_modifier(Modifier::BOLD)),
            head,
        );
        let height = usize::from(list.height).max(1);
        let from = self
            .at
            .saturating_sub(height / 2)
            .min(self.shown.len().saturating_sub(height));
        let lines: Vec<Line<'_>> = self
            .shown
            .iter()
            .enumerate()
            .skip(from)
            .take(height)
            .filter_map(|(at, i)| self.rows.get(*i).map(|row| line(row, at == self.at)))
            .collect();
        frame.render_widget(Paragraph::new(lines), list);
        let keys = match self.label {
            Some(_) => "Enter sets the label, an empty one takes it away   Esc leaves it",
            None => "Enter goes there   letters search   Ctrl-O filters   L labels   Esc leaves",
        };
        frame.render_widget(
            Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)),
            foot,
        );
    }
}

/// Branches that lie deeper are not drawn further to the right.
const DEEPEST: usize = 12;

fn line(row: &Row, is_chosen: bool) -> Line<'_> {
    let mut spans = vec![
        Span::raw(if is_chosen { "› " } else { "  " }),
        Span::raw("  ".repeat(row.depth.min(DEEPEST))),
        Span::raw(if row.is_active { "• " } else { "  " }),
    ];
    if let Some(label) = &row.label {
        spans.push(Span::styled(
            format!("[{label}] "),
            Style::new().add_modifier(Modifier::BOLD),
        ));
    }
    let mut style = Style::new();
    if !row.is_active {
        style = style.add_modifier(Modifier::DIM);
    }
    if is_chosen {
        style = style.add_modifier(Modifier::REVERSED);
    }
    if row.is_leaf {
        spans.push(Span::raw("(here) "));
    }
    spans.push(Span::styled(row.text.as_str(), style));
    Line::from(spans)
}

/// Lets the user choose a place.
pub(super) fn choose(rows: &[Row], at: Option<&str>) -> io::Result<Picked> {
    let mut terminal = ratatui::try_init()?;
    let mut view = View::new(rows, at);
    let picked = loop {
        if let Err(error) = terminal.draw(|frame| view.draw(frame)) {
            break Err(error);
        }
        let height = terminal.size().map_or(20, |size| usize::from(size.height));
        match event::read() {
            Err(error) => break Err(error),
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                if let Some(picked) = view.press(key, height.saturating_sub(2).max(1)) {
                    break Ok(picked);
                }
            }
            Ok(_) => {}
        }
    };
    ratatui::try_restore()?;
    picked
}

#[cfg(test)]
mod tests;
