//! `foldline chat` in a real terminal, against a scripted server: each screen is compared with a stored one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;

use super::scripted::Scripted;
use super::tmux::{self, Start, Terminal};
use crate::workspace;

mod script;
mod shots;

use script::RULES;
use shots::Shots;

/// A run of the script.
struct Pass {
    /// The folder of its screens.
    name: &'static str,
    columns: u16,
    colours: Colours,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colours {
    Shown,
    None,
}

const PASSES: [Pass; 3] = [
    Pass {
        name: "80",
        columns: 80,
        colours: Colours::Shown,
    },
    Pass {
        name: "200",
        columns: 200,
        colours: Colours::Shown,
    },
    Pass {
        name: "80-no-color",
        columns: 80,
        colours: Colours::None,
    },
];
const ROWS: u16 = 40;

/// What differs between two chats.
struct Surroundings<'s> {
    /// What the terminal is called.
    term: &'s str,
    /// The tokens that the model can take.
    window: &'s str,
    /// For how long something is waited for.
    patience: Duration,
}

const SHORT: Duration = Duration::from_secs(60);
/// A real model takes its time, and others use the machine too.
const LONG: Duration = Duration::from_secs(300);

const SMALL: Surroundings<'_> = Surroundings {
    term: "screen-256color",
    window: "4000",
    patience: SHORT,
};
/// A handoff does not fit into the small one.
const LARGE: Surroundings<'_> = Surroundings {
    term: "screen-256color",
    window: "16000",
    patience: SHORT,
};
const DUMB: Surroundings<'_> = Surroundings {
    term: "dumb",
    window: "4000",
    patience: SHORT,
};

/// Runs all passes. `update` stores the screens as they are.
pub(super) fn run(root: &Path, binary: &Path, update: Update) -> anyhow::Result<()> {
    if !tmux::is_installed() {
        println!("skipped: chat in a terminal: tmux is not installed");
        return Ok(());
    }
    for pass in &PASSES {
        let stored = root.join("xtask/e2e/chat").join(pass.name);
        pass.run(binary, &stored, update)
            .with_context(|| format!("chat, {}", pass.name))?;
        println!("chat in a terminal, {}: passed", pass.name);
    }
    Ok(())
}

/// A chat with a real model. Nobody knows what it says: only marks of ours are looked for.
pub(super) fn with_model(binary: &Path, base: &str, window: u32) -> anyhow::Result<()> {
    if !tmux::is_installed() {
        println!("skipped: chat with the model: tmux is not installed");
        return Ok(());
    }
    let place = Place::new(base.to_owned())?;
    // A small model likes to repeat itself until its window is full, and this is no test of that.
    place.write(&json!({"models": {"my/small": {"maxOutput": 48}}}))?;
    let [pass, ..] = &PASSES;
    let window = window.to_string();
    let as_in = Surroundings {
        window: &window,
        patience: LONG,
        ..SMALL
    };
    let chat = pass.open(binary, &place, &as_in)?;
    chat.idle("the prompt", "/help lists the commands")?;
    for _ in 0..2 {
        let screen = chat.say("Name one colour.", "Name one colour.")?;
        ensure!(
            screen.lines().count() > 2 && !screen.contains("error:"),
            "there is no answer:\n{screen}"
        );
    }
    // What a very small model makes of it is not judged; that it is told is.
    chat.say("/compact", "ompact")?;
    let screen = chat.say("/context", "with the system text")?;
    ensure!(screen.contains("% of"), "the window is not known:\n{screen}");
    chat.begin("/quit")?;
    chat.terminal
        .wait("the end", |screen| screen.contains("[exit 0]"))?;
    println!("chat with the model: passed");
    Ok(())
}

/// What becomes of a screen that is not as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    /// It is stored.
    Store,
    /// It is a failure.
    Compare,
}

/// The place in which a pass happens.
struct Place {
    home: tempfile::TempDir,
    /// Where the server is.
    url: String,
}

