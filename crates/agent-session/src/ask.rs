//! One request of a run: built from the folded log, streamed, and recorded (spec "Orchestrator and clients", 1.3).

use std::borrow::Cow;

use foldline_llm_client::{LlmError, LlmEvent, ReplaySafety};
use foldline_session_model::fold::Context;
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::model_call::{
    AssistantBlock, CacheHint, ErrorClass, InputBlock, LlmReply, LlmRequest, MessageContent, ModelProfile,
    Origin, RawJson, RequestMessage, StopReason, ToolCall, ToolChoice, TransientCause, Usage,
};
use foldline_session_model::{EntryId, Tokens};
use futures::StreamExt as _;
use rustc_hash::FxHashSet;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, context};
use crate::event::{Delta, Event};
use crate::hooks::{ContextEvent, HookEvent};
use crate::journal::{CommitError, now_ms};
use crate::message;
use crate::shared::within_grace;

/// What stands in the place of a picture that a provider refused, or for which a request has no room.
const NO_PICTURE: &str = "[A picture was left out here: the provider did not take it.]";

/// What a request came to.
#[derive(Debug)]
pub(crate) enum Answer {
    /// An answer, in the session.
    Whole {
        entry: EntryId,
        stop: StopReason,
        calls: Vec<ToolCall<'static>>,
        text: String,
        usage: Usage,
    },
    /// A failure, in the session too.
    Failed { error: LlmError, replay: ReplaySafety },
    /// The run was cancelled; what had arrived is in the session.
    Cancelled,
    /// There is nothing to ask, or nobody.
    Impossible(String),
}

