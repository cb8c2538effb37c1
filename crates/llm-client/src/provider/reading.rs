//! Reading one answer: bytes to events, under limits and a cancel token.

use std::collections::VecDeque;

use bytes::Bytes;
use foldline_session_model::model_call::{
    CacheHint, ErrorClass, LlmReply, LlmRequest, ModelProfile, StopReason, TransientCause, Usage,
};
use foldline_session_model::{EntryId, Tokens};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::StreamLimits;
use crate::api::Decoder;
use crate::classify::{Content, MessageFields, silent_overflow};
use crate::endpoint::Scrubber;
use crate::sse::{SseEvent, decode};
use crate::{EventStream, LlmError, LlmEvent};

pub(super) struct Setup<'a> {
    pub(super) profile: &'a ModelProfile,
    pub(super) cache: CacheHint,
    pub(super) limits: StreamLimits,
    pub(super) started: Instant,
    pub(super) scrubber: Scrubber,
    pub(super) body: BoxStream<'static, Result<Bytes, LlmError>>,
    pub(super) cancel: CancellationToken,
    pub(super) sources: Vec<Option<usize>>,
    pub(super) entries: Vec<Option<EntryId>>,
    pub(super) room: Room,
}

/// How much of an answer is still taken in. A server that never stops must not fill the memory.
pub(super) struct Room {
    most: usize,
    left: usize,
}

/// The least room of an answer, in bytes.
const LEAST_ROOM: usize = 16 * 1024 * 1024;

/// The room for one token of output, in bytes: many times what a token of text takes.
const ROOM_PER_TOKEN: u64 = 64;

/// What a piece takes beside its text: as much as an empty block.
const PIECE: usize = 64;

impl Room {
    /// Far more than the output that is asked for, so that only a broken server meets the limit.
    pub(super) fn of(request: &LlmRequest<'_>, profile: &ModelProfile) -> Self {
        let asked = request.max_output.or(profile.max_output);
        let bytes = asked.unwrap_or_default().get().saturating_mul(ROOM_PER_TOKEN);
        let most = usize::try_from(bytes).unwrap_or(usize::MAX).max(LEAST_ROOM);
        Self { most, left: most }
    }

    fn take(&mut self, event: &LlmEvent) -> Result<(), LlmError> {
        let bytes = match event {
            LlmEvent::Text { delta, .. }
            | LlmEvent::Thinking { delta, .. }
            | LlmEvent::ToolArguments { delta, .. } => delta.len(),
            LlmEvent::BlockStart { .. } => PIECE,
            _ => 0,
        };
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(LlmError::protocol(format!(
                "the answer does not come to its end: {} MiB are far more than was asked for",
                self.most.div_ceil(1024 * 1024)
            ))),
        }
    }
}

/// One answer while it is read. Dropping it drops the body, which closes the connection.
pub(super) struct Reading {
    profile: ModelProfile,
    cache: CacheHint,
    limits: StreamLimits,
    started: Instant,
    scrubber: Scrubber,
    cancel: CancellationToken,
    sources: Vec<Option<usize>>,
    entries: Vec<Option<EntryId>>,
    room: Room,
    /// `None` once the answer is over.
    body: Option<BoxStream<'static, Result<SseEvent, LlmError>>>,
    decoder: Decoder,
    ready: VecDeque<LlmEvent>,
    scratch: Vec<LlmEvent>,
    /// When the next event must be there.
    deadline: Option<Instant>,
    cause: TransientCause,
}

