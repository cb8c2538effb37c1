//! Where the user types: a line editor with history, or lines of a stream.

use std::borrow::Cow;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use foldline_session_store::Layout;
use reedline::{
    ColumnarMenu, Completer, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder as _,
    Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span,
    Suggestion, default_emacs_keybindings,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};

use super::command;
use super::markdown::Colours;

/// What came from the user.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the stream.
    End,
    /// Nothing was typed for as long as was asked.
    Idle,
}

/// A source of lines.
pub(super) enum Input {
    Editor(Box<Reedline>),
    Stream(Receiver<String>),
}

/// Lines that the editor remembers.
const HISTORY: usize = 2_000;

impl Input {
    /// The editor of a terminal.
    pub(super) fn editor(colours: Colours, history: Option<&Path>) -> Self {
        let menu = ColumnarMenu::default().with_name("commands");
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![
                ReedlineEvent::Menu("commands".to_owned()),
                ReedlineEvent::MenuNext,
            ]),
        );
        let mut editor = Reedline::create()
            .with_ansi_colors(colours == Colours::Shown)
            .use_bracketed_paste(true)
            .with_quick_completions(true)
            .with_completer(Box::new(Commands))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys)));
        // Without a place to keep it, it is remembered until the end.
        let kept = history.and_then(|file| {
            private(file).ok()?;
            FileBackedHistory::with_file(HISTORY, file.to_path_buf()).ok()
        });
        if let Some(kept) = kept {
            editor = editor.with_history(Box::new(kept));
        }
        Self::Editor(Box::new(editor))
    }

    /// The lines of standard input.
    pub(super) fn stream() -> Self {
        let (sender, lines) = channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().split(b'\n') {
                let Ok(line) = line else { return };
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self::Stream(lines)
    }

    /// The next line. `text` stands in the editor already; after `idle` without a key, that is told.
    pub(super) fn next(
        &mut self,
        runtime: &Runtime,
        prompt: &str,
        text: Option<&str>,
        idle: Option<Duration>,
    ) -> std::io::Result<Typed> {
        match self {
            Self::Editor(editor) => {
                if let Some(text) = text {
                    editor.run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
                } else if let Some(idle) = idle
                    && !is_touched(prompt, idle)?
                {
                    return Ok(Typed::Idle);
                }
                let typed = editor.read_line(&Line(prompt))?;
                // What is typed here is there in the next chat, even if this one is killed.
                editor.sync_history().ok();
                Ok(match typed {
                    Signal::Success(line) => Typed::Line(line),
                    Signal::CtrlC => Typed::Interrupt,
                    Signal::CtrlD => Typed::End,
                })
            }
            Self::Stream(lines) => {
                if std::io::stdin().is_terminal() {
                    show(prompt)?;
                }
                Ok(runtime.block_on(async {
                    tokio::select! {
                    line = lines.recv() => line.map_or(Typed::End, Typed::Line),
                        _ = tokio::signal::ctrl_c() => Typed::End,
                    }
                }))
            }
        }
    }
}

fn show(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Waits for the first key, which stays for the editor. Says whether one came.
fn is_touched(prompt: &str, idle: Duration) -> std::io::Result<bool> {
    crossterm::terminal::enable_raw_mode()?;
    show(prompt)?;
    let touched = crossterm::event::poll(idle);
    // The editor draws its prompt itself.
    show("\r\u{1b}[K")?;
    crossterm::terminal::disable_raw_mode()?;
    touched
}

/// The history of this user's chats.
pub(super) fn history() -> Option<std::path::PathBuf> {
    Layout::from_environment()
        .ok()
        .map(|layout| layout.chat_history())
}

/// A file that only its owner reads.
fn private(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut folder = std::fs::DirBuilder::new();
    options.create(true).append(true);
    folder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        options.mode(0o600);
        folder.mode(0o700);
    }
    if let Some(parent) = file.parent() {
        folder.create(parent)?;
    }
    let opened = options.open(file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        opened.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    drop(opened);
    Ok(())
}

/// A prompt of one text.
struct Line<'t>(&'t str);

impl Prompt for Line<'_> {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("… ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search {}: ", search.term))
    }
}

/// Completes the names of commands.
struct Commands;

impl Completer for Commands {
    fn complete(&mut self, line: &str, at: usize) -> Vec<Suggestion> {
        let Some(begun) = line.get(..at).and_then(|typed| typed.strip_prefix('/')) else {
            return Vec::new();
        };
        command::names()
            .filter(|name| name.starts_with(begun))
            .map(|name| Suggestion {
                value: format!("/{name}"),
                span: Span::new(0, at),
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_commands_are_completed() {
        let names = |line: &str| -> Vec<String> {
            let found = Commands.complete(line, line.len());
            found.into_iter().map(|found| found.value).collect()
        };
        assert_eq!(names("/co"), ["/compact", "/context"]);
        assert_eq!(names("/quit"), ["/quit"]);
        assert!(names("co").is_empty());
        assert!(names("say /co").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_the_history() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data/history.txt");
        for _ in 0..2 {
            private(&file).unwrap();
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&file), 0o600);
            assert_eq!(mode(file.parent().unwrap()), 0o700);
            let open = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(&file, open).unwrap();
        }
    }
}