impl Core {
    /// Asks the model about the context as it is.
    ///
    /// # Errors
    /// The answer could not be written.
    pub(crate) async fn ask(&mut self, cancel: &CancellationToken) -> Result<Answer, CommitError> {
        let Some(model) = self.model().cloned() else {
            return Ok(Answer::Impossible("No model configured".to_owned()));
        };
        let log = match self.checked_log() {
            Ok(log) => log,
            Err(error) => return Ok(Answer::Impossible(error.to_string())),
        };
        let after_compaction = std::mem::take(&mut self.live.compacted_mid_run);
        let shown = std::sync::atomic::AtomicBool::new(false);
        let outcome = {
            let context = match context(&log, self.options.profile) {
                Ok(context) => context,
                Err(error) => return Ok(Answer::Impossible(error.to_string())),
            };
            let profile = model.profile();
            let origin = Origin {
                api: profile.api,
                provider: profile.provider.clone(),
                model: profile.id.clone(),
            };
            let wrappers = Wrappers::default();
            let view = context.llm_view_for(&wrappers, TrailingCalls::Answer, &origin);
            let messages: Vec<RequestMessage<'_>> =
                view.iter().map(|message| message.to_request(&log)).collect();
            let messages = self.with_media(messages);
            let planned = (after_compaction && self.options.hooks.wants(HookEvent::Context))
                .then(|| estimate_of(&messages));
            let messages = self.hooked_messages(messages, cancel).await;
            if let Some(planned) = planned {
                // What was compacted to fit may not, with what hooks add.
                let grown = estimate_of(&messages).saturating_sub(planned);
                if grown > Tokens::ZERO
                    && let Some(text) = self.still_over(self.size_now() + grown)
                {
                    return Ok(Answer::Impossible(text));
                }
            }
            if let Some(id) = repeated_call(&messages) {
                let text = format!("the call id {id} is in more than one answer; the request was not sent");
                return Ok(Answer::Impossible(text));
            }
            let request = LlmRequest {
                system: self.system(),
                messages,
                tools: self.options.tools.iter().map(|tool| tool.spec()).collect(),
                tool_choice: ToolChoice::Auto,
                max_output: None,
                reasoning: self.options.reasoning,
                cache: CacheHint::Short,
                session_key: Some(Cow::Borrowed(&log.header().id)),
            };
            let emit = |event: &LlmEvent| {
                let delta = match event {
                    LlmEvent::Text { index, delta } => Delta::TextDelta {
                        content_index: *index,
                        delta: delta.clone(),
                    },
                    LlmEvent::Thinking { index, delta } => Delta::ThinkingDelta {
                        content_index: *index,
                        delta: delta.clone(),
                    },
                    LlmEvent::ToolArguments { index, delta } => Delta::ToolcallDelta {
                        content_index: *index,
                        delta: delta.clone(),
                    },
                    _ => return,
                };
                shown.store(true, std::sync::atomic::Ordering::Relaxed);
                self.shared.emit(Event::MessageUpdate {
                    assistant_message_event: delta,
                });
            };
            self.shared.emit(Event::MessageStart { role: "assistant" });
            let opened = within_grace(cancel, model.stream(&request, cancel.clone())).await;
            match opened.unwrap_or_else(|| Err(LlmError::cancelled())) {
                Err(error) => Err(error),
                Ok(mut events) => loop {
                    match within_grace(cancel, events.next()).await {
                        None => break Err(LlmError::cancelled()),
                        Some(Some(Ok(LlmEvent::End(reply)))) => break checked(*reply),
                        Some(Some(Ok(event))) => emit(&event),
                        Some(Some(Err(error))) => break Err(error),
                        Some(None) => {
                            break Err(LlmError::new(
                                ErrorClass::Transient(TransientCause::StreamEnded),
                                "the stream ended without an end",
                            ));
                        }
                    }
                },
            }
        };
        drop(log);
        let streamed = shown.into_inner();
        let profile = model.profile();
        match outcome {
            Ok(reply) => {
                let text = reply.text();
                let entry = self.record_answer(&reply, profile, None).await?;
                self.live.last_failure = None;
                let calls = reply.blocks.into_iter().filter_map(|block| match block {
                    AssistantBlock::ToolCall(call) => Some(call),
                    _ => None,
                });
                Ok(Answer::Whole {
                    entry,
                    stop: reply.stop,
                    calls: calls.collect(),
                    text,
                    usage: reply.usage,
                })
            }
            Err(mut error) => {
                let reply = error.partial.take().map_or_else(
                    || LlmReply {
                        blocks: Vec::new(),
                        usage: Usage::default(),
                        stop: error.stop_reason(),
                        raw_stop: None,
                        model: None,
                        response_id: None,
                    },
                    |partial| LlmReply {
                        stop: error.stop_reason(),
                        ..*partial
                    },
                );
                let replay = if streamed || !reply.is_empty() {
                    ReplaySafety::ContentShown
                } else {
                    ReplaySafety::Safe
                };
                let text = error.to_string();
                let entry = self.record_answer(&reply, profile, Some(text)).await?;
                if error.class == ErrorClass::Cancelled {
                    return Ok(Answer::Cancelled);
                }
                if let ErrorClass::Overflow {
                    limit: Some(limit), ..
                } = &error.class
                {
                    self.live.windows.insert(profile.model_ref(), *limit);
                }
                self.live.last_failure = Some((entry, error.class.clone()));
                Ok(Answer::Failed { error, replay })
            }
        }
    }

    /// Puts what the model said into the session, whole or broken off, and tells its end.
    async fn record_answer(
        &mut self,
        reply: &LlmReply,
        profile: &ModelProfile,
        failure: Option<String>,
    ) -> Result<EntryId, CommitError> {
        let draft = message::assistant(reply, profile, failure.as_deref(), now_ms());
        let written = self.append(draft).await;
        self.shared.emit(Event::MessageEnd {
            role: "assistant",
            entry_id: written.as_ref().ok().cloned(),
            text: reply.text(),
            usage: Some(reply.usage),
            error_message: match &written {
                Ok(_) => failure,
                Err(error) => Some(error.to_string()),
            },
        });
        written
    }

