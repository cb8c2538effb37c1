//! A question with a few answers: which session, whether a branch is summed up.

use std::io;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// What came of a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The answer at this place.
    Choice(usize),
    /// The last answer, with what was typed for it.
    Typed(String),
    None,
}

/// Whether the last answer wants a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Plain,
    WantsText,
}

struct Menu<'m> {
    title: &'m str,
    answers: &'m [String],
    last: Last,
    at: usize,
    typing: Option<String>,
}

impl Menu<'_> {
    fn press(&mut self, key: KeyEvent) -> Option<Answer> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(text) = &mut self.typing {
            match key.code {
                // Back to the question.
                KeyCode::Esc => self.typing = None,
                KeyCode::Enter => return Some(Answer::Typed(text.trim().to_owned())),
                KeyCode::Backspace => {
                    text.pop();
                }
                KeyCode::Char(c) if !control => text.push(c),
                _ => {}
            }
            return None;
        }
        let count = self.answers.len().max(1);
        match key.code {
            KeyCode::Esc => return Some(Answer::None),
            KeyCode::Char('c' | 'd') if control => return Some(Answer::None),
            KeyCode::Up => self.at = (self.at + count - 1) % count,
            KeyCode::Down => self.at = (self.at + 1) % count,
            KeyCode::Enter if self.last == Last::WantsText && self.at + 1 == count => {
                self.typing = Some(String::new());
            }
            KeyCode::Enter => return Some(Answer::Choice(self.at)),
            _ => {}
        }
        None
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let parts = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
        let [head, list, foot] = Layout::vertical(parts).areas(frame.area());
        frame.render_widget(
            Paragraph::new(self.title).style(Style::new().add_modifier(Modifier::BOLD)),
            head,
        );
        let height = usize::from(list.height).max(1);
        let from = self.at.saturating_sub(height.saturating_sub(2));
        let mut lines = Vec::new();
        for (i, answer) in self.answers.iter().enumerate().skip(from).take(height) {
            let (mark, style) = if i == self.at {
                ("› ", Style::new().add_modifier(Modifier::REVERSED))
            } else {
                ("  ", Style::new())
            };
            lines.push(Line::from(mark) + ratatui::text::Span::styled(answer.as_str(), style));
        }
        if let Some(text) = &self.typing {
            lines.push(Line::from(format!("    {text}▏")));
        }
        frame.render_widget(Paragraph::new(lines), list);
        frame.render_widget(
            Paragraph::new("Enter chooses   Esc goes back").style(Style::new().add_modifier(Modifier::DIM)),
            foot,
        );
    }
}

/// Asks.
pub(super) fn ask(title: &str, answers: &[String], last: Last) -> io::Result<Answer> {
    let mut menu = Menu {
        title,
        answers,
        last,
        at: 0,
        typing: None,
    };
    let mut terminal = ratatui::try_init()?;
    let answer = loop {
        if let Err(error) = terminal.draw(|frame| menu.draw(frame)) {
            break Err(error);
        }
        match event::read() {
            Err(error) => break Err(error),
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                if let Some(answer) = menu.press(key) {
                    break Ok(answer);
                }
            }
            Ok(_) => {}
        }
    };
    ratatui::try_restore()?;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(menu: &mut Menu<'_>, keys: &[KeyCode]) -> Option<Answer> {
        keys.iter()
            .find_map(|key| menu.press(KeyEvent::new(*key, KeyModifiers::NONE)))
    }

    #[test]
    fn keys_choose() {
        let answers = ["none", "some", "text"].map(str::to_owned);
        let letters = [KeyCode::Char('h'), KeyCode::Char('i'), KeyCode::Char('!')];
        let typed = [
            &[KeyCode::Up, KeyCode::Enter][..],
            &letters,
            &[KeyCode::Backspace, KeyCode::Enter],
        ]
        .concat();
        let back = [
            KeyCode::Up,
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Down,
            KeyCode::Enter,
        ];
        for (keys, answer) in [
            (&[KeyCode::Enter][..], Answer::Choice(0)),
            (&[KeyCode::Down, KeyCode::Enter], Answer::Choice(1)),
            (&typed, Answer::Typed("hi".to_owned())),
            (&back, Answer::Choice(0)),
            (&[KeyCode::Down, KeyCode::Esc], Answer::None),
        ] {
            let mut menu = Menu {
                title: "?",
                answers: &answers,
                last: Last::WantsText,
                at: 0,
                typing: None,
            };
            assert_eq!(pressed(&mut menu, keys), Some(answer), "{keys:?}");
        }
    }
}
