use foldline_session_model::log::{SessionLog, Trust};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

const SESSION: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"first question"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"the file"}],"isError":false}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"an \u001b[31manswer"}],"stopReason":"stop"}}
{"type":"message","id":"b1","parentId":"a1","timestamp":"2026-01-01T00:00:05.000Z","message":{"role":"assistant","content":[{"type":"text","text":"another answer"}],"stopReason":"stop"}}
{"type":"compaction","id":"c1","parentId":"b1","timestamp":"2026-01-01T00:00:06.000Z","summary":"what was said","firstKeptEntryId":"b1","tokensBefore":51234}
{"type":"label","id":"l1","parentId":"c1","timestamp":"2026-01-01T00:00:07.000Z","targetId":"a4","label":"good"}
"#;

fn all() -> Vec<Row> {
    let log = SessionLog::load(SESSION.as_bytes().to_vec(), Trust::Validated).unwrap();
    rows(&log)
}

fn ids(view: &View<'_>) -> String {
    let ids: Vec<&str> = view.shown.iter().map(|i| view.rows[*i].id.as_str()).collect();
    ids.join(" ")
}

fn screen(view: &View<'_>, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows: Vec<String> = (0..height)
        .map(|y| {
            let row: String = (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect();
            row.trim_end().to_owned()
        })
        .collect();
    rows.join("\n")
}

fn press(view: &mut View<'_>, keys: &[(KeyCode, KeyModifiers)]) -> Option<Picked> {
    keys.iter()
        .find_map(|(code, modifiers)| view.press(KeyEvent::new(*code, *modifiers), 10))
}

fn plain(codes: &[KeyCode]) -> Vec<(KeyCode, KeyModifiers)> {
    codes.iter().map(|code| (*code, KeyModifiers::NONE)).collect()
}

fn letters(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

#[test]
fn filters_show_what_they_say() {
    let rows = all();
    let mut view = View::new(&rows, None);
    let mut shown = vec![format!("{}: {}", view.filter.name(), ids(&view))];
    for _ in 0..4 {
        press(&mut view, &[(KeyCode::Char('o'), KeyModifiers::CONTROL)]);
        shown.push(format!("{}: {}", view.filter.name(), ids(&view)));
    }
    insta::assert_snapshot!(shown.join("\n"));
    for (key, name) in [
        ('u', "user-only"),
        ('t', "no-tools"),
        ('l', "labeled-only"),
        ('a', "all"),
        ('d', "default"),
    ] {
        press(&mut view, &[(KeyCode::Char(key), KeyModifiers::ALT)]);
        assert_eq!(view.filter.name(), name);
    }
}

#[test]
fn search_takes_all_words_in_any_case_and_labels_too() {
    let rows = all();
    let mut view = View::new(&rows, None);
    press(&mut view, &plain(&letters("aNSWER an")));
    assert_eq!(ids(&view), "a4 b1");
    assert_eq!(press(&mut view, &plain(&[KeyCode::Esc])), None);
    press(&mut view, &plain(&letters("goodx")));
    assert_eq!(ids(&view), "");
    press(&mut view, &plain(&[KeyCode::Backspace]));
    assert_eq!(ids(&view), "a4");
    assert_eq!(
        press(&mut view, &plain(&[KeyCode::Enter])),
        Some(Picked::Entry("a4".to_owned()))
    );
}

#[test]
fn escape_clears_the_search_first() {
    let rows = all();
    let mut view = View::new(&rows, None);
    press(&mut view, &plain(&letters("x")));
    assert_eq!(press(&mut view, &plain(&[KeyCode::Esc])), None);
    assert_eq!(press(&mut view, &plain(&[KeyCode::Esc])), Some(Picked::Nothing));
}

#[test]
fn steps_wrap_and_pages_stop() {
    let rows = all();
    let mut view = View::new(&rows, Some("a1"));
    let last = view.shown.len() - 1;
    press(&mut view, &plain(&[KeyCode::Up]));
    assert_eq!(view.at, last);
    press(&mut view, &plain(&[KeyCode::Down]));
    assert_eq!(view.at, 0);
    press(&mut view, &plain(&[KeyCode::Right]));
    assert_eq!(view.at, last);
    press(&mut view, &plain(&[KeyCode::PageUp]));
    assert_eq!(view.at, 0);
}

#[test]
fn a_label_is_typed_over_the_old_one() {
    let rows = all();
    let mut view = View::new(&rows, Some("a4"));
    let mut keys = vec![(KeyCode::Char('L'), KeyModifiers::SHIFT)];
    keys.extend(plain(&[KeyCode::Backspace]));
    keys.extend(plain(&letters("l enough")));
    keys.extend(plain(&[KeyCode::Enter]));
    assert_eq!(
        press(&mut view, &keys),
        Some(Picked::Label {
            entry: "a4".to_owned(),
            label: "gool enough".to_owned(),
        })
    );
    press(&mut view, &[(KeyCode::Char('L'), KeyModifiers::SHIFT)]);
    assert_eq!(press(&mut view, &plain(&[KeyCode::Esc])), None);
    assert!(view.label.is_none());
}

#[test]
fn the_tree_at_eighty_columns() {
    let rows = all();
    insta::assert_snapshot!(screen(&View::new(&rows, None), 80, 10));
}

#[test]
fn a_tree_that_is_higher_than_the_screen_shows_the_chosen_row() {
    let rows = all();
    let mut view = View::new(&rows, Some("a1"));
    press(&mut view, &plain(&[KeyCode::Up]));
    insta::assert_snapshot!(screen(&view, 40, 5));
}

#[test]
fn an_empty_tree_has_no_rows() {
    let header = SESSION.lines().next().unwrap();
    let log = SessionLog::load(header.as_bytes().to_vec(), Trust::Validated).unwrap();
    assert!(rows(&log).is_empty());
}
