//! Keys that are pressed while something runs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEventKind, KeyModifiers,
};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a key means while something runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Esc.
    Cancel,
    /// Ctrl-C: the second one leaves.
    Interrupt,
    Text(String),
    Back,
    Enter,
}

/// Watches the keyboard until it is dropped.
pub(super) struct Keys {
    keys: UnboundedReceiver<Key>,
    watcher: Watcher,
}

enum Watcher {
    /// A thread that reads the terminal in raw mode.
    Terminal {
        stop: Arc<AtomicBool>,
        thread: JoinHandle<()>,
    },
    /// There is no keyboard; interrupts come as signals.
    Signals(Interrupt),
    /// Nothing is watched any more.
    Nobody,
}

/// The next interrupt.
type Interrupt = Pin<Box<dyn Future<Output = std::io::Result<()>>>>;

/// How long a key may wait until it is seen.
const WAIT: Duration = Duration::from_millis(40);

impl Keys {
    /// Takes the terminal over.
    pub(super) fn of_terminal() -> std::io::Result<Self> {
        enable_raw_mode()?;
        // Without it a paste of several lines is several messages.
        crossterm::execute!(std::io::stdout(), EnableBracketedPaste).ok();
        let (sender, keys) = unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || watch(&stopped, &sender));
        Ok(Self {
            keys,
            watcher: Watcher::Terminal { stop, thread },
        })
    }

    /// Where lines come from a pipe.
    pub(super) fn of_signals() -> Self {
        let (_, keys) = unbounded_channel();
        Self {
            keys,
            watcher: Watcher::Signals(Box::pin(tokio::signal::ctrl_c())),
        }
    }

    /// The next key.
    pub(super) async fn next(&mut self) -> Key {
        if let Some(key) = self.keys.recv().await {
            return key;
        }
        if let Watcher::Signals(interrupt) = &mut self.watcher
            && interrupt.await.is_ok()
        {
            self.watcher = Watcher::Signals(Box::pin(tokio::signal::ctrl_c()));
            return Key::Interrupt;
        }
        self.watcher = Watcher::Nobody;
        std::future::pending().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Watcher::Terminal { stop, thread } = std::mem::replace(&mut self.watcher, Watcher::Nobody) {
            stop.store(true, Ordering::Relaxed);
            // It has no result, and what it panicked with was shown.
            drop(thread.join());
            crossterm::execute!(std::io::stdout(), DisableBracketedPaste).ok();
            disable_raw_mode().ok();
        }
    }
}

fn watch(stopped: &AtomicBool, sender: &UnboundedSender<Key>) {
    while !stopped.load(Ordering::Relaxed) {
        match event::poll(WAIT) {
            Ok(false) => {}
            Ok(true) => {
                let Ok(event) = event::read() else { return };
                if let Some(key) = meaning(event)
                    && sender.send(key).is_err()
                {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

fn meaning(event: Event) -> Option<Key> {
    let key = match event {
        Event::Paste(text) => return Some(Key::Text(text.split_whitespace().collect::<Vec<_>>().join(" "))),
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return None,
    };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => Some(Key::Cancel),
        KeyCode::Char('c') if control => Some(Key::Interrupt),
        KeyCode::Char(c) if !control => Some(Key::Text(c.to_string())),
        KeyCode::Backspace => Some(Key::Back),
        KeyCode::Enter => Some(Key::Enter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_have_meanings() {
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        for (code, modifiers, key) in [
            (KeyCode::Esc, none, Some(Key::Cancel)),
            (KeyCode::Char('c'), control, Some(Key::Interrupt)),
            (KeyCode::Char('c'), none, Some(Key::Text("c".to_owned()))),
            (
                KeyCode::Char('C'),
                KeyModifiers::SHIFT,
                Some(Key::Text("C".to_owned())),
            ),
            (KeyCode::Char('u'), control, None),
            (KeyCode::Enter, none, Some(Key::Enter)),
            (KeyCode::Backspace, none, Some(Key::Back)),
            (KeyCode::F(1), none, None),
        ] {
            let event = Event::Key(KeyEvent::new(code, modifiers));
            assert_eq!(meaning(event), key, "{code:?} {modifiers:?}");
        }
    }

    #[test]
    fn only_presses_count_and_a_paste_is_one_text() {
        let mut key = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(meaning(Event::Key(key)), None);
        assert_eq!(meaning(Event::Resize(80, 24)), None);
        let pasted = meaning(Event::Paste("one\ntwo  three\r\n".to_owned()));
        assert_eq!(pasted, Some(Key::Text("one two three".to_owned())));
    }
}
