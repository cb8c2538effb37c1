//! Handoff: a document that opens a new session (seed 000; spec "Orchestrator and clients", 11).
//!
//! The document is written from the live prefix — system text, tools that must not be called, messages — and one more
//! message with the instruction. The new session is written whole, and only then the old one is left; the old file stays
//! as it is.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldline_compaction_core::prompts::{Prompt, Prompts, Variables};
use foldline_compaction_core::redact::redact;
use foldline_compaction_core::settings::Planner;
use foldline_compaction_core::summary::{Extract, extracted_notes};
use foldline_llm_client::{LanguageModel, RetryPolicy, RetryingModel};
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::model_call::{
    CacheHint, ErrorClass, InputBlock, LlmRequest, MessageContent, ModelProfile, Origin, ReasoningEffort,
    RequestMessage, ToolChoice,
};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::{Display, EntryDraft, HeaderDraft, Tokens};
use foldline_session_store::ArtifactRef;
use tokio_util::sync::CancellationToken;

use crate::compaction::on_thread;
use crate::core::{Core, HandoffCopy, Live, context};
use crate::event::{Event, FailureKind, NoticeLevel, OperationOutcome};
use crate::hooks::SessionSwitchEvent;
use crate::journal::{Journal, full_text_of, now_text, system_of};
use crate::queue::{dequeued_entry, queued_entry};
use crate::session::{AgentSession, SessionError};
use crate::shared::{Lease, OperationKind, Part};
use crate::state_lines;

/// What is asked of a handoff.
#[derive(Clone, Debug, Default)]
pub struct HandoffOptions {
    /// What the document should look at above all.
    pub focus: Option<String>,
    /// Who writes it; `None`: the session's model if there is one.
    pub planner: Option<Planner>,
    /// Where the new session goes; `None`: beside the old one, under a new id.
    pub output: Option<PathBuf>,
    /// Whether the document is kept outside of the new session's messages too.
    pub copy: HandoffCopy,
}

/// A document for a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct HandoffDocument {
    /// The text.
    pub text: String,
    /// Who wrote it: `provider/model`, or `extractive`.
    pub planner: String,
}

/// A handoff that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct HandedOff {
    /// The document.
    pub document: HandoffDocument,
    /// The new session.
    pub new_session: PathBuf,
    /// The address of the document's copy, if one was asked for and could be stored.
    pub saved_path: Option<String>,
}

/// The custom type of the message that holds the document.
const HANDOFF: &str = "handoff";
/// The most output of a document.
const OUTPUT: Tokens = Tokens(8_192);
/// The longest tool result of a request that does not fit otherwise, in characters.
const CUT_RESULT: usize = 2_000;
/// What a request costs besides its texts.
const FRAME: Tokens = Tokens(64);

/// What a model is that never comes to an end.
pub(crate) const TOO_SLOW: ErrorClass =
    ErrorClass::Transient(foldline_session_model::model_call::TransientCause::IdleTimeout);

impl AgentSession {
    /// Writes a handoff document, opens a new session with it, and goes on there. The old file is not touched.
    ///
    /// # Errors
    /// The session is busy, there is nothing to hand off, or the document could not be written. The session is then as
    /// it was.
    pub async fn handoff(&self, options: HandoffOptions) -> Result<HandedOff, SessionError> {
        let lease = self.begin_handoff()?;
        let core = self.core();
        self.in_task(async move {
            let mut core = core.lock_owned().await;
            let done = core.hand_off(&lease, &options).await;
            Self::release(core, lease);
            done
        })
        .await
    }

    /// Writes the document alone; nothing changes.
    ///
    /// # Errors
    /// As [`handoff`](Self::handoff).
    pub async fn handoff_document(&self, options: HandoffOptions) -> Result<HandoffDocument, SessionError> {
        let lease = self.begin_handoff()?;
        let core = self.core();
        self.in_task(async move {
            let mut core = core.lock_owned().await;
            let part = lease.part(Part::Handoff);
            let token = part.token.clone();
            let document = core.document_in_time(&options, &token).await;
            drop(part);
            Self::release(core, lease);
            document
        })
        .await
    }