impl Place {
    fn new(url: String) -> anyhow::Result<Self> {
        // Its name is as long everywhere, because lines are broken by it.
        let home = tempfile::Builder::new()
            .prefix("foldline-chat-")
            .tempdir_in("/tmp")?;
        let place = Self { home, url };
        fs_err::create_dir_all(place.project())?;
        let notes: Vec<String> = (1..=30)
            .map(|i| format!("note {i}: nothing of importance"))
            .collect();
        fs_err::write(
            place.project().join("notes.txt"),
            format!("the code is HRN2041\n{}\n", notes.join("\n")),
        )?;
        place.set(&json!({}))?;
        Ok(place)
    }

    fn project(&self) -> PathBuf {
        self.home.path().join("project")
    }

    /// Writes the user's settings: the usual ones, with more of compactions.
    fn set(&self, compaction: &serde_json::Value) -> anyhow::Result<()> {
        let mut settings = json!({
            "compaction": {"keepRecentTokens": 100, "keepUserTokens": 200, "shortSummary": "derived"},
            "branchSummary": {"enabled": true},
        });
        if let (Some(all), Some(more)) = (settings["compaction"].as_object_mut(), compaction.as_object()) {
            all.extend(more.clone());
        }
        self.write(&settings)
    }

    fn write(&self, settings: &serde_json::Value) -> anyhow::Result<()> {
        let folder = self.home.path().join(".config/foldline");
        fs_err::create_dir_all(&folder)?;
        fs_err::write(folder.join("settings.json"), settings.to_string())?;
        Ok(())
    }
}

impl Pass {
    fn run(&self, binary: &Path, stored: &Path, update: Update) -> anyhow::Result<()> {
        let server = Scripted::start(RULES)?;
        let place = Place::new(server.url)?;
        let mut shots = Shots::new(stored, place.home.path());
        let done = self
            .first_chat(binary, &place, &mut shots)
            .and_then(|()| self.second_chat(binary, &place, &mut shots))
            .and_then(|()| self.third_chat(binary, &place, &mut shots));
        // What was seen before a failure is worth to be looked at.
        let compared = shots.finish(update, &workspace::root().join("target/e2e/chat").join(self.name));
        done.and(compared)
    }

