//! A sign of life on standard error while something takes long.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner with a text; invisible if standard error is no terminal. It disappears when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn start(text: &'static str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(text);
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    pub(crate) fn step(&self, text: impl Into<Cow<'static, str>>) {
        self.bar.set_message(text);
    }

    /// Prints something while the spinner steps aside.
    pub(crate) fn say(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
