//! What a session tells, as a person reads it.

use foldline_agent_session::event::{Delta, Event, NoticeLevel, RunEnd};
use foldline_session_model::model_call::ToolOutcome;

use super::card;
use super::screen::{Screen, clip};
use crate::output::styles::{BAD, DIM};
use crate::view::{first_line, harmless};

const WORKING: &str = "Working...";

impl Screen {
    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::AgentStart => self.failure = None,
            Event::TurnStart { .. } => self.wait(WORKING),
            Event::MessageUpdate {
                assistant_message_event: Delta::TextDelta { delta, .. },
            } => self.piece(delta),
            Event::MessageEnd {
                role: "assistant",
                error_message,
                ..
            } => {
                self.end_answer();
                // It may be tried again: what comes of it is told when the run ends.
                self.failure.clone_from(error_message);
            }
            Event::MessageEnd {
                role: "user", text, ..
            } => self.user(text),
            Event::MessageEnd {
                role: "toolResult",
                text,
                ..
            } => self.result(text),
            Event::AgentEnd {
                stop_reason: RunEnd::Cancelled,
            } => {
                self.failure = None;
                self.warning("Cancelled");
            }
            Event::AgentEnd {
                stop_reason: RunEnd::Completed,
            } => self.failure = None,
            Event::ToolExecutionStart { tool_name, args, .. } => {
                let name = first_line(tool_name, 60);
                let call = format!("● {name} {}", first_line(args.get(), 400));
                let call = clip(&call, self.layout().width);
                self.text(&format!("{DIM}{call}{DIM:#}"));
                self.wait(format!("{name}..."));
            }
            Event::ToolExecutionEnd {
                tool_name, outcome, ..
            } => {
                if *outcome == ToolOutcome::Error {
                    self.text(&format!("{BAD}  {} failed{BAD:#}", first_line(tool_name, 60)));
                }
                self.wait(WORKING);
            }
            Event::CompactionStart(start) => self.wait(card::loader(start)),
            Event::CompactionEnd(end) => {
                if let Some(card) = card::card(end, self.layout()) {
                    self.text(&card);
                }
                if let Some(text) = card::failure(end) {
                    self.warning(&text);
                }
                self.wait(WORKING);
            }
            Event::BranchSummaryStart => self.wait("Summarizing branch..."),
            Event::HandoffStart => self.wait("Generating handoff..."),
            Event::BranchSummaryEnd { .. } | Event::HandoffEnd { .. } => self.wait(WORKING),
            Event::AutoRetryStart {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            }
            | Event::SummarizationRetryScheduled {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            } => {
                self.warning(error_message);
                let seconds = delay_ms.div_ceil(1000);
                self.wait(format!("Retrying ({attempt}/{max_attempts}) in {seconds}s..."));
            }
            Event::AutoRetryEnd {
                success: false,
                attempt,
                ..
            } => self.warning(&format!("Retry failed after {attempt} attempts")),
            Event::ModelFallbackStart { from, to, reason } => {
                self.warning(&format!("{to} takes over from {from}: {reason}"));
            }
            Event::ModelChanged { model, .. } => self.note(&format!("The model is {model}")),
            Event::AgentContinueError { error_message, .. } => self.warning(error_message),
            Event::Notice {
                level: NoticeLevel::Info,
                message,
                ..
            } => self.note(message),
            Event::Notice { message, .. } => self.warning(message),
            Event::ExtensionError {
                extension_path,
                event,
                error,
            } => self.warning(&format!("{extension_path} failed at {event}: {error}")),
            _ => {}
        }
    }

    /// What the user said, if it does not stand at the editor already.
    fn user(&mut self, text: &str) {
        if self.said.take().as_deref() != Some(text) {
            self.text(&format!("> {}", harmless(text)));
        }
    }

    /// The first line of a result, and how much more there is.
    fn result(&mut self, text: &str) {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        let more = match lines.saturating_sub(1) {
            0 => String::new(),
            1 => " (1 more line)".to_owned(),
            more => format!(" ({more} more lines)"),
        };
        let room = self.layout().width.saturating_sub(4 + more.len());
        let line = clip(&first_line(text, 400), room);
        self.text(&format!("{DIM}  └ {line}{more}{DIM:#}"));
    }
}
