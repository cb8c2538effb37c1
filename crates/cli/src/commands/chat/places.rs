//! Going elsewhere: to another place of the session, to another session.

use foldline_agent_session::event::OperationOutcome;
use foldline_agent_session::hooks::SwitchVerdict;
use foldline_agent_session::{BranchSummaryChoice, NavigateOptions, Switch};
use foldline_session_model::log::Trust;
use foldline_session_store::DiskStore;

use super::menu::{self, Answer, Last};
use super::picker::{self, Picked};
use super::{Chat, Kind, opening};
use crate::session::Session;

/// What the user wants of the branch that is left.
struct Wish {
    summary: BranchSummaryChoice,
    instructions: Option<String>,
}

impl Chat {
    /// Moves in the tree. What the user typed at the place comes into the editor.
    pub(super) fn tree(&mut self) {
        if self.kind == Kind::Stream {
            self.screen
                .error("The tree needs a terminal; `foldline tree` and `foldline navigate` do not");
            return;
        }
        let mut at: Option<String> = None;
        loop {
            // All of the file: the session itself may know only its end.
            let path = self.session.path();
            let rows = match Session::load(&DiskStore::new(), path, Trust::Claimed) {
                Ok(session) => picker::rows(&session.log),
                Err(error) => return self.complain(&error),
            };
            if rows.is_empty() {
                return self.screen.note("No entries in session");
            }
            let entry = match picker::choose(&rows, at.as_deref()) {
                Ok(Picked::Entry(entry)) => entry,
                Ok(Picked::Label { entry, label }) => {
                    self.label(&entry, &label);
                    at = Some(entry);
                    continue;
                }
                Ok(Picked::Nothing) => return,
                Err(error) => return self.screen.error(&format!("The tree cannot be shown: {error}")),
            };
            if rows.iter().any(|row| row.is_leaf && row.id == entry) {
                return self.screen.note("Already at this point");
            }
            let wish = match self.ask_for_summary() {
                Ok(Some(wish)) => wish,
                Ok(None) => {
                    at = Some(entry);
                    continue;
                }
                Err(error) => return self.screen.error(&error.to_string()),
            };
            if self.go(&entry, wish) == Went::Back {
                at = Some(entry);
            } else {
                return;
            }
        }
    }

    fn go(&mut self, entry: &str, wish: Wish) -> Went {
        let options = NavigateOptions {
            summary: wish.summary,
            instructions: wish.instructions,
            ..NavigateOptions::default()
        };
        let is_summed_up = wish.summary == BranchSummaryChoice::Summarize;
        let session = self.session.clone();
        let target = entry.to_owned();
        match self.work(async move { session.navigate(&target, options).await }) {
            Ok(moved) => match moved.outcome {
                OperationOutcome::Committed => {
                    self.screen.good("Navigated to selected point");
                    if self.draft.is_none() {
                        self.draft = moved.editor_text;
                    }
                    Went::There
                }
                OperationOutcome::Skipped => {
                    self.screen.note("Already at this point");
                    Went::There
                }
                OperationOutcome::Cancelled | OperationOutcome::Failed if is_summed_up => {
                    self.screen.warning("Branch summarization cancelled");
                    Went::Back
                }
                OperationOutcome::Cancelled | OperationOutcome::Failed => {
                    self.screen.warning("Navigation cancelled");
                    Went::There
                }
            },
            Err(error) => {
                self.complain_of(&error);
                Went::There
            }
        }
    }

    /// Whether the branch that is left is summed up. `None`: the user goes back to the tree.
    fn ask_for_summary(&self) -> std::io::Result<Option<Wish>> {
        let settings = &self.setup.settings().branch_summary;
        let wish = |summary, instructions| {
            Some(Wish {
                summary,
                instructions,
            })
        };
        if !settings.enabled || settings.skip_prompt {
            return Ok(wish(BranchSummaryChoice::None, None));
        }
        let answers = ["No summary", "Summarize", "Summarize with custom prompt"].map(str::to_owned);
        Ok(match menu::ask("Summarize branch?", &answers, Last::WantsText)? {
            Answer::Choice(0) => wish(BranchSummaryChoice::None, None),
            Answer::Choice(_) => wish(BranchSummaryChoice::Summarize, None),
            Answer::Typed(text) => wish(
                BranchSummaryChoice::Summarize,
                Some(text).filter(|text| !text.is_empty()),
            ),
            Answer::None => None,
        })
    }

    fn label(&mut self, entry: &str, label: &str) {
        let session = self.session.clone();
        let (entry, label) = (entry.to_owned(), label.to_owned());
        let set = self.work(async move {
            let label = Some(label.as_str()).filter(|label| !label.is_empty());
            session.set_label(&entry, label).await
        });
        if let Err(error) = set {
            self.complain_of(&error);
        }
    }

    /// Goes on with another session.
    pub(super) fn resume(&mut self, name: Option<String>) {
        let name = match name {
            Some(name) => name,
            None => match self.ask_for_session() {
                Some(name) => name,
                None => return,
            },
        };
        self.switch(Switch::Resume, Some(&name));
    }

    fn ask_for_session(&mut self) -> Option<String> {
        let here = self.session.path();
        let mut sessions = opening::sessions(&self.setup);
        sessions.retain(|session| session.path != here);
        if sessions.is_empty() {
            self.screen.note("There is no other session of this project");
            return None;
        }
        let lines: Vec<String> = sessions.iter().map(opening::described).collect();
        if self.kind == Kind::Stream {
            for (session, line) in sessions.iter().zip(&lines) {
                let id = session.id.as_deref().unwrap_or_default();
                self.screen.text(&format!("{id}  {line}"));
            }
            self.screen.note("/resume ID goes on with one of them");
            return None;
        }
        match menu::ask("Go on with which session?", &lines, Last::Plain) {
            Ok(Answer::Choice(i)) => sessions.get(i).map(|session| session.path.display().to_string()),
            Ok(_) => None,
            Err(error) => {
                self.screen.error(&error.to_string());
                None
            }
        }
    }

    pub(super) fn new_session(&mut self) {
        self.switch(Switch::New, None);
    }

    /// Another session takes the place of this one, if hooks let it: the named one, or a new one.
    fn switch(&mut self, how: Switch, name: Option<&str>) {
        let target = name.and_then(|name| Session::open_tail(&DiskStore::new(), name).ok());
        let target = target.as_ref().map(|session| &*session.path);
        if self.runtime.block_on(self.session.may_switch(how, target)) == SwitchVerdict::Keep {
            self.screen.note("A hook keeps this session");
            return;
        }
        let name = name.map(std::path::Path::new);
        match opening::open(&self.setup, &self.runtime, name, self.tools.as_ref(), &self.goal) {
            Ok(session) => {
                self.runtime.block_on(self.session.tell_switched(&session, how));
                self.session = session;
                self.greet();
            }
            Err(error) => self.complain(&error),
        }
    }
}

/// Where a move went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    /// There, or not at all.
    There,
    /// Back to the tree.
    Back,
}