    fn begin_handoff(&self) -> Result<Lease, SessionError> {
        match self.begin(OperationKind::Handoff) {
            Err(
                SessionError::AgentBusy
                | SessionError::Busy {
                    holder: OperationKind::Run,
                    ..
                },
            ) => Err(SessionError::Failed(
                "Cannot hand off while a response is streaming; wait for it to finish or abort it first."
                    .to_owned(),
            )),
            Err(SessionError::Busy {
                holder: OperationKind::Handoff,
                ..
            }) => Err(SessionError::Failed(
                "A handoff is already in progress.".to_owned(),
            )),
            lease => lease,
        }
    }
}

impl Core {
    /// Writes the document, then the new session, then moves there: each step leaves everything as it was if it fails.
    pub(crate) async fn hand_off(
        &mut self,
        lease: &Lease,
        options: &HandoffOptions,
    ) -> Result<HandedOff, SessionError> {
        let part = lease.part(Part::Handoff);
        let token = part.token.clone();
        self.shared.emit(Event::HandoffStart);
        let mut done = match self.document_in_time(options, &token).await {
            Ok(document) => self.open_successor(options, document, &token).await,
            Err(error) => Err(error),
        };
        if let (Ok(done), HandoffCopy::Artifact) = (&mut done, options.copy) {
            done.saved_path = self.keep_document(&done.document.text).await;
        }
        drop(part);
        let (outcome, new_session, saved_path, error_message) = match &done {
            Ok(done) => (
                OperationOutcome::Committed,
                Some(done.new_session.display().to_string()),
                done.saved_path.clone(),
                None,
            ),
            Err(SessionError::Cancelled { .. }) => (OperationOutcome::Cancelled, None, None, None),
            Err(error) => (OperationOutcome::Failed, None, None, Some(error.to_string())),
        };
        self.shared.emit(Event::HandoffEnd {
            outcome,
            new_session,
            saved_path,
            error_message,
        });
        if let Ok(done) = &done {
            self.tell_switch(lease, &done.new_session).await;
        }
        done
    }

    /// Stores a document as an artifact of the session; its address, or a warning that there is none.
    async fn keep_document(&self, text: &str) -> Option<String> {
        let (journal, text) = (self.shared.journal(), text.to_owned());
        let stored = on_thread(move || {
            let mut artifacts = journal.store().artifacts(journal.path());
            artifacts.save(HANDOFF, &text)
        });
        match stored.await {
            Ok(stored) => Some(ArtifactRef::Stored(stored.id).to_string()),
            Err(error) => {
                let text = format!("The handoff document could not be kept as an artifact: {error}");
                self.shared
                    .events
                    .notice(NoticeLevel::Warning, Some("handoff"), text);
                None
            }
        }
    }

    async fn tell_switch(&self, lease: &Lease, _new: &Path) {
        let cx = self.hook_context(&lease.cancel);
        let previous = self.log.header().parent_session.as_deref().map(PathBuf::from);
        self.options
            .hooks
            .session_switch(&cx, || SessionSwitchEvent {
                reason: "new",
                previous_session_file: previous.as_deref(),
            })
            .await;
    }

    /// The document, within the time that maintenance has (R12).
    async fn document_in_time(
        &mut self,
        options: &HandoffOptions,
        token: &CancellationToken,
    ) -> Result<HandoffDocument, SessionError> {
        let budget = self.options.settings.maintenance_budget;
        let document = tokio::time::timeout(budget, self.document(options, token)).await;
        document.unwrap_or_else(|_| {
            Err(SessionError::Provider {
                message: format!(
                    "Handoff generation failed: no document came within {} seconds",
                    budget.as_secs()
                ),
                kind: FailureKind::Provider(TOO_SLOW),
            })
        })
    }