    /// The system text of the next request.
    fn system(&self) -> Vec<Cow<'_, str>> {
        match &self.live.system {
            Some(text) => vec![Cow::Borrowed(text)],
            None => self
                .options
                .system
                .iter()
                .map(|text| Cow::Borrowed(text.as_str()))
                .collect(),
        }
    }

    /// The messages of a request as hooks have them. What is no message is left out.
    async fn hooked_messages<'m>(
        &self,
        messages: Vec<RequestMessage<'m>>,
        cancel: &CancellationToken,
    ) -> Vec<RequestMessage<'m>> {
        if !self.options.hooks.wants(HookEvent::Context) {
            return messages;
        }
        let as_json =
            |message: &RequestMessage<'_>| serde_json::to_string(message).ok().and_then(RawJson::parse);
        let told: Vec<RawJson<'static>> = messages.iter().filter_map(as_json).collect();
        let cx = self.hook_context(cancel);
        let changed = self
            .options
            .hooks
            .context(&cx, || ContextEvent { messages: told })
            .await;
        match changed {
            None => messages,
            Some(changed) => changed
                .iter()
                .filter_map(|message| serde_json::from_str(message.get()).ok())
                .collect(),
        }
    }

    /// The messages without the pictures that a provider refused, and with the newest ones of the others only, if a
    /// request was too large for its way.
    fn with_media<'m>(&self, mut messages: Vec<RequestMessage<'m>>) -> Vec<RequestMessage<'m>> {
        if self.live.without_media.is_empty() && self.live.media_budget.is_none() {
            return messages;
        }
        let mut room = self.live.media_budget.unwrap_or(usize::MAX);
        for message in messages.iter_mut().rev() {
            let refused = message
                .entry
                .as_ref()
                .is_some_and(|entry| self.live.without_media.contains(entry));
            let (MessageContent::User { blocks } | MessageContent::ToolResult { blocks, .. }) =
                &mut message.content
            else {
                continue;
            };
            for block in blocks.iter_mut().rev() {
                if let InputBlock::Image(image) = block {
                    match room.checked_sub(image.data.len()).filter(|_| !refused) {
                        Some(left) => room = left,
                        None => *block = InputBlock::Text(Cow::Borrowed(NO_PICTURE)),
                    }
                }
            }
        }
        messages
    }
}

/// The bytes of pictures in a context.
pub(crate) fn media_bytes(context: &Context<'_>) -> usize {
    let blocks = context
        .items
        .iter()
        .filter_map(|item| item.message.content())
        .flat_map(foldline_session_model::message::Content::blocks);
    blocks
        .map(|block| match block {
            foldline_session_model::message::Block::Image { data, .. } => data.len(),
            _ => 0,
        })
        .sum()
}

/// The newest entry with a picture.
pub(crate) fn newest_picture(context: &Context<'_>) -> Option<EntryId> {
    let with_picture = context.items.iter().rev().find(|item| {
        item.message
            .content()
            .is_some_and(|content| content.image_count() > 0)
    });
    with_picture.map(|item| context.log.entry_id(item.source))
}

/// An answer that says nothing is a failure that may pass.
fn checked(reply: LlmReply) -> Result<LlmReply, LlmError> {
    let nothing = reply.is_empty()
        && matches!(reply.stop, StopReason::Stop | StopReason::ToolUse)
        && reply.usage.output == Tokens::ZERO;
    if nothing {
        return Err(LlmError::new(
            ErrorClass::Transient(TransientCause::EmptyReply),
            "Provider returned an empty completion",
        ));
    }
    Ok(reply)
}

/// A call id that two answers of a request share.
fn repeated_call(messages: &[RequestMessage<'_>]) -> Option<String> {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    for message in messages {
        let MessageContent::Assistant { blocks, .. } = &message.content else {
            continue;
        };
        for block in blocks {
            if let AssistantBlock::ToolCall(call) = block
                && !seen.insert(&call.id)
            {
                return Some(call.id.clone().into_owned());
            }
        }
    }
    None
}

/// An estimate for the messages of a request, to compare with another one of this kind.
fn estimate_of(messages: &[RequestMessage<'_>]) -> Tokens {
    use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
    Heuristic.one(&serde_json::to_string(messages).unwrap_or_default())
}

/// An estimate for what is about to be said.
pub(crate) fn estimate(blocks: &[InputBlock<'_>]) -> Tokens {
    use foldline_session_model::tokens::{Heuristic, IMAGE_TOKENS, TokenCounter as _};
    let pictures = blocks
        .iter()
        .filter(|block| matches!(block, InputBlock::Image(_)))
        .count();
    let texts = message::text_of(blocks);
    Heuristic.one(&texts) + Tokens(pictures as u64 * IMAGE_TOKENS.get())
}
