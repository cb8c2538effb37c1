//! How commands work on a session: through the library's door, with hooks, settings and locks. Progress goes to
//! standard error, and Ctrl-C cancels, as does the signal that programs are ended with.

use std::path::Path;
use std::sync::Arc;

use foldline_agent_session::event::{Event, NoticeLevel};
use foldline_agent_session::{AgentSession, LoadSessionError, SessionError, SessionOptions};
use foldline_session_store::DiskStore;

use crate::commit;
use crate::error::{CommandError, ErrorKind};
use crate::model::failure_error;
use crate::output;
use crate::progress::Progress;
use crate::session::Session;
use crate::signals::Signals;

/// A session, and what runs its operations.
pub(crate) struct Door {
    pub(crate) session: AgentSession,
    runtime: tokio::runtime::Runtime,
}

impl Door {
    /// Opens the door of a session that was read.
    ///
    /// # Errors
    /// It is another agent's, which is never written.
    pub(crate) fn of(session: Session, options: SessionOptions) -> Result<Self, CommandError> {
        commit::not_imported(&session)?;
        Self::of_any(session, options)
    }

    /// The same for work that leaves the session as it is.
    pub(crate) fn of_any(session: Session, options: SessionOptions) -> Result<Self, CommandError> {
        let store = Arc::new(DiskStore::new());
        let Session { path, log, stamp, .. } = session;
        Self::over(move || Ok(AgentSession::open_read(store, &path, log, stamp, options)))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn at(path: &Path, options: SessionOptions) -> Result<Self, CommandError> {
        Self::over(|| AgentSession::open_whole(Arc::new(DiskStore::new()), path, options))
    }

    fn over(open: impl FnOnce() -> Result<AgentSession, LoadSessionError>) -> Result<Self, CommandError> {
        let runtime = runtime()?;
        let session = open().map_err(|e| CommandError::from_error(ErrorKind::NoSession, &e))?;
        // Messages that wait are for whoever goes on with the session, not for a command that changes it.
        session.pause_queue(true);
        Ok(Self { session, runtime })
    }

    /// Runs an operation to its end. A signal to end cancels it.
    pub(crate) fn run<T>(&self, progress: &Progress, operation: impl Future<Output = T>) -> T {
        drive(&self.runtime, &self.session, operation, |event| {
            show(event, progress);
        })
    }

    /// Looks at the session as it is.
    pub(crate) fn look<R>(&self, read: impl FnOnce(&foldline_session_model::log::SessionLog) -> R) -> R {
        self.runtime.block_on(self.session.with_log(read))
    }
}

/// Runs an operation of a session to its end and tells its events. A signal to end cancels it.
pub(crate) fn drive<T>(
    runtime: &tokio::runtime::Runtime,
    session: &AgentSession,
    operation: impl Future<Output = T>,
    mut tell: impl FnMut(&Event),
) -> T {
    runtime.block_on(async {
        let mut events = session.subscribe();
        let mut operation = std::pin::pin!(operation);
        // One listener for all of the time: nothing is missed between two events.
        let mut signals = Signals::new();
        let mut asked = false;
        loop {
            tokio::select! {
                done = &mut operation => {
                    while let Ok(event) = events.try_recv() {
                        tell(&event);
                    }
                    return done;
                }
                Some(event) = events.recv() => tell(&event),
                () = signals.next(), if !asked => {
                    asked = true;
                    session.abort();
                }
            }
        }
    })
}

/// What runs operations: they wait for models, and blocking work has threads of its own.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))
}

/// Tells a person what happens. Deltas and results are for others.
pub(crate) fn show(event: &Event, progress: &Progress) {
    match event {
        Event::CompactionStart(_) => progress.step("Compacting"),
        Event::CompactionEnd(_) => progress.step("Working"),
        Event::BranchSummaryStart => progress.step("Summarising the branch"),
        Event::HandoffStart => progress.step("Writing the handoff"),
        Event::SummarizationRetryScheduled {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        }
        | Event::AutoRetryStart {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        } => progress.say(|| {
            let seconds = delay_ms.div_ceil(1000);
            output::note(&format!(
                "Retrying ({attempt}/{max_attempts}) in {seconds}s: {error_message}"
            ));
        }),
        Event::ModelFallbackStart { from, to, reason } => progress.say(|| {
            output::note(&format!("{to} takes over from {from}: {reason}"));
        }),
        Event::ModelChanged { model, .. } => progress.say(|| output::note(&format!("the model is {model}"))),
        Event::Notice { level, message, .. } => progress.say(|| match level {
            NoticeLevel::Info => output::note(message),
            NoticeLevel::Warning | NoticeLevel::Error => output::warning(message),
        }),
        Event::ExtensionError {
            extension_path,
            event,
            error,
        } => progress.say(|| output::warning(&format!("{extension_path} failed at {event}: {error}"))),
        _ => {}
    }
}

/// What a person is told about an operation that did not happen.
pub(crate) fn session_error(error: &SessionError) -> CommandError {
    let of_kind = |kind| CommandError::from_error(kind, error);
    match error {
        SessionError::AgentBusy
        | SessionError::Busy { .. }
        | SessionError::HandoffInProgress
        | SessionError::Write { busy: true, .. } => {
            of_kind(ErrorKind::Busy).hint("try again when the other one is done")
        }
        SessionError::Write { system, .. } | SessionError::HandoffNotWritten { system, .. } => {
            commit::with_system_hint(of_kind(ErrorKind::Failed), *system)
        }
        SessionError::Cancelled { .. } => of_kind(ErrorKind::Cancelled),
        SessionError::Provider { message, kind } => failure_error(kind, message),
        SessionError::EmptyPrompt | SessionError::NoModel => of_kind(ErrorKind::Usage),
        _ => of_kind(ErrorKind::Failed),
    }
}