    /// The document, by the session's model or by quotes.
    async fn document(
        &mut self,
        options: &HandoffOptions,
        token: &CancellationToken,
    ) -> Result<HandoffDocument, SessionError> {
        let log = self
            .checked_log()
            .map_err(|error| SessionError::Failed(error.to_string()))?;
        let messages = context(&log, self.options.profile)
            .map_err(|error| SessionError::Failed(error.to_string()))?
            .items
            .len();
        if messages < 2 {
            return Err(SessionError::Failed(
                "Nothing to hand off (no messages yet)".to_owned(),
            ));
        }
        if token.is_cancelled() {
            return Err(CANCELLED);
        }
        match options.planner.unwrap_or_else(|| self.writer()) {
            Planner::Extractive => self.extracted_document(&log, options.focus.as_deref()),
            Planner::Model => {
                let model = self
                    .model()
                    .cloned()
                    .ok_or_else(|| SessionError::Failed("No model selected for handoff".to_owned()))?;
                self.document_by(&log, &model, options.focus.as_deref(), token)
                    .await
            }
        }
    }

    async fn document_by(
        &self,
        log: &Arc<SessionLog>,
        model: &Arc<dyn LanguageModel>,
        focus: Option<&str>,
        token: &CancellationToken,
    ) -> Result<HandoffDocument, SessionError> {
        let failed = |error: &dyn std::fmt::Display| {
            SessionError::Failed(format!("Handoff generation failed: {error}"))
        };
        let prompts = Prompts::default();
        let variables = Variables {
            extension: self.options.settings.handoff_prompt_extension.as_deref(),
            focus,
            ..Variables::default()
        };
        let instruction = prompts
            .render(Prompt::Handoff, &variables)
            .map_err(|error| failed(&error))?;
        let profile = &self.known(model.profile());
        let context = context(log, self.options.profile).map_err(|error| failed(&error))?;
        let origin = Origin {
            api: profile.api,
            provider: profile.provider.clone(),
            model: profile.id.clone(),
        };
        let wrappers = Wrappers::default();
        let view = context.llm_view_for(&wrappers, TrailingCalls::Answer, &origin);
        let mut messages: Vec<RequestMessage<'_>> =
            view.iter().map(|message| message.to_request(log)).collect();
        messages.push(RequestMessage::user(instruction));
        let output = profile.max_output.map_or(OUTPUT, |most| most.min(OUTPUT));
        let mut request = LlmRequest {
            system: self
                .options
                .system
                .iter()
                .map(|text| Cow::Borrowed(text.as_str()))
                .collect(),
            messages,
            tools: self.options.tools.iter().map(|tool| tool.spec()).collect(),
            tool_choice: ToolChoice::None,
            max_output: Some(output),
            reasoning: ReasoningEffort::High,
            cache: CacheHint::Short,
            session_key: Some(Cow::Borrowed(&log.header().id)),
        };
        make_fit(&mut request, profile, self.overhead() + FRAME, output).map_err(|error| failed(&error))?;
        let retrying = RetryingModel::new(Arc::clone(model), RetryPolicy::MAINTENANCE);
        let reply = match retrying.complete(&request, token.clone()).await {
            Ok(_) if token.is_cancelled() => return Err(CANCELLED),
            Ok(reply) => reply,
            Err(error) if error.class == ErrorClass::Cancelled => return Err(CANCELLED),
            Err(error) => {
                return Err(SessionError::Provider {
                    message: format!("Handoff generation failed: {}", error.message),
                    kind: FailureKind::Provider(error.class),
                });
            }
        };
        let text = redact(reply.text().trim()).into_owned();
        if text.is_empty() {
            return Err(SessionError::Provider {
                message: "Handoff generation failed: the model wrote no document".to_owned(),
                kind: FailureKind::Answer,
            });
        }
        Ok(HandoffDocument {
            text,
            planner: profile.model_ref().to_string(),
        })
    }

