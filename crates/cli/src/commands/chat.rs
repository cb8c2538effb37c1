//! `foldline chat`: a conversation in the terminal (spec "Orchestrator and clients", 16).
//!
//! A line editor asks, the session works, and what happens is written below. While something runs, Esc cancels exactly
//! that; what is typed meanwhile waits for its turn. Where there is no terminal, lines come from standard input.

mod card;
mod command;
mod goal;
mod input;
mod keys;
mod markdown;
mod menu;
mod obey;
mod opening;
mod picker;
mod places;
mod screen;
mod tell;
mod work;

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use foldline_agent_session::AgentSession;
use foldline_agent_session::tools::Selection;
use foldline_compaction_core::settings::CompactionSettings;
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::tree::Leaf;
use tokio::runtime::Runtime;

use crate::door::{runtime, session_error};
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::ModelArgs;
use crate::output::{self, Format};
use crate::setup::{Purpose, Setup};

use command::Command;
use goal::SharedGoal;
use input::{Input, Typed};
use markdown::Colours;
use screen::{Screen, Surface};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "In the chat /help lists the commands. Esc cancels what is running; Enter meanwhile sends what you typed
when its turn comes. Ctrl-D leaves. Without a terminal each line of standard input is a prompt or a command.

Examples:
  foldline chat --model ollama/qwen3
  foldline chat --session latest"
)]
pub(crate) struct Args {
    /// The session to go on with: a path, the start of an id, or `latest` [default: a new one, or the last one of this
    /// project if you say yes].
    #[arg(long, value_name = "S")]
    session: Option<PathBuf>,
    /// The tools that the model may call: `all`, `none`, or names with commas between [default: the setting
    /// `tools.allowed`, or those that only read].
    #[arg(long, value_name = "NAMES")]
    tools: Option<Selection>,
    #[command(flatten)]
    model: ModelArgs,
}

/// A conversation.
struct Chat {
    setup: Setup,
    tools: Option<Selection>,
    session: AgentSession,
    runtime: Runtime,
    screen: Screen,
    kind: Kind,
    goal: SharedGoal,
    /// What stands in the editor when it opens.
    draft: Option<String>,
    /// Commands that were typed while something ran.
    later: VecDeque<Command>,
    /// Whether the user wants to leave.
    leaves: bool,
}

/// What the chat runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A terminal that moves its cursor.
    Terminal,
    /// A pipe, a file or a terminal that does not.
    Stream,
}

impl Kind {
    fn of_this_process() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if !is_dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            Self::Terminal
        } else {
            Self::Stream
        }
    }
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    if format == Format::Json {
        return Err(
            CommandError::new(ErrorKind::Usage, "a chat has no JSON form").hint(
                "`foldline run --json` answers one prompt, `foldline rpc` drives a session by JSON lines",
            ),
        );
    }
    let setup = Setup::new(&args.model, Purpose::Work)?;
    if setup.profile()?.is_none() {
        return Err(
            CommandError::new(ErrorKind::Usage, "there is no model to talk to").hint(
                "name one with --model provider/model, or set it: foldline config set model provider/model",
            ),
        );
    }
    let kind = Kind::of_this_process();
    let out = std::io::stdout();
    let colours = match anstream::AutoStream::choice(&out) {
        anstream::ColorChoice::Never => Colours::None,
        _ => Colours::Shown,
    };
    let surface = match kind {
        Kind::Terminal => Surface::Terminal(output::size),
        Kind::Stream => Surface::Stream,
    };
    let mut input = match kind {
        Kind::Terminal => Input::editor(colours, input::history().as_deref()),
        Kind::Stream => Input::stream(),
    };
    let runtime = runtime()?;
    let mut screen = Screen::new(Box::new(out), surface, colours);
    let name = match (&args.session, kind) {
        (Some(name), _) => Some(name.clone()),
        (None, Kind::Terminal) => opening::offered(&setup, &runtime, &mut screen),
        (None, Kind::Stream) => None,
    };
    let goal = SharedGoal::default();
    let session = opening::open(&setup, &runtime, name.as_deref(), args.tools.as_ref(), &goal)?;
    let mut chat = Chat {
        setup,
        tools: args.tools.clone(),
        session,
        runtime,
        screen,
        kind,
        goal,
        draft: None,
        later: VecDeque::new(),
        leaves: false,
    };
    chat.runtime.block_on(chat.session.tell_startup());
    chat.greet();
    let talked = chat.talk(&mut input);
    chat.runtime.block_on(chat.session.tell_quit());
    talked?;
    Ok(Status::Done)
}

