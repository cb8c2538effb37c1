//! Models and transports without a network, for tests (feature `testing`).
//!
//! [`ScriptedModel`] plays replies, failures and delays, or answers what a closure makes of the request, and
//! keeps every request with the moment it came. [`ReplayTransport`] plays bodies. Both wait with `tokio::time`,
//! so a test with a paused clock runs hours of silence in no time.

mod replay;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    ArgumentsState, AssistantBlock, CacheHint, ErrorClass, InputBlock, LlmReply, LlmRequest, MessageContent,
    ModelProfile, RawJson, StopReason, ToolCall, TransientCause, Usage,
};
use futures::{StreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::event::{BlockKind, ReplyBuilder};
use crate::{EventStream, LanguageModel, LlmError, LlmEvent, NativeCompaction};

pub use replay::{Replay, ReplayEnd, ReplayTransport};

/// One answer of a script.
#[derive(Clone, Debug)]
pub struct Script {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Wait(Duration),
    Text(String),
    Pieces(VecDeque<String>, Duration),
    /// The rest of a block whose first pieces were sent.
    MorePieces(usize, VecDeque<String>, Duration),
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

    /// An answer of one call of a tool, with these arguments as JSON text.
    pub fn tool_use(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
        usage: Usage,
    ) -> Self {
        Self::new()
            .call(id, name, arguments)
            .usage(usage)
            .stop(StopReason::ToolUse)
    }

    /// An answer that never comes: it ends when the caller cancels.
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

    /// A block of text that arrives piece by piece, each after this silence.
    #[must_use]
    pub fn pieces(self, pieces: impl IntoIterator<Item = impl Into<String>>, each: Duration) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        self.step(Step::Pieces(pieces, each))
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

/// Makes an answer of a request and its number, from 0.
pub type Answer = Arc<dyn Fn(&LlmRequest<'_>, usize) -> Script + Send + Sync>;

/// What a model does when it has no script left.
#[derive(Clone, Default)]
pub enum WhenEmpty {
    /// It fails, so that a test notices a call too many.
    #[default]
    Fail,
    /// It plays this answer again and again.
    Repeat(Script),
    /// It answers what is made of the request.
    Answer(Answer),
}

/// A request that a [`ScriptedModel`] was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The request.
    pub request: LlmRequest<'static>,
    /// When it came, on the clock of the test.
    pub at: Instant,
}

impl Asked {
    /// All texts of the last message, joined by newlines: what the model has to react to.
    pub fn last_text(&self) -> String {
        let Some(message) = self.request.messages.last() else {
            return String::new();
        };
        let texts: Vec<&str> = match &message.content {
            MessageContent::User { blocks } | MessageContent::ToolResult { blocks, .. } => blocks
                .iter()
                .filter_map(|block| match block {
                    InputBlock::Text(text) => Some(text.as_ref()),
                    InputBlock::Image(_) => None,
                })
                .collect(),
            MessageContent::Assistant { blocks, .. } => blocks
                .iter()
                .filter_map(|block| match block {
                    AssistantBlock::Text { text, .. } => Some(text.as_ref()),
                    _ => None,
                })
                .collect(),
            MessageContent::Opaque { fallback, .. } => vec![fallback],
        };
        texts.join("\n")
    }
}

/// A model that plays scripts and remembers what it was asked.
pub struct ScriptedModel {
    profile: ModelProfile,
    scripts: Mutex<VecDeque<Script>>,
    when_empty: WhenEmpty,
    requests: Mutex<Vec<(String, Instant)>>,
    native: Option<NativeCompaction>,
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
            native: None,
        }
    }

    /// The model with a compaction of its provider.
    #[must_use]
    pub fn with_native_compaction(mut self, native: NativeCompaction) -> Self {
        self.native = Some(native);
        self
    }

    /// A model that answers what a closure makes of each request; its second argument counts the requests from
    /// 0.
    pub fn answering(
        profile: ModelProfile,
        answer: impl Fn(&LlmRequest<'_>, usize) -> Script + Send + Sync + 'static,
    ) -> Self {
        Self::new(profile, [], WhenEmpty::Answer(Arc::new(answer)))
    }

    /// One more answer, to be played before what happens when there is none left.
    pub fn push(&self, script: Script) {
        locked(&self.scripts).push_back(script);
    }

    /// The requests so far as JSON, for snapshots.
    pub fn requests(&self) -> Vec<String> {
        locked(&self.requests)
            .iter()
            .map(|(request, _)| request.clone())
            .collect()
    }

    /// The requests so far, with the moments they came.
    ///
    /// # Panics
    /// Never: what was written as JSON can be read again.
    #[expect(clippy::expect_used, reason = "the JSON was written from the same type")]
    pub fn asked(&self) -> Vec<Asked> {
        locked(&self.requests)
            .iter()
            .map(|(request, at)| Asked {
                request: serde_json::from_str(request).expect("a request can be read again"),
                at: *at,
            })
            .collect()
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

    fn native_compaction(&self) -> Option<&NativeCompaction> {
        self.native.as_ref()
    }

    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let asked = serde_json::to_string(request).map_err(|error| LlmError::protocol(error.to_string()))?;
        let number = {
            let mut requests = locked(&self.requests);
            requests.push((asked, Instant::now()));
            requests.len() - 1
        };
        let script = match (locked(&self.scripts).pop_front(), &self.when_empty) {
            (Some(script), _) => script,
            (None, WhenEmpty::Repeat(script)) => script.clone(),
            (None, WhenEmpty::Answer(answer)) => answer(request, number),
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
                    if !self.sleeps(time).await {
                        return Some(Err(self.fail(LlmError::cancelled())));
                    }
                }
                Some(Step::Pieces(pieces, each)) => {
                    let index = self.reply.open(BlockKind::Text, &mut out);
                    self.steps.push_front(Step::MorePieces(index, pieces, each));
                }
                Some(Step::MorePieces(index, mut pieces, each)) => match pieces.pop_front() {
                    Some(piece) => {
                        if !self.sleeps(each).await {
                            return Some(Err(self.fail(LlmError::cancelled())));
                        }
                        self.reply.append(index, &piece, &mut out);
                        self.steps.push_front(Step::MorePieces(index, pieces, each));
                    }
                    None => self.reply.close(index, &mut out),
                },
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

    /// Waits, unless the caller cancels before.
    async fn sleeps(&self, time: Duration) -> bool {
        let wait = tokio::time::sleep(time);
        self.cancel.run_until_cancelled(wait).await.is_some()
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

#[cfg(test)]
mod tests;