    /// A document without a model: quotes and counts, and the newest request word for word.
    fn extracted_document(
        &self,
        log: &SessionLog,
        focus: Option<&str>,
    ) -> Result<HandoffDocument, SessionError> {
        let context =
            context(log, self.options.profile).map_err(|error| SessionError::Failed(error.to_string()))?;
        let work = state_lines::read(&*self.options.work);
        let mut text = String::from("# Handoff\n\n");
        text.push_str(
            "*Extracted from the transcript without a model: quotes and counts, no conclusions.*\n\n",
        );
        if let Some(focus) = focus {
            text.push_str("## Focus\n\n");
            text.push_str(focus.trim());
            text.push_str("\n\n");
        }
        if let Some(request) = context.last_user_text() {
            text.push_str("## Newest request, word for word\n\n");
            text.push_str(&redact(&request));
            text.push_str("\n\n");
        }
        let earlier = context.items.first().and_then(|item| match &item.message {
            Message::CompactionSummary(summary) => Some(summary.summary.clone()),
            Message::VerbatimBoundary(boundary) => Some(boundary.text.clone()),
            _ => None,
        });
        if let Some(earlier) = earlier {
            text.push_str("## From an earlier compaction\n\n");
            text.push_str(&redact(&earlier));
            text.push_str("\n\n");
        }
        text.push_str(&extracted_notes(&Extract {
            context: &context,
            items: 0..context.items.len(),
            open_todos: &work.open_todos,
            cap: OUTPUT,
        }));
        for line in &work.lines {
            text.push_str("\n- ");
            text.push_str(line);
        }
        text.push('\n');
        Ok(HandoffDocument {
            text,
            planner: "extractive".to_owned(),
        })
    }

    /// Writes the new session and moves there.
    async fn open_successor(
        &mut self,
        options: &HandoffOptions,
        document: HandoffDocument,
        token: &CancellationToken,
    ) -> Result<HandedOff, SessionError> {
        let id = uuid::Uuid::now_v7().to_string();
        let old = self.shared.journal().path().to_path_buf();
        let path = options.output.clone().unwrap_or_else(|| beside(&old, &id));
        let header = HeaderDraft {
            id,
            timestamp: now_text(),
            cwd: self.log.header().cwd.clone(),
            parent_session: Some(absolute(&old).display().to_string()),
            title: None,
        };
        let mut drafts = Vec::new();
        if let Some(model) = self.model_ref() {
            drafts.push(EntryDraft::model_change(&model.provider, &model.id));
        }
        let content = format!(
            "<handoff-context>\n{}\n</handoff-context>\n\nThe text above was written at the end of an earlier session \
             for this one; it is reference, not a request.",
            inert(&document.text)
        );
        drafts.push(EntryDraft::custom_message(HANDOFF, &content, Display::Shown));
        // What waits goes along: it was accepted (R09). The old file says that it left.
        let shared = Arc::clone(&self.shared);
        let _books = shared.books().await;
        let waiting: Vec<_> = shared.queues().all().cloned().collect();
        if !waiting.is_empty() {
            drafts.push(queued_entry(&waiting));
        }
        let store = Arc::clone(self.shared.journal().store());
        let target = path.clone();
        let created =
            tokio::task::spawn_blocking(move || Journal::create(store, &target, &header, &drafts)).await;
        let not_written = |message, system, document| SessionError::HandoffNotWritten {
            message,
            system,
            handoff_document: Box::new(document),
        };
        let (journal, log) = match created {
            Ok(Ok(created)) => created,
            Ok(Err(error)) => {
                return Err(not_written(full_text_of(&error), system_of(&error), document));
            }
            Err(error) => return Err(not_written(error.to_string(), None, document)),
        };
        if token.is_cancelled() {
            // The file is whole, and nobody was told of it: it goes again.
            let removed = journal.store().volume().remove(&path);
            if let Err(error) = removed {
                tracing::warn!(%error, "a session that was not wanted any more could not be removed");
            }
            return Err(CANCELLED);
        }
        // One step: from here on the session is the new one.
        if !waiting.is_empty()
            && let Err(error) = self.append(dequeued_entry(&waiting)).await
        {
            tracing::warn!(%error, "the old session does not say that its waiting messages left");
        }
        self.shared.switch_to(journal, &log);
        self.log = Arc::new(log);
        self.live = Live::new();
        Ok(HandedOff {
            document,
            new_session: path,
            saved_path: None,
        })
    }
}

