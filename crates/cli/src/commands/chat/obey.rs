//! What each command of the chat does.

use foldline_agent_session::event::{OperationOutcome, RunEnd};
use foldline_agent_session::{
    CompactOptions, HandoffOptions, Prompt, Prompted, PruneOptions, SessionError, UndoneKind,
};
use foldline_compaction_core::verbatim::marker;
use foldline_session_model::fold::Profile;
use foldline_session_model::message::Message;
use foldline_session_model::model_call::ModelRef;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;

use super::Chat;
use super::command::{self, Command, GoalCommand};
use crate::commands::run::failed;
use crate::output::grouped;
use crate::output::styles::{BOLD, DIM};
use crate::view::harmless;

impl Chat {
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Nothing => {}
            Command::Say(text) => self.say(text),
            Command::Compact(instructions) => self.compact(instructions),
            Command::Prune => self.prune(),
            Command::Undo => self.undo(),
            Command::Tree => self.tree(),
            Command::Handoff(focus) => self.handoff(focus),
            Command::Resume(name) => self.resume(name),
            Command::New => self.new_session(),
            Command::Goal(command) => self.set_goal(command),
            Command::Model(name) => self.model(name),
            Command::Context => self.context(),
            Command::Summary => self.summary(),
            Command::Help => self.screen.text(&command::help()),
            Command::Quit => self.leaves = true,
            Command::Unknown { name, nearest } => {
                let meant = nearest.map_or_else(String::new, |nearest| format!("; did you mean /{nearest}?"));
                self.screen.error(&format!("There is no command /{name}{meant}"));
                self.screen.note("/help lists the commands");
            }
        }
    }

    fn say(&mut self, text: String) {
        let session = self.session.clone();
        self.screen.said = Some(text.clone());
        let done = self.run(async move { session.prompt(Prompt::text(text)).await });
        let failure = self.screen.failure.take();
        match done {
            Ok(Prompted::Ran(report)) if report.end == RunEnd::Failed => {
                if let Some(error) = failed(&report) {
                    self.complain(&error);
                }
            }
            Ok(_) => {
                // Of something that was said meanwhile.
                if let Some(failure) = failure {
                    self.screen.error(&failure);
                }
            }
            Err(error) => self.complain_of(&error),
        }
    }

    fn compact(&mut self, instructions: Option<String>) {
        if self.size().messages < 2 {
            self.screen.warning("Nothing to compact (no messages yet)");
            return;
        }
        let session = self.session.clone();
        let options = CompactOptions {
            instructions,
            ..CompactOptions::default()
        };
        // The card, or why there is none, comes with the end of it.
        if let Err(error) = self.work(async move { session.compact(options).await }) {
            self.complain_of(&error);
        }
    }

    /// Nobody has typed for a while.
    pub(super) fn compact_idle(&mut self) {
        let session = self.session.clone();
        if let Err(error) = self.work(async move { session.compact_idle().await }) {
            self.complain_of(&error);
        }
    }

    fn prune(&mut self) {
        let session = self.session.clone();
        let options = PruneOptions {
            storage: self.setup.settings().pruning.storage,
            ..PruneOptions::default()
        };
        match self.work(async move { session.prune(options).await }) {
            Ok(pruned) if pruned.outcome == OperationOutcome::Committed => self.screen.good(&format!(
                "{} tool results became notices, about {} tokens less",
                pruned.plan.replacements.len(),
                grouped(pruned.plan.tokens_saved.get())
            )),
            Ok(_) => self.screen.note("There is nothing to prune"),
            Err(error) => self.complain_of(&error),
        }
    }

    fn undo(&mut self) {
        let session = self.session.clone();
        match self.work(async move { session.undo().await }) {
            Ok(Some(undone)) => {
                let what = match undone.kind {
                    UndoneKind::Compaction => "compaction",
                    UndoneKind::Prune => "prune",
                };
                let tokens = grouped(self.size().tokens.get());
                self.screen.good(&format!(
                    "Took back the {what}; the context has about {tokens} tokens"
                ));
            }
            Ok(None) => self
                .screen
                .note("There is no compaction and no prune to take back"),
            Err(error) => self.complain_of(&error),
        }
    }

    fn handoff(&mut self, focus: Option<String>) {
        if self.size().messages < 2 {
            self.screen.warning("Nothing to hand off (no messages yet)");
            return;
        }
        let session = self.session.clone();
        let options = HandoffOptions {
            focus,
            ..HandoffOptions::default()
        };
        match self.work(async move { session.handoff(options).await }) {
            Ok(done) => {
                self.screen.good("New session started with handoff context");
                self.screen.note(&done.new_session.display().to_string());
            }
            Err(SessionError::Cancelled { .. }) => self.screen.warning("Handoff cancelled"),
            Err(SessionError::HandoffNotWritten {
                message,
                handoff_document,
                ..
            }) => {
                // It was made, and is not lost.
                self.screen.piece(&handoff_document.text);
                self.screen.end_answer();
                self.screen.error(&format!("Handoff failed: {message}"));
            }
            Err(error) => {
                self.screen.error(&format!("Handoff failed: {error}"));
            }
        }
    }

    fn set_goal(&mut self, command: GoalCommand) {
        let holds = self.goal.obey(command);
        self.screen.note(&holds);
    }

    fn model(&mut self, name: Option<String>) {
        let Some(name) = name else {
            let model = self.session.state().model.unwrap_or_else(|| "none".to_owned());
            self.screen
                .note(&format!("The model is {model}; /model provider/model changes it"));
            return;
        };
        let Some(wanted) = ModelRef::parse(&name) else {
            self.screen
                .error(&format!("{name:?} is no model: name it as provider/model"));
            return;
        };
        match self.setup.client(&wanted) {
            Err(error) => self.complain(&error),
            Ok((model, _)) => {
                let session = self.session.clone();
                if let Err(error) = self.work(async move { session.set_model(model).await }) {
                    self.complain_of(&error);
                } else {
                    self.setup.use_model(wanted);
                }
            }
        }
    }

    /// What fills the context, by role.
    fn context(&mut self) {
        let rows = self.runtime.block_on(self.session.with_log(|log| {
            let Ok(context) = log.context(&Leaf::Last, Profile::Auto) else {
                return Vec::new();
            };
            let mut rows: Vec<(&'static str, u64, u64)> = ROLES.iter().map(|role| (*role, 0, 0)).collect();
            for item in &context.items {
                let role = role(&item.message);
                if let Some(row) = rows.iter_mut().find(|row| row.0 == role) {
                    row.1 += 1;
                    row.2 += Heuristic.message(&item.message).get();
                }
            }
            rows.retain(|row| row.1 > 0);
            rows
        }));
        let all: u64 = rows.iter().map(|row| row.2).sum();
        let mut text = String::new();
        for (role, count, tokens) in rows {
            text.push_str(&format!("{:>10}  {role} ({count})\n", grouped(tokens)));
        }
        text.push_str(&format!("{:>10}  all of them, estimated\n", grouped(all)));
        let counted = self.size().tokens.get();
        let of = self.window().map_or_else(String::new, |window| {
            format!(": {}% of {}", counted * 100 / window, grouped(window))
        });
        text.push_str(&format!(
            "{BOLD}{:>10}{BOLD:#}  with the system text and the tools{of}",
            grouped(counted)
        ));
        self.screen.text(&text);
    }

    /// The newest compaction, whole. Marks of deleted lines step back.
    fn summary(&mut self) {
        let found = self.runtime.block_on(self.session.with_log(|log| {
            let context = log.context(&Leaf::Last, Profile::Auto).ok()?;
            context.items.iter().rev().find_map(|item| match &item.message {
                Message::CompactionSummary(summary) => {
                    Some((Text::Prose, summary.summary.clone().into_owned()))
                }
                Message::VerbatimBoundary(boundary) => {
                    Some((Text::Lines, boundary.text.clone().into_owned()))
                }
                _ => None,
            })
        }));
        match found {
            None => self.screen.note("No compaction is in force here"),
            Some((Text::Prose, text)) => {
                self.screen.piece(&text);
                self.screen.end_answer();
            }
            Some((Text::Lines, text)) => {
                let lines: Vec<String> = harmless(&text).lines().map(marked).collect();
                self.screen.text(&lines.join("\n"));
            }
        }
    }
}

/// What a compaction left.
enum Text {
    Prose,
    Lines,
}

fn marked(line: &str) -> String {
    match marker::parse(line) {
        Some(_) => format!("{DIM}{line}{DIM:#}"),
        None => line.to_owned(),
    }
}

const ROLES: &[&str] = &[
    "compaction",
    "branch summary",
    "user",
    "assistant",
    "tool results",
    "other",
];

fn role(message: &Message<'_>) -> &'static str {
    match message {
        Message::User(_) | Message::Developer(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "tool results",
        Message::CompactionSummary(_) | Message::VerbatimBoundary(_) => "compaction",
        Message::BranchSummary(_) => "branch summary",
        _ => "other",
    }
}
