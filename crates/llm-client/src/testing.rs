//! Models and transports without a network, for tests (feature `testing`).
//!
//! [`ScriptedModel`] plays replies, failures and delays; [`ReplayTransport`] plays bodies. Both wait with
//! `tokio::time`, so a test with a paused clock runs hours of silence in no time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    ArgumentsState, AssistantBlock, CacheHint, ErrorClass, LlmReply, LlmRequest, ModelProfile, RawJson,
    StopReason, ToolCall, TransientCause, Usage,
};
use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use crate::event::{BlockKind, ReplyBuilder};
use crate::transport::{HttpRequest, HttpResponse, RetryHeaders, Transport};
use crate::{EventStream, LanguageModel, LlmError, LlmEvent};

/// One answer of a script.
#[derive(Clone, Debug)]
pub struct Script {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Wait(Duration),
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    Usage(Usage),
    Fail(Box<LlmError>),
    Hang,
    Stop(StopReason),
}

impl Script {
    /// An answer of one text that ends normally, with this usage.
    pub fn reply(text: impl Into<String>, usage: Usage) -> Self {
        Self::new().text(text).usage(usage).stop(StopReason::Stop)
    }

    /// A failure before anything is said.
    pub fn failure(class: ErrorClass, message: impl Into<Box<str>>) -> Self {
        Self::new().fail(LlmError::new(class, message))
    }

    /// An answer that never comes.
    pub fn hang() -> Self {
        Self {
            steps: vec![Step::Hang],
        }
    }

    /// An answer to be built step by step. Without an end it breaks off as a lost connection does.
    pub const fn new() -> Self {
        Self { steps: Vec::new() }
    }