/// The document with our tag made inert: nothing in it can close or open the block that it stands in.
fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        out.push('<');
        let name = tag
            .get(1..)
            .unwrap_or_default()
            .trim_start_matches(['/', ' ', '\\']);
        if name
            .get(..15)
            .is_some_and(|name| name.eq_ignore_ascii_case("handoff-context"))
        {
            out.push('\\');
        }
        rest = tag.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

const CANCELLED: SessionError = SessionError::Cancelled { what: "Handoff" };

/// The same file for whoever reads its name elsewhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The file of a new session beside an old one.
fn beside(old: &Path, id: &str) -> PathBuf {
    let time = now_text().replace([':', '.'], "-");
    old.with_file_name(format!("{time}_{id}.jsonl"))
}

/// Makes a request fit its model's window, step by step: without pictures, with tool results cut, without the oldest
/// messages (R03).
fn make_fit(
    request: &mut LlmRequest<'_>,
    profile: &ModelProfile,
    overhead: Tokens,
    output: Tokens,
) -> Result<(), String> {
    let Some(window) = profile.context_window.filter(|window| *window > Tokens::ZERO) else {
        return Ok(());
    };
    let room = window.saturating_sub(output).saturating_sub(overhead);
    let fits = |request: &LlmRequest<'_>| sizes(request).iter().copied().sum::<Tokens>() <= room;
    if fits(request) {
        return Ok(());
    }
    for message in &mut request.messages {
        if let MessageContent::User { blocks } | MessageContent::ToolResult { blocks, .. } =
            &mut message.content
        {
            for block in blocks {
                if matches!(block, InputBlock::Image(_)) {
                    *block = InputBlock::Text(Cow::Borrowed("[picture left out]"));
                }
            }
        }
    }
    if fits(request) {
        return Ok(());
    }
    for message in &mut request.messages {
        if let MessageContent::ToolResult { blocks, .. } = &mut message.content {
            for block in blocks {
                if let InputBlock::Text(text) = block
                    && let Some((at, _)) = text.char_indices().nth(CUT_RESULT)
                {
                    let kept = text.get(..at).unwrap_or_default();
                    *text = Cow::Owned(format!("{kept}\n[the rest of this result was left out]"));
                }
            }
        }
    }
    let sizes = sizes(request);
    let mut total: Tokens = sizes.iter().copied().sum();
    let mut from = 0;
    // The instruction is the last message and stays; a request does not begin with a result.
    while from + 1 < request.messages.len()
        && (total > room
            || matches!(
                request.messages.get(from).map(|message| &message.content),
                Some(MessageContent::ToolResult { .. } | MessageContent::Assistant { .. }) if from > 0
            ))
    {
        total = total.saturating_sub(sizes.get(from).copied().unwrap_or(Tokens::ZERO));
        from += 1;
    }
    request.messages.drain(..from);
    if total > room {
        return Err(format!(
            "the window of {window} tokens is too small for a handoff"
        ));
    }
    Ok(())
}

/// The estimate of each message.
fn sizes(request: &LlmRequest<'_>) -> Vec<Tokens> {
    let size = |message: &RequestMessage<'_>| {
        let json = serde_json::to_string(&message.content).unwrap_or_default();
        Heuristic.one(&json)
    };
    request.messages.iter().map(size).collect()
}
