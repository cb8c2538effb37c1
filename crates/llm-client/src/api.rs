//! The wire formats: requests to bytes, events to replies. Nothing here touches a socket.

pub(crate) mod anthropic;
pub(crate) mod completions;
mod lenient;
pub(crate) mod responses;
mod transform;

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, LlmReply, LlmRequest, ModelProfile, ReasoningEffort, StopReason, TransientCause,
};

use crate::classify::{ErrorBody, UserPatterns};
use crate::sse::SseEvent;
use crate::{LlmError, LlmEvent};

/// The output limit that is asked of a model whose own limit is unknown (FB-064).
pub const UNKNOWN_MAX_OUTPUT: Tokens = Tokens(8192);

/// A body ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRequest {
    /// JSON.
    pub body: Vec<u8>,
    /// For each element of the wire format's list of messages, the request message that it came from;
    /// `None` for system text and inserted notes.
    pub sources: Vec<Option<usize>>,
}

/// Writes the body of a request.
///
/// # Errors
/// Never for a request made of this crate's types; the signature follows the JSON writer.
pub fn encode(profile: &ModelProfile, request: &LlmRequest<'_>) -> Result<WireRequest, LlmError> {
    match profile.api {
        Api::AnthropicMessages => anthropic::encode(profile, request),
        Api::OpenAiCompletions => completions::encode(profile, request),
        Api::OpenAiResponses => responses::encode(profile, request),
    }
}

/// A state machine from the events of one body to the events of one reply.
///
/// The same events in give the same events out, however the bytes were chunked. No socket, no clock.
pub struct Decoder(Machine);

enum Machine {
    Anthropic(anthropic::Decoder),
    Completions(completions::Decoder),
    Responses(responses::Decoder),
}

impl Decoder {
    /// A decoder for one body.
    pub fn new(api: Api) -> Self {
        Self(match api {
            Api::AnthropicMessages => Machine::Anthropic(anthropic::Decoder::default()),
            Api::OpenAiCompletions => Machine::Completions(completions::Decoder::default()),
            Api::OpenAiResponses => Machine::Responses(responses::Decoder::default()),
        })
    }

    /// Takes one event and appends what follows from it. After [`LlmEvent::End`] nothing more is read.
    ///
    /// # Errors
    /// When the provider reports a failure or does not follow its API. The decoder is then done.
    pub fn event(&mut self, event: &SseEvent, out: &mut Vec<LlmEvent>) -> Result<(), LlmError> {
        match &mut self.0 {
            Machine::Anthropic(decoder) => decoder.event(event, out),
            Machine::Completions(decoder) => decoder.event(event, out),
            Machine::Responses(decoder) => decoder.event(event, out),
        }
    }

    /// The body ended.
    ///
    /// # Errors
    /// When the terminal marker is missing: a stream that merely stops is a failure, not a reply.
    pub fn end_of_body(&mut self, out: &mut Vec<LlmEvent>) -> Result<(), LlmError> {
        match &mut self.0 {
            Machine::Anthropic(_) => Err(stream_ended("the Anthropic stream ended before message_stop")),
            Machine::Completions(decoder) => decoder.end_of_body(out),
            Machine::Responses(_) => Err(stream_ended(
                "the Responses stream ended before response.completed",
            )),
        }
    }

    /// What has arrived of the reply.
    pub fn partial(&self, stop: StopReason) -> LlmReply {
        match &self.0 {
            Machine::Anthropic(decoder) => decoder.reply.reply(stop, None),
            Machine::Completions(decoder) => decoder.reply.reply(stop, None),
            Machine::Responses(decoder) => decoder.reply.reply(stop, None),
        }
    }
}

pub(crate) fn stream_ended(message: &str) -> LlmError {
    LlmError::transient(TransientCause::StreamEnded, message)
}

/// An event whose JSON cannot be read: cut off at the end of a body, or not the API's.
pub(crate) fn bad_event(error: &serde_json::Error) -> LlmError {
    if error.is_eof() {
        stream_ended("the stream ended inside an event")
    } else {
        LlmError::protocol(format!("an event of the stream cannot be read: {error}"))
    }
}

/// The failure that an error object inside a stream reports.
pub(crate) fn stream_error(body: &str) -> LlmError {
    let parsed = ErrorBody::parse(body.as_bytes());
    let class = parsed.classify(None, &UserPatterns::default());
    error_from_body(class, parsed)
}

pub(crate) fn error_from_body(
    class: foldline_session_model::model_call::ErrorClass,
    body: ErrorBody,
) -> LlmError {
    let code = body.codes.into_iter().next();
    let message = match (&code, body.message) {
        (_, Some(message)) => message,
        (Some(code), None) => code.clone(),
        (None, None) => "the provider gave no details".to_owned(),
    };
    LlmError {
        status: body.status,
        code: code.map(Into::into),
        ..LlmError::new(class, message)
    }
}

/// The output limit to ask for: what is wanted, within what the model can and its window.
fn max_output(profile: &ModelProfile, request: &LlmRequest<'_>) -> Option<Tokens> {
    let ceiling = profile.max_output.unwrap_or(UNKNOWN_MAX_OUTPUT);
    let wanted = request.max_output.map(|wanted| wanted.min(ceiling));
    match profile.context_window.filter(|window| *window > Tokens::ZERO) {
        Some(window) => wanted.map(|wanted| wanted.min(window)),
        None => wanted,
    }
}

/// The level of effort in the words of the OpenAI APIs.
fn effort(effort: ReasoningEffort) -> Option<&'static str> {
    match effort {
        ReasoningEffort::Unset => None,
        ReasoningEffort::Off => Some("none"),
        // `minimal` is known to few models, `low` to all.
        ReasoningEffort::Minimal | ReasoningEffort::Low => Some("low"),
        ReasoningEffort::Medium => Some("medium"),
        ReasoningEffort::High => Some("high"),
        ReasoningEffort::Max => Some("xhigh"),
    }
}

pub(crate) fn to_bytes<T: serde::Serialize>(body: &T) -> Result<Vec<u8>, LlmError> {
    serde_json::to_vec(body)
        .map_err(|error| LlmError::protocol(format!("the request cannot be written: {error}")))
}

#[cfg(test)]
mod tests;