    /// Silence.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.step(Step::Wait(time))
    }

    /// A block of text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.step(Step::Text(text.into()))
    }

    /// A signed block of thinking.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.step(Step::Thinking {
            text: text.into(),
            signature: signature.into(),
        })
    }

    /// A call of a tool with these arguments as JSON text.
    #[must_use]
    pub fn call(self, id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.step(Step::Call {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        })
    }

    /// A count.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        self.step(Step::Usage(usage))
    }

    /// A failure at this point.
    #[must_use]
    pub fn fail(self, error: LlmError) -> Self {
        self.step(Step::Fail(Box::new(error)))
    }

    /// Silence for ever from this point.
    #[must_use]
    pub fn then_hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// The end.
    #[must_use]
    pub fn stop(self, stop: StopReason) -> Self {
        self.step(Step::Stop(stop))
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

/// What a script does when it has no answer left.
#[derive(Clone, Debug, Default)]
pub enum WhenEmpty {
    /// It fails, so that a test notices a call too many.
    #[default]
    Fail,
    /// It plays this answer again and again.
    Repeat(Script),
}

/// A model that plays scripts and remembers what it was asked.
pub struct ScriptedModel {
    profile: ModelProfile,
    scripts: Mutex<VecDeque<Script>>,
    when_empty: WhenEmpty,
    requests: Mutex<Vec<String>>,
}

impl ScriptedModel {
    /// A model that plays these answers in order.
    pub fn new(
        profile: ModelProfile,
        scripts: impl IntoIterator<Item = Script>,
        when_empty: WhenEmpty,
    ) -> Self {
        Self {
            profile,
            scripts: Mutex::new(scripts.into_iter().collect()),
            when_empty,
            requests: Mutex::new(Vec::new()),
        }
    }

    /// One more answer.
    pub fn push(&self, script: Script) {
        locked(&self.scripts).push_back(script);
    }

    /// The requests so far as JSON, which [`LlmRequest`] can be read from.
    pub fn requests(&self) -> Vec<String> {
        locked(&self.requests).clone()
    }

    /// How often the model was asked.
    pub fn calls(&self) -> usize {
        locked(&self.requests).len()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl LanguageModel for ScriptedModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let asked = serde_json::to_string(request).map_err(|error| LlmError::protocol(error.to_string()))?;
        locked(&self.requests).push(asked);
        let script = match (locked(&self.scripts).pop_front(), &self.when_empty) {
            (Some(script), _) => script,
            (None, WhenEmpty::Repeat(script)) => script.clone(),
            (None, WhenEmpty::Fail) => return Err(LlmError::protocol("the script has no answer left")),
        };
        if cancel.is_cancelled() {
            return Err(LlmError::cancelled());
        }
        let mut reply = ReplyBuilder::default();
        reply.model = Some(self.profile.id.clone());
        let playing = Playing {
            steps: script.steps.into(),
            reply,
            ready: VecDeque::new(),
            profile: self.profile.clone(),
            cancel,
            over: false,
        };
        let events = stream::unfold(playing, |mut playing| async move {
            let item = playing.next().await?;
            Some((item, playing))
        });
        Ok(events.fuse().boxed())
    }
}

struct Playing {
    steps: VecDeque<Step>,
    reply: ReplyBuilder,
    ready: VecDeque<LlmEvent>,
    profile: ModelProfile,
    cancel: CancellationToken,
    over: bool,
}

impl Playing {
    async fn next(&mut self) -> Option<Result<LlmEvent, LlmError>> {
        loop {
            if !self.over && self.cancel.is_cancelled() {
                return Some(Err(self.fail(LlmError::cancelled())));
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.over {
                return None;
            }
            let mut out = Vec::new();
            match self.steps.pop_front() {
                Some(Step::Wait(time)) => {
                    let cancel = self.cancel.clone();
                    if cancel
                        .run_until_cancelled(tokio::time::sleep(time))
                        .await
                        .is_none()
                    {
                        return Some(Err(self.fail(LlmError::cancelled())));
                    }
                }
                Some(Step::Hang) => {
                    self.cancel.cancelled().await;
                    return Some(Err(self.fail(LlmError::cancelled())));
                }
                Some(Step::Text(text)) => self.block(BlockKind::Text, &text, None, &mut out),
                Some(Step::Thinking { text, signature }) => {
                    self.block(BlockKind::Thinking, &text, Some(&signature), &mut out);
                }
                Some(Step::Call { id, name, arguments }) => {
                    self.block(BlockKind::ToolCall { id, name }, &arguments, None, &mut out);
                }
                Some(Step::Usage(usage)) => {
                    let usage = match &self.profile.prices {
                        Some(prices) => usage.priced(prices, CacheHint::Short),
                        None => usage,
                    };
                    self.reply.start(&mut out);
                    self.reply.set_usage(usage, &mut out);
                }
                Some(Step::Fail(error)) => return Some(Err(self.fail(*error))),
                Some(Step::Stop(stop)) => {
                    self.over = true;
                    self.reply.finish(stop, None, &mut out);
                }
                None => {
                    let error = LlmError::transient(TransientCause::StreamEnded, "the script breaks off");
                    return Some(Err(self.fail(error)));
                }
            }
            self.ready.extend(out);
        }
    }

    fn block(&mut self, kind: BlockKind, text: &str, signature: Option<&str>, out: &mut Vec<LlmEvent>) {
        let index = self.reply.open(kind, out);
        self.reply.append(index, text, out);
        if let Some(signature) = signature {
            self.reply.sign(index, signature);
        }
        self.reply.close(index, out);
    }

    fn fail(&mut self, mut error: LlmError) -> LlmError {
        self.over = true;
        self.ready.clear();
        let partial = self.reply.reply(error.stop_reason(), None);
        if !partial.blocks.is_empty() || !partial.usage.is_zero() {
            error.partial = Some(Box::new(partial));
        }
        error
    }
}

/// A whole reply as a test compares it.
pub fn text_reply(text: &str) -> LlmReply {
    LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: text.to_owned().into(),
            signature: None,
        }],
        usage: Usage::default(),
        stop: StopReason::Stop,
        raw_stop: None,
        model: None,
        response_id: None,
    }
}