    fn open(&self, binary: &Path, place: &Place, as_in: &Surroundings<'_>) -> anyhow::Result<Chat> {
        let mut variables = vec![
            ("HOME", place.home.path().display().to_string()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TERM", as_in.term.to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
        ];
        if self.colours == Colours::None {
            variables.push(("NO_COLOR", "1".to_owned()));
        }
        let arguments = [
            "chat",
            "--model",
            "my/small",
            "--api",
            "openai-completions",
            "--context-window",
            as_in.window,
            "--tools",
            "read",
            "--base-url",
            &place.url,
        ];
        let mut command = vec![binary.display().to_string()];
        command.extend(arguments.map(str::to_owned));
        let terminal = Terminal::open(
            // The one before may not be gone yet.
            &format!(
                "foldline-{}-{}",
                std::process::id(),
                OPENED.fetch_add(1, Ordering::Relaxed)
            ),
            &Start {
                columns: self.columns,
                rows: ROWS,
                folder: &place.project(),
                variables: &variables,
                patience: as_in.patience,
                command: &command,
            },
        )?;
        Ok(Chat { terminal })
    }

    /// Talking, overflow and card, undo, Esc, the tree.
    fn first_chat(&self, binary: &Path, place: &Place, shots: &mut Shots) -> anyhow::Result<()> {
        let chat = self.open(binary, place, &SMALL)?;
        shots.take("01-start", &chat.idle("the prompt", "/help lists the commands")?);
        shots.take("02-markdown", &chat.say("Say hello", "That is all.")?);
        ensure!(
            !chat.terminal.title()?.contains("taken over"),
            "a sequence of the model reached the terminal"
        );
        self.check_colours(&chat)?;
        shots.take("03-unknown", &chat.say("/compat", "did you mean")?);
        chat.say("Tell me much", "the end of it")?;
        shots.take("04-tool", &chat.say("What is in notes.txt?", "HRN2041.")?);
        shots.take("05-context", &chat.say("/context", "% of 4,000")?);

        chat.begin("Think for long")?;
        shots.take(
            "06-working",
            &chat
                .terminal
                .wait("the beginning", |screen| screen.contains("because it is not"))?,
        );
        chat.terminal.key("Escape")?;
        shots.take("07-cancelled", &chat.idle("the end of the answer", "Cancelled")?);
        Self::say_aside(&chat, shots)?;

        shots.take("08-overflow", &chat.say("Go too far", "Now it fits.")?);
        shots.take("09-summary", &chat.say("/summary", "Wait for the user")?);
        shots.take("10-undo", &chat.say("/undo", "Took back")?);

        chat.begin("/compact word by word")?;
        chat.terminal
            .wait("the compaction", |screen| screen.contains("Compacting context"))?;
        chat.terminal.key("Escape")?;
        shots.take(
            "11-compaction-cancelled",
            &chat.idle("its end", "Compaction cancelled")?,
        );
        chat.say("Are you there?", "Yes.")?;

        Self::go_back(&chat, shots)?;
        shots.take("16-goal", &chat.say("/goal green tests", "The goal is")?);
        chat.terminal.key("C-d")?;
        chat.terminal
            .wait("the end", |screen| screen.contains("[exit 0]"))?;
        Ok(())
    }

    /// The tree: a search, a summary that is cancelled, one that is made.
    fn go_back(chat: &Chat, shots: &mut Shots) -> anyhow::Result<()> {
        chat.begin("/tree")?;
        let tree = |screen: &str| screen.contains("Session tree") && screen.contains("(here)");
        shots.take("12-tree", &chat.terminal.wait("the tree", tree)?);
        chat.terminal.text("What is in")?;
        shots.take(
            "13-tree-search",
            &chat.terminal.wait("the search", |screen| {
                screen.contains("search: What is in") && !screen.contains("Say hello")
            })?,
        );
        chat.terminal.key("Enter")?;
        chat.terminal
            .wait("the question", |screen| screen.contains("Summarize branch?"))?;
        // The third answer wants a text; the tree is there again when that is cancelled.
        chat.terminal.key("Up")?;
        chat.terminal.key("Enter")?;
        chat.terminal.text("word by word")?;
        shots.take(
            "14-tree-instructions",
            &chat
                .terminal
                .wait("the instructions", |screen| screen.contains("word by word"))?,
        );
        chat.terminal.key("Enter")?;
        chat.terminal
            .wait("the summary", |screen| screen.contains("Summarizing branch"))?;
        chat.terminal.key("Escape")?;
        chat.terminal.wait("the tree again", |screen| {
            screen.contains("› • user: What is in notes.txt?")
        })?;
        chat.terminal.key("Enter")?;
        chat.terminal
            .wait("the question", |screen| screen.contains("Summarize branch?"))?;
        chat.terminal.key("Down")?;
        shots.take(
            "14-tree-question",
            &chat
                .terminal
                .wait("the second answer", |screen| screen.contains("› Summarize"))?,
        );
        chat.terminal.key("Enter")?;
        // The words at that place come back into the editor.
        shots.take(
            "15-tree-moved",
            &chat.terminal.wait("the move", |screen| {
                screen.contains("Navigated") && screen.ends_with("% > What is in notes.txt?")
            })?,
        );
        chat.terminal.key("C-u")?;
        chat.idle("the empty prompt", "Navigated").map(drop)
    }

    /// Going on with the session, and a compaction that fails.
    fn second_chat(&self, binary: &Path, place: &Place, shots: &mut Shots) -> anyhow::Result<()> {
        place.set(&json!({"strategy": "verbatim-lines"}))?;
        let chat = self.open(binary, place, &LARGE)?;
        shots.take(
            "20-offer",
            &chat
                .terminal
                .wait("the offer", |screen| screen.contains("Go on with it? [Y/n]"))?,
        );
        chat.terminal.key("Enter")?;
        shots.take(
            "21-resumed",
            &chat.idle("the session", "/help lists the commands")?,
        );
        shots.take("22-failed-compact", &chat.say("/compact", "diagnostic:")?);
        shots.take("23-goes-on", &chat.say("Are you there?", "Yes.")?);
        shots.take(
            "24-handoff",
            &chat.say("/handoff the release", "New session started")?,
        );
        chat.begin("/resume")?;
        shots.take(
            "25-sessions",
            &chat
                .terminal
                .wait("the sessions", |screen| screen.contains("› Say hello"))?,
        );
        chat.terminal.key("Enter")?;
        chat.idle("the first session", "> Are you there?")?;
        chat.terminal.key("C-c")?;
        chat.idle("the warning", "Ctrl-C again leaves")?;
        chat.terminal.key("C-c")?;
        chat.terminal
            .wait("the end", |screen| screen.contains("[exit 0]"))?;
        let history = place.home.path().join(".local/share/foldline/chat-history.txt");
        ensure!(
            fs_err::read_to_string(&history)?.contains("Tell me much"),
            "the history is not kept"
        );
        Ok(())
    }

    /// A terminal that cannot move its cursor.
    fn third_chat(&self, binary: &Path, place: &Place, shots: &mut Shots) -> anyhow::Result<()> {
        let chat = self.open(binary, place, &DUMB)?;
        let waits = |screen: &str| screen.ends_with("\n>");
        chat.terminal.wait("the prompt", waits)?;
        chat.terminal.text("Say hello")?;
        chat.terminal.key("Enter")?;
        shots.take(
            "30-dumb",
            &chat.terminal.wait("the answer", |screen| {
                screen.contains("That is all.") && waits(screen)
            })?,
        );
        chat.terminal.key("C-d")?;
        chat.terminal
            .wait("the end", |screen| screen.contains("[exit 0]"))
            .map(drop)
    }

    /// Something is said while the model works; cancelled before its turn, it comes back.
    fn say_aside(chat: &Chat, shots: &mut Shots) -> anyhow::Result<()> {
        chat.begin("Think for long")?;
        chat.terminal
            .wait("the beginning", |screen| screen.contains("because it is not"))?;
        chat.terminal.text("Are you there?")?;
        chat.terminal.wait("what was typed", |screen| {
            screen.lines().any(|line| line == "> Are you there?")
        })?;
        chat.terminal.key("Enter")?;
        chat.terminal.wait("the message that waits", |screen| {
            screen.contains("Queued message")
        })?;
        chat.terminal.key("Escape")?;
        shots.take(
            "07-queued",
            &chat.terminal.wait("the message in the editor", |screen| {
                screen.contains("Cancelled") && screen.ends_with("% > Are you there?")
            })?,
        );
        chat.terminal.key("C-u")?;
        chat.idle("the empty prompt", "Cancelled").map(drop)
    }

    fn check_colours(&self, chat: &Chat) -> anyhow::Result<()> {
        let styled = chat.terminal.styled()?;
        let is_coloured = (30..38).any(|colour| styled.contains(&format!("\u{1b}[{colour}m")));
        match (self.colours, is_coloured) {
            (Colours::Shown, true) | (Colours::None, false) => Ok(()),
            (Colours::Shown, false) => bail!("there are no colours:\n{styled}"),
            (Colours::None, true) => bail!("there are colours:\n{styled}"),
        }
    }
}

/// How many terminals were opened.
static OPENED: AtomicU32 = AtomicU32::new(0);

/// A chat that runs.
struct Chat {
    terminal: Terminal,
}

impl Chat {
    /// Waits until the chat waits, with this on the screen.
    fn idle(&self, what: &str, marker: &str) -> anyhow::Result<String> {
        self.terminal
            .wait(what, |screen| screen.contains(marker) && screen.ends_with("% >"))
    }

    /// Types a line on an empty screen.
    fn begin(&self, line: &str) -> anyhow::Result<()> {
        self.terminal.key("C-l")?;
        self.terminal.wait("an empty screen", |screen| {
            screen.ends_with("% >") && screen.trim_start().lines().count() == 1
        })?;
        self.terminal.text(line)?;
        self.terminal.wait("what was typed", |screen| {
            screen.ends_with(&format!("% > {line}"))
        })?;
        self.terminal.key("Enter")
    }

    /// Types a line and waits until it has been dealt with.
    fn say(&self, line: &str, marker: &str) -> anyhow::Result<String> {
        self.begin(line)?;
        self.idle(line, marker)
    }
}