impl Reading {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        Self {
            profile: setup.profile.clone(),
            cache: setup.cache,
            limits: setup.limits,
            started: setup.started,
            scrubber: setup.scrubber,
            cancel: setup.cancel,
            sources: setup.sources,
            entries: setup.entries,
            room: setup.room,
            body: Some(decode(setup.body).boxed()),
            decoder: Decoder::new(setup.profile.api),
            ready: VecDeque::new(),
            scratch: Vec::new(),
            deadline: setup.limits.first_event.map(|limit| setup.started + limit),
            cause: TransientCause::FirstEventTimeout,
        }
    }

    pub(super) fn into_stream(self) -> EventStream {
        // Fused: a consumer may ask again after the end.
        stream::unfold(self, |mut reading| async move {
            let item = reading.next().await?;
            Some((item, reading))
        })
        .fuse()
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<LlmEvent, LlmError>> {
        // A token that was cancelled while the consumer was busy wins over what is already here.
        if self.body.is_some() && self.cancel.is_cancelled() {
            return Some(Err(self.fail(LlmError::cancelled())));
        }
        if let Some(event) = self.ready.pop_front() {
            return Some(Ok(event));
        }
        self.body.as_ref()?;
        // A slow consumer is no stall: the clock starts when waiting starts.
        if self.cause == TransientCause::IdleTimeout {
            self.arm_idle();
        }
        loop {
            let read = self.read().await;
            let outcome = match read {
                Ok(Some(event)) => self.decoder.event(&event, &mut self.scratch),
                Ok(None) => self.decoder.end_of_body(&mut self.scratch),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                // What the failing event also said (its usage) is in the partial reply.
                self.scratch.clear();
                return Some(Err(self.fail(error)));
            }
            if self.scratch.is_empty() {
                continue;
            }
            let mut scratch = std::mem::take(&mut self.scratch);
            for event in scratch.drain(..) {
                let taken = self.room.take(&event);
                match taken.and_then(|()| self.finish_event(event)) {
                    Ok(event) => self.ready.push_back(event),
                    Err(error) => return Some(Err(self.fail(error))),
                }
            }
            self.scratch = scratch;
            self.cause = TransientCause::IdleTimeout;
            return self.ready.pop_front().map(Ok);
        }
    }

    /// The next event of the body; what is already buffered wins over a deadline that has passed.
    async fn read(&mut self) -> Result<Option<SseEvent>, LlmError> {
        let Some(body) = self.body.as_mut() else {
            return Ok(None);
        };
        let total = self.limits.total.map(|limit| self.started + limit);
        let (deadline, cause) = match (self.deadline, total) {
            (Some(deadline), Some(total)) if total < deadline => (Some(total), TransientCause::TotalTimeout),
            (Some(deadline), _) => (Some(deadline), self.cause),
            (None, Some(total)) => (Some(total), TransientCause::TotalTimeout),
            (None, None) => (None, self.cause),
        };
        let expired = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(LlmError::cancelled()),
            event = body.next() => event.transpose(),
            () = expired => Err(timeout(cause)),
        }
    }

    fn arm_idle(&mut self) {
        self.deadline = self.limits.idle.map(|limit| Instant::now() + limit);
    }

    /// Adds what the decoder does not know (prices), and refuses ends that are none.
    fn finish_event(&mut self, event: LlmEvent) -> Result<LlmEvent, LlmError> {
        match event {
            LlmEvent::Usage(usage) => Ok(LlmEvent::Usage(self.priced(usage))),
            LlmEvent::End(mut reply) => {
                reply.usage = self.priced(reply.usage);
                // The rest of the body is a line feed at most.
                self.body = None;
                match empty_reply(&reply, self.profile.context_window) {
                    Some(error) => Err(error),
                    None => Ok(LlmEvent::End(reply)),
                }
            }
            event => Ok(event),
        }
    }

    fn priced(&self, usage: Usage) -> Usage {
        match &self.profile.prices {
            Some(prices) => usage.priced(prices, self.cache),
            None => usage,
        }
    }

    /// Ends the answer: closes the connection and completes the error.
    fn fail(&mut self, mut error: LlmError) -> LlmError {
        self.body = None;
        self.ready.clear();
        let mut partial = self.decoder.partial(error.stop_reason());
        partial.usage = self.priced(partial.usage);
        if partial.response_id.is_some() || !partial.blocks.is_empty() || !partial.usage.is_zero() {
            error.partial = Some(Box::new(partial));
        }
        error.message = self.scrubber.scrub(&error.message).into();
        error.code = error.code.map(|code| self.scrubber.scrub(&code).into());
        if let ErrorClass::MediaRejected { message, entry } = &mut error.class {
            *message = message.and_then(|wire| self.sources.get(wire).copied().flatten());
            *entry = message.and_then(|index| self.entries.get(index).cloned().flatten());
        }
        error
    }
}

/// The error that a normal end without any content stands for: an overflow that the usage shows, or a
/// failure that may pass. A reply that holds something is never thrown away.
fn empty_reply(reply: &LlmReply, window: Option<Tokens>) -> Option<LlmError> {
    if !reply.is_empty() {
        return None;
    }
    let content = if reply.blocks.is_empty() {
        Content::Empty
    } else {
        Content::Present
    };
    let fields = MessageFields {
        stop: reply.stop,
        error_message: None,
        usage: reply.usage,
        content,
    };
    if let Some(class) = silent_overflow(&fields, window) {
        return Some(LlmError::new(
            class,
            "the reply is empty and its usage shows that the prompt did not fit",
        ));
    }
    let ended = matches!(reply.stop, StopReason::Stop | StopReason::ToolUse);
    (ended && reply.usage.output == Tokens::ZERO)
        .then(|| LlmError::transient(TransientCause::EmptyReply, EMPTY_COMPLETION))
}

/// What is recorded of a reply that ended normally but held nothing (spec "Orchestrator and clients", 8.2).
pub const EMPTY_COMPLETION: &str = "Provider returned an empty completion";

pub(super) fn timeout(cause: TransientCause) -> LlmError {
    LlmError::transient(
        cause,
        match cause {
            TransientCause::FirstEventTimeout => "the provider did not begin to answer in time",
            TransientCause::TotalTimeout => "the call took longer than its budget",
            _ => "the stream fell silent",
        },
    )
}