/// A call as a test compares it; `None` when the arguments are no JSON.
pub fn tool_call(id: &str, name: &str, arguments: &str) -> Option<AssistantBlock<'static>> {
    Some(AssistantBlock::ToolCall(ToolCall {
        id: id.to_owned().into(),
        name: name.to_owned().into(),
        arguments: RawJson::parse(arguments.to_owned())?,
        state: ArgumentsState::Whole,
    }))
}

/// A usage of these prompt and output tokens.
pub fn usage(input: u64, output: u64) -> Usage {
    Usage::from_parts(Tokens(input), Tokens(output), Tokens::ZERO, Tokens::ZERO)
}

/// One answer of a [`ReplayTransport`].
#[derive(Clone, Debug)]
pub struct Replay {
    /// The status.
    pub status: u16,
    /// What the headers ask for.
    pub retry: RetryHeaders,
    /// The body in chunks, each after a wait.
    pub chunks: Vec<(Duration, Bytes)>,
    /// Whether the body ends after the last chunk.
    pub end: ReplayEnd,
}

/// How a replayed body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayEnd {
    /// It is closed.
    #[default]
    Closed,
    /// It stays open and silent.
    Open,
    /// The connection breaks.
    Broken,
}

impl Replay {
    /// A body that arrives at once.
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::with_status(200, body)
    }

    /// A body under a status.
    pub fn with_status(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            retry: RetryHeaders::default(),
            chunks: vec![(Duration::ZERO, body.into())],
            end: ReplayEnd::Closed,
        }
    }

    /// A body in chunks, each after the same wait.
    pub fn trickle(body: &[u8], chunk: usize, wait: Duration) -> Self {
        let chunks = body
            .chunks(chunk.max(1))
            .map(|bytes| (wait, Bytes::copy_from_slice(bytes)));
        Self {
            chunks: chunks.collect(),
            ..Self::ok(Bytes::new())
        }
    }

    /// The same answer with another end.
    #[must_use]
    pub fn ending(mut self, end: ReplayEnd) -> Self {
        self.end = end;
        self
    }
}

/// A transport that plays answers and remembers requests.
#[derive(Default)]
pub struct ReplayTransport {
    answers: Mutex<VecDeque<Replay>>,
    requests: Mutex<Vec<HttpRequest>>,
}

impl ReplayTransport {
    /// A transport that plays these answers in order.
    pub fn new(answers: impl IntoIterator<Item = Replay>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
        }
    }

    /// The bodies that were sent.
    pub fn bodies(&self) -> Vec<String> {
        locked(&self.requests)
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect()
    }

    /// The addresses that were asked.
    pub fn urls(&self) -> Vec<String> {
        locked(&self.requests)
            .iter()
            .map(|request| request.url.to_string())
            .collect()
    }
}

#[async_trait]
impl Transport for ReplayTransport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, LlmError> {
        locked(&self.requests).push(request);
        let answer = locked(&self.answers).pop_front();
        let Some(answer) = answer else {
            return Err(LlmError::protocol("the transport has no answer left"));
        };
        let chunks = stream::iter(answer.chunks).then(|(wait, bytes)| async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(bytes)
        });
        let end = answer.end;
        let tail = stream::once(async move {
            match end {
                ReplayEnd::Closed => None,
                ReplayEnd::Open => std::future::pending().await,
                ReplayEnd::Broken => Some(Err(LlmError::transient(
                    TransientCause::Network,
                    "the connection broke",
                ))),
            }
        })
        .filter_map(futures::future::ready);
        Ok(HttpResponse {
            status: answer.status,
            retry: answer.retry,
            content_type: Some("text/event-stream".to_owned()),
            body: chunks.chain(tail).boxed(),
        })
    }
}
