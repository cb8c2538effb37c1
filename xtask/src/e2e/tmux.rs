//! A terminal for programs that want one: tmux, with a server of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// A terminal with a program in it. Dropping it ends both.
pub(super) struct Terminal {
    /// The name of the tmux server.
    socket: String,
    /// For how long something is waited for.
    patience: Duration,
}

/// What a program is started with.
pub(super) struct Start<'s> {
    pub(super) columns: u16,
    pub(super) rows: u16,
    pub(super) folder: &'s Path,
    /// All of its environment.
    pub(super) variables: &'s [(&'s str, String)],
    /// For how long something is waited for.
    pub(super) patience: Duration,
    /// The program and its arguments; no word needs quotes.
    pub(super) command: &'s [String],
}

/// What is on the screen is looked at so often.
const LOOK: Duration = Duration::from_millis(100);

/// Whether there is a tmux.
pub(super) fn is_installed() -> bool {
    let version = Command::new("tmux")
        .arg("-V")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

impl Terminal {
    pub(super) fn open(socket: &str, start: &Start<'_>) -> anyhow::Result<Self> {
        let terminal = Self {
            socket: socket.to_owned(),
            patience: start.patience,
        };
        let variables: Vec<String> = start
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        // The program's end stays on the screen. A dead screen would be gone with it.
        let line = format!(
            "env -i {} {}; echo \"[exit $?]\"; sleep 600",
            variables.join(" "),
            start.command.join(" ")
        );
        let (columns, rows) = (start.columns.to_string(), start.rows.to_string());
        let folder = start.folder.display().to_string();
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-c",
            &folder,
            &line,
        ])?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("tmux")
            // Whatever the locale of this process is: screens are UTF-8.
            .args(["-u", "-L", &self.socket])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("tmux cannot be started")?;
        ensure!(
            output.status.success(),
            "tmux {}: {}",
            arguments.first().unwrap_or(&""),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Types a text as it is.
    pub(super) fn text(&self, text: &str) -> anyhow::Result<()> {
        self.tmux(&["send-keys", "-l", "--", text]).map(drop)
    }

    /// Presses a key by its tmux name.
    pub(super) fn key(&self, key: &str) -> anyhow::Result<()> {
        self.tmux(&["send-keys", key]).map(drop)
    }

    /// What is on the screen, without empty rows at its end. Rows that the terminal broke are whole.
    pub(super) fn screen(&self) -> anyhow::Result<String> {
        let screen = self.tmux(&["capture-pane", "-p", "-J"])?;
        let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
        Ok(lines.join("\n").trim_end().to_owned())
    }

    /// The same with colours and other styles as sequences.
    pub(super) fn styled(&self) -> anyhow::Result<String> {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the screen is as wanted, and returns it.
    pub(super) fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let started = Instant::now();
        loop {
            let screen = self.screen()?;
            if is_there(&screen) {
                return Ok(screen);
            }
            if started.elapsed() > self.patience {
                bail!(
                    "{what} did not come in {} s; the screen:\n{screen}",
                    self.patience.as_secs()
                );
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What the program calls its window.
    pub(super) fn title(&self) -> anyhow::Result<String> {
        self.tmux(&["display-message", "-p", "#{pane_title}"])
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.tmux(&["kill-server"]));
    }
}
