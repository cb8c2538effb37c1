//! Which session the chat begins with, and what is said then.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldline_agent_session::AgentSession;
use foldline_agent_session::tools::Selection;
use foldline_session_model::fold::Profile;
use foldline_session_model::message::Message;
use foldline_session_model::tree::Leaf;
use foldline_session_store::{
    Agent, AgentFolder, Count, DiskStore, Layout, Project, SessionStore as _, SessionSummary,
};
use tokio::runtime::Runtime;

use super::Chat;
use super::goal::SharedGoal;
use super::input::{Input, Typed};
use super::markdown::Colours;
use super::screen::{Screen, clip};
use crate::door::session_error;
use crate::error::CommandError;
use crate::host::{self, Reach};
use crate::output::grouped;
use crate::output::styles::DIM;
use crate::setup::Setup;
use crate::view::{first_line, harmless, plain};

/// So many lines of the last answer are shown again.
const RECALLED: usize = 12;

/// Opens a session, or begins one if none is named, with the goal of the conversation.
pub(super) fn open(
    setup: &Setup,
    runtime: &Runtime,
    name: Option<&Path>,
    tools: Option<&Selection>,
    goal: &SharedGoal,
) -> Result<AgentSession, CommandError> {
    let _entered = runtime.enter();
    let session = host::open(setup, name, tools, Reach::Tail)?;
    let goal = goal.clone();
    let with_goal = session.change_options(move |options| {
        options.work = goal.beside(std::sync::Arc::clone(&options.work));
    });
    runtime.block_on(with_goal).map_err(|e| session_error(&e))?;
    Ok(session)
}

/// Our sessions of this project in which something was said, the newest first.
pub(super) fn sessions(setup: &Setup) -> Vec<SessionSummary> {
    let Ok(layout) = Layout::from_environment() else {
        return Vec::new();
    };
    let ours = [AgentFolder {
        agent: Agent::Foldline,
        folder: layout.sessions(),
    }];
    let listing = DiskStore::new().list(&ours, Project::Only(setup.cwd()), Count::Nothing);
    let mut sessions = listing.map(|listing| listing.sessions).unwrap_or_default();
    sessions.retain(|session| session.title.is_some());
    sessions
}

/// A session as a line.
pub(super) fn described(session: &SessionSummary) -> String {
    let title = first_line(session.title.as_deref().unwrap_or_default(), 60);
    format!("{title} ({})", ago(session.modified))
}

fn ago(time: SystemTime) -> String {
    let seconds = SystemTime::now()
        .duration_since(time)
        .map_or(0, |past| past.as_secs());
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

/// The last session of the project, if the user wants to go on with it.
pub(super) fn offered(setup: &Setup, runtime: &Runtime, screen: &mut Screen) -> Option<PathBuf> {
    let sessions = sessions(setup);
    let last = sessions.first()?;
    screen.note(&format!("The last session here: {}", described(last)));
    let asked = Input::editor(Colours::None, None).next(runtime, "Go on with it? [Y/n] ", None, None);
    match asked {
        Ok(Typed::Line(answer)) if !answer.trim().to_lowercase().starts_with('n') => Some(last.path.clone()),
        _ => None,
    }
}

impl Chat {
    /// Says where one is, and what was said last.
    pub(super) fn greet(&mut self) {
        let size = self.size();
        self.screen.note(&format!(
            "{} in {}",
            self.setup.name(),
            self.session.path().display()
        ));
        if size.messages > 0 {
            self.recall();
            self.screen.note(&format!(
                "{} messages, about {} tokens",
                grouped(size.messages as u64),
                grouped(size.tokens.get())
            ));
        }
        let waiting = self.session.state().pending_message_count;
        if waiting > 0 {
            self.screen.note(&format!(
                "{waiting} messages wait; they go first with the next one"
            ));
        }
        self.screen.note("/help lists the commands, Ctrl-D leaves");
    }

    /// The last thing that the user said, and the answer.
    fn recall(&mut self) {
        let (asked, answered) = self.runtime.block_on(self.session.with_log(|log| {
            let Ok(context) = log.context(&Leaf::Last, Profile::Auto) else {
                return (None, None);
            };
            let newest = |wanted: fn(&Message<'_>) -> bool| {
                let mut messages = context.items.iter().rev().map(|item| &item.message);
                messages
                    .find(|message| wanted(message) && !plain(message).trim().is_empty())
                    .map(|message| plain(message).into_owned())
            };
            (
                newest(|message| matches!(message, Message::User(_))),
                newest(|message| matches!(message, Message::Assistant(_))),
            )
        }));
        if let Some(asked) = asked {
            let line = clip(
                &first_line(&asked, 400),
                self.screen.layout().width.saturating_sub(2),
            );
            self.screen.text(&format!("{DIM}> {}{DIM:#}", harmless(&line)));
        }
        if let Some(answered) = answered {
            let lines: Vec<&str> = answered.trim_end().lines().collect();
            let from = lines.len().saturating_sub(RECALLED);
            if from > 0 {
                self.screen.note(&format!("… {from} lines before"));
            }
            let end = lines.get(from..).unwrap_or_default();
            self.screen.piece(&end.join("\n"));
            self.screen.end_answer();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_told_in_the_largest_unit() {
        for (seconds, text) in [
            (5, "just now"),
            (65, "1 minute ago"),
            (7300, "2 hours ago"),
            (200_000, "2 days ago"),
        ] {
            assert_eq!(ago(SystemTime::now() - Duration::from_secs(seconds)), text);
        }
    }
}
