use std::cell::RefCell;
use std::rc::Rc;

use foldline_agent_session::event::{Delta, Event, NoticeLevel};
use foldline_session_model::model_call::{RawJson, ToolOutcome};

use super::*;

#[derive(Clone, Default)]
struct Written(Rc<RefCell<Vec<u8>>>);

impl Written {
    fn take(&self) -> String {
        String::from_utf8(self.0.borrow_mut().split_off(0)).unwrap()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn screen(surface: Surface, colours: Colours) -> (Screen, Written) {
    let written = Written::default();
    (Screen::new(Box::new(written.clone()), surface, colours), written)
}

const SMALL: Surface = Surface::Terminal(|| (40, 12));

#[test]
fn what_is_drawn_again_is_erased_first() {
    let (mut screen, written) = screen(SMALL, Colours::None);
    screen.begin(Mode::Raw);
    assert_eq!(written.take(), "Working... 0s (esc to cancel)");
    screen.typed("hello");
    assert_eq!(
        written.take(),
        "\r\u{1b}[JWorking... 0s (esc to cancel)\r\n> hello"
    );
    screen.typed("");
    assert_eq!(written.take(), "\r\u{1b}[1A\u{1b}[JWorking... 0s (esc to cancel)");
    screen.tick();
    assert_eq!(written.take(), "", "nothing has moved");
    screen.note("one");
    assert_eq!(written.take(), "\r\u{1b}[Jone\r\nWorking... 0s (esc to cancel)");
    screen.end();
    assert_eq!(written.take(), "\r\u{1b}[J");
    screen.note("two");
    assert_eq!(written.take(), "two\n");
}

#[test]
fn an_answer_that_comes_stands_above_the_clock() {
    let (mut screen, written) = screen(SMALL, Colours::None);
    screen.begin(Mode::Raw);
    written.take();
    screen.piece("some **words");
    screen.tick();
    assert_eq!(
        written.take(),
        "\r\u{1b}[Jsome **words\r\nWorking... 0s (esc to cancel)"
    );
    screen.piece("**\n\nmore");
    assert_eq!(
        written.take(),
        "\r\u{1b}[1A\u{1b}[Jsome words\r\nmore\r\nWorking... 0s (esc to cancel)"
    );
    screen.end();
    assert!(written.take().contains("\r\nmore\r\n"));
}

#[test]
fn what_is_drawn_again_has_never_more_rows_than_there_is_room() {
    let (mut screen, written) = screen(SMALL, Colours::None);
    screen.begin(Mode::Raw);
    screen.piece(&"word ".repeat(500));
    screen.typed(&"typed ".repeat(50));
    let last = written.take();
    let drawn = last.rsplit("\u{1b}[J").next().unwrap();
    assert_eq!(drawn.split("\r\n").count(), 12 / 3 + 2);
    assert!(drawn.split("\r\n").all(|line| line.width() < 40), "{drawn:?}");
}

#[test]
fn a_stream_is_written_once_and_has_no_clock() {
    let (mut screen, written) = screen(Surface::Stream, Colours::None);
    screen.begin(Mode::Cooked);
    screen.tick();
    screen.piece("an **answer**");
    screen.end_answer();
    screen.end();
    screen.error("it failed");
    assert_eq!(written.take(), "an answer\nerror: it failed\n");
}

/// Everything that a model, a tool, a provider or a hook says, with sequences in it.
fn hostile() -> Vec<Event> {
    let evil = || "x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{8}\u{202e}y".to_owned();
    let arguments = serde_json::value::RawValue::from_string(r#"{"path":"a\u001b[2Jb"}"#.to_owned()).unwrap();
    let message = |role| Event::MessageEnd {
        role,
        entry_id: None,
        text: evil(),
        usage: None,
        error_message: Some(evil()),
    };
    vec![
        Event::MessageUpdate {
            assistant_message_event: Delta::TextDelta {
                content_index: 0,
                delta: evil(),
            },
        },
        message("assistant"),
        message("user"),
        message("toolResult"),
        Event::ToolExecutionStart {
            tool_call_id: evil(),
            tool_name: evil(),
            args: RawJson::from(arguments),
        },
        Event::ToolExecutionEnd {
            tool_call_id: evil(),
            tool_name: evil(),
            outcome: ToolOutcome::Error,
        },
        Event::AutoRetryStart {
            attempt: 1,
            max_attempts: 3,
            delay_ms: 1000,
            error_message: evil(),
        },
        Event::ModelFallbackStart {
            from: evil(),
            to: evil(),
            reason: evil(),
        },
        Event::ModelChanged {
            model: evil(),
            temporary: false,
        },
        Event::Notice {
            level: NoticeLevel::Info,
            message: evil(),
            source: None,
        },
        Event::Notice {
            level: NoticeLevel::Error,
            message: evil(),
            source: None,
        },
        Event::ExtensionError {
            extension_path: evil(),
            event: evil(),
            error: evil(),
        },
    ]
}

#[test]
fn nothing_that_is_told_commands_the_terminal() {
    for event in hostile() {
        for surface in [SMALL, Surface::Stream] {
            let (mut screen, written) = screen(surface, Colours::None);
            screen.begin(Mode::Raw);
            screen.show(&event);
            if let Some(failure) = screen.failure.take() {
                screen.error(&failure);
            }
            screen.end();
            // What is left without our own ways to draw again.
            let mut shown = written.take().replace("\r\n", "").replace("\u{1b}[J", "");
            for rows in 1..12 {
                shown = shown.replace(&format!("\u{1b}[{rows}A"), "");
            }
            let shown = shown.replace('\r', "");
            assert!(
                shown.chars().all(crate::view::is_harmless),
                "{event:?}: {shown:?}"
            );
        }
    }
}

#[test]
fn lines_are_broken_between_words() {
    for (text, width, lines) in [
        ("one two three", 8, &["one two", "three"][..]),
        ("  one two three", 8, &["  one", "  two", "  three"]),
        ("averylongword", 5, &["averylongword"]),
        ("日本語 日本語", 8, &["日本語", "日本語"]),
        ("a\n\nb\n", 8, &["a", "", "b"]),
        ("", 8, &[""]),
    ] {
        assert_eq!(wrap(text, width), lines, "{text:?}");
    }
    assert_eq!(clip("日本語", 6), "日本語");
    assert_eq!(clip("日本語", 5), "日本…");
    assert_eq!(clip_start("日本語", 5), "本語");
}