impl Chat {
    fn talk(&mut self, input: &mut Input) -> Result<(), CommandError> {
        let mut interrupts = 0;
        while !self.leaves {
            if let Some(command) = self.later.pop_front() {
                self.obey(command);
                continue;
            }
            let draft = self.draft.take();
            let size = self.size();
            let idle = idle_after(&self.setup.settings().compaction.core, size.tokens);
            let typed = input
                .next(&self.runtime, &self.prompt(size), draft.as_deref(), idle)
                .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
            if typed != Typed::Interrupt {
                interrupts = 0;
            }
            match typed {
                Typed::Line(line) => self.obey(Command::parse(&line)),
                Typed::Interrupt => {
                    interrupts += 1;
                    match interrupts {
                        1 => self.screen.note("Ctrl-C again leaves"),
                        _ => self.leaves = true,
                    }
                }
                Typed::End => self.leaves = true,
                Typed::Idle => self.compact_idle(),
            }
        }
        self.screen
            .note(&format!("session {}", self.session.path().display()));
        Ok(())
    }

    /// How full the context is, before the place where one types.
    fn prompt(&self, size: Size) -> String {
        match (self.kind, self.window()) {
            (Kind::Terminal, Some(window)) => format!("{}% > ", size.tokens.get() * 100 / window),
            _ => "> ".to_owned(),
        }
    }

    fn window(&self) -> Option<u64> {
        let profile = self.setup.profile().ok().flatten()?;
        profile
            .context_window
            .map(Tokens::get)
            .filter(|window| *window > 0)
    }

    fn size(&self) -> Size {
        self.runtime.block_on(async {
            let messages = self.session.with_log(|log| {
                log.context(&Leaf::Last, Profile::Auto)
                    .map_or(0, |context| context.items.len())
            });
            Size {
                messages: messages.await,
                tokens: self.session.context_tokens().await,
            }
        })
    }

    /// Tells a person what was not done, and what helps.
    fn complain(&mut self, error: &CommandError) {
        self.screen.error(&error.message);
        if let Some(hint) = &error.hint {
            self.screen.note(&format!("hint: {hint}"));
        }
    }

    fn complain_of(&mut self, error: &foldline_agent_session::SessionError) {
        self.complain(&session_error(error));
    }
}

/// How large the context is.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    messages: usize,
    tokens: Tokens,
}

/// After how long without a key the session is compacted; `None`: never. Whether it really is, is decided then (spec
/// "Orchestrator and clients", 3.8).
fn idle_after(settings: &CompactionSettings, tokens: Tokens) -> Option<Duration> {
    let from = settings.idle_threshold_tokens;
    let is_due = settings.idle_enabled && from > Tokens::ZERO && tokens >= from;
    is_due.then(|| Duration::from_secs_f64(settings.idle_timeout_seconds.clamp(60.0, 3600.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_session_is_compacted_if_it_is_large_and_the_settings_say_so() {
        let settings = |idle_enabled, from, idle_timeout_seconds| CompactionSettings {
            idle_enabled,
            idle_threshold_tokens: Tokens(from),
            idle_timeout_seconds,
            ..CompactionSettings::default()
        };
        for (settings, tokens, seconds) in [
            (settings(false, 100, 300.0), 1000, None),
            (settings(true, 100, 300.0), 99, None),
            (settings(true, 100, 300.0), 100, Some(300)),
            (settings(true, 0, 300.0), 1000, None),
            (settings(true, 100, 1.0), 1000, Some(60)),
            (settings(true, 100, 1e9), 1000, Some(3600)),
        ] {
            let after = idle_after(&settings, Tokens(tokens)).map(|after| after.as_secs());
            assert_eq!(after, seconds, "{settings:?}");
        }
    }
}
