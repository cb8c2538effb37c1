//! What each command does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use foldline_agent_session::event::{CompactionAction, CompactionEnd, OperationOutcome};
use foldline_agent_session::hooks::SwitchVerdict;
use foldline_agent_session::rpc::{self, Command, CompactParameters, NavigateTreeOptions};
use foldline_agent_session::settings::QueueMode;
use foldline_agent_session::{
    AgentSession, BranchSummaryChoice, CompactOptions, HandoffOptions, NavigateOptions, Prompt, SessionState,
    Switch,
};
use foldline_compaction_core::settings::Strategy;
use foldline_compaction_core::verbatim::{self, ParameterLayer, Parameters};
use foldline_session_model::EntryId;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tree::Leaf;
use foldline_session_store::{DiskStore, SessionStore as _};
use serde::Serialize;
use serde_json::value::RawValue;

use super::lanes::Answer;
use super::{Host, answers};
use crate::commands::fork;
use crate::error::CommandError;
use crate::host;
use crate::session::{Damage, Session};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    #[serde(flatten)]
    session: SessionState,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<foldline_session_model::model_call::ReasoningEffort>,
    steering_mode: QueueMode,
    follow_up_mode: QueueMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    auto_compaction_enabled: bool,
    message_count: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompactionData {
    entry_id: EntryId,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compacted_text: Option<String>,
    first_kept_entry_id: Option<EntryId>,
    tokens_before: u64,
    tokens_after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Parameters>,
    rung: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<verbatim::VerbatimStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_path: Option<String>,
    planner_model: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    cancelled: bool,
    aborted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    editor_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_entry_id: Option<EntryId>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cleared {
    steering: Vec<String>,
    follow_up: Vec<String>,
}

#[derive(Serialize)]
struct Released {
    released: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HandedOff {
    new_session: String,
    document: String,
}

#[derive(Serialize)]
struct Switched {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    cancelled: bool,
}

impl Host {
    /// Carries out a command. What takes effect at once does so when this is first polled.
    pub(super) async fn execute(self: Arc<Self>, command: Command) -> Answer {
        let session = self.session();
        match command {
            Command::Prompt {
                message,
                images,
                streaming_behavior,
            } => {
                let mut prompt = rpc::prompt(message, images);
                prompt.while_running = streaming_behavior.map(Into::into);
                say(session, prompt).await
            }
            Command::Steer { message, images } => nothing(session.steer(rpc::prompt(message, images)).await),
            Command::FollowUp { message, images } => {
                nothing(session.follow_up(rpc::prompt(message, images)).await)
            }
            Command::Abort => {
                self.aborts.fetch_add(1, Ordering::SeqCst);
                session.abort();
                session.wait_for_idle().await;
                Ok(None)
            }
            Command::AbortCompaction => {
                session.abort_compaction();
                Ok(None)
            }
            Command::AbortRetry => {
                session.abort_retry();
                Ok(None)
            }
            Command::ClearQueue => {
                let (steering, follow_up) = session.clear_queue().await.map_err(|e| e.to_string())?;
                some(&Cleared { steering, follow_up })
            }
            Command::PauseQueuedMessages => {
                session.pause_queue(true);
                Ok(None)
            }
            Command::ResumeQueuedMessages => {
                let released = session.pause_queue(false);
                if released > 0 {
                    // Their turn, if nothing is in progress; otherwise what is in progress takes them.
                    tokio::spawn(async move { drop(session.resume().await) });
                }
                some(&Released { released })
            }
            Command::Compact {
                custom_instructions,
                parameters,
            } => self.compact(&session, custom_instructions, parameters).await,
            Command::SetAutoCompaction { enabled } => {
                let changed = session.change_options(move |options| {
                    let settings = &mut options.settings.compaction;
                    settings.enabled = enabled;
                    if enabled && settings.strategy == Strategy::Off {
                        settings.strategy = Strategy::Auto;
                    }
                });
                changed.await.map_err(|e| e.to_string())?;
                self.auto_compaction.store(enabled, Ordering::SeqCst);
                Ok(None)
            }
            Command::SetAutoRetry { enabled } => {
                let retries = self.setup.settings().retry.max_retries.max(1) as usize;
                let changed = session.change_options(move |options| {
                    options.settings.retry.max_retries = if enabled { retries } else { 0 };
                });
                nothing(changed.await)
            }
            Command::NavigateTree { target_id, options } => {
                self.navigate(&session, &target_id, options).await
            }
            Command::SetLabel { entry_id, label } => {
                let label = label.as_deref().map(str::trim).filter(|label| !label.is_empty());
                nothing(session.set_label(&entry_id, label).await)
            }
            Command::SetSessionName { name } => nothing(session.set_name(&name).await),
            Command::Handoff { custom_instructions } => {
                if session.state().is_streaming {
                    return Err("Cannot hand off while a response is in progress".to_owned());
                }
                let options = HandoffOptions {
                    focus: custom_instructions,
                    ..HandoffOptions::default()
                };
                let done = session.handoff(options).await.map_err(|e| e.to_string())?;
                some(&HandedOff {
                    new_session: done.new_session.display().to_string(),
                    document: done.document.text,
                })
            }
            Command::GetTree { flat: false } => look(&session, answers::tree).await,
            Command::GetTree { flat: true } => look(&session, answers::flat_tree).await,
            Command::GetEntries { since } => {
                look(&session, move |log| answers::entries(log, since.as_deref())).await
            }
            Command::GetForkMessages => look(&session, answers::fork_messages).await,
            Command::GetMessages => look(&session, answers::messages).await,
            Command::GetLastAssistantText => look(&session, answers::last_assistant_text).await,
            Command::GetSessionStats => {
                let file = session.path().display().to_string();
                let window = self
                    .setup
                    .profile()
                    .ok()
                    .flatten()
                    .and_then(|profile| profile.context_window);
                look(&session, move |log| answers::stats(log, &file, window)).await
            }
            Command::GetState => self.state(&session).await,
            Command::Fork { entry_id } => self.fork(&session, Some(entry_id)).await,
            Command::Clone => self.fork(&session, None).await,
            Command::NewSession { parent_session } => {
                quiet(&session).await;
                let open = move |host: &Self| {
                    let options = host.setup.options()?;
                    host::create(&host.setup, options, host.tools.as_ref(), parent_session)
                };
                self.switch(&session, Switch::New, None, open).await
            }
            Command::SwitchSession { session_path } => {
                quiet(&session).await;
                let path = PathBuf::from(session_path);
                let target = path.clone();
                let open = move |host: &Self| host.reopen(&path);
                self.switch(&session, Switch::Resume, Some(&target), open).await
            }
            _ => Err("this command is not known here".to_owned()),
        }
    }

    async fn state(&self, session: &AgentSession) -> Answer {
        let (message_count, session_name) = read(session, |log| {
            let context = log
                .context(&Leaf::Last, Profile::Auto)
                .map_err(|e| e.to_string())?;
            Ok((context.items.len(), log.name().as_str().map(str::to_owned)))
        })
        .await?;
        let settings = self.setup.settings();
        some(&State {
            session: session.state(),
            thinking_level: settings.thinking_level,
            steering_mode: settings.steering_mode,
            follow_up_mode: settings.follow_up_mode,
            session_name,
            auto_compaction_enabled: self.auto_compaction.load(Ordering::SeqCst),
            message_count,
        })
    }

    async fn compact(
        &self,
        session: &AgentSession,
        instructions: Option<String>,
        asked: Option<CompactParameters>,
    ) -> Answer {
        let parameters = match asked {
            None => None,
            Some(asked) => Some(self.parameters(session, asked).await?),
        };
        let options = CompactOptions {
            instructions,
            action: parameters.is_some().then_some(CompactionAction::VerbatimLines),
            parameters: parameters.clone(),
            ..CompactOptions::default()
        };
        let end = session.compact(options).await.map_err(|e| e.to_string())?;
        compacted(end, parameters)
    }

    async fn parameters(
        &self,
        session: &AgentSession,
        asked: CompactParameters,
    ) -> Result<Parameters, String> {
        let last = read(session, |log| {
            let context = log
                .context(&Leaf::Last, Profile::Auto)
                .map_err(|e| e.to_string())?;
            Ok(context.last_user_text())
        })
        .await?;
        let asked = ParameterLayer {
            ratio: asked.compression_ratio,
            preserve_recent: asked.preserve_recent,
            query: asked.query,
            budget: None,
        };
        let layers = [self.setup.settings().compaction.verbatim(), asked];
        let (parameters, bad) = Parameters::merge(&layers, last.as_deref());
        match bad.first() {
            Some(bad) => Err(bad.to_string()),
            None => Ok(parameters),
        }
    }

    async fn navigate(&self, session: &AgentSession, target: &str, asked: NavigateTreeOptions) -> Answer {
        let aborts = self.aborts.load(Ordering::SeqCst);
        let mut options = NavigateOptions {
            summary: if asked.summarize {
                BranchSummaryChoice::Summarize
            } else {
                BranchSummaryChoice::None
            },
            label: asked.label,
            ..NavigateOptions::default()
        };
        if asked.replace_instructions {
            options.replace_instructions = asked.custom_instructions;
        } else {
            options.instructions = asked.custom_instructions;
        }
        let moved = session
            .navigate(target, options)
            .await
            .map_err(|e| e.to_string())?;
        let cancelled = moved.outcome == OperationOutcome::Cancelled;
        some(&Moved {
            cancelled,
            aborted: cancelled && self.aborts.load(Ordering::SeqCst) != aborts,
            editor_text: moved.editor_text.filter(|_| !cancelled),
            summary_entry_id: moved.summary_entry_id,
        })
    }

    /// Goes on in a new session: before a message of the user, whose text comes back, or where this one stands.
    async fn fork(&self, session: &AgentSession, before: Option<String>) -> Answer {
        quiet(session).await;
        if session.may_switch(Switch::Fork, None).await == SwitchVerdict::Keep {
            return some(&Switched {
                text: None,
                cancelled: true,
            });
        }
        let source = session.path();
        let (path, text) = read(session, move |log| {
            let (leaf, text) = match before {
                None => (log.stands_at(), None),
                Some(id) => {
                    let typed = log.find(&id).and_then(|ix| answers::typed(log, ix));
                    let (parent, text) = typed.ok_or_else(|| "Invalid entry ID for forking".to_owned())?;
                    (parent, Some(text))
                }
            };
            let forked = fork::write(log, &source, leaf, None).map_err(|e| e.to_string())?;
            Ok((forked.path, text))
        })
        .await?;
        self.switch_to(session, Switch::Fork, move |host| host.reopen(&path))
            .await?;
        some(&Switched {
            text,
            cancelled: false,
        })
    }

    fn reopen(&self, path: &Path) -> Result<AgentSession, CommandError> {
        let store = DiskStore::new();
        let session = Session::open(&store, path, Damage::Silent)?;
        crate::commit::not_imported(&session)?;
        host::over(&self.setup, session, self.setup.options()?, self.tools.as_ref())
    }

    /// Goes on with another session, if no hook keeps this one.
    async fn switch(
        &self,
        session: &AgentSession,
        how: Switch,
        target: Option<&Path>,
        open: impl FnOnce(&Self) -> Result<AgentSession, CommandError>,
    ) -> Answer {
        let cancelled = session.may_switch(how, target).await == SwitchVerdict::Keep;
        if !cancelled {
            self.switch_to(session, how, open).await?;
        }
        some(&Switched {
            text: None,
            cancelled,
        })
    }

    async fn switch_to(
        &self,
        session: &AgentSession,
        how: Switch,
        open: impl FnOnce(&Self) -> Result<AgentSession, CommandError>,
    ) -> Result<(), String> {
        let opened = tokio::task::block_in_place(|| open(self)).map_err(|e| e.to_string())?;
        self.go_on_with(opened.clone());
        session.tell_switched(&opened, how).await;
        Ok(())
    }
}

/// Says something to the model; returns once it is accepted.
async fn say(session: AgentSession, prompt: Prompt) -> Answer {
    if session.state().model.is_none() {
        return Err("No model configured".to_owned());
    }
    let was_running = session.state().is_streaming;
    let watched = session.clone();
    let mut work = Box::pin(async move { session.prompt(prompt).await });
    loop {
        if let std::task::Poll::Ready(done) = futures::poll!(&mut work) {
            return nothing(done);
        }
        if !was_running && watched.state().is_streaming {
            // What comes of it is told by events.
            tokio::spawn(work);
            return Ok(None);
        }
        // It waits for its turn, and is in the session in a moment.
        tokio::select! {
            done = &mut work => return nothing(done),
            () = tokio::time::sleep(Duration::from_millis(2)) => {}
        }
    }
}

fn compacted(end: CompactionEnd, parameters: Option<Parameters>) -> Answer {
    let result = match (end.outcome, end.result) {
        (OperationOutcome::Committed, Some(result)) => result,
        (OperationOutcome::Cancelled, _) => return Err("Compaction cancelled".to_owned()),
        _ => {
            let nothing = || "Nothing to compact (session too small)".to_owned();
            return Err(end.error_message.unwrap_or_else(nothing));
        }
    };
    let is_lines = end.action == CompactionAction::VerbatimLines;
    some(&CompactionData {
        entry_id: result.entry_id,
        summary: (!is_lines).then(|| result.summary.clone()),
        compacted_text: is_lines.then_some(result.summary),
        first_kept_entry_id: result.first_kept_entry_id,
        tokens_before: result.tokens_before.get(),
        tokens_after: result.tokens_after.get(),
        prompt_version: is_lines.then_some(verbatim::PROMPT_VERSION),
        parameters,
        rung: result.rung,
        stats: result.extras.stats,
        backup_path: result.backup_path.map(|path| path.display().to_string()),
        planner_model: result.planner,
    })
}

/// Nothing is in progress any more.
async fn quiet(session: &AgentSession) {
    session.abort();
    session.wait_for_idle().await;
}

/// Reads the session's file: what is in progress does not hold this up.
async fn read<R: Send + 'static>(
    session: &AgentSession,
    look: impl FnOnce(&SessionLog) -> Result<R, String> + Send + 'static,
) -> Result<R, String> {
    let path = session.path();
    let task = tokio::task::spawn_blocking(move || {
        let bytes: Vec<u8> = DiskStore::new().read(&path).map_err(|e| e.to_string())?.into();
        let log = SessionLog::load(bytes, Trust::Claimed).map_err(|e| e.to_string())?;
        look(&log)
    });
    task.await.map_err(|e| e.to_string())?
}

async fn look(
    session: &AgentSession,
    look: impl FnOnce(&SessionLog) -> Result<Box<RawValue>, String> + Send + 'static,
) -> Answer {
    read(session, look).await.map(Some)
}

fn nothing<T>(done: Result<T, foldline_agent_session::SessionError>) -> Answer {
    done.map(|_| None).map_err(|e| e.to_string())
}

fn some(data: &impl Serialize) -> Answer {
    serde_json::value::to_raw_value(data)
        .map(Some)
        .map_err(|e| e.to_string())
}
